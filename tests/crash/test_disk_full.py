"""A full disk is one clear error: nothing stored is lost, nothing is damaged, and with room again everything goes on.

The disk is a small tmpfs, or, for files that may not be created at all, one with few inodes.
"""

from __future__ import annotations

import random
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from itertools import count
from pathlib import Path

import pytest
from crash_checks import State, answers, differences, make_draft, open_library, problems_of, state_of

from commonplace.errors import CommonplaceError, StorageFull
from commonplace.library import Library
from commonplace.store import SqliteStore
from small_disk import Disk, mounted

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

SIZE = 24 << 20
Mount = Callable[[str], Path]


@pytest.fixture
def mount(tmp_path: Path) -> Iterator[Mount]:
    """Mounts a tmpfs with these options, and unmounts it whatever happens."""
    with ExitStack() as disks:
        numbers = count()
        yield lambda options: disks.enter_context(mounted(tmp_path / f"disk-{next(numbers)}", options))


@pytest.fixture
def disk(mount: Mount) -> Disk:
    return Disk(mount(f"size={SIZE}"))


def fill(library: Library, rng: random.Random, count: int, prefix: str) -> None:
    library.put_many(make_draft(rng, f"{prefix}{number}", f"{prefix}word{number}") for number in range(count))


def refused(work: Callable[[], object]) -> str:
    """It may only fail as StorageFull, in a sentence that a person can use."""
    try:
        work()
    except StorageFull as error:
        message = str(error)
        assert "Traceback" not in message
        assert "\n" not in message
        assert "disk" in message
        return message
    pytest.fail("there was room after all")


def until_full(work: Callable[[], object], most: int = 3000) -> int:
    """Repeat it until the disk is full; returns how often it went well."""
    for done in range(most):
        try:
            work()
        except StorageFull:
            return done
    pytest.fail("the disk never filled up")


FREE = (0, 4096, 16_384, 65_536, 131_072, 262_144)
"""What is left when the work begins. It has to fail at one place or another with most of them, and never badly."""


def test_writes_stop_with_a_clear_error_and_go_on_when_there_is_room(disk: Disk) -> None:
    home, rng = disk.root / "home", random.Random(1)
    acknowledged: State = {}
    with open_library(home) as library:
        fill(library, rng, 40, "n")
        acknowledged |= state_of(library.store)
        for free in FREE:
            disk.leave(free)

            def put(free: int = free) -> None:
                key = f"more{free}-{len(acknowledged)}"
                item = library.put(make_draft(rng, key, key, longest=2000))
                acknowledged[item.uri] = (item.version, item.content_hash[:16])

            until_full(put)
            refused(put)
            assert state_of(library.store) == acknowledged
            disk.relieve()
            put()
            assert library.search("kettle").hits
        assert state_of(library.store) == acknowledged
        assert problems_of(library) == []
    with open_library(home) as library:
        assert state_of(library.store) == acknowledged
        assert problems_of(library) == []


def test_a_library_closed_on_a_full_disk_has_everything_when_it_opens_again(disk: Disk) -> None:
    home, rng = disk.root / "home", random.Random(2)
    with open_library(home) as library:
        fill(library, rng, 60, "n")
        state = state_of(library.store)
        disk.leave(0)
    refused(lambda: open_library(home).put(make_draft(rng, "late", "late", longest=4000)))
    disk.relieve()
    with open_library(home) as library:
        assert state_of(library.store) == state
        assert problems_of(library) == []


@pytest.mark.parametrize("free", FREE)
def test_an_index_that_finds_no_room_stops_with_a_clear_error_and_goes_on(disk: Disk, free: int) -> None:
    home, rng = disk.root / "home", random.Random(free)
    with open_library(home) as library:
        fill(library, rng, 50, "n")
        library.embed()
        library.search("kettle")
        fill(library, rng, 400, "m")
        state = state_of(library.store)
        disk.leave(free)
        errors = []
        for work in (
            lambda: library.search("kettle", mode="lexical"),
            lambda: library.search("kettle", mode="lexical"),
            lambda: library.search("kettle"),
            library.embed,
            library.rebuild,
            lambda: library.search("kettle"),
            library.doctor,
        ):
            try:
                work()
            except CommonplaceError as error:
                errors.append(error)  # kept on purpose: what an error holds on to must not stand in the way later
        assert [repr(error) for error in errors if not isinstance(error, StorageFull)] == []
        assert errors or free > 65_536
        assert all("\n" not in str(error) for error in errors)
        disk.relieve()
        assert library.search("kettle", mode="lexical").hits
        library.embed()
        assert state_of(library.store) == state
        assert library.embedding.coverage().pending == 0
        assert problems_of(library) == []
        del errors


