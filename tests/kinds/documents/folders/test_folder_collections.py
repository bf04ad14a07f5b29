"""Collections: 1. names, roots and patterns are checked; 2. renaming keeps everything, removing removes it;
3. contexts are inherited by component; 4. nothing but a person runs an update command.
"""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.errors import AlreadyExists, CommonplaceError, InvalidInput, NotFound
from commonplace.kinds.documents.collection_files import CollectionFiles
from commonplace.kinds.documents.folders.folder_collections import join_contexts
from commonplace.kinds.documents.folders.library_folders import DEFAULT_PATTERN, Collection, Context, Report
from commonplace.library import Library
from commonplace.model import Draft, Filter
from commonplace.store.listing import Listing
from support.folder_files import build


def test_a_collection_remembers_what_it_was_given(library: Library, root: Path) -> None:
    made = library.folders.add(root, "n", pattern="**/*.md", ignore=["a", "b/**"], gitignore=True, included=False)
    assert made == Collection("n", root.resolve(), "**/*.md", ("a", "b/**"), True, False)
    assert library.folders.all() == [made]
    assert library.folders.get("n") == made
    assert library.folders.change("n", included=True, ignore=[]).ignore == ()
    assert library.folders.get("n") == Collection("n", root.resolve(), "**/*.md", (), True, True)
    assert library.folders.changed_at("n") is None


@pytest.mark.parametrize("name", ["notes", "Notes and more", "日本", "a.b", "x" * 100, "a,b", "-"])
def test_a_name_may_be_almost_anything(library: Library, root: Path, name: str) -> None:
    build(root, {"a.md": b"# One"})
    library.add_folder(root, name)
    assert [hit.item.parent for hit in library.search("one").hits] == [name]


@pytest.mark.parametrize("name", ["", "a/b", ".a", "#a", "a\nb", "a\x7f", "x" * 101, " ", "\ud800"])
def test_a_name_that_could_be_taken_for_something_else_is_refused(library: Library, root: Path, name: str) -> None:
    with pytest.raises(InvalidInput, match="A collection's name has 1–100 characters"):
        library.folders.add(root, name)
    assert library.folders.all() == []


def test_what_is_there_already_is_named(library: Library, root: Path, tmp_path: Path) -> None:
    library.folders.add(root, "n")
    with pytest.raises(AlreadyExists, match=r"^Collection 'n' already exists\.$"):
        library.folders.add(tmp_path, "n")
    with pytest.raises(AlreadyExists, match="Collection 'n' has this folder and pattern already"):
        library.folders.add(root, "m")
    assert library.folders.add(root, "m", pattern="*.txt").name == "m"
    with pytest.raises(AlreadyExists, match="it is "):
        library.folders.ensure(tmp_path, "n")
    library.put(Draft("document", "a", parent="loose", body="text"))
    with pytest.raises(AlreadyExists, match="came from no folder"):
        library.folders.add(tmp_path, "loose")


def test_a_root_must_be_a_folder(library: Library, root: Path) -> None:
    (root / "file").write_text("x", "utf-8")
    with pytest.raises(NotFound, match="There is no folder"):
        library.folders.add(root / "nowhere")
    with pytest.raises(NotFound, match="is no folder"):
        library.folders.add(root / "file")
    with pytest.raises(InvalidInput, match="inside the folder"):
        library.folders.add(root, pattern="/etc/**")
    with pytest.raises(InvalidInput, match="cannot be empty"):
        library.folders.add(root, ignore=[""])
    with pytest.raises(InvalidInput, match="cannot be empty"):
        library.folders.add(root, ignore=["./"])
    for outside in (f"{root}/drafts", "~/drafts"):
        with pytest.raises(InvalidInput, match="relative to the folder, such as drafts"):
            library.folders.add(root, ignore=["tmp", outside])
    assert library.folders.all() == []
    assert library.store.last_change() == 0


