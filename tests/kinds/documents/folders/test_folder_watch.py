"""Watching: 1. current within a second; 2. idle while nothing happens; 3. nothing that goes wrong ends it; 4.
collections that come, go or have no events are followed; 5. vectors are made where there are some.
"""

from __future__ import annotations

import queue
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from commonplace.errors import NotFound
from commonplace.kinds.documents.collection_files import CollectionFiles
from commonplace.kinds.documents.folders import watch as watching
from commonplace.kinds.documents.folders.library_folders import Report
from commonplace.library import Library
from support.folder_files import build

PATIENCE_S = 30.0


class Watched:
    """A watch in a thread of its own, and what it said."""

    def __init__(self, library: Library, **options: object) -> None:
        self.updates: queue.Queue[tuple[str, Report]] = queue.Queue()
        self.failures: queue.Queue[tuple[str, str]] = queue.Queue()
        self._stop = threading.Event()
        self._thread = threading.Thread(
            target=library.folders.watch,
            args=(self._stop,),
            kwargs={
                "updated": lambda *said: self.updates.put(said),
                "failed": lambda *said: self.failures.put(said),
                **options,
            },
        )
        self._thread.start()

    def next_update(self) -> tuple[str, Report]:
        return self.updates.get(timeout=PATIENCE_S)

    def end(self) -> None:
        self._stop.set()
        self._thread.join(timeout=PATIENCE_S)
        assert not self._thread.is_alive()


@pytest.fixture
def watched(library: Library, root: Path) -> Iterator[Callable[..., Watched]]:
    started: list[Watched] = []

    def start(**options: object) -> Watched:
        started.append(Watched(library, **options))
        return started[-1]

    yield start
    for each in started:
        each.end()


def test_a_change_is_found_within_a_second(library: Library, root: Path, watched: Callable[..., Watched]) -> None:
    build(root, {"a.md": b"# One"})
    library.folders.add(root)
    watch = watched()
    name, report = watch.next_update()
    assert (name, report.added) == ("notes", 1)
    delays = []
    for number in range(4):  # the first may still come from the look that makes sure of the beginning
        (root / f"{number}.md").write_text(f"# Page{number}", "utf-8")
        started = time.monotonic()
        assert watch.next_update()[1].added == 1
        delays.append(time.monotonic() - started)
        assert library.search(f"Page{number}", mode="lexical").hits[0].item.key == f"{number}.md"
    assert min(delays) < 1.0
    (root / "0.md").unlink()
    assert watch.next_update()[1].removed == 1
    (root / "1.md").rename(root / "moved.md")
    moved = watch.next_update()[1]
    assert (moved.added, moved.removed) == (1, 1)


def test_nothing_is_done_while_nothing_happens(library: Library, root: Path, watched: Callable[..., Watched]) -> None:
    build(root, {f"{number}.md": b"# One" for number in range(200)})
    library.folders.add(root)
    watch = watched(embed=False)
    watch.next_update()
    with pytest.raises(queue.Empty):
        watch.updates.get(timeout=1.5)
    spent = time.process_time()
    with pytest.raises(queue.Empty):
        watch.updates.get(timeout=3)
    assert time.process_time() - spent < 0.3


def test_a_root_that_goes_and_comes_back_ends_nothing(
    library: Library, root: Path, watched: Callable[..., Watched]
) -> None:
    build(root, {"a.md": b"# One"})
    library.folders.add(root)
    watch = watched()
    watch.next_update()
    root.rename(root.with_name("away"))
    name, sentence = watch.failures.get(timeout=PATIENCE_S)
    assert name == "notes"
    assert "Its documents stay as they were" in sentence
    build(root, {"a.md": b"# Two", "b.md": b"# Three"})
    report = watch.next_update()[1]
    while report.added + report.updated < 2 and "b.md" not in library.store.drawer(CollectionFiles).versions("notes"):
        report = watch.next_update()[1]
    (root / "c.md").write_text("# Four", "utf-8")
    assert watch.next_update()[1].added == 1


def test_a_root_that_goes_in_the_middle_of_a_look_ends_nothing(library: Library, root: Path) -> None:
    build(root, {"a.md": b"# One"})
    library.folders.add(root)
    done = threading.Event()

    def flicker() -> None:
        while not done.is_set():
            root.rename(root.with_name("away"))
            root.with_name("away").rename(root)

    watch = watching.Watch(library.store, root, done, updated=lambda *_: None, failed=lambda *_: None)
    flickering = threading.Thread(target=flicker)
    flickering.start()
    try:
        seen, looks, deadline = set[int](), 0, time.monotonic() + PATIENCE_S
        while looks < 500 or (seen == {0} and time.monotonic() < deadline):  # it may stand still while it is away
            seen.add(watch._inodes(watch._collections())[0][1])
            looks += 1
    finally:
        done.set()
        flickering.join(timeout=PATIENCE_S)
    assert seen - {0} == {root.stat().st_ino}


def test_a_root_that_is_another_folder_now_is_watched_all_the_same(
    library: Library, root: Path, watched: Callable[..., Watched]
) -> None:
    build(root, {"a.md": b"# One"})
    library.folders.add(root)
    watch = watched()
    watch.next_update()
    build(root.with_name("new"), {"a.md": b"# One", "b.md": b"# Two"})
    root.rename(root.with_name("away"))
    root.with_name("new").rename(root)
    assert watch.next_update()[1].added == 1
    started = time.monotonic()
    (root / "c.md").write_text("# Three", "utf-8")
    assert watch.next_update()[1].added == 1
    assert time.monotonic() - started < watching.CERTAIN_S / 2