@pytest.mark.parametrize("free", FREE)
def test_vectors_that_find_no_room_stop_with_a_clear_error_and_go_on(disk: Disk, free: int) -> None:
    home, rng = disk.root / "home", random.Random(free)
    with open_library(home) as library:
        fill(library, rng, 50, "n")
        library.embed()
        fill(library, rng, 300, "m")
        library.embed()
        vectors = library.embedding.index()
        assert vectors is not None
        before = answers(library)
        disk.leave(free)
        for work in (vectors.compact, vectors.reset, vectors.catch_up, lambda: library.search("kettle tea")):
            with suppress(StorageFull):
                work()
        disk.relieve()
        assert differences(before, answers(library)) == []
        assert problems_of(library) == []


@pytest.mark.parametrize("free", FREE)
def test_an_embedding_that_finds_no_room_keeps_what_it_has_and_goes_on(disk: Disk, free: int) -> None:
    home, rng = disk.root / "home", random.Random(free)
    with open_library(home) as library:
        fill(library, rng, 500, "n")
        library.search("kettle", mode="lexical")
        disk.leave(free)
        refused(library.embed)
        some = library.embedding.coverage().embedded
        disk.relieve()
        assert library.embed() <= library.embedding.coverage().total - some
        assert library.embedding.coverage().pending == 0
        assert problems_of(library) == []


@pytest.mark.parametrize("free", FREE)
def test_a_backup_that_finds_no_room_leaves_the_last_one_and_takes_no_space(disk: Disk, free: int) -> None:
    home, target, rng = disk.root / "home", disk.root / "backup.db", random.Random(free)
    with open_library(home) as library:
        fill(library, rng, 20, "n")
        library.backup(target)
        old = state_of(library.store)
        fill(library, rng, 300, "m")
        new = state_of(library.store)
        disk.leave(free)
        left = disk.left()
        refused(lambda: library.backup(target))
        assert disk.left() >= left - 65_536, "the half of a backup was left behind"
        assert backup_state(target) == old
        disk.relieve()
        library.backup(target)
        assert backup_state(target) == new
        assert problems_of(library) == []


@pytest.mark.parametrize("share", [0.3, 1.3])
def test_a_restore_that_finds_no_room_names_the_disk_of_the_library_and_changes_nothing(
    disk: Disk, tmp_path: Path, share: float
) -> None:
    """In the middle of looking at the backup, or of taking it over."""
    home, source = disk.root / "home", tmp_path / "elsewhere.backup"
    with open_library(tmp_path / "full") as full:
        fill(full, random.Random(1), 300, "m")
        full.backup(source)
        wanted = state_of(full.store)
    with open_library(home) as library:
        fill(library, random.Random(2), 3, "n")
        before = state_of(library.store)
        disk.leave(int(source.stat().st_size * share))
        message = refused(lambda: library.store.restore(source))
        assert message.startswith(f"{home}/")
        assert "disk is full" in message
        assert state_of(library.store) == before
        disk.relieve()
        library.store.restore(source)
        assert state_of(library.store) == wanted


def backup_state(path: Path) -> State:
    copy = path.parent.parent / "backup-copy.db"
    copy.write_bytes(path.read_bytes())
    store = SqliteStore(copy)
    try:
        assert store.check() == []
        return state_of(store)
    finally:
        store.close()


@pytest.mark.parametrize("inodes", range(3, 40, 3))
def test_a_disk_that_takes_no_more_files_is_a_full_disk(mount: Mount, inodes: int) -> None:
    root, rng = mount(f"size={SIZE},nr_inodes={inodes}"), random.Random(inodes)
    errors: list[StorageFull] = []

    def attempt(work: Callable[[], object]) -> None:
        try:
            work()
        except StorageFull as error:
            errors.append(error)

    def use() -> None:
        with open_library(root / "home") as library:
            for work in (
                lambda: fill(library, rng, 5, "n"),
                lambda: library.search("kettle"),
                library.embed,
                lambda: library.search("kettle"),
                library.rebuild,
                lambda: library.backup(root / "backup.db"),
                library.doctor,
            ):
                attempt(work)

    attempt(use)
    assert errors or inodes > 24
    subprocess.run(["mount", "-o", "remount,nr_inodes=10000", str(root)], check=True)
    with open_library(root / "home") as library:
        fill(library, rng, 5, "n")
        library.embed()
        assert problems_of(library) == []
