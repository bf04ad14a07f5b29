"""Memory entries from the command line: exported, imported, taken over from another server."""

from __future__ import annotations

import json
import os
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from context_server import ENTRIES, FIRST, write_database
from kit.forked import forked

Run = Callable[..., "subprocess.CompletedProcess[str]"]
ARCHIVE = Path(__file__).parents[1] / "kinds" / "memories" / "context-server-2.2.2.zip"


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    with zipfile.ZipFile(ARCHIVE) as archive:
        archive.extractall(tmp_path / "theirs")
    return tmp_path / "theirs" / "context.db"


@pytest.fixture
def run(tmp_path: Path) -> Run:
    environment = {**os.environ, "COMMONPLACE_MODEL": "static", "COMMONPLACE_HOME": str(tmp_path / "home")}

    def call(*arguments: str, code: int = 0, input: str = "", **more: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            forked(*arguments),
            env={name: value for name, value in {**environment, **more}.items() if value},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            input=input,
        )
        assert done.returncode == code, done.stderr
        assert "Traceback" not in done.stderr
        return done

    return call


def test_what_another_server_kept_is_imported_and_exported_again(run: Run, theirs: Path, tmp_path: Path) -> None:
    assert "Would import: 4 entries with 2 images" in run("import", "context-server", str(theirs), "--dry-run").stdout
    assert (
        "Imported: 4 entries with 2 images; 0 were here already" in run("import", "context-server", str(theirs)).stdout
    )
    assert "Imported: 0 entries with 0 images; 4 were here" in run("import", "context-server", str(theirs)).stdout
    first = run("export", "memory").stdout
    assert [json.loads(line)["id"] for line in first.splitlines()] == [1, 2, 3, 5]
    thread = run("export", "memory", "--thread", "tea", "-o", str(tmp_path / "tea.jsonl"))
    assert (thread.stdout, len((tmp_path / "tea.jsonl").read_text("utf-8").splitlines())) == ("", 2)
    (tmp_path / "one.jsonl").write_text(first.splitlines()[0], "utf-8")
    assert "; 1 was here already" in run("import", "memory", str(tmp_path / "one.jsonl")).stdout
    (tmp_path / "all.jsonl").write_text(first, "utf-8")
    elsewhere = {"COMMONPLACE_HOME": str(tmp_path / "elsewhere")}
    assert "Imported: 4 entries" in run("import", "memory", str(tmp_path / "all.jsonl"), **elsewhere).stdout
    assert run("export", "memory", **elsewhere).stdout == first
    piped = {"COMMONPLACE_HOME": str(tmp_path / "piped")}
    assert "Imported: 4 entries" in run("import", "memory", "-", input=first, **piped).stdout
    assert run("export", "memory", **piped).stdout == first


def test_taken_numbers_are_refused_and_renumbered_on_request(run: Run, theirs: Path) -> None:
    arguments = json.dumps({"thread_id": "mine", "source": "user", "text": "first"})
    run("call", "store_context", arguments)
    assert "Entry 1 is taken by another entry here" in run("import", "context-server", str(theirs), code=2).stderr
    renumbered = run("import", "context-server", str(theirs), "--renumber").stdout
    assert renumbered.splitlines()[:3] == ["1 -> 2", "2 -> 3", "3 -> 4"]


def test_a_setting_that_cannot_be_parsed_ends_the_memory_profile_with_78(run: Run) -> None:
    failed = run("mcp", "--profile", "memory", code=78, ENABLE_FTS="perhaps")
    assert failed.stderr.strip() == "ENABLE_FTS must be auto, true or false, not 'perhaps'."


@pytest.mark.parametrize("somewhere", [(), ("--home", "{home}")])
def test_a_setting_that_memories_cannot_use_ends_the_start_and_not_a_call(
    run: Run, tmp_path: Path, somewhere: tuple[str, ...]
) -> None:
    start = (*(part.format(home=tmp_path / "there") for part in somewhere), "mcp", "--profile", "memory")
    wrong = run(*start, code=78, METADATA_INDEXED_FIELDS="status,a..b")
    assert wrong.stderr.strip() == "METADATA_INDEXED_FIELDS names 'a..b': a path has no empty segment."
    ours = run(*start, code=78, COMMONPLACE_MEMORY_INDEXED_FIELDS="a[0]")
    assert ours.stderr.startswith("memory_indexed_fields names 'a[0]'")
    run(*start, METADATA_INDEXED_FIELDS="status:string")
    other = run(*start, code=78, METADATA_INDEXED_FIELDS="owner:name", METADATA_INDEX_SYNC_MODE="strict")
    assert other.stderr.splitlines() == [
        "WARNING 'name' is no type of an indexed metadata field; owner is read as string",
        "memory_indexed_fields differs from what is indexed: not indexed: owner; indexed beyond it: status.",
    ]


def test_a_store_that_is_away_does_not_end_the_start(run: Run) -> None:
    run("mcp", "--profile", "memory", COMMONPLACE_STORE="postgresql://nobody@127.0.0.1:1/nothing")


def test_other_profiles_do_not_read_those_variables(run: Run) -> None:
    run("mcp", ENABLE_FTS="perhaps")


def test_a_database_named_by_the_environment_is_taken_over(run: Run, theirs: Path) -> None:
    run("mcp", "--profile", "memory", DB_PATH=str(theirs), COMMONPLACE_HOME="")
    home = theirs.with_name("context.db.commonplace")
    assert len(run("--home", str(home), "export", "memory").stdout.splitlines()) == 4


def test_one_kind_is_embedded_alone(run: Run, theirs: Path) -> None:
    run("import", "context-server", str(theirs))
    run("call", "remember", json.dumps({"text": "tea"}), "--allow-writes", COMMONPLACE_EMBED_ON_WRITE="0")
    assert "Embedded: 4 passages" in run("embed", "--kind", "memory").stdout
    assert "Embedded: 0 passages" in run("embed", "--kind", "memory").stdout
    assert "Embedded: 1 passage" in run("embed", "--all").stdout


def test_doctor_names_variables_without_effect(run: Run) -> None:
    assert "without effect here: POOL_MAX_READERS" in run("doctor", POOL_MAX_READERS="4").stdout


def test_a_database_of_version_3_is_taken_over_and_its_ids_go_on_being_names(run: Run, tmp_path: Path) -> None:
    theirs = write_database(tmp_path / "three.db")
    run("mcp", "--profile", "memory", DB_PATH=str(theirs), COMMONPLACE_HOME="")
    home = str(theirs.with_name("three.db.commonplace"))
    read = run("--home", home, "call", "get_context_by_ids", json.dumps({"context_ids": [FIRST[:12]]})).stdout
    assert json.loads(read)["result"][0]["text_content"] == ENTRIES[0].text
    assert "Imported: 0 entries" in run("--home", home, "import", "context-server", str(theirs)).stdout


def test_an_unknown_database_is_one_sentence(run: Run, tmp_path: Path) -> None:
    for name, data in (("a.db", b""), ("b.db", b"no database " * 100)):
        path = tmp_path / name
        path.write_bytes(data)
        for said in (
            run("import", "context-server", str(path), code=2).stderr,
            run("mcp", "--profile", "memory", code=2, DB_PATH=str(path), COMMONPLACE_HOME="").stderr,
        ):
            assert said.startswith(f"{path} is no database of mcp-context-server")
            assert said.count("\n") == 1