@pytest.mark.parametrize("name", ["again", ".again"])
def test_a_root_made_anew_under_the_number_of_the_old_one_is_watched_all_the_same(
    library: Library, tmp_path: Path, watched: Callable[..., Watched], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(watching, "_inode", lambda root: 7)  # as ext4 does: a number that is free is given again
    library.folders.add(root := build(tmp_path / name, {"a.md": b"# One"}), "again")
    watch = watched()
    watch.next_update()
    for number in range(2):  # the second is heard of by its event
        (root / f"{number}.md").write_text("# Page", "utf-8")
        watch.next_update()
    shutil.rmtree(root)
    build(root, {"a.md": b"# One", "b.md": b"# Two"})
    while "b.md" not in library.store.drawer(CollectionFiles).versions("again"):
        watch.next_update()
    started = time.monotonic()
    (root / "c.md").write_text("# Three", "utf-8")
    assert watch.next_update()[1].added == 1
    assert time.monotonic() - started < watching.CERTAIN_S / 2


def test_bad_files_end_nothing(library: Library, root: Path, watched: Callable[..., Watched]) -> None:
    build(root, {"first.md": b"# First"})
    library.folders.add(root)
    watch = watched()
    watch.next_update()
    (root / "bad.ipynb").write_bytes(b"{")
    (root / "zero.md").write_bytes(b"\0")
    (root / "loop.md").symlink_to("loop.md")
    (root / "two\nlines.md").write_text("x", "utf-8")
    (root / "good.md").write_text("# Good", "utf-8")
    name, report = watch.next_update()
    assert (name, report.added) == ("notes", 1)


def test_collections_and_rules_that_change_are_followed(
    library: Library, root: Path, tmp_path: Path, watched: Callable[..., Watched]
) -> None:
    build(root, {"a.md": b"# One", "b.md": b"# Two"})
    library.folders.add(root)
    watch = watched()
    watch.next_update()
    build(tmp_path / "more", {"c.md": b"# Three"})
    library.folders.add(tmp_path / "more")
    assert watch.next_update()[0] == "more"
    (tmp_path / "more" / "d.md").write_text("# Four", "utf-8")
    assert watch.next_update()[0] == "more"
    (root / ".commonplaceignore").write_text("b.md\n", "utf-8")
    name, report = watch.next_update()
    assert (name, report.removed) == ("notes", 1)
    library.folders.remove("more")
    (root / "e.md").write_text("# Five", "utf-8")
    assert watch.next_update()[0] == "notes"


def test_only_the_named_are_watched_and_an_unknown_name_is_an_error(
    library: Library, root: Path, tmp_path: Path
) -> None:
    library.folders.add(root, "a")
    with pytest.raises(NotFound, match="Collection not found: b"):
        library.folders.watch(threading.Event(), names=["b"])
    (tmp_path / "other").mkdir()
    library.folders.add(tmp_path / "other", "b")
    build(root, {"a.md": b"# One"})
    build(tmp_path / "other", {"b.md": b"# Two"})
    watch = Watched(library, names=["b"])
    try:
        assert watch.next_update()[0] == "b"
        with pytest.raises(queue.Empty):
            watch.updates.get(timeout=1.5)
    finally:
        watch.end()


def test_a_folder_without_events_is_looked_at(
    library: Library, root: Path, watched: Callable[..., Watched], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "_is_remote", lambda root: True)
    build(root, {"first.md": b"# First"})
    library.folders.add(root)
    watch = watched()
    watch.next_update()
    (root / "a.md").write_text("# One", "utf-8")
    assert watch.next_update()[1].added == 1


def test_no_more_watches_to_be_had_means_looking(
    library: Library, root: Path, watched: Callable[..., Watched], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*roots: str, **options: object) -> Iterator[object]:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("watchfiles.watch", full)
    build(root, {"first.md": b"# First"})
    library.folders.add(root)
    watch = watched()
    watch.next_update()
    (root / "a.md").write_text("# One", "utf-8")
    assert watch.next_update()[1].added == 1


def test_vectors_are_made_where_there_are_some_and_the_first_ones_are_not(
    library: Library, root: Path, watched: Callable[..., Watched]
) -> None:
    build(root, {"a.md": b"# One"})
    library.folders.add(root)
    watch = watched()
    watch.next_update()
    watch.end()
    assert library.embedding.chosen is None
    library.embed()
    watch = watched()
    (root / "b.md").write_text("# Two", "utf-8")
    watch.next_update()
    deadline = time.monotonic() + PATIENCE_S
    while library.embedding.coverage().pending and time.monotonic() < deadline:
        threading.Event().wait(0.05)
    assert library.embedding.coverage().pending == 0
    assert library.embedding.coverage().embedded == 2


def test_events_of_our_own_files_and_of_hidden_ones_do_not_matter(library: Library, root: Path) -> None:
    watch = watching.Watch(
        library.store, library.folder, threading.Event(), updated=lambda *said: None, failed=lambda *said: None
    )
    matters = lambda path: watch._matters(None, str(path))  # type: ignore[arg-type]  # noqa: E731
    assert matters(root / "a.md")
    assert matters(root / ".commonplaceignore")
    assert not matters(root / ".a.md.swp")
    assert not matters(library.folder / "library.db-wal")
    collection = library.folders.add(root)
    assert watching._concerned(collection, {str(root / "sub" / "a.md")})
    assert not watching._concerned(collection, {str(root / ".git" / "index"), str(root / "node_modules" / "a.md")})
    assert not watching._concerned(collection, {f"{root}-other/a.md"})
    shutil.rmtree(root)
