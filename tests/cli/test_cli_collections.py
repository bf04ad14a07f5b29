"""`commonplace collections` as a person uses it: real files, and statuses, sentences and JSON as contracted."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from commonplace.cli.main import main
from commonplace.library import Library
from commonplace.model import Filter
from commonplace.qmd.cli.program import run as qmd_run
from commonplace.store.listing import Listing
from kit.forked import forked

PROGRESS = re.compile(r"Reading docs: (\d+) of (\d+)")
Run = Callable[..., "Done"]


class Done(NamedTuple):
    stdout: str
    stderr: str


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    monkeypatch.setenv("COMMONPLACE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COMMONPLACE_MODEL", "static")
    monkeypatch.setenv("COMMONPLACE_MODELS", str(tmp_path / "models"))
    monkeypatch.setenv("COMMONPLACE_CONFIG", os.devnull)
    return dict(os.environ)


@pytest.fixture
def run(environment: dict[str, str], project: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """The command carried out in this process, which saves the start of one for each of so many."""

    def call(*arguments: str, code: int = 0, cwd: Path | None = None) -> Done:
        out, err = io.StringIO(), io.StringIO()
        with monkeypatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
            patch.setattr(sys, "argv", ["commonplace", *arguments])
            patch.chdir(cwd or project)
            with pytest.raises(SystemExit) as ended:
                main()
        assert ended.value.code == code, err.getvalue() + out.getvalue()
        return Done(out.getvalue(), err.getvalue())

    return call


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "sub").mkdir(parents=True)
    return folder


@pytest.fixture
def guide(project: Path) -> Path:
    folder = project / "guide"
    folder.mkdir()
    (folder / "tea.md").write_text("# Tea\n\nOolong wants water just off the boil.\n", "utf-8")
    (folder / "bread.md").write_text("# Bread\n\nSourdough needs a long cold proof.\n", "utf-8")
    return folder


def shape(done: Done) -> Any:
    return json.loads(done.stdout)


def tree(folder: Path) -> dict[str, str]:
    """Every file below a folder, with a hash of what is in it."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "folder"
        for path in sorted(folder.rglob("*"))
    }


def test_a_project_is_begun_filled_synced_and_searched(run: Run, project: Path, guide: Path) -> None:
    assert run("collections", "init").stdout == f"Wrote {project / 'context.json'}\n"
    done = run("collections", "add", "docs", "./guide", cwd=project)
    assert "docs: 2 added, 0 updated, 0 removed, 0 unchanged; 2 documents" in done.stdout
    assert f"Added docs to {project / 'context.json'}" in done.stdout
    assert "Embedded: 2 passages" in done.stderr
    assert json.loads((project / "context.json").read_text("utf-8")) == {"collections": {"docs": {"url": "./guide"}}}
    assert "Sourdough" in run("search", "sourdough").stdout
    again = shape(run("collections", "sync", "--json", cwd=project / "sub"))
    assert again == {
        "dryRun": False,
        "collections": [
            {
                "collection": "docs",
                "collectionId": f"pkg:{guide.resolve().as_uri()}",
                "added": 0,
                "updated": 0,
                "removed": 0,
                "unchanged": 2,
                "total": 2,
                "skipped": [],
                "warnings": [],
                "failed": [],
                "error": None,
            }
        ],
    }
    next(guide.glob("*.md")).unlink()
    done = run("collections", "sync", cwd=project)
    assert "docs: 0 added, 0 updated, 1 removed, 1 unchanged; 1 document\n" in done.stdout


