"""Open libraries, on real files.

1. Each space is opened once, however many threads ask for it at the same moment.
2. The least recently used idle one goes when there are too many; one in use never does.
3. What cannot be opened leaves nothing behind.
4. A space that another server has put a backup into is opened anew, once that is noticed.
5. Where the home is taken away, nobody's space is made anew in its place.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path

import pytest

from commonplace.errors import InvalidInput, StorageBroken, Unavailable
from commonplace.ingest.library_status import Status
from commonplace.library import Library, restore
from commonplace.model import Draft
from commonplace.server.libraries import Libraries
from commonplace.server.metrics import Metrics
from commonplace.server.service import Service
from commonplace.store.listing import Listing
from opening import library_settings, space_of
from postgres_server import postgres


@pytest.fixture
def libraries(tmp_path: Path) -> Iterator[Libraries]:
    libraries = Libraries(library_settings(tmp_path), most=2)
    yield libraries
    libraries.close()


def is_closed(library: Library) -> bool:
    try:
        library.store.last_change()
    except StorageBroken:
        return True
    return False


def test_what_one_space_keeps_no_other_sees(libraries: Libraries) -> None:
    with libraries.borrow("ann") as ann, libraries.borrow("bob") as bob:
        ann.put(Draft("note", "tea", body="Oolong."))
        assert len(ann.search("oolong").hits) == 1
        assert bob.search("oolong").hits == ()
    with libraries.borrow("ann") as again:
        assert again is ann


def test_many_threads_open_a_space_once(libraries: Libraries) -> None:
    start = threading.Barrier(8, timeout=20)

    def work(_: int) -> Library:
        start.wait()
        with libraries.borrow("ann") as library:
            library.store.last_change()
            return library

    with ThreadPoolExecutor(8) as pool:
        assert len(set(map(id, pool.map(work, range(8))))) == 1


def test_the_least_recently_used_idle_library_is_closed(libraries: Libraries) -> None:
    with libraries.borrow("ann") as ann, libraries.borrow("bob") as bob:
        pass
    with libraries.borrow("ann"):
        pass
    with libraries.borrow("cem") as cem:  # ann came first and was used last
        assert is_closed(bob)
        assert not is_closed(ann)
    assert (libraries.peek("ann"), libraries.peek("bob"), libraries.peek("cem")) == (ann, None, cem)
    with libraries.borrow("bob") as again:
        assert again is not bob
        assert not is_closed(again)


def test_a_library_in_use_is_never_closed(libraries: Libraries) -> None:
    with ExitStack() as held:
        opened = [held.enter_context(libraries.borrow(name)) for name in ("ann", "bob", "cem", "dan")]
        assert not any(map(is_closed, opened))
    assert sum(map(is_closed, opened)) == 2


def test_who_only_looks_opens_nothing_and_keeps_what_is_open(libraries: Libraries) -> None:
    with libraries.borrow_open("ann") as nothing:
        assert nothing is None
    with libraries.borrow("ann") as ann:
        pass
    with libraries.borrow_open("ann") as seen:
        assert seen is ann
        with libraries.borrow("bob"), libraries.borrow("cem") as cem:
            pass
        assert not is_closed(ann)
        assert is_closed(cem)
    with libraries.borrow("bob"), libraries.borrow("cem"):
        assert is_closed(ann)


def test_what_is_counted_of_a_library_is_counted_while_it_is_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Prometheus looks at all of them while calls of others have the least recently used closed."""
    service, metrics = Service(replace(library_settings(tmp_path), open_libraries=1)), Metrics()
    metrics.watch(service)
    counted = Library.status

    def late(library: Library) -> Status:
        with service.libraries.borrow("bob"):
            pass
        return counted(library)

    with closing(service):
        with service.libraries.borrow("ann") as ann:
            ann.put(Draft("note", "tea", body="Oolong."))
        monkeypatch.setattr(Library, "status", late)
        assert b"commonplace_chunks 1.0" in metrics.text()


def test_a_library_that_is_gone_keeps_nobody_from_being_counted(tmp_path: Path) -> None:
    service, metrics = Service(library_settings(tmp_path)), Metrics()
    metrics.watch(service)
    with closing(service), service.libraries.borrow("ann") as ann, service.libraries.borrow("bob"):
        ann.put(Draft("note", "tea", body="Oolong."))
        shutil.rmtree(tmp_path / "spaces" / "bob")
        with ThreadPoolExecutor(1) as another:  # which has nothing of it open yet
            told = another.submit(metrics.text).result()
    assert b"commonplace_open_libraries 2.0\n" in told
    assert b"commonplace_unread_libraries 1.0\n" in told
    assert b"commonplace_chunks 1.0\n" in told


def test_closing_waits_for_nobody_and_takes_all(libraries: Libraries) -> None:
    with libraries.borrow("ann") as ann:
        pass
    with libraries.borrow("bob") as bob:
        libraries.close()
        assert is_closed(ann)
        assert not is_closed(bob)
        with pytest.raises(Unavailable, match="shutting down"), libraries.borrow("cem"):
            pass
    assert is_closed(bob)
    assert libraries.peek("bob") is None