@pytest.mark.parametrize("call", ["get", "remove", "update"])
def test_an_unknown_collection_is_named(library: Library, call: str) -> None:
    with pytest.raises(NotFound, match=r"^Collection not found: nope$"):
        getattr(library.folders, call)("nope")
    with pytest.raises(NotFound, match=r"^Collection not found: nope$"):
        library.folders.rename("nope", "other")
    with pytest.raises(NotFound, match=r"^Collection not found: nope$"):
        library.folders.set_context("nope", "", "text")


def test_adding_again_keeps_what_is_not_said_again(library: Library, root: Path) -> None:
    library.add_folder(root, pattern="*.md", ignore=["x"])
    changes = library.store.last_change()
    library.add_folder(root)
    assert library.store.last_change() == changes
    assert library.folders.get("notes").pattern == "*.md"
    library.add_folder(root, pattern=DEFAULT_PATTERN, gitignore=True)
    assert library.folders.get("notes").gitignore
    assert library.folders.get("notes").ignore == ("x",)


def test_what_git_ignores_is_left_out_unless_somebody_says_otherwise(library: Library, root: Path) -> None:
    build(root, {"a.md": b"# One", "keys/live.md": b"# Secret", "sub/b.md": b"# Two", "sub/c.md": b"# Three"})
    build(root, {".gitignore": b"keys/\n", "sub/.gitignore": b"c.md\n"})
    assert library.add_folder(root).added == 2
    assert library.search("secret").hits == ()
    build(root, {".gitignore": b"keys/\na.md\n"})
    report = library.folders.update("notes")
    assert (report.removed, report.unchanged) == (1, 1), "a file that becomes ignored goes"
    assert library.search("one").hits == ()
    assert library.add_folder(root, gitignore=False).added == 3
    assert library.add_folder(root).unchanged == 4, "what was said stays"
    assert library.add_folder(root, gitignore=True).removed == 3


def test_collections_that_share_files_are_named_with_what_they_share(library: Library, tmp_path: Path) -> None:
    for folder in ("vault/ops/deep", "vault/drafts", "vault2"):
        (tmp_path / folder).mkdir(parents=True)
    library.folders.add(tmp_path / "vault", ignore=["drafts"])
    library.folders.add(tmp_path / "vault/ops/deep", "inner")

    def shared(folder: str, name: str | None = None) -> list[str]:
        return [path for _, path in library.folders.overlapping(tmp_path / folder, name)]

    assert shared("vault/ops") == ["inner", "vault/ops"]
    assert shared("vault", "again") == ["inner", "vault"]
    assert shared(".", "all") == ["inner", "vault"]
    assert shared("vault") == shared("vault2") == shared("vault/drafts") == []


def test_a_collection_that_said_nothing_follows_the_defaults(library: Library, root: Path) -> None:
    build(root, {"a.md": b"# One", "b.md": b"# Two", "c.toml": b"[tool]\n", ".gitignore": b"b.md\n"})
    former = "**/*.{md,markdown,mdx,txt,rst,org,html,htm,xhtml,ipynb,pdf,epub,docx,py,ts,tsx,js,jsx,go,rs,java,c,h}"
    library.put(Draft("collection", "notes", title="notes", fields={"root": str(root.resolve()), "pattern": former}))
    assert library.folders.get("notes") == Collection("notes", root.resolve(), DEFAULT_PATTERN, gitignore=True)
    assert library.folders.update("notes").added == 2
    assert [item.key for item in library.store.drawer(Listing).scan(Filter(kinds=("document",)))] == ["a.md", "c.toml"]


