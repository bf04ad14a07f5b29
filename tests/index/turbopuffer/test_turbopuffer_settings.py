"""How turbopuffer is chosen: what the environment must say, and what namespaces and documents are called."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import uuid
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.index.turbopuffer.service_settings import Naming, document_id, is_table, service
from commonplace.index.turbopuffer.wire import TurbopufferWire
from commonplace.library import Library
from commonplace.settings import BadSetting
from kit.forked import PROGRAM, forked
from opening import library_settings
from support.turbopuffer_server import TurbopufferServer

KEY = {"TURBOPUFFER_API_KEY": "tpuf_secret"}
PLACE = {"TURBOPUFFER_BASE_URL": "http://127.0.0.1:9"}


@pytest.mark.parametrize(
    ("environment", "sentence"),
    [
        ({**PLACE}, "TURBOPUFFER_API_KEY is not set"),
        ({**KEY}, "neither is set"),
        ({**KEY, **PLACE, "TURBOPUFFER_REGION": "gcp-us-central1"}, "both are set"),
        ({**KEY, "TURBOPUFFER_BASE_URL": "http://{region}.host"}, "TURBOPUFFER_REGION is not set"),
        ({**KEY, "TURBOPUFFER_REGION": "gcp us/central1"}, "TURBOPUFFER_REGION must be letters"),
        ({**KEY, "TURBOPUFFER_BASE_URL": "http://host:port"}, "must name a host"),
        ({**KEY, "TURBOPUFFER_BASE_URL": "nowhere"}, "must name a host"),
        ({**KEY, "TURBOPUFFER_BASE_URL": "ftp://ann:tpuf_secret@host"}, "must name a host.*'host'"),
        ({**KEY, "TURBOPUFFER_BASE_URL": "https://ann:tpuf_secret@"}, "must name a host"),
        ({**KEY, "TURBOPUFFER_BASE_URL": "https://ann:tpuf_secret@[host"}, "must name a host"),
    ],
)
def test_an_environment_that_does_not_say_where_is_a_sentence(environment: dict[str, str], sentence: str) -> None:
    with pytest.raises(BadSetting, match=sentence) as told:
        service(environment)
    assert "tpuf_secret" not in str(told.value)


def test_a_region_is_a_host_and_the_key_is_not_shown() -> None:
    found = service({**KEY, "TURBOPUFFER_REGION": "gcp-us-central1"})
    assert (found.base_url, found.host) == (
        "https://gcp-us-central1.turbopuffer.com",
        "gcp-us-central1.turbopuffer.com",
    )
    assert "tpuf_secret" not in repr(found)


@pytest.mark.parametrize(
    ("environment", "address"),
    [
        ({"TURBOPUFFER_REGION": "gcp-us-central1"}, "https://gcp-us-central1.turbopuffer.com"),
        ({"TURBOPUFFER_REGION": "here", "TURBOPUFFER_BASE_URL": "http://{region}.host:8443"}, "http://here.host:8443"),
        (PLACE, PLACE["TURBOPUFFER_BASE_URL"]),
    ],
)
def test_the_sdk_takes_the_environment_as_it_is(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], address: str
) -> None:
    for name in ("TURBOPUFFER_REGION", "TURBOPUFFER_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    for name, value in (KEY | environment).items():
        monkeypatch.setenv(name, value)
    wire = TurbopufferWire(service())
    try:
        assert str(wire._client_now().base_url).rstrip("/") == address
    finally:
        wire.close()


def test_an_error_of_the_sdk_s_own_is_a_sentence_that_names_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TURBOPUFFER_REGION", "here")
    wire = TurbopufferWire(service(KEY | PLACE))
    with pytest.raises(BadSetting, match="Check TURBOPUFFER_API_KEY, TURBOPUFFER_REGION and TURBOPUFFER_BASE_URL"):
        wire.namespaces("")


@pytest.mark.parametrize("command", [["add", "folder"], ["search", "tea"]])
def test_a_region_in_the_environment_ends_no_command_in_a_traceback(tmp_path: Path, command: list[str]) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "tea.md").write_text("# Tea")
    with TurbopufferServer() as server:
        place = {"TURBOPUFFER_REGION": "localhost", "TURBOPUFFER_BASE_URL": server.url.replace("127.0.0.1", "{region}")}
        found = subprocess.run(
            forked("--home", str(tmp_path / "home"), *command),
            env={
                **{name: value for name, value in os.environ.items() if not name.startswith("TURBOPUFFER_")},
                **place, "TURBOPUFFER_API_KEY": server.key, "COMMONPLACE_INDEX": "turbopuffer",
                "COMMONPLACE_MODEL": "static",
            },
            cwd=tmp_path, capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        assert (found.returncode, "Traceback" in found.stderr) == (0, False)
        assert server.log


def test_a_password_in_the_address_is_used_and_not_shown() -> None:
    found = service({**KEY, "TURBOPUFFER_BASE_URL": "https://ann:pass@word@host:8443/puffer/"})
    assert (found.base_url, found.host) == ("https://ann:pass@word@host:8443/puffer", "host:8443")
    assert "pass" not in repr(found)


def test_a_library_says_at_start_what_is_missing_and_leaves_nothing_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("TURBOPUFFER_API_KEY", "TURBOPUFFER_REGION", "TURBOPUFFER_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(BadSetting, match="TURBOPUFFER_API_KEY"):
        Library.open(tmp_path, settings=library_settings(tmp_path, index="turbopuffer"))
    for name, value in (KEY | PLACE).items():
        monkeypatch.setenv(name, value)
    with pytest.raises(BadSetting, match="COMMONPLACE_TURBOPUFFER_PREFIX"):
        Library.open(tmp_path, settings=library_settings(tmp_path, index="turbopuffer", turbopuffer_prefix="a.b"))


def test_without_its_sdk_the_command_ends_with_78_and_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "turbopuffer.py").write_text("raise ImportError('not installed')")
    found = subprocess.run(
        [*PROGRAM, "--home", str(tmp_path / "home"), "search", "tea"],
        env={**os.environ, **KEY, **PLACE, "COMMONPLACE_INDEX": "turbopuffer", "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (found.returncode, found.stdout) == (78, "")
    assert "Install commonplace-mcp[turbopuffer]" in found.stderr
    assert "Traceback" not in found.stderr


def test_the_local_index_never_loads_the_sdk(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path\n"
        "from commonplace.library import Library; from commonplace.model import Draft\n"
        "with Library.open(Path(sys.argv[1])) as library:\n"
        "    library.put(Draft('note', 'x', body='tea')); assert library.search('tea').hits\n"
        "assert not [name for name in sys.modules if 'turbopuffer' in name], sys.modules"
    )
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COMMONPLACE_")}
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True, timeout=60, env=environment)


ids = st.from_regex(r"[a-z0-9]{1,26}", fullmatch=True)


@given(
    prefix=st.from_regex(r"[A-Za-z0-9-]{0,20}", fullmatch=True),
    space=st.from_regex(r"[a-z0-9][a-z0-9._-]{0,63}", fullmatch=True),
    project=ids,
    table=ids,
)
def test_every_namespace_is_a_name_the_service_takes(prefix: str, space: str, project: str, table: str) -> None:
    naming = Naming(prefix, space, "0123456789ab", "_whole", "print")
    for name in (naming.items, naming.table(project, table)):
        assert re.fullmatch(r"[A-Za-z0-9-_.]{1,128}", name)
    assert not is_table(naming.items)
    assert is_table(naming.table(project, table))
    assert naming.is_table(naming.table(project, table))


def test_a_namespace_is_named_after_its_space_its_log_and_its_model() -> None:
    assert Naming("", "default", "log").table("p1", "t1") == "default.log.project_p1_table_t1"
    assert Naming("home", "ann", "log").items == "home.ann.log.items"
    with_model = Naming("", "default", "log", model="print")
    assert re.fullmatch(r"default\.log-[0-9a-f]{6}\.items", with_model.items)
    assert with_model.model_of(with_model.items) == with_model.items.removeprefix("default.log").removesuffix(".items")
    assert with_model.model_of("default.log.items") == ""
    for other in ("items", "default.log2.items", "default.log.items_whole", "default.log-12.items", "x.log.items"):
        assert with_model.model_of(other) is None
    assert not Naming("", "default", "log").is_table(Naming("", "ann", "log").table("p", "t"))
    assert not Naming("", "default", "log", "_whole").is_table(Naming("", "default", "log").table("p", "t"))


def test_a_table_s_namespace_is_known_to_its_own_space_and_index_alone() -> None:
    spaces = ("default", "ann", "ann.project_x", "ann.project_x_table_y")
    namings = [
        Naming(*parts)
        for parts in product(("", "a", "s"), spaces, ("log", "log2"), ("", "_whole", "_other_whole"), ("", "print"))
    ]
    for one, other in product(namings, namings):
        assert one.is_table(other.table("p1", "t1")) is (one == other)
    assert not Naming("", "default", "log").is_table("default.log.project_p1_table_t1\n")


parts = st.tuples(st.text(max_size=5), st.text(max_size=50), st.sampled_from(["a" * 64, "b" * 64]), st.integers(0, 9))


@given(one=parts, other=parts)
def test_a_document_s_id_is_a_uuid_made_of_all_its_parts(
    one: tuple[str, str, str, int], other: tuple[str, str, str, int]
) -> None:
    first, second = document_id(*one, "note", 0), document_id(*other, "note", 0)
    assert (first == second) is (one == other)
    found = uuid.UUID(first)
    assert (found.version, str(found), len(found.bytes)) == (8, first, 16)
    assert document_id(*one, "note", 1) != first != document_id(*one, "memory", 0)
