"""Collections, contexts, updates, vectors and care, as the command line has them."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from qmd_asking import Ask, Done

from commonplace.library import Library


@pytest.fixture
def notes(qmd: Ask, desk: Path) -> Path:
    """A folder that is a collection of three documents."""
    assert qmd("collection", "add", str(desk / "notes")).code == 0
    return desk / "notes"


def said(done: Done) -> str:
    assert (done.code, done.err) == (0, ""), done
    return done.out


# collections


def test_adding_indexes_at_once_and_says_what_needs_vectors(qmd: Ask, desk: Path) -> None:
    done = qmd("collection", "add", str(desk / "notes"), "--name", "papers", "--ignore", "drafts/**")
    assert done.code == 0
    assert "Indexed: 2 new, 0 updated, 0 unchanged, 0 removed\n" in done.out
    assert done.out.endswith("Run 'qmd embed' to update embeddings (2 documents need vectors)\n")
    assert "qmd://papers/tea.md" in qmd("search", "oolong").out


def test_the_current_folder_is_the_default(qmd: Ask, desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(desk / "notes")
    assert "Collection 'notes'" in qmd("collection", "add").out


@pytest.mark.parametrize("option", ["--mask", "--glob"])
def test_a_mask_says_which_files(qmd: Ask, desk: Path, option: str) -> None:
    (desk / "notes" / "list.txt").write_text("milk", "utf-8")
    done = qmd("collection", "add", str(desk / "notes"), option, "*.{txt,md}")
    assert "Indexed: 3 new," in done.out
    assert json.loads(qmd("collection", "show", "notes", "--json").out)["pattern"] == "*.{txt,md}"


def test_what_cannot_be_added_is_refused_in_words(qmd: Ask, notes: Path, desk: Path) -> None:
    other = desk / "other"
    other.mkdir()
    assert qmd("collection", "add", str(other), "--name", "notes") == (1, "", "Collection 'notes' already exists.\n")
    same = qmd("collection", "add", str(notes), "--name", "again")
    assert (same.code, same.out) == (1, "")
    assert "'notes'" in same.err
    assert qmd("collection", "add", str(desk / "nowhere")).err == f"There is no folder {desk / 'nowhere'}.\n"
    assert qmd("collection", "add", str(notes / "tea.md")).code == 1
    assert qmd("collection", "add", str(other), "--name", "a/b").code == 2
    assert len(json.loads(qmd("collection", "list", "--json").out)) == 1


def test_collections_are_listed_renamed_excluded_and_removed(qmd: Ask, notes: Path) -> None:
    (record,) = json.loads(said(qmd("collection", "list", "--json")))
    assert (record["name"], record["path"], record["documents"]) == ("notes", str(notes.resolve()), 3)
    assert record["includeByDefault"] is True
    assert said(qmd("collection", "mv", "notes", "papers")) == "✓ Renamed collection 'notes' to 'papers'\n"
    said(qmd("collection", "exclude", "papers"))
    assert "papers (qmd://papers/) [excluded]\n" in said(qmd("collection", "show", "papers"))
    assert said(qmd("search", "oolong")) == "No results found.\n"
    said(qmd("collection", "include", "papers"))
    assert said(qmd("search", "oolong")).startswith("qmd://papers/tea.md:3")
    assert said(qmd("collection", "rm", "papers")) == "✓ Removed collection 'papers'\n  Deleted 3 documents\n"
    assert said(qmd("collection", "list", "--json")) == "[]\n"
    assert (notes / "tea.md").exists()


@pytest.mark.parametrize(
    "command", ["show nope", "remove nope", "rm nope", "rename nope x", "mv nope x", "include nope", "exclude nope",
                "update-cmd nope true"],
)  # fmt: skip
def test_an_unknown_collection_is_told(qmd: Ask, command: str) -> None:
    assert qmd("collection", *command.split()) == (1, "", "Collection not found: nope\n")


# contexts


def test_contexts_hang_on_everything_collections_folders_and_files(
    qmd: Ask, notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert said(qmd("context", "add", "/", "All of it")) == "✓ Added context for: /\n"
    assert said(qmd("context", "add", "qmd://notes", "Notes")) == "✓ Added context for: qmd://notes/\n"
    said(qmd("context", "add", "Unfinished", "qmd://notes/drafts"))
    said(qmd("context", "add", str(notes / "tea.md"), "The tea"))
    said(qmd("context", "add", "--collection", "notes", "--path", "/drafts/half.md", "Half of it"))
    monkeypatch.chdir(notes / "drafts")
    said(qmd("context", "add", "Drafts, here"))
    assert said(qmd("context", "list")) == (
        "/\n  All of it\nqmd://notes/\n  Notes\nqmd://notes/drafts\n  Drafts, here\n"
        "qmd://notes/drafts/half.md\n  Half of it\nqmd://notes/tea.md\n  The tea\n"
    )
    context = "All of it\n\nNotes\n\nDrafts, here\n\nHalf of it"
    assert json.loads(said(qmd("search", "finished", "--json")))[0]["context"] == context
    said(qmd("context", "rm", "docs://notes/drafts"))
    said(qmd("context", "remove", "/"))
    assert len(json.loads(said(qmd("context", "list", "--json")))) == 3


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["add", "/somewhere/else", "text"], 1, "/somewhere/else is in no collection."),
        (["add", "qmd://nope/x", "text"], 1, "Collection not found: nope"),
        (["add", "qmd://notes", " "], 2, "A context cannot be empty"),
        (["add"], 2, "Usage: "),
        (["add", "a", "b", "c"], 2, "Usage: "),
        (["add", "--path", "x", "text"], 2, "Usage: "),
        (["rm", "qmd://notes/drafts"], 1, "There is no context on notes/drafts."),
        (["rm", "/"], 1, "There is no context on /."),
    ],
)
def test_a_context_needs_a_place_and_a_text(
    qmd: Ask, notes: Path, arguments: list[str], code: int, sentence: str
) -> None:
    done = qmd("context", *arguments)
    assert (done.code, done.out) == (code, "")
    assert done.err.startswith(sentence)


def test_check_lists_what_has_none(qmd: Ask, notes: Path) -> None:
    done = qmd("context", "check")
    assert (done.code, done.out) == (0, "qmd://notes/\nqmd://notes/drafts\n")
    qmd("context", "add", "qmd://notes", "Notes")
    assert json.loads(qmd("context", "check", "--json").out) == ["qmd://notes/drafts"]
    qmd("context", "add", "qmd://notes/drafts", "Drafts")
    assert said(qmd("context", "check")).startswith("✓ ")


# updates


@pytest.mark.parametrize("command", ["update", "index"])
def test_an_update_tells_of_each_collection(qmd: Ask, notes: Path, desk: Path, command: str) -> None:
    (desk / "more").mkdir()
    qmd("collection", "add", str(desk / "more"), "--mask", "*.txt")
    (desk / "more" / "a.txt").write_text("new", "utf-8")
    (notes / "tea.md").write_text("# Tea\n\nGreen tea wants cooler water.\n", "utf-8")
    (notes / "drafts" / "half.md").unlink()
    done = qmd(command)
    assert done.code == 0
    assert done.out == (
        "[1/2] more (*.txt)\nIndexed: 1 new, 0 updated, 0 unchanged, 0 removed\n"
        "[2/2] notes (**/*.md)\nIndexed: 0 new, 1 updated, 1 unchanged, 1 removed\n"
        "✓ All collections updated.\nRun 'qmd embed' to update embeddings (3 documents need vectors)\n"
    )
    assert "qmd://notes/tea.md" in qmd("search", "cooler").out


def test_only_named_collections_are_updated(qmd: Ask, notes: Path, desk: Path) -> None:
    (desk / "more").mkdir()
    qmd("collection", "add", str(desk / "more"))
    assert qmd("update", "-c", "notes", "--force").out.startswith("[1/1] notes (**/*.md)\nIndexed: 0 new, 0 updated, 3")
    assert qmd("update", "-c", "nope") == (1, "", "Collection not found: nope\n")


def test_update_commands_run_first_in_the_root(qmd: Ask, notes: Path, desk: Path) -> None:
    qmd("collection", "update-cmd", "notes", "echo fetched > fetched.md")
    assert "Update:   echo fetched > fetched.md" in qmd("collection", "show", "notes").out
    done = qmd("update")
    assert done.code == 0
    assert "Indexed: 1 new," in done.out
    assert "Running: echo fetched" in done.err
    qmd("collection", "update-cmd", "notes")
    assert json.loads(qmd("collection", "show", "notes", "--json").out)["update"] is None


def test_a_failing_update_command_ends_its_collection_only(qmd: Ask, notes: Path, desk: Path) -> None:
    (desk / "other").mkdir()
    (desk / "other" / "a.md").write_text("a", "utf-8")
    qmd("collection", "add", str(desk / "other"))
    qmd("collection", "update-cmd", "notes", "exit 3")
    (notes / "late.md").write_text("late", "utf-8")
    done = qmd("update")
    assert done.code == 1
    assert done.out.startswith("[1/2] notes (**/*.md)\n[2/2] other (**/*.md)\nIndexed: 0 new, 0 updated, 1 unchanged")
    assert "✓ All collections updated." not in done.out
    assert "failed with status 3" in done.err


def test_a_root_that_is_gone_keeps_its_documents(qmd: Ask, notes: Path) -> None:
    shutil.move(notes, notes.with_name("elsewhere"))
    done = qmd("update")
    assert done.code == 1
    assert str(notes) in done.err
    assert qmd("search", "oolong").out.startswith("qmd://notes/tea.md")
    assert qmd("doctor").code == 1


def test_pull_brings_in_what_the_repository_has(qmd: Ask, desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"):
        monkeypatch.setenv(name, "tester@example.org")

    def git(*arguments: str, cwd: Path) -> None:
        subprocess.run(["git", *arguments], cwd=cwd, check=True, capture_output=True, timeout=30)

    origin, copy = desk / "notes", desk / "copy"
    git("init", "-q", cwd=origin)
    git("add", ".", cwd=origin)
    git("commit", "-qm", "first", cwd=origin)
    git("clone", "-q", str(origin), str(copy), cwd=desk)
    qmd("collection", "add", str(copy))
    (origin / "new.md").write_text("# New\n\nJust written.\n", "utf-8")
    git("add", ".", cwd=origin)
    git("commit", "-qm", "second", cwd=origin)
    assert "Indexed: 1 new," in qmd("update", "--pull").out
    git("remote", "remove", "origin", cwd=copy)
    failed = qmd("update", "--pull")
    assert failed.code == 1
    assert "git pull --ff-only failed" in failed.err


def test_pull_passes_by_what_is_no_repository(qmd: Ask, notes: Path) -> None:
    done = qmd("update", "--pull")
    assert (done.code, "no git repository" in done.err) == (0, True)


# vectors


@pytest.mark.parametrize("option", ["--timeout", "--max-batch-mb"])
@pytest.mark.parametrize("number", ["nan", "inf"])
def test_embed_is_limited_by_numbers_alone(qmd: Ask, notes: Path, option: str, number: str) -> None:
    done = qmd("embed", option, number)
    assert done.code != 0
    assert f"Invalid value for '{option}': {number} is no number to limit anything by." in done.err


def test_embed_makes_what_is_missing(qmd: Ask, notes: Path) -> None:
    assert qmd("embed", "-c", "notes", "--max-docs-per-batch", "1").out.startswith("✓ Embedded 3 passages of 3 doc")
    assert said(qmd("embed")) == "✓ All documents have vectors.\n"
    (notes / "more.md").write_text("# More\n", "utf-8")
    assert "(1 documents need vectors)" in qmd("update").out
    assert "1 passages of 1 documents" in qmd("embed").out
    assert "4 passages of 4 documents" in qmd("embed", "-f").out
    assert "need vectors" not in qmd("update").out
    assert json.loads(said(qmd("status", "--json")))["needsEmbedding"] == 0
    assert qmd("embed", "-c", "nope") == (1, "", "Collection not found: nope\n")


def test_a_second_embed_stands_back(qmd: Ask, notes: Path, desk: Path) -> None:
    with Library.open(desk / "home") as library, library.embedding.exclusive():
        assert qmd("embed") == (0, "", "Another embed process is already running. Skipping.\n")
    assert qmd("embed").out.startswith("✓ Embedded 3")


def test_an_embed_that_runs_out_of_time_says_so_and_keeps_what_it_has(qmd: Ask, notes: Path) -> None:
    done = qmd("embed", "--timeout", "0.0000001")
    assert (done.code, done.out) == (0, "")
    assert "Run 'qmd embed' again" in done.err
    assert qmd("embed", "--timeout", "0").out.startswith("✓ Embedded 3")


# care


def test_status_is_the_tools_own(qmd: Ask, notes: Path) -> None:
    assert said(qmd("status")) == (
        "QMD Index Status:\n  Total documents: 3\n  Needs embedding: 3\n  Vector index: no\n  Collections: 1\n"
        f"    - {notes.resolve()} (3 docs) as notes\n"
    )
    record = json.loads(said(qmd("status", "--json")))
    assert (record["totalDocuments"], record["hasVectorIndex"]) == (3, False)
    assert record["collections"][0]["lastUpdated"].endswith("Z")


def test_cleanup_drops_what_nobody_opens(qmd: Ask, notes: Path, desk: Path) -> None:
    qmd("embed")
    stale = desk / "home/spaces/default/index-000000000000"
    stale.mkdir()
    (stale / "segment").write_bytes(b"x" * 1000)
    told = said(qmd("cleanup", "--dry-run"))
    assert "Would drop 1 caches (1000 bytes)\nWould drop 0 orphan vectors\n" in told
    assert "Would drop 0 records of files of no collection\n" in told
    assert stale.exists()
    assert "Dropped 1 caches (1000 bytes)" in said(qmd("cleanup"))
    assert not stale.exists()
    assert "✓ Everything is in order." in said(qmd("doctor"))
    assert "qmd://notes/tea.md" in said(qmd("vsearch", "oolong", "--min-score", "0"))


def test_doctor_finds_an_orphan_and_cleanup_drops_it(qmd: Ask, notes: Path, desk: Path) -> None:
    import apsw

    qmd("embed")
    database = apsw.Connection(str(desk / "home/spaces/default/library.db"))
    database.execute("insert into embeddings select model, x'00', vector from embeddings limit 1")
    database.close()
    assert "✗ vectors without a chunk: 1\n" in qmd("doctor").out
    assert "Dropped 1 orphan vectors" in said(qmd("cleanup"))
    assert qmd("doctor").code == 0


# another qmd's own file


INDEX = """
global_context: All of it
models:
  embed: somewhere