def test_the_list_says_what_is_level_and_what_is_not(run: Run, project: Path, guide: Path, tmp_path: Path) -> None:
    run("collections", "init")
    run("collections", "add", "docs", "guide", "--no-sync")
    (listed,) = shape(run("collections", "list", "--json"))["collections"]
    assert listed == {
        "collection": "docs",
        "collectionId": f"pkg:{guide.resolve().as_uri()}",
        "source": str(guide.resolve()),
        "scope": "project",
        "documentCount": 0,
        "status": "never synced",
        "lastSyncAt": None,
    }
    run("collections", "init", str(guide), "--manifest", "--version", "2.1", "--description", "Tea and bread")
    run("collections", "sync", "--no-embed")
    (listed,) = shape(run("collections", "list", "--json"))["collections"]
    assert (listed["status"], listed["documentCount"]) == ("synced", 2)
    assert (listed["version"], listed["description"]) == ("2.1", "Tea and bread")
    assert listed["lastSyncAt"].endswith("Z")
    (guide / "tea.md").unlink()
    assert shape(run("collections", "list", "--json"))["collections"][0]["status"] == "changed"
    (guide / "manifest.json").write_text("{", "utf-8")
    run("collections", "sync", "--no-embed", code=1)
    assert shape(run("collections", "list", "--json"))["collections"][0]["status"] == "failed"
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "a.md").write_text("# A\n", "utf-8")
    run("add", str(notes), "--no-embed")
    shown = shape(run("collections", "list", "--json"))["collections"]
    assert [(each["collection"], each["scope"], each["status"]) for each in shown] == [
        ("docs", "project", "failed"),
        ("notes", "global", "synced"),
    ]
    assert len(shape(run("collections", "list", "--json", "--no-global"))["collections"]) == 1
    assert "docs 2.1: 2 documents, project, failed" in run("collections", "list").stdout


def test_statuses_are_zero_one_for_what_failed_and_two_for_a_usage_mistake(run: Run, guide: Path) -> None:
    run("collections", "init")
    run("collections", "add", "docs", "guide", "--no-embed")
    (guide / "tea.md").write_bytes(b"\0")
    done = run("collections", "sync", "--no-embed")
    assert "failed tea.md: The file is binary: it has NUL bytes." in done.stderr
    run("collections", "sync", "--no-embed", "--strict", code=1)
    assert 'Collection "nope" not found. There are: docs.' in run("collections", "sync", "nope", code=2).stderr
    run("collections", "sync", "--nonsense", code=2)
    run("collections", "add", "bad alias", "guide", code=2)
    run("collections", "add", "other", "guide", "--glob", "../*", code=2)
    run("collections", "init", "--name", "x", code=2)


def test_an_unreadable_source_adds_nothing_unless_it_is_not_synced(run: Run, project: Path) -> None:
    run("collections", "init")
    done = run("collections", "add", "docs", "./missing", code=1)
    assert f"docs: There is no folder {project / 'missing'}." in done.stderr
    assert json.loads((project / "context.json").read_text("utf-8")) == {"collections": {}}
    run("collections", "add", "docs", "./missing", "--no-sync")
    assert "has docs already" in run("collections", "add", "docs", "./missing", "--no-sync", code=1).stderr
    run("collections", "add", "docs", "./other", "--no-sync", "--force", "--glob", "*.md")
    assert json.loads((project / "context.json").read_text("utf-8")) == {
        "collections": {"docs": {"url": "./other", "glob": ["*.md"]}}
    }


def test_without_a_project_and_with_global_the_users_own_file_is_written(run: Run, tmp_path: Path, guide: Path) -> None:
    home = tmp_path / "home"
    done = run("collections", "add", "docs", "guide", "--no-embed")
    assert f"Added docs to {home / 'context.json'}" in done.stdout
    assert json.loads((home / "context.json").read_text("utf-8"))["collections"]["docs"]["url"] == str(guide.resolve())
    run("collections", "init")
    (guide.parent / "own.md").write_text("# Own\n", "utf-8")
    run("collections", "add", "own", ".", "--no-embed", "--glob", "*.md")
    run("collections", "add", "more", "./guide", "--global", "--no-embed")

    def synced(*options: str) -> list[str]:
        record = shape(run("collections", "sync", "--json", "--no-embed", *options))
        return [each["collection"] for each in record["collections"]]

    assert synced() == ["own", "docs"]
    assert synced("--global") == ["docs"]
    assert synced("--no-global") == ["own"]


def test_an_alias_is_removed_and_its_documents_only_when_asked(run: Run, guide: Path, tmp_path: Path) -> None:
    run("collections", "init")
    run("collections", "add", "docs", "guide", "--no-embed")
    run("collections", "remove", "docs")
    assert "Sourdough" in run("search", "sourdough").stdout
    run("collections", "add", "docs", "guide", "--no-embed", "--global")
    assert "Repeat with --global" in run("collections", "remove", "docs", code=1).stderr
    assert shape(run("collections", "remove", "docs", "--global", "--drop", "--json"))["dropped"] == 2
    assert "Sourdough" not in run("search", "sourdough").stdout
    assert 'There is no collection called "docs".' in run("collections", "remove", "docs", code=1).stderr


