"""The lexical follower.

1. Whatever happens to any of its files, open or closed, the next search answers right.
2. A crash between a commit and its seal is no damage; a store older than the index is.
3. Threads and processes may search and catch up at the same time.
4. After any writes the index answers as one rebuilt from the store.
5. What goes wrong in the store reaches the caller, and does not break the index.
6. No segment is without text, in which every look-up would open an empty dictionary.
"""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commonplace.errors import Busy, StorageBroken, StorageFull
from commonplace.index.sealed_files import LOCK_NAME
from commonplace.index.words.lexical_index import LexicalIndex
from commonplace.index.words.snapshot import committed_segments, engine
from commonplace.library import Library
from commonplace.model import Draft, Filter
from commonplace.store.items import Items
from commonplace.store.listing import Listing
from opening import library_settings
from strategies import WORDS
from unprivileged import unprivileged

EXPECTED = [f"notes://{number}" for number in range(6)]


def filled(folder: Path) -> Library:
    """A library whose index has two segments, one of them with a removal."""
    library = Library.open(folder, settings=library_settings(folder))
    library.put_many(Draft("note", str(n), body=f"tea number{n} " + "and more " * n) for n in range(5))
    library.search("tea")
    library.put(Draft("note", "gone", body="tea gone"))
    library.put(Draft("note", "5", body="tea number5"))
    library.search("tea")
    library.delete("notes://gone")
    assert sorted(uris(library, "tea")) == EXPECTED
    return library


def uris(library: Library, query: str) -> list[str]:
    return [hit.uri for hit in library.search(query, limit=100).hits]


def index_folder(library: Library) -> Path:
    (found,) = library.folder.glob("index-*/lexical")
    return found


def touched(path: Path) -> None:
    """Later than it was, whatever the clock of the file system can tell apart."""
    stat = path.stat()
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns + 1_000_000_000))


def put_in_place(path: Path, data: bytes) -> None:
    """As another file of that name: whoever cuts a file that is mapped kills the reader, and no program can help it."""
    other = path.with_name("other")
    other.write_bytes(data)
    other.replace(path)
    touched(path)


def corrupt(path: Path) -> None:
    data = bytearray(path.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 16] = bytes(byte ^ 0xFF for byte in data[middle : middle + 16])
    put_in_place(path, bytes(data))


def truncate(path: Path) -> None:
    put_in_place(path, path.read_bytes()[: path.stat().st_size // 2])


def empty(path: Path) -> None:
    put_in_place(path, b"")


DAMAGE: Sequence[Callable[[Path], None]] = (corrupt, truncate, empty, Path.unlink)


@pytest.mark.parametrize("opened", [True, False], ids=["open", "closed"])
@pytest.mark.parametrize("damage", DAMAGE, ids=lambda damage: damage.__name__)
def test_any_damage_to_any_file_is_healed_by_the_next_search(
    tmp_path: Path, damage: Callable[[Path], None], opened: bool
) -> None:
    library = filled(tmp_path)
    folder = index_folder(library)
    names = sorted(path.name for path in folder.iterdir() if path.is_file())
    assert {"meta.json", "seal.json"} < set(names)
    kinds = {name.rpartition(".")[2] if len(name) > 32 else name: name for name in names}  # one of each kind of file
    for kind in kinds:
        present = [p for p in folder.iterdir() if p.name == kind or (len(p.name) > 32 and p.name.endswith(f".{kind}"))]
        if not present:
            continue  # a rebuilt index has no removals
        if not opened:
            library.close()
        damage(sorted(present)[0])
        if not opened:
            library = Library.open(tmp_path, settings=library_settings(tmp_path))
        assert sorted(uris(library, "tea")) == EXPECTED, kind
        assert uris(library, "number5") == ["notes://5"], kind
        library.put(Draft("note", "0", body=f"tea number0 {kind.strip('.')}x"))
        assert "notes://0" in uris(library, "number0"), kind
        assert library.doctor() == [], kind
    library.close()


def test_a_folder_that_is_gone_is_made_again(tmp_path: Path) -> None:
    library = filled(tmp_path)
    shutil.rmtree(index_folder(library))
    assert sorted(uris(library, "tea")) == EXPECTED
    shutil.rmtree(index_folder(library).parent)
    library.close()
    with Library.open(tmp_path, settings=library_settings(tmp_path)) as again:
        assert sorted(uris(again, "tea")) == EXPECTED


def test_a_crash_between_a_commit_and_its_seal_is_no_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    library = filled(tmp_path)

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as crash:
        crash.setattr(LexicalIndex, "_seal", killed)
        library.put(Draft("note", "late", body="tea late"))
        with pytest.raises(KeyboardInterrupt):
            library.search("late")
    library.close()
    with caplog.at_level(logging.INFO), Library.open(tmp_path, settings=library_settings(tmp_path)) as again:
        assert uris(again, "late") == ["notes://late"]
        assert again.doctor() == []
    assert "Rebuilding" not in caplog.text


@pytest.mark.parametrize("last", ["a deletion", "many vectors"])
def test_the_position_is_not_alone_in_its_segment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, last: str) -> None:
    monkeypatch.setattr("commonplace.index.words.snapshot.FROM", 2)
    library = filled(tmp_path)
    before = library.search("tea number3", limit=100).hits
    if last == "a deletion":
        library.put(Draft("note", "short-lived", body="coffee"))
        library.search("coffee")
        library.delete("notes://short-lived")
    else:
        monkeypatch.setattr("commonplace.index.words.lexical_index.QUIET", 2)
        library.embed()
    after = library.search("tea number3", mode="lexical", limit=100).hits
    assert min(documents for documents, *_ in committed_segments(index_folder(library)).values()) > 1
    assert [(hit.uri, hit.snippet) for hit in after] == [(hit.uri, hit.snippet) for hit in before]
    assert library.lexical.position() == library.store.last_change()
    assert library.doctor() == []
    library.close()


@pytest.mark.parametrize("last", ["deletions", "an item without text"])
def test_the_position_is_not_alone_where_the_first_of_a_large_segment_have_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, last: str
) -> None:
    monkeypatch.setattr("commonplace.index.words.snapshot.FROM", 2)
    monkeypatch.setattr("commonplace.index.words.snapshot.FEW", 3)
    library = Library.open(tmp_path, settings=library_settings(tmp_path))
    library.put_many(Draft("note", str(n), body=f"tea number{n}") for n in range(9))
    library.search("tea")
    if last == "deletions":
        library.store.drawer(Items).delete(library.store.drawer(Listing).select(Filter())[:5].tolist())
    else:
        library.put(Draft("note", "0"))
    assert len(uris(library, "tea")) == (4 if last == "deletions" else 8)
    assert min(documents for documents, *_ in committed_segments(index_folder(library)).values()) > 1
    library.close()