def test_a_space_that_cannot_be_opened_is_asked_for_again(libraries: Libraries, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="A space is named"), libraries.borrow("../ann"):
        pass
    (tmp_path / "spaces").mkdir()
    (tmp_path / "spaces" / "ann").write_text("in the way", encoding="utf-8")
    with pytest.raises(StorageBroken), libraries.borrow("ann"):
        pass
    assert libraries.peek("ann") is None
    (tmp_path / "spaces" / "ann").unlink()
    with libraries.borrow("ann") as library:
        assert library.status().items == {}


def test_an_error_of_the_borrower_gives_the_library_back(libraries: Libraries) -> None:
    with pytest.raises(ZeroDivisionError), libraries.borrow("ann") as ann:
        _ = 1 / 0
    with libraries.borrow("bob"), libraries.borrow("cem"):
        assert is_closed(ann)


def test_threads_on_more_spaces_than_may_be_open_lose_nothing(libraries: Libraries) -> None:
    def work(number: int) -> None:
        for turn in range(4):
            with libraries.borrow(f"space-{(number + turn) % 5}") as library:
                library.put(Draft("note", f"{number}-{turn}", body="x"))

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(6)))
    total = 0
    for number in range(5):
        with libraries.borrow(f"space-{number}") as library:
            total += library.status().items.get("note", 0)
    assert total == 24


# 4


def test_a_space_that_was_restored_elsewhere_is_opened_anew(tmp_path: Path) -> None:
    server, space = postgres(), space_of(tmp_path)
    here = library_settings(tmp_path / "here", store=server.app, store_connections=5)
    libraries = Libraries(here)
    with libraries.borrow(space) as old:
        old.put(Draft("note", "tea", body="Oolong."))
        old.backup(tmp_path / "backup.db")
        old.put(Draft("note", "late", body="Forgotten."))
        assert [hit.uri for hit in old.search("forgotten").hits] == ["notes://late"]
    elsewhere = library_settings(tmp_path / "elsewhere", store=server.app, store_connections=5)
    restore(tmp_path / "backup.db", elsewhere.home, space, elsewhere)
    with Library.open(elsewhere.home, space, elsewhere) as other:  # its log grows beyond what the index here has seen
        other.put_many(Draft("note", f"new-{number}", body="Recent.") for number in range(3))
    with libraries.borrow(space) as still:
        assert still is old
        still.search("recent")
        with libraries.borrow(space) as new:
            assert new is not old
            assert not is_closed(old), "somebody uses it"
            assert len(new.search("recent").hits) == 3
            assert new.search("forgotten").hits == ()
    assert is_closed(old)
    with libraries.borrow(space) as again:
        assert again is new
        assert again.doctor() == []
    libraries.close()
    assert is_closed(new)


def test_a_home_s_space_that_was_restored_by_another_process_is_opened_anew(
    libraries: Libraries, tmp_path: Path
) -> None:
    with libraries.borrow("ann") as before:
        before.put(Draft("note", "old", body="kettle"))
        before.backup(tmp_path / "backup.db")
        before.put(Draft("note", "new", body="kettle"))
        assert len(before.search("kettle").hits) == 2
    restore(tmp_path / "backup.db", before.settings.home, "ann", before.settings)
    with libraries.borrow("ann") as noticing:
        assert [hit.uri for hit in noticing.search("kettle").hits] == ["notes://old"]
    with libraries.borrow("ann") as after:
        assert after is not before
        assert [hit.uri for hit in after.search("kettle").hits] == ["notes://old"]
    assert is_closed(before)


@pytest.mark.parametrize("pinned", ["by a space it opened", "by those it found"])
def test_a_home_that_is_gone_or_another_is_not_made_anew(tmp_path: Path, pinned: str) -> None:
    home, away, settings = tmp_path / "home", tmp_path / "away", library_settings(tmp_path / "home")
    if pinned == "by those it found":
        Library.open(home, "bob", settings).close()
    with closing(Libraries(settings, most=1)) as libraries:
        if pinned == "by a space it opened":
            for space in ("bob", "ann"):  # the second closes the first
                with libraries.borrow(space) as library:
                    library.put(Draft("note", "tea", body="Oolong."))
        home.rename(away)
        with pytest.raises(StorageBroken, match="home was removed or replaced"), libraries.borrow("bob"):
            pass
        assert not home.exists()
        (home / "spaces").mkdir(parents=True)
        with pytest.raises(StorageBroken, match="home was removed or replaced"), libraries.borrow("bob"):
            pass
        assert list((home / "spaces").iterdir()) == []
        shutil.rmtree(home)
        away.rename(home)
        with libraries.borrow("bob") as library:
            assert library.store.drawer(Listing).counts() == ({"note": 1} if pinned == "by a space it opened" else {})