def test_documents_that_an_alias_left_behind_are_listed_and_dropped_by_their_id(run: Run, guide: Path) -> None:
    id = f"pkg:{guide.as_uri()}"
    run("collections", "init")
    run("collections", "add", "docs", "./guide", "--no-embed")
    assert "undeclared" not in shape(run("collections", "list", "--json"))
    assert f'There is no collection called "{id}".' in run("collections", "remove", id, "--drop", code=1).stderr
    run("collections", "remove", "docs")
    listed = shape(run("collections", "list", "--json"))
    assert listed["collections"] == []
    (left,) = listed["undeclared"]
    assert (left["collectionId"], left["source"], left["documentCount"]) == (id, str(guide), 2)
    said = run("collections", "list").stdout
    assert f"{id}: 2 documents, declared by nothing here" in said
    assert "`commonplace collections remove ID --drop`" in said
    assert "undeclared" not in shape(run("collections", "list", "--json", "--no-global"))
    assert "Repeat with --drop" in run("collections", "remove", id, code=2).stderr
    assert shape(run("collections", "remove", id, "--drop", "--dry-run", "--json"))["dropped"] == 2
    assert shape(run("collections", "remove", id, "--drop", "--json")) == {"dryRun": False, "file": None, "dropped": 2}
    assert "No results found." in run("search", "oolong").stdout
    assert shape(run("collections", "list", "--json")) == {"collections": []}


def test_a_folder_of_the_users_is_removed_only_when_that_is_said(run: Run, guide: Path) -> None:
    run("add", str(guide), "--no-embed", code=0)
    run("collections", "init")
    for options in ((), ("--drop",)):
        said = run("collections", "remove", "guide", *options, code=1).stderr
        assert "is a folder that was added with `commonplace add`. Repeat with --global --drop to remove it." in said
    assert "Repeat with --drop" in run("collections", "remove", "guide", "--global", code=2).stderr
    assert "Sourdough" in run("search", "sourdough").stdout
    assert shape(run("collections", "remove", "guide", "--global", "--drop", "--json"))["dropped"] == 2
    assert "Sourdough" not in run("search", "sourdough").stdout


def test_a_dry_run_changes_no_file_and_no_row(run: Run, guide: Path, project: Path, tmp_path: Path) -> None:
    before = tree(tmp_path)
    run("collections", "init", "--dry-run")
    run("collections", "add", "docs", "guide", "--dry-run")
    run("collections", "list")
    assert tree(tmp_path) == before
    run("collections", "init")
    run("collections", "init", str(guide), "--manifest")
    subprocess.run(["git", "init", "-q", str(project / "origin")], check=True)
    for command in (
        ["add", "-A"],
        ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", "x", "--allow-empty"],
    ):
        subprocess.run(["git", "-C", str(project / "origin"), *command], check=True)
    run("collections", "add", "docs", "guide")
    run("collections", "add", "later", f"git+file://{project / 'origin'}", "--no-sync")
    (guide / "tea.md").write_text("# Tea\n\nSencha.\n", "utf-8")
    (guide / "bread.md").unlink()
    before = tree(tmp_path)
    (done, cloned) = shape(run("collections", "sync", "--dry-run", "--json"))["collections"]
    assert (done["updated"], done["removed"], done["error"], cloned["error"]) == (1, 1, None, None)
    run("collections", "sync", "--dry-run", "--force")
    run("collections", "add", "more", "guide", "--dry-run", "--force")
    run("collections", "remove", "docs", "--drop", "--dry-run")
    run("collections", "pack", "guide", "--dry-run")
    run("collections", "list")
    assert tree(tmp_path) == before