colour: blue
collections:
  notes:
    path: {root}
    pattern: "**/*.md"
    ignore: ["drafts/**"]
    context:
      "/": The notes
      "/2025": Plans
    update: touch hooked
    includeByDefault: false
"""


@pytest.fixture
def index(desk: Path) -> Path:
    """The other qmd's file, in its usual place."""
    path = desk / "config" / "qmd" / "index.yml"
    path.parent.mkdir(parents=True)
    path.write_text(INDEX.format(root=desk / "notes"), "utf-8")
    return path


def test_import_takes_everything_but_hooks(qmd: Ask, desk: Path, index: Path) -> None:
    done = qmd("import")
    assert done.code == 0
    assert "Indexed: 2 new, 0 updated, 0 unchanged, 0 removed\n" in done.out
    assert "colour is nothing this qmd knows." in done.err
    assert "--trust-hooks takes it: touch hooked" in done.err
    record = json.loads(qmd("collection", "show", "notes", "--json").out)
    assert (record["ignore"], record["includeByDefault"], record["update"]) == (["drafts/**"], False, None)
    assert qmd("context", "list").out == "/\n  All of it\nqmd://notes/\n  The notes\nqmd://notes/2025\n  Plans\n"
    qmd("update")
    assert not (desk / "notes" / "hooked").exists()