def test_a_library_that_is_emptied_has_nobody_to_keep_the_position_company(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("commonplace.index.words.snapshot.FROM", 2)
    library = filled(tmp_path)
    library.delete_where(Filter(kinds=("note",)))
    assert uris(library, "tea") == []
    assert library.lexical.position() == library.store.last_change()
    library.close()


@pytest.mark.parametrize("embedded", [False, True])
def test_a_store_older_than_its_index_has_it_rebuilt(tmp_path: Path, embedded: bool) -> None:
    library = filled(tmp_path)
    if embedded:
        library.embed()
    backup = tmp_path / "backup.db"
    library.backup(backup)
    library.put_many(Draft("note", f"later{n}", body="tea later") for n in range(20))
    if embedded:
        library.embed()
    assert len(uris(library, "later")) >= 20
    library.store.restore(backup)
    assert "notes://later1" not in uris(library, "later")
    assert sorted(uri for uri in uris(library, "tea") if "later" not in uri) == EXPECTED
    assert library.doctor() == []
    library.close()


CATCH_UP = """
import sys
from pathlib import Path
from commonplace.library import Library
from commonplace.model import Draft
from commonplace.settings import Settings

folder, name = Path(sys.argv[1]), sys.argv[2]
library = Library.open(folder, settings=Settings(home=folder, models=folder / "models", model="static"))
print("ready", flush=True)
sys.stdin.readline()
for number in range(6):
    library.put(Draft("note", f"{name}{number}", body=f"tea {name} unique{name}{number}"))
    hits = library.search(f"unique{name}{number}", limit=100).hits
    assert [hit.uri for hit in hits][:1] == [f"notes://{name}{number}"], hits
print("done", flush=True)
"""


@pytest.mark.timeout(100)
def test_two_processes_catch_up_at_once(tmp_path: Path) -> None:
    library = filled(tmp_path)
    others = [
        subprocess.Popen(
            [sys.executable, "-c", CATCH_UP, str(tmp_path), name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for name in ("x", "y")
    ]
    for other in others:
        assert other.stdout
        assert other.stdout.readline() == "ready\n"
    for other in others:
        assert other.stdin
        other.stdin.write("go\n")
        other.stdin.flush()
    assert [other.communicate(timeout=80) for other in others] == [("done\n", "")] * 2
    assert len(uris(library, "tea")) == len(EXPECTED) + 12
    assert library.doctor() == []
    library.close()


def test_threads_write_and_search_at_once(library: Library) -> None:
    def work(name: int) -> None:
        for number in range(4):
            library.put(Draft("note", f"{name}-{number}", body=f"tea u{name}n{number}"))
            assert uris(library, f"u{name}n{number}") == [f"notes://{name}-{number}"]

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert len(uris(library, "tea")) == 16


@given(
    ops=st.lists(
        st.tuples(
            st.sampled_from(["put", "put", "put", "delete", "search"]),
            st.integers(0, 5),
            st.lists(st.sampled_from(WORDS), min_size=1, max_size=5).map(" ".join),
        ),
        min_size=3,
        max_size=15,
    )
)
@settings(max_examples=12)
def test_after_any_writes_the_index_answers_as_a_rebuilt_one(
    tmp_path_factory: pytest.TempPathFactory, ops: list[tuple[str, int, str]]
) -> None:
    folder = tmp_path_factory.mktemp("ops")
    with Library.open(folder, settings=library_settings(folder)) as library:
        present: set[int] = set()
        for op, key, text in ops:
            if op == "put":
                library.put(Draft("note", str(key), body=text, tags=(text.split()[0],)))
                present.add(key)
            elif op == "delete" and key in present:
                library.delete(f"notes://{key}")
                present.remove(key)
            else:
                library.search(text)
        words = sorted(
            {
                word
                for item in library.store.drawer(Listing).scan(Filter(), body=True)
                for word in (item.body or "").split()
            }
        )
        before = [sorted(uris(library, word)) for word in words]
        library.rebuild()
        assert before == [sorted(uris(library, word)) for word in words]
        assert all(before)


def test_an_error_of_the_store_reaches_the_caller_and_breaks_nothing(library: Library) -> None:
    library.put(Draft("note", "a", body="tea"))
    index, real = library.lexical, library.store.indexed

    def full(_: Sequence[int]) -> list[object]:
        raise StorageFull("There is no room.")

    library.store.indexed = full  # type: ignore[method-assign, assignment]
    with pytest.raises(StorageFull) as held:  # the error, and with it every frame it passed, is kept alive
        index.catch_up()
    library.store.indexed = real  # type: ignore[method-assign]
    assert uris(library, "tea") == ["notes://a"]
    assert held.value


def test_catching_up_twice_does_nothing_the_second_time(library: Library) -> None:
    library.put(Draft("note", "a", body="tea"))
    assert library.lexical.catch_up() == 1
    before = sorted((path.name, path.stat().st_mtime_ns) for path in index_folder(library).iterdir())
    assert library.lexical.catch_up() == library.lexical.position() == 1
    assert before == sorted((path.name, path.stat().st_mtime_ns) for path in index_folder(library).iterdir())
    library.lexical.reset()
    assert library.lexical.position() == 0
    assert uris(library, "tea") == ["notes://a"]


def test_changes_without_text_are_not_committed_and_not_looked_at_again(library: Library) -> None:
    library.put(Draft("note", "a", body="tea"))
    library.search("tea")
    stamp = (index_folder(library) / "meta.json").stat().st_mtime_ns
    library.embed()
    assert library.lexical.catch_up() == library.store.last_change() == 2
    assert (index_folder(library) / "meta.json").stat().st_mtime_ns == stamp
    library.put(Draft("note", "b", body="more tea"))
    assert len(uris(library, "tea")) == 2


def test_readers_never_see_a_half_made_index(library: Library) -> None:
    library.put_many(Draft("note", str(n), body="tea") for n in range(20))
    library.search("tea")
    stop, seen = threading.Event(), set()

    def read() -> None:
        while not stop.is_set():
            seen.add(len(uris(library, "tea")))

    reader = threading.Thread(target=read)
    reader.start()
    try:
        for _ in range(5):
            library.rebuild()
    finally:
        stop.set()
        reader.join(30)
    assert seen <= {20}


@pytest.mark.parametrize("locked", [False, True], ids=["the files", "the lock too"])
def test_a_search_that_may_not_bring_its_index_up_to_date_says_so(locked: bool, tmp_path: Path) -> None:
    with filled(tmp_path / "home") as library:
        library.put(Draft("note", "cup", body="porcelain"))
        folder = index_folder(library)
        before = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
        with unprivileged(tmp_path):
            (folder / LOCK_NAME).chmod(0o444 if locked else 0o644)
            folder.chmod(0o555)
            try:
                with pytest.raises(StorageBroken, match=r"cannot be written to.*permissions"):
                    library.search("porcelain")
            finally:
                folder.chmod(0o755)
                (folder / LOCK_NAME).chmod(0o644)
            assert {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()} == before
            assert uris(library, "porcelain") == ["notes://cup"]


def test_a_writer_that_gets_no_thread_is_told_so_and_costs_no_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class PanicException(BaseException):  # what pyo3 raises
        pass

    def refuse(*_: object) -> None:
        raise PanicException("Failed to spawn a thread: Os { code: 11, message: Resource temporarily unavailable }")

    with filled(tmp_path / "home") as library:
        library.put(Draft("note", "cup", body="porcelain"))
        folder = index_folder(library)
        before = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
        with monkeypatch.context() as patch:
            patch.setattr(LexicalIndex, "_writer", lambda *_: engine(refuse))
            with pytest.raises(Busy, match="Resource temporarily unavailable"):
                library.search("porcelain")
        assert {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()} == before
        assert uris(library, "porcelain") == ["notes://cup"]
