"""The commands for collections as a person uses them: real processes, real files, real signals."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from commonplace.cli.folders import print_skipped
from commonplace.kinds.documents.folders.update import Report
from kit.forked import forked
from wire_server import Handler, serving, silent

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {**os.environ, "COMMONPLACE_HOME": str(tmp_path / "home"), "COMMONPLACE_MODEL": "static"}


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    (folder / "drafts").mkdir(parents=True)
    (folder / "tea.md").write_text("# Tea\n\nOolong.\n", "utf-8")
    (folder / "drafts" / "half.md").write_text("# Half\n", "utf-8")
    (folder / "tool.py").write_text("def steep():\n    return 3\n", "utf-8")
    return folder


@pytest.fixture
def run(environment: dict[str, str]) -> Run:
    def call(*arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        command = forked(*arguments)
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == code, done.stderr
        assert "Traceback" not in done.stderr
        return done

    return call


def test_collections_are_added_listed_renamed_and_removed(run: Run, notes: Path) -> None:
    assert "2 new" in run("add", str(notes), "--no-embed", "--ignore", "drafts/**").stdout
    (listed,) = json.loads(run("collections", "list", "--json").stdout)["collections"]
    assert (listed["collection"], listed["documentCount"], listed["scope"]) == ("notes", 2, "global")
    assert listed["collectionId"] == f"pkg:{notes.resolve().as_uri()}"
    shown = run("collections", "list").stdout
    assert "notes: 2 documents" in shown
    assert "without drafts/**" in shown
    run("collections", "rename", "notes", "papers")
    assert "commonplace get papers/tool.py" in run("search", "steep").stdout
    run("collections", "exclude", "papers")
    assert "searched only when named" in run("collections", "list").stdout
    assert run("search", "steep").stdout == "No results found.\n"
    assert "commonplace get papers/tool.py" in run("search", "steep", "-c", "papers").stdout
    run("collections", "include", "papers")
    assert run("collections", "remove", "papers", "--drop").stdout == "Removed papers: 2 documents\n"
    assert run("collections", "list").stdout == ""
    assert 'There is no collection called "papers".' in run("collections", "remove", "papers", code=1).stderr


def test_a_path_on_disk_names_the_document_there(run: Run, notes: Path, tmp_path: Path) -> None:
    run("add", str(notes), "--no-embed")
    (tmp_path / "way").symlink_to(notes)
    (tmp_path / "other.md").write_text("# Other\n", "utf-8")
    for path in (
        notes / "tea.md",
        tmp_path / "way" / "tea.md",
        f"{notes}/drafts/../tea.md",
        os.path.relpath(notes / "tea.md"),
    ):
        assert run("get", str(path)).stdout == "# Tea\n\nOolong.\n"
        assert run("get", f"{path}:3").stdout == "Oolong.\n"
        assert run("outline", str(path)).stdout == "     1  Tea\n"
        run("related", str(path))
    assert "There is no notes/none.md. Did you mean notes/tea.md" in run("get", f"{notes}/none.md", code=1).stderr
    assert "other.md is in no collection. Give a path inside one" in run("get", f"{tmp_path}/other.md", code=1).stderr


def test_what_is_printed_leads_to_what_it_names_though_a_name_looks_encoded(run: Run, tmp_path: Path) -> None:
    names = {"A.md": "plain", "%41.md": "percent", "a b.md": "blank", "a%20b.md": "encoded blank", "100% é.md": "é"}
    for name, said in names.items():
        (tmp_path / "odd" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "odd" / name).write_text(f"oolong {said}\n", "utf-8")
    run("add", str(tmp_path / "odd"), "--no-embed")
    listed = {line.partition("docs://")[2] for line in run("ls", "odd").stdout.splitlines()}
    hits = {record["uri"] for record in json.loads(run("search", "oolong", "--json").stdout)}
    files = {record["file"] for record in json.loads(run("ls", "odd", "--json").stdout)}
    assert files == {f"docs://{place}" for place in listed}
    for printed in (files, hits):
        assert {run("get", address).stdout for address in printed} == {f"oolong {said}\n" for said in names.values()}
    for name, said in names.items():
        assert run("get", f"odd/{name}").stdout == f"oolong {said}\n"
    assert "docs://odd/100%25 é.md" in files
    assert run("ls", "docs://odd/100%25 é.md").stdout.endswith("docs://odd/100%25 é.md\n")
    assert run("ls", "odd/100% é.md").stdout.endswith("docs://odd/100%25 é.md\n")
    run("context", "add", "docs://odd/100%25 é.md", "Odd")
    assert run("context", "list").stdout == "docs://odd/100%25 é.md\n  Odd\n"
    run("context", "rm", "qmd://odd/100%25 é.md")
    (tmp_path / "odd" / "a b.md").unlink()
    run("update")
    listed = {line.split("  ")[0] for line in run("browse", "document/odd").stdout.splitlines()}
    assert "docs://odd/100% é.md" in listed
    assert {run("get", place).stdout for place in listed} == {
        f"oolong {said}\n" for said in names.values() if said != "blank"
    }
    assert run("get", "docs://odd/a%20b.md").stdout == "oolong encoded blank\n"


def test_a_folder_without_documents_is_level_and_one_that_nobody_has_read_is_not(run: Run, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    run("add", str(tmp_path / "empty"), "--no-embed")
    assert "empty: 0 documents, global, synced\n" in run("collections", "list").stdout
    (tmp_path / "empty" / "tea.md").write_text("# Tea\n", "utf-8")
    assert "empty: 0 documents, global, never synced\n" in run("collections", "list").stdout
    run("update")
    assert "empty: 1 document, global, synced\n" in run("collections", "list").stdout


def test_a_folder_whose_name_no_collection_may_have_is_told_of_the_option_for_one(run: Run, tmp_path: Path) -> None:
    (tmp_path / ".hidden").mkdir()
    for folder in ("/", str(tmp_path / ".hidden")):
        assert run("add", folder, "--no-embed", code=2).stderr.endswith(". Give this one a --name.\n")
    run("add", str(tmp_path / ".hidden"), "--no-embed", "--name", "hidden")


def test_update_says_what_it_did_for_each_and_goes_on_after_a_failure(run: Run, notes: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    run("add", str(notes), "--no-embed", "--pattern", "**/*.md")
    run("add", str(other), "--no-embed")
    (notes / "tea.md").write_text("# Tea\n\nMatcha.\n", "utf-8")
    done = run("update")
    assert done.stdout.splitlines()[:2] == [
        "[1/2] notes (**/*.md)",
        "Indexed: 0 new, 1 updated, 1 unchanged, 0 removed",
    ]
    assert done.stdout.splitlines()[-1] == "✓ All collections updated."
    assert "0 new, 0 updated, 2 unchanged" in run("update", "-c", "notes", "--force").stdout
    notes.rename(tmp_path / "away")
    failed = run("update", code=1)
    assert "The folder of collection notes cannot be read" in failed.stderr
    assert "[2/2] other" in failed.stdout
    assert "Matcha" in run("get", "notes/tea.md").stdout
    assert 'There is no collection called "nope".' in run("update", "-c", "nope", code=1).stderr


def test_a_folder_that_has_moved_takes_its_collection_along(run: Run, notes: Path, tmp_path: Path) -> None:
    run("add", str(notes))
    run("collections", "exclude", "notes")
    (tmp_path / "empty").mkdir()
    away = notes.rename(tmp_path / "my papers")
    refused = run("add", str(away), "--name", "notes", code=1).stderr
    assert f"If that folder is here now: commonplace collections move notes '{away}'" in refused
    none = run("collections", "move", "notes", str(tmp_path / "empty"), code=1).stderr
    assert none == f"None of the files of notes are in {tmp_path / 'empty'}. Nothing was changed.\n"
    assert "There is no folder" in run("collections", "move", "notes", str(notes), code=1).stderr
    (away / "drafts" / "half.md").write_text("# Whole\n", "utf-8")
    moved = run("collections", "move", "notes", str(away)).stdout
    assert moved == f"notes is {away} now\nIndexed: 0 new, 1 updated, 2 unchanged, 0 removed\n"
    assert "searched only when named" in run("collections", "list").stdout
    assert "Embedded: 1 passage" in run("embed").stdout
    assert "All collections updated" in run("update").stdout


def test_an_update_command_runs_before_update_and_a_failing_one_stops_its_collection_only(
    run: Run, notes: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "a.md").write_text("# A\n", "utf-8")
    run("add", str(notes), "--no-embed")
    run("add", str(other), "--no-embed")
    run("collections", "update-command", "notes", "echo '# Fetched' > fetched.md")
    assert "1 new" in run("update").stdout
    assert "# Fetched" in run("get", "notes/fetched.md").stdout
    run("collections", "update-command", "notes", "exit 3")
    (other / "b.md").write_text("# B\n", "utf-8")
    failed = run("update", code=1)
    assert "The update command of notes failed with status 3" in failed.stderr
    assert "1 new" in failed.stdout
    run("collections", "update-command", "notes")
    run("update")


def test_what_is_skipped_is_named_with_its_reason_and_counted(run: Run, notes: Path) -> None:
    for number in range(25):
        (notes / f"{number:02}.md").write_bytes(b"\0")
    (notes / "bad.md").write_bytes(b"caf\xc3\xa9 \xe9\n")
    done = run("add", str(notes), "--no-embed")
    assert "25 skipped" in done.stdout
    assert "skipped 00.md: BINARY" in done.stderr
    assert "and 5 more; in all 25 BINARY" in done.stderr
    assert "bad.md: 1 place is no UTF-8" in done.stderr


def test_what_is_not_read_is_counted_by_its_ending(run: Run, notes: Path) -> None:
    pictures, archives = ("a.png", "b.png", "c.PNG", "deep/f.png"), ("d.zip", "e.zip", "f.zip")
    for name in (*pictures, *archives, "core", "secret.log", "x.1ab2c3d4e5f6a7b8"):
        (notes / name).parent.mkdir(exist_ok=True)
        (notes / name).write_bytes(b"\0")
    (notes / ".gitignore").write_text("*.log\n", "utf-8")
    (notes / "settings.toml").write_text("retries = 3\n", "utf-8")
    done = run("add", str(notes), "--no-embed")
    assert "Indexed: 4 new" in done.stdout
    assert "Not read: 4 .png, 3 .zip, 2 without an ending\n" in done.stdout
    assert "Not read" not in run("add", str(notes), "--no-embed", "--pattern", "**/*.md").stdout


def test_a_folder_inside_another_collection_is_named_in_the_answer(run: Run, notes: Path) -> None:
    assert "found twice" not in run("add", str(notes), "--no-embed").stdout
    done = run("add", str(notes / "drafts"), "--no-embed")
    assert f"{notes.resolve() / 'drafts'} shares files with collection notes" in done.stdout
    assert "`commonplace search --path notes/drafts WORDS`" in done.stdout
    assert "found twice" not in run("add", str(notes), "--no-embed").stdout, "once told"


@pytest.mark.parametrize(("answer", "code", "names"), [("n\n", 130, ["notes"]), ("y\n", 0, ["drafts", "notes"])])
def test_a_folder_inside_another_collection_is_asked_about_on_a_terminal(
    run: Run, notes: Path, environment: dict[str, str], answer: str, code: int, names: list[str]
) -> None:
    run("add", str(notes), "--no-embed")
    terminal, end = pty.openpty()
    command = forked("add", str(notes / "drafts"), "--no-embed")
    process = subprocess.Popen(command, env=environment, stdin=end, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    os.close(end)
    os.write(terminal, answer.encode())
    out, told = process.communicate(timeout=60)
    os.close(terminal)
    assert process.returncode == code
    assert b"found twice" not in out, "once is enough"
    assert b"shares files with collection notes" in told
    assert b"Add it all the same?" in told
    listed = json.loads(run("collections", "list", "--json").stdout)["collections"]
    assert [one["collection"] for one in listed] == names


def test_folders_and_tags_are_browsed(run: Run, notes: Path) -> None:
    (notes / "locks.md").write_text("---\ntags: [ops]\n---\n# Locks\n\nLease them. #urgent\n", "utf-8")
    run("add", str(notes), "--no-embed")
    assert run("browse").stdout.split() == ["document", "4", "tags", "2"]
    assert run("browse", "document/notes").stdout.splitlines() == [
        "document/notes/drafts  1",
        "docs://notes/locks.md  Locks",
        "docs://notes/tea.md    Tea",
        "docs://notes/tool.py   tool",
    ]
    assert "docs://notes/drafts/half.md" in run("browse", "document/notes/drafts").stdout
    assert run("browse", "tags").stdout.splitlines() == ["tags/ops     1", "tags/urgent  1"]
    assert [one["at"] for one in json.loads(run("browse", "tags/urgent", "--json").stdout)] == ["docs://notes/locks.md"]
    assert "--limit" in run("browse", "tags", "-n", "1").stderr
    assert run("search", "lease", "-t", "urgnt").stderr == 'Nothing has the tag "urgnt". Did you mean urgent?\n'
    assert "Did you mean drafts?" in run("browse", "document/notes/draft", code=1).stderr


def test_what_git_ignores_is_found_by_no_search(run: Run, notes: Path) -> None:
    (notes / ".gitignore").write_text("passwords.md\n", "utf-8")
    (notes / "passwords.md").write_text("# Bank\n\nhunter2\n", "utf-8")
    run("add", str(notes), "--no-embed")
    assert "passwords.md" not in run("search", "hunter2").stdout
    run("add", str(notes), "--no-embed", "--no-gitignore")
    assert "passwords.md" in run("search", "hunter2").stdout


def test_an_update_says_how_much_is_to_be_embedded(run: Run, notes: Path) -> None:
    run("add", str(notes))
    (notes / "new.md").write_text("# New\n\nOne more.\n", "utf-8")
    assert run("update").stdout.endswith("(1 passage needs vectors)\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_watch_follows_changes_and_ends_with_zero_on_a_signal(
    run: Run, notes: Path, environment: dict[str, str], number: signal.Signals
) -> None:
    run("add", str(notes), "--no-embed")
    (notes / "before.md").write_text("# Before\n", "utf-8")
    command = forked("watch", "-c", "notes")
    process = subprocess.Popen(
        command, env={**environment, "PYTHONUNBUFFERED": "1"}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("notes: 1 new")
        (notes / "after.md").write_text("# After honey\n", "utf-8")
        assert process.stdout.readline().startswith("notes: 1 new")
        assert "after.md" in run("search", "honey").stdout
    finally:
        process.send_signal(number)
        _, errors = process.communicate(timeout=30)
    assert process.returncode == 0, errors
    assert "Traceback" not in errors


def test_watch_ends_when_nobody_reads_it_any_more(run: Run, notes: Path, environment: dict[str, str]) -> None:
    run("add", str(notes), "--no-embed")
    (notes / "before.md").write_text("# Before\n", "utf-8")
    process = subprocess.Popen(
        forked("watch"),
        env={**environment, "PYTHONUNBUFFERED": "1"}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline().startswith("notes: 1 new")
    process.stdout.close()
    (notes / "after.md").write_text("# After honey\n", "utf-8")
    try:
        assert process.wait(timeout=20) == 0
    finally:
        process.kill()
    assert process.stderr.read().count("\n") == 1
    process.stderr.close()
    assert "after.md" in run("search", "honey").stdout


def test_watch_ends_at_once_while_a_model_is_waited_for_and_what_it_began_is_gone_on_with(
    run: Run, notes: Path, environment: dict[str, str]
) -> None:
    with serving() as site:
        environment |= {"COMMONPLACE_MODEL": "ollama:static", "COMMONPLACE_EMBEDDER_URL": site.url}
        run("add", str(notes))
        asked = threading.Event()

        def hold(handler: Handler) -> None:
            asked.set()
            silent(handler)

        site.always = hold
        (notes / "new.md").write_text("# New honey\n", "utf-8")
        process = subprocess.Popen(
            forked("watch"),
            env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert asked.wait(30)
        started = time.monotonic()
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=60)
        took = time.monotonic() - started
        assert (process.returncode, errors.count("\n")) == (0, 1)
        assert out == "notes: 1 new, 0 updated, 3 unchanged, 0 removed\n"
        assert took < 4
        site.always = None
        assert "new.md" in run("search", "honey").stdout
        assert "Embedded: 1 passage" in run("embed").stdout
        assert "Everything is in order." in run("doctor").stdout


def test_watch_ends_at_once_in_the_middle_of_a_large_update(run: Run, notes: Path, environment: dict[str, str]) -> None:
    run("add", str(notes), "--no-embed")
    for number in range(3000):
        (notes / f"page-{number}.md").write_text(f"# Page {number}\n\n" + "words of prose. " * 300, "utf-8")
    process = subprocess.Popen(
        forked("watch"),
        env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stderr is not None
    assert process.stderr.readline().startswith("Watching notes")
    started = time.monotonic()
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=60)
    assert (process.returncode, out, errors) == (0, "", "")
    assert time.monotonic() - started < 2
    assert "3000 new" in run("update").stdout


def test_ctrl_c_in_the_middle_of_an_add_leaves_a_library_that_goes_on(
    run: Run, notes: Path, environment: dict[str, str]
) -> None:
    # Many: on a busy machine the signal comes late.
    for number in range(4000):
        (notes / f"page-{number}.md").write_text(f"# Page {number}\n\n" + "words of prose. " * 300, "utf-8")
    process = subprocess.Popen(
        forked("add", str(notes), "--no-embed"),
        env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stderr is not None
    assert process.stderr.readline().startswith("Reading notes: ")
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    # A shell says 130 of both: CPython ends itself by the signal where it came while a string was being executed.
    assert process.returncode in (130, -signal.SIGINT)
    assert "Stopped." in errors
    assert "Traceback" not in errors
    assert "Everything is in order." in run("doctor").stdout
    assert "skipped" not in run("update").stderr
    assert "4003 documents" in run("collections", "list").stdout


def test_on_a_terminal_there_is_a_bar_with_counts(notes: Path, environment: dict[str, str]) -> None:
    terminal, end = pty.openpty()
    command = forked("add", str(notes), "--no-embed")
    process = subprocess.Popen(
        command, env={**environment, "TERM": "xterm", "COLUMNS": "100"}, stdout=subprocess.DEVNULL, stderr=end
    )
    os.close(end)
    shown = b""
    try:
        while data := os.read(terminal, 65536):
            shown += data
    except OSError:  # how a terminal says that nobody writes to it any more
        pass
    finally:
        os.close(terminal)
    assert process.wait(timeout=60) == 0
    assert b"Reading notes" in shown
    assert b"3/3" in shown


def test_what_was_skipped_is_printed_with_its_code(capsys: pytest.CaptureFixture[str]) -> None:
    print_skipped(Report(skipped=[("b", "BINARY")]))
    assert capsys.readouterr().err == "  skipped b: BINARY\n"
