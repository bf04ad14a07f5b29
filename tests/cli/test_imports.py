"""`import` and `export` as a person types them.

1. Prose ends with the counts, `--json` is one object, problems go to stderr as `path:line: sentence`.
2. Exit codes: 0 everything readable went in, 1 something failed, 2 nothing to read or bad usage.
3. Export, import into an empty home and export again give the same bytes, through pipes too.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kit.forked import forked

_LINUX = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
Run = Callable[..., "subprocess.CompletedProcess[bytes]"]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    environment = {**os.environ, "COMMONPLACE_HOME": str(tmp_path / "home"), "COMMONPLACE_MODEL": "static"}

    def call(
        *arguments: str | Path, code: int = 0, given: bytes = b"", timeout: int = 60, **more: str
    ) -> subprocess.CompletedProcess[bytes]:
        command = forked(*map(str, arguments))
        done = subprocess.run(
            command, env={**environment, **more}, input=given, capture_output=True, timeout=timeout, check=False
        )
        assert done.returncode == code, done.stderr
        assert b"Traceback" not in done.stderr
        return done

    return call


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "tea.md").write_text("---\ntitle: Tea\nid: tea\n---\nOolong.\n", "utf-8")
    (folder / "bread.md").write_text("# Bread\n\nSourdough – überall.\n", "utf-8")
    return folder


def test_prose_ends_with_the_counts(run: Run, notes: Path) -> None:
    (notes / "bad.md").write_bytes(b"\0")
    done = run("import", "notes", notes, code=1)
    assert done.stdout.decode().endswith("created 2, updated 0, unchanged 0, skipped 0, failed 1\n")
    assert f"{notes / 'bad.md'}: this is not a note; commonplace import notes takes" in done.stderr.decode()


def test_json_is_one_object(run: Run, notes: Path) -> None:
    (notes / "broken.md").write_text("---\na: [\n---\nbody", "utf-8")
    outcome = json.loads(run("import", "notes", notes, "--json", "--tags", "x,y").stdout)
    assert list(outcome) == [
        "kind", "created", "updated", "unchanged", "skipped", "failed", "items", "warnings", "errors",
    ]  # fmt: skip
    assert (outcome["kind"], outcome["created"], outcome["errors"]) == ("notes", 3, [])
    assert {"uri": "notes://tea", "status": "created", "path": str(notes / "tea.md")} in outcome["items"]
    assert outcome["warnings"][0]["path"] == str(notes / "broken.md")
    assert outcome["warnings"][0]["line"] == 3
    assert json.loads(run("export", "notes").stdout.splitlines()[0])["tags"] == ["x", "y"]


def test_what_was_imported_is_found(run: Run, notes: Path) -> None:
    run("import", "notes", notes)
    hits = json.loads(run("search", "oolong", "--json").stdout)
    assert hits[0]["uri"] == "notes://tea"


@pytest.mark.parametrize(
    "arguments",
    [
        ["import", "notes"],
        ["import", "notes", "nowhere"],
        ["import", "wishes", "x"],
        ["import", "notes", ".", "--format", "csv"],
        ["import", "notes", ".", "--format", "wish"],
        ["import", "media", "pyproject.toml", "--date", "soon"],
        ["import", "media", "pyproject.toml", "--language", "english", "--format", "text"],
        ["import", "media", "pyproject.toml", "--url", "not a url", "--format", "text"],
        ["import", "media", "pyproject.toml", "--url", "https://", "--format", "text"],
        ["import", "media", "pyproject.toml", "--url", "http://[", "--format", "text"],
        ["import", "jsonl", "nowhere"],
        ["export", "wishes"],
    ],
)
def test_bad_usage_is_exit_2(run: Run, arguments: list[str]) -> None:
    done = run(*arguments, code=2)
    assert done.stderr.strip()


def test_an_empty_folder_is_exit_2(run: Run, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert b"nothing to read" in run("import", "chats", tmp_path / "empty", code=2).stderr
    assert b"nothing to read" in run("import", "chats", tmp_path / "empty", "--json", code=2).stderr


def test_a_conversation_is_printed_with_what_was_said(run: Run) -> None:
    said = {"kind": "conversation", "title": "Tea", "messages": [{"sender": "Ann", "content": "Oolong?"}]}
    run("import", "jsonl", "-", given=json.dumps(said).encode())
    found = json.loads(run("export").stdout)
    assert run("get", f"chats://{found['id']}").stdout == b"# Tea\n\n**Ann:** Oolong?\n"


def test_media_takes_what_the_command_line_says(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "talk.srt"
    path.write_text("1\n00:00:01,000 --> 00:00:02,000\nHello.\n", "utf-8")
    options = [
        "--type",
        "podcast",
        "--title",
        "T",
        "--url",
        "https://x.example",
        "--author",
        "Mo",
        "--date",
        "2020-02-03",
    ]
    run("import", "media", path, *options, "--language", "de")
    record = json.loads(run("export", "media").stdout)
    assert (record["media_type"], record["title"], record["url"]) == ("podcast", "T", "https://x.example")
    assert (record["author"], record["created_at"], record["language"]) == ("Mo", "2020-02-03T00:00:00Z", "de")
    assert record["cues"] == [{"start_ms": 1000, "end_ms": 2000, "text": "Hello."}]


def test_an_export_goes_through_a_pipe_into_an_empty_home(run: Run, notes: Path, tmp_path: Path) -> None:
    run("import", "notes", notes)
    exported = run("export").stdout
    other = {"COMMONPLACE_HOME": str(tmp_path / "other")}
    assert b"created 2" in run("import", "jsonl", "-", given=exported, **other).stdout
    assert run("export", **other).stdout == exported
    run("export", "notes", "-o", tmp_path / "out.jsonl", **other)
    assert (tmp_path / "out.jsonl").read_bytes() == exported


def test_a_bad_line_is_named_by_file_and_line(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    path.write_text('{"kind": "note", "title": "a"}\n{"kind": "media", "title": "b"}\n', "utf-8")
    done = run("import", "jsonl", path, code=1)
    assert f'{path}:2: media needs "media_type".'.encode() in done.stderr


def test_the_file_of_another_export_is_refused_with_the_command_that_takes_it(
    run: Run, notes: Path, tmp_path: Path
) -> None:
    run("import", "notes", notes)
    said = {"thread_id": "tea", "source": "agent", "text": "Oolong steeps at 90 degrees."}
    run("call", "store_context", json.dumps(said), COMMONPLACE_ALLOW_WRITES="true")
    written = {"jsonl": ["export"], "everything": ["export", "everything"], "memory": ["export", "memory"]}
    for command, export in written.items():
        (tmp_path / f"{command}.jsonl").write_bytes(run(*export).stdout)
    before = run("export", "everything").stdout
    for command in written:
        for other, export in written.items():
            source = tmp_path / f"{other}.jsonl"
            if other == command:
                run("import", command, source, COMMONPLACE_HOME=str(tmp_path / command))
                continue
            told = run("import", command, source, code=2).stderr.decode()
            assert f"`commonplace {' '.join(export)}` wrote it, and `commonplace import {other}` stores it." in told
    assert run("export", "everything").stdout == before


def test_a_dry_run_keeps_nothing(run: Run, notes: Path) -> None:
    assert b"created 2" in run("import", "notes", notes, "--dry-run").stdout
    assert run("export").stdout == b""


@_LINUX
def test_a_large_export_needs_the_setting_and_little_memory(run: Run, tmp_path: Path) -> None:
    """A stream: what it holds in memory is one conversation, not the file."""
    path = tmp_path / "conversations.json"
    _write_export(path, megabytes=24)
    refused = run("import", "chats", path, code=1, COMMONPLACE_IMPORT_MAX_BYTES="1000000")
    assert b"import_max_bytes" in refused.stderr
    assert _peak_of(path, tmp_path / "home") < 300


@_LINUX
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_hundred_megabytes_stay_below_300_of_memory(tmp_path: Path) -> None:
    path = tmp_path / "conversations.json"
    _write_export(path, megabytes=100)
    assert _peak_of(path, tmp_path / "home") < 300


def _write_export(path: Path, *, megabytes: int) -> None:
    words = " ".join(f"word{n % 977}" for n in range(800))
    with path.open("w", encoding="utf-8") as stream:
        stream.write("[")
        number = 0
        while stream.tell() < megabytes << 20:
            mapping: dict[str, object] = {"m0": {"message": None, "parent": None, "children": ["m1"]}}
            for at in range(1, 9):
                author = {"role": "user" if at % 2 else "assistant"}
                message = {"id": f"m{at}", "author": author, "content": {"content_type": "text", "parts": [words]}}
                mapping[f"m{at}"] = {"message": message, "parent": f"m{at - 1}", "children": []}
            given = {
                "conversation_id": f"c{number}",
                "title": f"Talk {number}",
                "current_node": "m8",
                "mapping": mapping,
            }
            stream.write(("," if number else "") + json.dumps(given))
            number += 1
        stream.write("]")


def _peak_of(path: Path, home: Path) -> float:
    """The most memory, in MB, that importing a file took, with everything Python itself takes.

    Not `ru_maxrss`, which begins at what the process that started this one has.
    """
    script = (
        "import sys; from commonplace.cli.main import cli; code = cli(sys.argv[1:], standalone_mode=False); "
        "print(open('/proc/self/status').read().split('VmHWM:')[1].split()[0]); sys.exit(code)"
    )
    command = [sys.executable, "-c", script, "--home", str(home), "import", "chats", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode == 0, done.stderr
    assert "created" in done.stdout
    return int(done.stdout.split()[-1]) / 1024