def test_renaming_keeps_documents_vectors_contexts_and_records(library: Library, world: Path) -> None:
    library.add_folder(world)
    library.embed()
    library.folders.set_context("notes", "code", "Tools.")
    library.folders.set_update_command("notes", "git pull")
    changed_at = library.folders.changed_at("notes")
    library.folders.rename("notes", "papers")
    assert [collection.name for collection in library.folders.all()] == ["papers"]
    assert library.folders.context_of("papers", "code/tool.py") == "Tools."
    assert library.folders.update_command("papers") == "git pull"
    assert library.folders.update_command("notes") == ""
    assert library.folders.changed_at("papers") == changed_at
    assert library.embedding.coverage().pending == 0
    report = library.folders.update("papers")
    assert (report.added, report.updated, report.removed) == (0, 0, 0)
    assert library.search("Fresnel").hits[0].uri == "docs://papers/lighthouse.html"
    assert library.doctor() == []
    with pytest.raises(NotFound):
        library.get("docs://notes/english.md")


def test_a_name_that_is_taken_or_bad_is_no_new_name(library: Library, root: Path, tmp_path: Path) -> None:
    library.folders.add(root, "a")
    library.folders.add(tmp_path, "b")
    with pytest.raises(AlreadyExists):
        library.folders.rename("a", "b")
    with pytest.raises(InvalidInput):
        library.folders.rename("a", "x/y")
    library.folders.rename("a", "a")
    assert [collection.name for collection in library.folders.all()] == ["a", "b"]


def test_removing_leaves_nothing_but_the_files(library: Library, world: Path) -> None:
    library.add_folder(world)
    library.embed()
    library.folders.set_context("notes", "", "Everything.")
    library.folders.set_update_command("notes", "true")
    assert library.folders.remove("notes") == 18
    assert library.folders.all() == library.folders.contexts() == []
    assert library.store.drawer(Listing).counts() == {}
    assert library.store.drawer(CollectionFiles).records("notes") == {}
    assert library.search("oolong").hits == ()
    assert library.doctor() == []
    assert (world / "english.md").exists()
    assert library.add_folder(world).added == 18
    assert library.folders.contexts() == []
    assert library.folders.update_command("notes") == ""


def test_one_collection_that_fails_is_its_own_affair(library: Library, root: Path, tmp_path: Path) -> None:
    build(root, {"a.md": b"# One"})
    (tmp_path / "gone").mkdir()
    library.folders.add(root, "a")
    library.folders.add(tmp_path / "gone", "b")
    (tmp_path / "gone").rmdir()
    outcomes = library.folders.update_all()
    assert isinstance(outcomes["a"], Report)
    assert outcomes["a"].added == 1
    assert isinstance(outcomes["b"], CommonplaceError)
    assert list(library.folders.update_all(["a", "a"])) == ["a"]


def test_a_path_on_disk_is_found_in_its_collections(library: Library, root: Path) -> None:
    build(root, {"sub/a.md": b"# One"})
    library.folders.add(root, "outer")
    library.folders.add(root / "sub", "inner")
    found = [(collection.name, path) for collection, path in library.folders.locate(root / "sub" / "a.md")]
    assert found == [("inner", "a.md"), ("outer", "sub/a.md")]
    assert [path for _, path in library.folders.locate(root)] == [""]
    assert library.folders.locate(root.parent) == []
    assert library.folders.locate(f"{root}-other/a.md") == []


def test_an_ignored_path_names_its_rule(library: Library, root: Path) -> None:
    collection = library.folders.add(root, ignore=["drafts/**", "*.tmp.md"])
    assert collection.ignored_by("drafts/a/b.md") == "drafts/**"
    assert collection.ignored_by("x.tmp.md") == "*.tmp.md"
    assert collection.ignored_by("fine.md") is None


# contexts