def test_a_package_is_packed_the_same_twice_and_synced_from_its_archive(run: Run, guide: Path, project: Path) -> None:
    assert "has no manifest.json" in run("collections", "pack", "guide", code=1).stderr
    run("collections", "init", "guide", "--manifest", "--name", "Tea & bread", "--version", "1.0")
    assert "is there already" in run("collections", "init", "guide", "--manifest", code=1).stderr
    first = shape(run("collections", "pack", "guide", "--json"))
    assert first["file"] == "Tea-bread-1.0.tar.gz"
    data = (project / first["file"]).read_bytes()
    os.utime(guide / "tea.md", (1, 1))
    assert "--force" in run("collections", "pack", "guide", code=1).stderr
    second = shape(run("collections", "pack", "guide", "--json", "--output", "again.tgz"))
    assert (project / "again.tgz").read_bytes() == data
    assert second["sha256"] == first["sha256"] == hashlib.sha256(data).hexdigest()
    run("collections", "init")
    assert "2 added" in run("collections", "add", "docs", "again.tgz", "--no-embed").stdout
    assert "1 package Tea" in run("status").stdout.replace("  package Tea", "1 package Tea")


def test_a_folder_that_is_not_named_is_the_current_one_or_the_project_that_is(
    run: Run, guide: Path, project: Path
) -> None:
    run("collections", "init")
    assert run("collections", "init", "--manifest", cwd=guide).stdout == f"Wrote {guide / 'manifest.json'}\n"
    assert shape(run("collections", "pack", "--json", cwd=guide))["files"] == ["bread.md", "tea.md"]
    assert run("collections", "init", cwd=project / "sub").stdout == f"Wrote {project / 'sub' / 'context.json'}\n"
    named = run("collections", "init", "--manifest", "--project", str(project / "sub"), cwd=guide)
    assert named.stdout == f"Wrote {project / 'sub' / 'manifest.json'}\n"


def test_a_password_in_an_address_is_written_nowhere(run: Run, project: Path, tmp_path: Path) -> None:
    run("collections", "init")
    done = run("collections", "add", "docs", "https://me:s3cret@example.invalid/x.tgz", "--no-sync")
    assert "Keep it in ~/.netrc" in done.stderr
    for output in (done, run("collections", "list"), run("collections", "list", "--json")):
        assert "s3cret" not in output.stdout + output.stderr
    content = json.loads((project / "context.json").read_text("utf-8"))
    assert content == {"collections": {"docs": {"url": "https://example.invalid/x.tgz"}}}
    failed = run("collections", "add", "more", "https://me:s3cret@127.0.0.1:9/x.tgz", "--json", code=1)
    assert "s3cret" not in failed.stdout + failed.stderr
    for path in tmp_path.rglob("*"):
        assert not path.is_file() or b"s3cret" not in path.read_bytes()


def test_two_aliases_that_want_different_files_of_one_source_are_told_so(run: Run, guide: Path) -> None:
    run("collections", "init")
    run("collections", "add", "a", "guide", "--no-embed")
    run("collections", "add", "b", "guide", "--no-sync", "--glob", "tea.md")
    (done,) = shape(run("collections", "sync", "--json", "--no-embed", code=1))["collections"]
    assert "a and b take different files of the same source" in done["error"]


def test_qmd_shows_no_package_as_a_collection_of_its_own(run: Run, guide: Path) -> None:
    run("collections", "init")
    run("collections", "add", "docs", "guide", "--no-embed")
    run("add", str(guide.parent / "sub"), "--no-embed")

    def qmd(*arguments: str) -> str:
        out = io.StringIO()
        with redirect_stdout(out):
            assert qmd_run(list(arguments)) == 0
        return out.getvalue()

    record = json.loads(qmd("status", "--json"))
    assert (record["totalDocuments"], [each["name"] for each in record["collections"]]) == (0, ["sub"])
    assert record["needsEmbedding"] == 0
    assert "need vectors" not in qmd("update")
    assert "pkg-" not in qmd("collection", "list") + qmd("ls") + qmd("search", "sourdough")
    assert "package guide: 2 documents" in run("status").stdout


