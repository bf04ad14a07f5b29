"""Indexes are disposable: whatever happens to their files while a home is closed, the next search answers as before.

1. Any file of either index may be overwritten in the middle, cut short, emptied or deleted, or lie on a bad sector.
2. Any folder of indexes may be emptied or deleted as a whole.
3. Afterwards `doctor` has nothing to say, and nobody had to repair anything.

That a process has run out of files to open is no damage: it is told, and nothing is thrown away for it.
"""

from __future__ import annotations

import random
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from crash_checks import QUERIES, make_draft, open_library, problems_of, unique_word

from commonplace.errors import Busy
from commonplace.index.sealed_files import LOCK_NAME
from commonplace.library import Library
from few_files import few_files

Damage = Callable[[Path], None]


def overwrite(path: Path) -> None:
    data = bytearray(path.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 16] = b"\xa5\x00garbage\xff" * 2
    path.write_bytes(data)


def flip(path: Path) -> None:
    """One bit, in the middle."""
    data = bytearray(path.read_bytes())
    if data:
        data[len(data) // 2] ^= 1
    path.write_bytes(data)


def cut(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def extend(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"\x00" * 4096)


def delete(path: Path) -> None:
    path.unlink()


def spoil(path: Path) -> None:
    """Reading it is an input/output error, as it is where a sector has gone bad."""
    if path.name == LOCK_NAME:  # never read
        return
    path.unlink()
    path.symlink_to("/proc/self/mem")


DAMAGES: tuple[Damage, ...] = (overwrite, flip, cut, empty, extend, delete, spoil)


def exact_answers(library: Library) -> list[list[tuple[str, int, float]]]:
    return [
        [(hit.uri, hit.chunk.ordinal, hit.score) for hit in library.search(query, mode=mode, per_item=False).hits]
        for mode, query in QUERIES
    ]


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[list[tuple[str, int, float]]]]:
    """A home with some dead rows in its indexes and nothing pending, closed, and what it answers."""
    home = tmp_path_factory.mktemp("kept")
    rng = random.Random(5)
    with open_library(home) as library:
        for number in range(60):
            library.put(make_draft(rng, f"n{number}", f"unique{number}"))
        library.embed()
        library.rebuild()  # a rebuild is all that damage may lead to, so the scores are compared with those of one
        answers = exact_answers(library)
        assert all(answers[: len(QUERIES) // 2])
    return home, answers


def index_files(home: Path) -> list[Path]:
    files = sorted(path for path in home.glob("spaces/default/index-*/*/*") if path.is_file())
    assert len(files) >= 12
    return files


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_a_damaged_file_changes_no_answer(
    damage: Damage, kept: tuple[Path, list[list[tuple[str, int, float]]]], tmp_path: Path
) -> None:
    source, answers = kept
    for number, original in enumerate(index_files(source)):
        home = shutil.copytree(source, tmp_path / str(number))  # copies the times of the files too
        damage(home / original.relative_to(source))
        with open_library(home) as library:
            assert exact_answers(library) == answers, f"{damage.__name__} {original.name}"
            assert library.doctor() == [], f"{damage.__name__} {original.name}"
        shutil.rmtree(home)


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_doctor_alone_repairs_or_reports_and_a_search_puts_it_right(
    damage: Damage, kept: tuple[Path, list[list[tuple[str, int, float]]]], tmp_path: Path
) -> None:
    source, answers = kept
    home = shutil.copytree(source, tmp_path / "home")
    for original in index_files(source):
        damage(home / original.relative_to(source))
    with open_library(home) as library:
        library.doctor()
        assert exact_answers(library) == answers
        assert problems_of(library) == []


@pytest.mark.parametrize("pattern", ["index-*", "index-*/lexical", "index-*/vectors-*"])
@pytest.mark.parametrize("whole", [True, False], ids=["deleted", "emptied"])
def test_a_folder_that_is_gone_changes_no_answer(
    pattern: str, whole: bool, kept: tuple[Path, list[list[tuple[str, int, float]]]], tmp_path: Path
) -> None:
    source, answers = kept
    home = shutil.copytree(source, tmp_path / "home")
    (folder,) = home.glob(f"spaces/default/{pattern}")
    shutil.rmtree(folder)
    if not whole:
        folder.mkdir()
    with open_library(home) as library:
        assert exact_answers(library) == answers
        assert problems_of(library) == []


@pytest.mark.parametrize("damage", [overwrite, cut, delete], ids=lambda damage: damage.__name__)
def test_files_damaged_under_an_open_library_change_no_answer(
    damage: Damage, kept: tuple[Path, list[list[tuple[str, int, float]]]], tmp_path: Path
) -> None:
    source, answers = kept
    home = shutil.copytree(source, tmp_path / "home")
    with open_library(home) as library:
        for original in index_files(source):
            assert exact_answers(library) == answers
            path = home / original.relative_to(source)
            if path.exists():  # a rebuild gives most files other names
                damage(path)
                assert exact_answers(library) == answers, original.name
    with open_library(home) as library:
        assert exact_answers(library) == answers
        assert problems_of(library) == []


@pytest.mark.parametrize("pending", [False, True], ids=["level", "behind"])
def test_a_process_out_of_files_is_told_and_keeps_its_indexes(
    pending: bool, kept: tuple[Path, list[list[tuple[str, int, float]]]], tmp_path: Path
) -> None:
    source, answers = kept
    home = shutil.copytree(source, tmp_path / "home")
    files = [home / path.relative_to(source) for path in index_files(source)]
    with open_library(home) as library:
        library.store.last_change()  # the database is open
        if pending:
            library.put(make_draft(random.Random(1), "late", "lateword"))
        before = {path: path.read_bytes() for path in files}
        asked: tuple[Callable[[], object], ...] = (
            lambda: library.search("harbour", mode="lexical"),
            lambda: library.search("harbour", mode="semantic"),
            library.doctor,
            library.rebuild,
        )
        for ask in asked:
            with few_files(), pytest.raises(Busy, match="Too many open files"):
                ask()
        assert {path: path.read_bytes() for path in files} == before
        assert problems_of(library) == []
        assert pending or exact_answers(library) == answers


def test_a_digit_changed_in_the_commit_file_changes_no_answer(
    kept: tuple[Path, list[list[tuple[str, int, float]]]], tmp_path: Path
) -> None:
    """The commit file of the lexical index is JSON: a changed digit leaves it readable, and wrong."""
    source, answers = kept
    (original,) = source.glob("spaces/default/index-*/lexical/meta.json")
    text = original.read_text(encoding="utf-8")
    start = text.index('"max_doc":') + len('"max_doc":')
    for number, digit in enumerate("23456"):
        home = shutil.copytree(source, tmp_path / str(number))
        place = next(i for i in range(start, len(text)) if text[i].isdigit())
        changed = text[:place] + digit + text[place + 1 :]
        (home / original.relative_to(source)).write_text(changed, encoding="utf-8")
        with open_library(home) as library:
            assert exact_answers(library) == answers, digit


def test_a_rebuild_that_died_in_another_process_is_gone_on_with(tmp_path: Path) -> None:
    """Having seen changes that say nothing to the lexical index must not make this process trust an emptied one."""
    with open_library(tmp_path) as mine, open_library(tmp_path) as other:
        mine.put(make_draft(random.Random(1), "first", "firstword"))
        assert mine.search("firstword", mode="lexical").hits
        mine.embed()
        assert mine.search("firstword").hits
        other.lexical.reset()  # and there it was killed
        assert [hit.item.key for hit in mine.search("firstword", mode="lexical").hits] != []
        mine.put(make_draft(random.Random(2), "second", "secondword"))
        assert mine.search("firstword", mode="lexical").hits
        assert problems_of(mine) == []


def test_scores_drift_little_between_rebuilds(tmp_path: Path) -> None:
    """Term counts include removed passages until tantivy merges them: a rebuild may move a score, but not by much."""
    rng = random.Random(3)
    with open_library(tmp_path) as library:
        for number in range(120):
            library.put(make_draft(rng, f"n{number % 30}", f"unique{number}"))
            if number % 3 == 0:
                library.search("kettle")

        def scores() -> dict[str, float]:
            hits = library.search("harbour kettle granite", mode="lexical", limit=100).hits
            return {hit.uri: hit.score for hit in hits}

        before = scores()
        library.rebuild()
        after = scores()
    assert before.keys() == after.keys()
    assert max(abs(before[uri] - after[uri]) for uri in before) < 0.1


def test_a_folder_removed_in_the_middle_of_a_search_reaches_no_caller(tmp_path: Path) -> None:
    def remove() -> None:
        for folder in tmp_path.glob("spaces/default/index-*"):
            shutil.rmtree(folder, ignore_errors=True)

    with open_library(tmp_path) as library:
        library.put(make_draft(random.Random(1), "first", unique_word(0)))
        library.embed()
        for number in range(1, 80):
            library.put(make_draft(random.Random(number), f"n{number}", unique_word(number)))
            remover = threading.Timer(number % 20 / 1000, remove)
            remover.start()
            try:
                assert library.search(unique_word(number), mode="hybrid" if number % 3 else "lexical").hits, number
            finally:
                remover.join(timeout=60)
        assert problems_of(library) == []