def test_contexts_are_inherited_by_component_general_first(library: Library, root: Path) -> None:
    folders = library.folders
    folders.add(root, "notes")
    assert folders.context_of("notes", "work/a.md") is None
    folders.set_context("notes", "work", "My job.")
    folders.set_context(None, "", "All of it.")
    folders.set_context("notes", "/work/a.md/", "One file.")
    folders.set_context("notes", "", "The notes.")
    assert folders.context_of("notes", "work/a.md") == "All of it.\n\nThe notes.\n\nMy job.\n\nOne file."
    assert folders.context_of("notes", "workshop/a.md") == "All of it.\n\nThe notes."
    assert folders.context_of("notes", "work") == "All of it.\n\nThe notes.\n\nMy job."
    assert folders.context_of("elsewhere", "a.md") == "All of it."
    assert folders.contexts() == [
        Context(None, "", "All of it."), Context("notes", "", "The notes."), Context("notes", "work", "My job."),
        Context("notes", "work/a.md", "One file."),
    ]  # fmt: skip


def test_a_context_is_replaced_and_removed(library: Library, root: Path) -> None:
    folders = library.folders
    folders.add(root, "notes")
    folders.set_context("notes", "a", "Old.")
    folders.set_context("notes", "a", "  New.\n")
    assert folders.context_of("notes", "a/b.md") == "New."
    folders.remove_context("notes", "a")
    with pytest.raises(NotFound, match="There is no context on notes/a"):
        folders.remove_context("notes", "a")
    with pytest.raises(NotFound, match="There is no context on /"):
        folders.remove_context(None)
    folders.set_context(None, "", "All.")
    folders.remove_context(None)
    assert folders.contexts() == []
    for text in ("", " \n", "\0", "\ud800"):
        with pytest.raises(InvalidInput):
            folders.set_context("notes", "", text)
    with pytest.raises(InvalidInput, match="inside its collection"):
        folders.set_context("notes", "../x", "Out.")


def test_contexts_set_at_once_are_all_kept(library: Library, root: Path) -> None:
    library.folders.add(root, "notes")
    threads = [
        threading.Thread(target=library.folders.set_context, args=("notes", f"f{number}", "text"))
        for number in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert len(library.folders.contexts()) == 6


PLACES = st.lists(st.sampled_from(["a", "ab", "b"]), max_size=3).map("/".join)


@given(st.dictionaries(PLACES, st.sampled_from(["x", "y"])), PLACES.filter(bool))
def test_a_context_applies_to_a_path_and_what_is_under_it(said: dict[str, str], path: str) -> None:
    applying = sorted((place for place in said if not place or f"{path}/".startswith(f"{place}/")), key=len)
    assert join_contexts("", said, path) == ("\n\n".join(said[place] for place in applying) or None)


# update commands


def test_nothing_in_the_library_runs_an_update_command(library: Library, root: Path) -> None:
    library.folders.add(root, "notes")
    library.folders.set_update_command("notes", f"touch {root}/ran.md")
    library.folders.update("notes")
    library.folders.update_all()
    library.add_folder(root, "notes")
    assert not (root / "ran.md").exists()
    exported = "\n".join(library.export())
    assert "ran.md" not in exported
    library.folders.set_update_command("notes", " ")
    assert library.folders.update_command("notes") == ""


def test_a_context_covers_a_folder_however_its_name_is_composed(library: Library, root: Path) -> None:
    build(root, {"cafe\u0301/a.md": b"# One"})
    library.add_folder(root, "n")
    library.folders.set_context("n", "caf\u00e9", "Drinks.")
    assert library.folders.context_of("n", "cafe\u0301/a.md") == "Drinks."
    library.folders.set_context("n", "cafe\u0301", "Hot drinks.")
    assert library.folders.contexts() == [Context("n", "caf\u00e9", "Hot drinks.")]
    library.folders.remove_context("n", "cafe\u0301")
    assert library.folders.context_of("n", "cafe\u0301/a.md") is None


def test_an_ignore_glob_leaves_out_a_folder_however_its_name_is_composed(library: Library, root: Path) -> None:
    build(root, {"cafe\u0301/a.md": b"# One", "b.md": b"# Two", ".commonplaceignore": "th\u00e9\n".encode()})
    build(root, {"the\u0301/c.md": b"# Three"})
    library.folders.add(root, "n", ignore=["caf\u00e9/**"])
    assert library.folders.update("n").added == 1
