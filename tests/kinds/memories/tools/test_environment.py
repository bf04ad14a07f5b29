"""The other server's variables as weaker names of ours: contracts/memory.md, section 12."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from memory_calls import Tools

from commonplace.cli.serve import reads_variables
from commonplace.kinds.memories.metadata import sync_fields, wanted_fields
from commonplace.kinds.memories.tools.environment import HONOURED, adopt_database, aliases, without_effect
from commonplace.library import Library
from commonplace.settings import BadSetting, Settings
from commonplace.store.metadata_index import MetadataIndex
from opening import library_settings

ARCHIVE = Path(__file__).parents[1] / "context-server-2.2.2.zip"


def test_every_honoured_variable_names_a_setting() -> None:
    names = set(Settings.__dataclass_fields__)
    assert {setting for setting, _ in HONOURED.values()} <= names


def test_aliases_are_read_and_weaker_than_our_own() -> None:
    environment = {"ENABLE_FTS": "no", "HYBRID_RRF_K": "10", "SEARCH_TRUNCATION_LENGTH": "100", "CHUNK_SIZE": ""}
    assert aliases(environment) == {"memory_lexical": False, "memory_rrf_k": 10, "memory_truncation": 100}
    assert "memory_rrf_k" not in aliases({**environment, "COMMONPLACE_MEMORY_RRF_K": "99"})


SWITCHES = [name for name in HONOURED if name.startswith("ENABLE_")]


@pytest.mark.parametrize("name", SWITCHES)
@pytest.mark.parametrize(
    ("value", "on"),
    [
        *((value, True) for value in ("true", "True", "1", "yes", "on", " ON ")),
        *((value, False) for value in ("false", "FALSE", "0", "no", "off", "Off")),
    ],
)
def test_all_seven_switches_are_on_or_off_in_every_spelling(name: str, value: str, on: bool) -> None:
    assert len(SWITCHES) == 7
    assert aliases({name: value}) == {HONOURED[name][0]: on}


@pytest.mark.parametrize("name", SWITCHES)
@pytest.mark.parametrize("value", ["auto", "AUTO", " auto ", " "])
def test_a_switch_at_auto_leaves_our_own_setting_as_it_is(
    name: str, value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    setting, config = HONOURED[name][0], tmp_path / "config.toml"
    config.write_text(f"{setting} = false\n")
    monkeypatch.setenv("COMMONPLACE_CONFIG", str(config))
    assert getattr(Settings.load(**aliases({name: value})), setting) is False


@pytest.mark.parametrize("name", SWITCHES)
def test_a_switch_that_is_neither_is_named(name: str) -> None:
    with pytest.raises(BadSetting, match=f"^{name} must be auto, true or false, not 'maybe'.$"):
        aliases({name: "maybe"})


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("ENABLE_FTS", "maybe", "ENABLE_FTS must be auto, true or false, not 'maybe'."),
        ("HYBRID_RRF_K", "many", "HYBRID_RRF_K must be a whole number, not 'many'."),
        ("SEARCH_TRUNCATION_LENGTH", "49", "SEARCH_TRUNCATION_LENGTH must be between 50 and 1000, not 49."),
        (
            "METADATA_INDEX_SYNC_MODE",
            "x",
            "METADATA_INDEX_SYNC_MODE must be one of strict, auto, warn, additive, not 'x'.",
        ),
        ("FTS_LANGUAGE", "klingon", "FTS_LANGUAGE must be one of arabic"),
        ("CHUNK_AGGREGATION", "sum", "CHUNK_AGGREGATION must be one of max"),
    ],
)
def test_what_cannot_be_parsed_names_the_variable_and_ends_with_78(name: str, value: str, sentence: str) -> None:
    with pytest.raises(BadSetting) as caught:
        aliases({name: value})
    assert str(caught.value).startswith(sentence)
    assert caught.value.exit_code == 78


def test_only_this_profile_or_the_compatible_mode_reads_them() -> None:
    assert reads_variables("memory", {})
    assert reads_variables("all", {"COMMONPLACE_COMPAT": "context-server"})
    assert not reads_variables("commonplace", {"COMMONPLACE_COMPAT": "other"})


def test_a_provider_that_is_not_there_means_no_vectors(caplog: pytest.LogCaptureFixture) -> None:
    assert aliases({"EMBEDDING_PROVIDER": "voyage"}) == {"memory_embedding": False}
    assert "EMBEDDING_PROVIDER=voyage" in caplog.text


def test_variables_without_effect_are_listed() -> None:
    assert without_effect({"POOL_MAX_READERS": "1", "SQLITE_MMAP_SIZE": "2", "PATH": "x"}) == [
        "POOL_MAX_READERS", "SQLITE_MMAP_SIZE",
    ]  # fmt: skip


def test_a_database_is_adopted_once(tmp_path: Path) -> None:
    with zipfile.ZipFile(ARCHIVE) as archive:
        archive.extractall(tmp_path)
    environment = {"DB_PATH": str(tmp_path / "context.db")}
    home = aliases(environment)["home"]
    assert home == tmp_path / "context.db.commonplace"
    with Library.open(home, settings=library_settings(home)) as library:
        adopt_database(library, environment)
        assert library.memories.find() == [1, 2, 3, 5]
        library.memories.delete([1])
        adopt_database(library, environment)
        assert library.memories.find() == [2, 3, 5]
    assert "home" not in aliases({**environment, "COMMONPLACE_HOME": "/elsewhere"})


# indexed fields


def test_the_default_fields_are_indexed_at_first_use(tools: Tools) -> None:
    tools("store_context", thread_id="t", source="user", text="a")
    fields = [".".join(path) for path in tools.library.store.drawer(MetadataIndex).fields()]
    assert fields == ["status", "agent_name", "task_name", "project", "report_type", "references", "technologies"]


def test_a_wrong_type_is_logged_and_read_as_string(caplog: pytest.LogCaptureFixture) -> None:
    assert wanted_fields("a:number, b.c:integer,,d") == [("a",), ("b", "c"), ("d",)]
    assert "number" in caplog.text


def test_a_path_that_cannot_be_parsed_is_a_bad_setting() -> None:
    with pytest.raises(BadSetting, match=r"memory_indexed_fields names 'a\.\.b'"):
        wanted_fields("a..b")


@pytest.mark.parametrize(
    ("mode", "expected"),
    [("additive", [("a",), ("b",), ("c",)]), ("auto", [("b",), ("c",)]), ("warn", [("a",), ("b",)])],
)
def test_indexed_fields_follow_the_setting_as_far_as_its_mode_allows(
    open_tools: Callable[..., Tools], mode: str, expected: list[tuple[str, ...]]
) -> None:
    store = open_tools(memory_indexed_fields="a,b").library.store
    sync_fields(store.drawer(MetadataIndex), Settings(memory_indexed_fields="a,b"))
    sync_fields(store.drawer(MetadataIndex), Settings(memory_indexed_fields="b,c", memory_index_sync=mode))
    assert list(store.drawer(MetadataIndex).fields()) == expected


def test_in_strict_mode_a_difference_ends_the_process(open_tools: Callable[..., Tools]) -> None:
    store = open_tools().library.store
    sync_fields(store.drawer(MetadataIndex), Settings(memory_indexed_fields="a"))
    with pytest.raises(BadSetting, match="not indexed: b; indexed beyond it: a") as caught:
        sync_fields(store.drawer(MetadataIndex), Settings(memory_indexed_fields="b", memory_index_sync="strict"))
    assert caught.value.exit_code == 78