def test_a_sync_that_is_killed_leaves_the_old_version_or_the_new_one_whole(
    run: Run, environment: dict[str, str], project: Path, tmp_path: Path
) -> None:
    package = project / "many"
    package.mkdir()

    def write(version: int) -> None:
        for number in range(300):
            (package / f"{number:03}.md").write_text(f"# {number}\n\nversion{version} " * 40, "utf-8")
        (package / f"only{version}.md").write_text(f"version{version}\n", "utf-8")
        (package / f"only{version - 1}.md").unlink(missing_ok=True)

    write(0)
    run("collections", "init")
    run("collections", "add", "docs", "many", "--no-embed")
    states = []
    for version, tenth in enumerate((1, 4, 8, 10), start=1):
        write(version)
        command = forked("collections", "sync", "--no-embed")
        process = subprocess.Popen(command, env=environment, cwd=project, stderr=subprocess.PIPE, text=True)
        assert process.stderr is not None
        for line in process.stderr:  # ends at the latest when the process does
            if line.startswith("Reading docs: ") and 10 * int(line.split()[2]) >= tenth * int(
                line.split()[4].strip(",")
            ):
                break
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)
        process.communicate(timeout=60)
        states.append(_state(tmp_path / "home"))
        assert len(states[-1]) == 1, "the documents of two versions are mixed"
    run("collections", "sync", "--no-embed")
    assert _state(tmp_path / "home") == {4}
    assert {0} in states or {1} in states  # one at least was killed before it wrote


def _state(home: Path) -> set[int]:
    """Which versions the documents are of: one, unless something was half applied."""
    with Library.open(home) as library:
        bodies = [
            item.body or "" for item in library.store.drawer(Listing).scan(Filter(kinds=("document",)), body=True)
        ]
        assert library.doctor() == []
    assert len(bodies) == 301
    return {int(body.partition("version")[2].split()[0]) for body in bodies}


def test_a_tool_called_in_a_project_sees_its_collections(run: Run, project: Path, guide: Path) -> None:
    run("collections", "init")
    run("collections", "add", "docs", "./guide", "--no-embed")
    seen = json.loads(run("call", "documents_list_collections", cwd=project / "sub").stdout)
    assert [one["collection"] for one in seen["collections"]] == ["docs"]
    elsewhere = json.loads(run("call", "documents_list_collections", cwd=project.parent).stdout)
    assert elsewhere["collections"] == []


def test_a_search_takes_the_alias_of_a_package(run: Run, guide: Path, project: Path, tmp_path: Path) -> None:
    run("collections", "init")
    run("collections", "add", "docs", "./guide", "--no-embed")
    run("collections", "add", "later", "./elsewhere", "--no-sync")
    (found,) = json.loads(run("search", "oolong", "-c", "docs", "--json").stdout)
    assert found["title"] == "Tea"
    assert (
        run("query", "oolong", "-c", "docs", "--json", cwd=project / "sub").stdout
        == json.dumps([found], indent=2) + "\n"
    )
    assert run("search", "matcha", "-c", "docs").stdout == "No results found.\n"
    assert run("search", "oolong", "-c", "later").stdout == "No results found.\n"
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "a.md").write_text("Oolong again.", "utf-8")
    run("add", str(notes), "--no-embed")
    assert len(json.loads(run("search", "oolong", "-c", "docs", "-c", "notes", "--json").stdout)) == 2
    assert 'no collection called "docs"' in run("search", "oolong", "-c", "docs", code=1, cwd=tmp_path).stderr


def test_a_folder_whose_name_is_no_text_needs_a_name_for_its_package(run: Run, project: Path) -> None:
    folder = project / os.fsdecode(b"od\xffd")
    folder.mkdir()
    assert "--name" in run("collections", "init", "--manifest", str(folder), code=2).stderr
    assert list(folder.iterdir()) == []
    run("collections", "init", "--manifest", "--name", "odd", str(folder))
    assert json.loads((folder / "manifest.json").read_text("utf-8"))["name"] == "odd"


def test_the_tool_takes_the_alias_of_a_package_and_says_what_is_none(run: Run, guide: Path, project: Path) -> None:
    run("collections", "init")
    run("collections", "add", "docs", "./guide", "--no-embed")

    def found(*names: str) -> Any:
        return shape(run("call", "search", json.dumps({"query": "oolong", "collections": list(names)})))

    (hit,) = found("docs")["results"]
    assert hit["title"] == "Tea"
    assert found("docs", "nowhere")["results"] == [hit]
    assert found(hit["uri"].split("/")[2])["results"] == [hit]
    nothing = found("nowhere")
    assert nothing["results"] == []
    assert 'No collection, thread or conversation is called "nowhere".' in nothing["notes"]
    (guide / "tea.md").write_text("# Tea\n\nGreen.\n", "utf-8")
    run("collections", "sync", "--no-embed")
    assert not any("is called" in note for note in found("docs")["notes"])
