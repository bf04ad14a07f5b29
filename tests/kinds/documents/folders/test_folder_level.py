"""How a collection stands to its folder: level only where an update would change nothing, and when it was last read."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from commonplace.kinds.documents.folders import update
from commonplace.kinds.documents.folders.library_folders import FolderState
from commonplace.library import Library
from support.folder_files import build


def state(library: Library) -> FolderState:
    (found,) = library.folders.states()
    return found


def is_level(library: Library) -> bool | None:
    return state(library).level


def test_it_is_level_once_it_was_read_and_says_when(library: Library, root: Path) -> None:
    build(root, {"a.md": b"# One", "sub/b.md": b"# Two"})
    library.folders.add(root)
    assert (state(library).looked_at, is_level(library)) == (None, False)
    before = datetime.now(UTC)
    library.folders.update("notes")
    looked_at = state(library).looked_at
    assert looked_at is not None
    assert before <= looked_at <= datetime.now(UTC)
    assert is_level(library) is True
    library.folders.update("notes")  # which finds nothing to do, and looks all the same
    later = state(library).looked_at
    assert later is not None
    assert later > looked_at


@pytest.mark.parametrize(
    "change",
    [
        lambda root: (root / "new.md").write_text("# New", "utf-8"),
        lambda root: (root / "a.md").write_text("# Ten", "utf-8"),  # as long as it was, within the same second
        lambda root: (root / "a.md").unlink(),
        lambda root: (root / "a.md").rename(root / "z.md"),
        lambda root: (root / "a.md").write_bytes(b"\0\0\0\0\0"),
        lambda root: (root / ".commonplaceignore").write_text("a.md\n", "utf-8"),
    ],
    ids=["new", "changed", "gone", "renamed", "binary now", "ignored now"],
)
def test_whatever_an_update_would_do_makes_it_behind(library: Library, root: Path, change: object) -> None:
    build(root, {"a.md": b"# One", "sub/b.md": b"# Two"})
    library.add_folder(root)
    assert is_level(library) is True
    change(root)  # type: ignore[operator]
    assert is_level(library) is False
    library.folders.update("notes")
    assert is_level(library) is True


def test_what_no_update_can_read_and_what_only_looks_new_leaves_it_level(library: Library, root: Path) -> None:
    build(root, {"a.md": b"# One", "zero.md": b"\0", "bad.ipynb": b"{", "empty.md": b""})
    (root / "loop.md").symlink_to("loop.md")
    (root / "two\nlines.md").write_text("x", "utf-8")
    library.add_folder(root)
    assert is_level(library) is True
    later = datetime.now().timestamp() + 60
    os.utime(root / "a.md", (later, later))
    assert is_level(library) is True
    (root / "b.txt.swp~").write_text("x", "utf-8")
    assert is_level(library) is True


def test_a_document_that_was_forgotten_makes_it_behind(library: Library, root: Path) -> None:
    build(root, {"a.md": b"# One", "b.md": b"# Two"})
    library.add_folder(root)
    library.delete("docs://notes/a.md")
    assert is_level(library) is False


def test_a_folder_that_is_away_is_not_level_and_says_why(library: Library, root: Path) -> None:
    build(root, {"a.md": b"# One"})
    library.add_folder(root)
    looked_at = state(library).looked_at
    root.rename(root.with_name("away"))
    found = state(library)
    assert (found.level, found.looked_at) == (False, looked_at)
    assert found.trouble.startswith("The folder of collection notes cannot be read: ")
    root.with_name("away").rename(root)
    assert (is_level(library), state(library).trouble) == (True, "")


def test_a_folder_that_takes_long_is_not_looked_through_only_to_be_told_of(
    library: Library, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(root, {"a.md": b"# One"})
    library.add_folder(root)
    monkeypatch.setattr(update, "LONG_S", 0.0)
    found = state(library)
    assert found.level is None
    assert found.looked_at is not None


def test_a_look_goes_with_the_name_and_not_with_another_folder(library: Library, root: Path, tmp_path: Path) -> None:
    build(root, {"a.md": b"# One"})
    library.add_folder(root)
    looked_at = state(library).looked_at
    library.folders.rename("notes", "papers")
    assert state(library).looked_at == looked_at
    build(tmp_path / "copy", {"a.md": b"# One"})
    library.folders.move("papers", tmp_path / "copy")
    assert state(library).looked_at is None


def test_a_dry_update_is_no_look(library: Library, root: Path) -> None:
    build(root, {"a.md": b"# One"})
    library.folders.add(root)
    library.folders.update("notes", dry=True)
    assert state(library).looked_at is None


def test_a_look_that_cannot_be_noted_or_read_ends_nothing(library: Library, root: Path) -> None:
    build(root, {"a.md": b"# One"})
    (library.folder / "looks").write_text("no folder", "utf-8")
    library.add_folder(root)
    assert (state(library).looked_at, is_level(library)) == (None, True)
    (library.folder / "looks").unlink()
    library.folders.update("notes")
    (note,) = (library.folder / "looks").iterdir()
    for broken in ("", "[]", '{"at": 1}', '{"at": "2026-01-01T00:00:00+00:00", "seconds": null}'):
        note.write_text(broken, "utf-8")
        assert state(library).looked_at is None
    looked_at = (datetime.now(UTC) - timedelta(days=1)).isoformat()
    note.write_text(f'{{"at": "{looked_at}", "seconds": 0.1}}', "utf-8")
    assert state(library).looked_at == datetime.fromisoformat(looked_at)