def test_hooks_are_taken_when_they_are_trusted(qmd: Ask, desk: Path, index: Path) -> None:
    qmd("import", str(index))
    assert qmd("import", str(index), "--trust-hooks").code == 0
    assert not (desk / "notes" / "hooked").exists()
    qmd("update")
    assert (desk / "notes" / "hooked").exists()


def test_a_folder_that_is_gone_does_not_keep_the_others_out(qmd: Ask, desk: Path, index: Path) -> None:
    index.write_text(index.read_text("utf-8") + "  gone:\n    path: /nowhere/at/all\n", "utf-8")
    done = qmd("import")
    assert done.code == 1
    assert "gone was not imported. There is no folder /nowhere/at/all." in done.err
    assert "Imported notes" in done.out


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("collections: [a, b]", "collections is no table"),
        ("collections: {a: {path: [7]}}", "a.path is a text, not ['7']."),
        ("collections: {a: x}", "a is no table"),
        ("collections: {a: {path: x, includeByDefault: perhaps}}", "a: ignore is a list"),
        ("collections: {a: {}}", "a has no path in this file."),
        ("collections: {a/b: {path: x}}", "A collection's name"),
        ("collections: {a: {path: x, ignore: no}}", "a: ignore is a list"),
        ("a: [", "is no YAML at line 1"),
        ("!!python/object/apply:os.system ['true']", "is no YAML"),
        ("just words", "is no table"),
    ],
)
def test_a_file_that_cannot_be_read_changes_nothing(qmd: Ask, desk: Path, text: str, sentence: str) -> None:
    path = desk / "odd.yml"
    path.write_text(f"global_context: x\n{text}" if text.startswith("coll") else text, "utf-8")
    done = qmd("import", str(path))
    assert (done.code, done.out) == (2, "")
    assert sentence in done.err
    assert qmd("context", "list").out == ""


def test_what_is_written_is_taken_as_it_is_written(qmd: Ask, desk: Path) -> None:
    path = desk / "words.yml"
    path.write_text(
        f"collections:\n  no:\n    path: {desk / 'notes'}\n    update: ~\n"
        "    context: {/: 12:30, drafts: 2025-01-01}\n",
        "utf-8",
    )
    assert qmd("import", str(path)).code == 0
    assert qmd("context", "list").out == "qmd://no/\n  12:30\nqmd://no/drafts\n  2025-01-01\n"
    assert json.loads(qmd("collection", "show", "no", "--json").out)["update"] is None


def test_an_import_without_a_file_says_where_it_looked(qmd: Ask, desk: Path) -> None:
    done = qmd("import")
    assert (done.code, done.out) == (1, "")
    assert str(desk / "config" / "qmd" / "index.yml") in done.err
    assert "work.yml" in qmd("import", "--index", "work").err


def test_names_are_the_same_however_their_letters_are_composed(qmd: Ask, desk: Path) -> None:
    folder = desk / "notes" / "cafe\u0301"
    folder.mkdir()
    (folder / "a.md").write_text("# One", "utf-8")
    qmd("collection", "add", str(desk / "notes"))
    assert "a.md" in qmd("ls", "notes/caf\u00e9").out
    assert qmd("context", "add", "qmd://notes/caf\u00e9", "Drinks.").code == 0
    assert "caf" not in qmd("context", "check").out
    assert "Folder Context: Drinks." in qmd("get", "caf\u00e9/a.md").out


@pytest.mark.parametrize(
    ("context", "sentence"),
    [
        ("'../x': Somewhere else.", "A context describes a place inside its collection"),
        (f"x: {'long ' * 20_001}", "A context has at most 100,000 characters"),
    ],
)
def test_an_index_with_a_context_that_cannot_be_kept_is_not_half_imported(
    qmd: Ask, desk: Path, context: str, sentence: str
) -> None:
    listing = desk / "index.yml"
    listing.write_text(f"collections:\n  n:\n    path: {desk / 'notes'}\n    context:\n      {context}\n", "utf-8")
    done = qmd("import", str(listing))
    assert (done.code, done.out) == (2, "")
    assert sentence in done.err
    assert json.loads(qmd("collection", "list", "--json").out) == []


def test_a_context_that_says_nothing_is_none(qmd: Ask, desk: Path) -> None:
    listing = desk / "index.yml"
    said = "      a: ''\n      b: null\n      c:\n      d: Something.\n"
    listing.write_text(f"collections:\n  n:\n    path: {desk / 'notes'}\n    context:\n{said}", "utf-8")
    assert qmd("import", str(listing)).code == 0
    assert json.loads(qmd("context", "list", "--json").out) == [{"path": "qmd://n/d", "context": "Something."}]
