"""The vector follower.

1. After any sequence of writes, compactions and reopenings a search finds what a plain loop over the vectors finds.
2. A filter loses nothing: there are as many answers as k and the filter allow, and they are the nearest.
3. Killed at any moment, the index holds exactly the changes up to its position.
4. Whatever happens to a file, the next search answers right.
5. Threads and processes may search and catch up at the same time.
"""

from __future__ import annotations

import errno
import gc
import multiprocessing
import os
import random
import shutil
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from numpy.typing import NDArray

from commonplace.errors import StorageBroken, StorageFull
from commonplace.index.vectors import scan as vector_scan
from commonplace.index.vectors import vector_index as vectors
from commonplace.index.vectors.scan import BLOCK, RowOrder, closest_codes, codes_of, widen
from commonplace.index.vectors.vector_index import VectorIndex
from commonplace.model import Change, chunk_id, item_of

DIMS = 64
Floats = NDArray[np.float32]


def vector(*seed: int, dims: int = DIMS) -> NDArray[np.float16]:
    row = np.random.default_rng(seed).standard_normal(dims) + 0.4
    return (row / np.linalg.norm(row)).astype(np.float16)


class Memory:
    """A store in a dictionary."""

    def __init__(self) -> None:
        self.items: dict[int, dict[int, NDArray[np.float16]]] = {}
        self.log: list[Change] = []

    def put(self, item: int, rows: Sequence[NDArray[np.float16]]) -> None:
        self.items[item] = {chunk_id(item, ordinal): row for ordinal, row in enumerate(rows)}
        self.log.append(Change(len(self.log) + 1, "put", item, 1))

    def delete(self, item: int) -> None:
        self.items.pop(item, None)
        self.log.append(Change(len(self.log) + 1, "delete", item, 1))

    def rows(self) -> dict[int, NDArray[np.float16]]:
        return {chunk: row for chunks in self.items.values() for chunk, row in chunks.items()}

    def last_change(self) -> int:
        return len(self.log)

    def changes(self, after: int, limit: int) -> list[Change]:
        return self.log[after : after + limit]

    def vectors_of(self, item_ids: Sequence[int]) -> tuple[NDArray[np.int64], NDArray[np.float16]]:
        found = {chunk: row for item in reversed(item_ids) for chunk, row in self.items.get(item, {}).items()}
        rows = np.stack(list(found.values())) if found else np.empty((0, DIMS), np.float16)
        return np.array(list(found), np.int64), rows


class Script:
    """A log that every process can replay: what item an entry changes, and to what, follows from its number alone."""

    def __init__(self, length: int) -> None:
        self.length = length

    def last_change(self) -> int:
        return self.length

    def changes(self, after: int, limit: int) -> list[Change]:
        return [Change(n, "put", self.item(n), n) for n in range(after + 1, min(self.length, after + limit) + 1)]

    def vectors_of(self, item_ids: Sequence[int]) -> tuple[NDArray[np.int64], NDArray[np.float16]]:
        latest = {self.item(n): n for n in range(1, self.length + 1)}
        named = [(item, n, o) for item in item_ids if (n := latest.get(item)) for o in range(n % 4)]
        rows = np.stack([vector(*name) for name in named]) if named else np.empty((0, DIMS), np.float16)
        return np.array([chunk_id(item, o) for item, _, o in named], np.int64), rows

    def rows(self) -> dict[int, NDArray[np.float16]]:
        ids, rows = self.vectors_of(sorted({self.item(n) for n in range(1, self.length + 1)}))
        return dict(zip(ids.tolist(), rows, strict=True))

    @staticmethod
    def item(n: int) -> int:
        return n * 7919 % 97 + 1


def opened(folder: Path, source: Any, **options: Any) -> VectorIndex:
    return VectorIndex(folder, source, DIMS, "model", **options)


def assert_nearest(
    index: VectorIndex, rows: Mapping[int, NDArray[np.float16]], query: Floats, k: int, items: set[int] | None = None
) -> None:
    """The definition: a loop over all vectors in float64."""
    towards = query.astype(np.float64) / np.linalg.norm(query)
    wide = {chunk: row.astype(np.float64) for chunk, row in rows.items() if items is None or item_of(chunk) in items}
    truth = {chunk: float(row @ towards / np.linalg.norm(row)) for chunk, row in wide.items()}
    wanted = None if items is None else np.array(sorted(items), np.int64)
    ids, scores = index.search(query, k, wanted)
    found = ids.tolist()
    assert len(found) == len(set(found)) == min(k, len(truth))
    assert scores.tolist() == pytest.approx([truth[chunk] for chunk in found], abs=1e-6)
    assert list(zip(-scores, found, strict=True)) == sorted(zip(-scores, found, strict=True))
    for chunk in truth.keys() - set(found) if found else ():
        assert truth[chunk] <= truth[found[-1]] + 1e-6
        if rows[chunk].tobytes() == rows[found[-1]].tobytes():
            assert chunk > found[-1]


def assert_holds(index: VectorIndex, rows: Mapping[int, NDArray[np.float16]]) -> None:
    for seed in (1, 2):
        assert_nearest(index, rows, vector(seed, 0).astype(np.float32), len(rows) + 5)
    assert len(index) == len(rows)
    assert index.check() == []


def filled(items: int = 40, seed: int = 0) -> Memory:
    source = Memory()
    for item in range(1, items + 1):
        source.put(item, [vector(seed, item, ordinal) for ordinal in range(item % 4)])
    return source


class Histories(RuleBasedStateMachine):
    """Two handles on one folder, one of them often behind, against a dictionary."""

    items = st.integers(1, 12)

    @initialize()
    def start(self) -> None:
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(vectors, "FEWEST_DEAD", 6)
        self.patch.setattr(vectors, "RESAMPLE_FROM", 10)
        self.patch.setattr(vectors, "BATCH", 7)
        self.patch.setattr(vectors, "GROUP", 3)
        self.folder = Path(os.environ["PYTEST_HISTORIES"]) / str(time.monotonic_ns())
        self.source = Memory()
        self.reopen()

    @rule()
    def reopen(self) -> None:
        self.indexes = [opened(self.folder, self.source), opened(self.folder, self.source)]

    @rule(item=items, seeds=st.lists(st.integers(0, 9), max_size=4))
    def put(self, item: int, seeds: list[int]) -> None:
        self.source.put(item, [vector(seed) for seed in seeds])

    @rule(item=items)
    def delete(self, item: int) -> None:
        self.source.delete(item)

    @rule(which=st.integers(0, 1))
    def catch_up(self, which: int) -> None:
        assert self.indexes[which].catch_up() == self.source.last_change()

    @rule(which=st.integers(0, 1))
    def compact(self, which: int) -> None:
        self.indexes[which].compact()

    @rule(which=st.integers(0, 1))
    def reset(self, which: int) -> None:
        self.indexes[which].reset()
        assert self.indexes[which].position() == 0

    @rule(which=st.integers(0, 1), seed=st.integers(0, 20), k=st.integers(1, 60), keep=st.none() | st.sets(items))
    def search(self, which: int, seed: int, k: int, keep: set[int] | None) -> None:
        self.indexes[0].catch_up()
        assert_nearest(self.indexes[which], self.source.rows(), vector(seed).astype(np.float32), k, keep)

    @rule(which=st.integers(0, 1), asked=st.lists(st.tuples(items, st.integers(0, 4)), max_size=8))
    def scores(self, which: int, asked: list[tuple[int, int]]) -> None:
        self.indexes[0].catch_up()
        chunks = [chunk_id(*pair) for pair in asked]
        rows, query = self.source.rows(), vector(3).astype(np.float32)
        truth = [float(rows[chunk].astype(np.float32) @ query) if chunk in rows else np.nan for chunk in chunks]
        found = self.indexes[which].scores(query, np.array(chunks, np.int64))
        assert found.tolist() == pytest.approx(truth, abs=2e-3, nan_ok=True)

    @invariant()
    def positions_agree(self) -> None:
        assert self.indexes[0].position() == self.indexes[1].position() <= self.source.last_change()

    def teardown(self) -> None:
        self.patch.undo()
        self.indexes[1].catch_up()
        for index in self.indexes:
            assert_holds(index, self.source.rows())


@pytest.fixture
def histories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_HISTORIES", str(tmp_path))


@pytest.mark.usefixtures("histories")
class TestHistories(Histories.TestCase):  # type: ignore[misc, valid-type]
    settings = settings(max_examples=25, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck))


@given(st.binary(min_size=2, max_size=64).filter(lambda data: len(data) % 2 == 0))
def test_widen_is_astype_for_finite_values(data: bytes) -> None:
    halves = np.frombuffer(data, np.float16)
    halves = halves[np.isfinite(halves)]
    assert widen(halves).tobytes() == halves.astype(np.float32).tobytes()


@pytest.mark.parametrize("count", [1, 7, 500])
@pytest.mark.parametrize("rows", [1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 5])
@pytest.mark.parametrize("masked", [False, True])
def test_the_scan_finds_the_closest_codes_with_ties_by_id(rows: int, count: int, masked: bool) -> None:
    rng = np.random.default_rng([rows, count])
    codes = rng.integers(0, 2**8, (rows, 2), dtype=np.uint64)
    ids = rng.permutation(rows).astype(np.int64)
    code = rng.integers(0, 2**8, 2, dtype=np.uint64)
    allowed = rng.random(rows) < 0.3 if masked else None
    blocks = [np.zeros((2, BLOCK), np.uint64) for _ in range(0, rows, BLOCK)]
    for row in range(0, rows, BLOCK):
        part = codes[row : row + BLOCK]
        blocks[row // BLOCK][:, : len(part)] = part.T
    distances = np.bitwise_count(codes ^ code).sum(axis=1)
    order = np.lexsort((ids, distances))
    wanted = order if allowed is None else order[allowed[order]]
    assert set(closest_codes(blocks, ids, code, count, allowed).tolist()) == set(wanted[:count].tolist())


@pytest.mark.parametrize("dims", [1, 8, 63, 64, 65, 384])
def test_codes_are_the_signs_beside_the_common_direction(dims: int) -> None:
    rows = np.random.default_rng(dims).standard_normal((5, dims)).astype(np.float32)
    direction = vector(dims, dims=dims).astype(np.float32)
    direction /= np.linalg.norm(direction)
    along = np.vecdot(rows, direction)[:, None] * direction
    bits = np.unpackbits(codes_of(rows, direction).view(np.uint8), axis=1)
    assert np.array_equal(bits[:, :dims], rows > along)
    assert not bits[:, dims:].any()


def test_an_older_snapshot_never_gets_rows_that_came_after_it() -> None:
    ids = np.random.default_rng(1).permutation(9_000).astype(np.int64)
    order, lows, highs = RowOrder(), np.array([10, 500]), np.array([200, 8_000])
    for rows in (9_000, 100, 5_000, 0):
        wanted = [row for row in range(rows) if 10 <= ids[row] < 200 or 500 <= ids[row] < 8_000]
        assert sorted(order.find(ids[:rows], lows, highs).tolist()) == wanted


class Large(Memory):
    """Clustered rows of items with four chunks each, more than are ever scored in full."""

    def __init__(self, items: int) -> None:
        super().__init__()
        rng = np.random.default_rng(11)
        topics = rng.standard_normal((60, DIMS)) * 1.5 + 1
        rows = topics[rng.integers(0, 60, 4 * items)] + rng.standard_normal((4 * items, DIMS))
        rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float16)
        for item in range(1, items + 1):
            self.put(item, list(rows[4 * item - 4 : 4 * item]))


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> tuple[VectorIndex, Large]:
    source = Large(5_000)
    index = opened(tmp_path_factory.mktemp("large"), source)
    index.catch_up()
    for item in range(10, 5_000, 10):
        source.delete(item)
    for item in range(5, 5_000, 100):
        source.put(item, [vector(item, 1), vector(item, 2)])
    index.catch_up()
    return index, source


def test_a_large_index_finds_nearly_all_of_the_best_ten_with_exact_scores(large: tuple[VectorIndex, Large]) -> None:
    index, source = large
    rows = source.rows()
    ids = np.array(list(rows), np.int64)
    matrix = widen(np.stack(list(rows.values())))
    found = 0
    for seed in range(40):
        query = matrix[seed * 300] + 0.3 * vector(seed, 77).astype(np.float32)
        best, scores = index.search(query, 10)
        truth = matrix @ (query / np.linalg.norm(query)) / np.linalg.norm(matrix, axis=1)
        assert scores.tolist() == pytest.approx([truth[ids == chunk][0] for chunk in best], abs=1e-6)
        found += len(np.intersect1d(best, ids[np.argpartition(-truth, 10)[:10]]))
    assert found >= 0.97 * 400


@pytest.mark.parametrize("share", [0.001, 0.02, 0.1, 0.5, 1.0])
@pytest.mark.parametrize("k", [1, 10, 300])
def test_a_filter_always_fills_the_page(large: tuple[VectorIndex, Large], share: float, k: int) -> None:
    index, source = large
    chosen = np.flatnonzero(np.random.default_rng(3).random(5_050) < share).astype(np.int64)
    named = set(chosen.tolist())
    allowed = {chunk for chunk in source.rows() if item_of(chunk) in named}
    ids, scores = index.search(vector(4).astype(np.float32), k, chosen)
    assert len(ids) == min(k, len(allowed))
    assert set(ids.tolist()) <= allowed
    assert np.all(np.diff(scores) <= 0)


def test_a_small_filter_on_a_large_index_is_exact(large: tuple[VectorIndex, Large]) -> None:
    index, source = large
    for seed in range(5):
        items = set(random.Random(seed).sample(range(1, 5_200), 200))
        assert_nearest(index, source.rows(), vector(seed, 5).astype(np.float32), 12, items)


def test_items_with_far_apart_ids_are_filtered_all_the_same(tmp_path: Path) -> None:
    source = Memory()
    for item in (1, 5, 10**9, 2**42):
        source.put(item, [vector(item % 1000)])
    index = opened(tmp_path, source)
    index.catch_up()
    for items in ({1, 2**42}, {5}, {2, 3}, set(), {1, 5, 7, 10**9, 2**42}):
        assert_nearest(index, source.rows(), vector(9).astype(np.float32), 3, items)


def test_an_empty_index_answers_with_nothing(tmp_path: Path) -> None:
    index = opened(tmp_path / "new", Memory())
    query = vector(1).astype(np.float32)
    assert index.position() == index.catch_up() == len(index) == 0
    assert [len(part) for part in index.search(query, 5)] == [0, 0]
    assert [len(part) for part in index.search(query, 5, np.array([3]))] == [0, 0]
    assert np.isnan(index.scores(query, np.array([7, 8]))).all()
    assert index.check() == []


def test_a_query_that_points_nowhere_finds_nothing(tmp_path: Path) -> None:
    index = opened(tmp_path, filled())
    index.catch_up()
    for query in (np.zeros(DIMS, np.float32), np.full(DIMS, np.nan, np.float32)):
        assert len(index.search(query, 5)[0]) == 0
    assert len(index.search(vector(1).astype(np.float32), 0)[0]) == 0
    with pytest.raises(ValueError, match="3 dimensions"):
        index.search(np.ones(3, np.float32), 5)


def test_a_vector_that_has_no_direction_is_left_out(tmp_path: Path) -> None:
    source = filled(5)
    source.put(6, [np.zeros(DIMS, np.float16), np.full(DIMS, np.inf, np.float16), vector(6)])
    index = opened(tmp_path, source)
    index.catch_up()
    sound = {chunk: row for chunk, row in source.rows().items() if chunk not in (chunk_id(6, 0), chunk_id(6, 1))}
    assert_holds(index, sound)


def test_a_change_that_changes_no_vector_writes_only_the_position(tmp_path: Path) -> None:
    source = filled()
    index = opened(tmp_path, source)
    index.catch_up()
    before = {path.name: path.stat().st_mtime_ns for path in tmp_path.glob("*.bin")}
    source.put(7, list(source.items[7].values()))
    assert index.catch_up() == source.last_change()
    assert {path.name: path.stat().st_mtime_ns for path in tmp_path.glob("*.bin")} == before


def test_nothing_pending_takes_no_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = filled()
    index = opened(tmp_path, source)
    index.catch_up()
    monkeypatch.setattr(vectors, "writer_lock", None)
    assert index.catch_up() == source.last_change()
    assert_nearest(index, source.rows(), vector(1).astype(np.float32), 5)


def test_dead_rows_are_dropped_when_they_are_many(tmp_path: Path) -> None:
    source = filled(30)
    index = opened(tmp_path, source)
    index.catch_up()
    (before,) = tmp_path.glob("vectors-*.bin")
    for round_ in range(30):
        for item in range(1, 31):
            source.put(item, [vector(round_, item, ordinal) for ordinal in range(2)])
        index.catch_up()
    (after,) = tmp_path.glob("vectors-*.bin")
    assert after != before
    assert after.stat().st_size < 1_200 * DIMS * 2
    assert_holds(index, source.rows())


@pytest.mark.parametrize("other", [{"fingerprint": "another"}, {"dims": 32}])
def test_another_model_means_another_index(tmp_path: Path, other: dict[str, Any]) -> None:
    source = filled()
    opened(tmp_path, source).catch_up()
    index = VectorIndex(tmp_path, Memory(), **{"dims": DIMS, "fingerprint": "model", **other})
    assert index.position() == 0
    assert len(index) == 0
    assert opened(tmp_path, source).catch_up() == source.last_change()


def test_a_log_that_went_back_means_a_new_index(tmp_path: Path) -> None:
    opened(tmp_path, filled(40)).catch_up()
    source = filled(10, seed=8)
    index = opened(tmp_path, source)
    assert index.catch_up() == 10
    assert_holds(index, source.rows())


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 40] = bytes(byte ^ 0xFF for byte in data[middle : middle + 40])
    rewrite(path, bytes(data))


def rewrite(path: Path, data: bytes) -> None:
    later = path.stat().st_mtime_ns + 10**9
    path.write_bytes(data)
    os.utime(path, ns=(later, later))


DAMAGES: dict[str, Callable[[Path], None]] = {
    "altered": flip,
    "cut": lambda path: rewrite(path, path.read_bytes()[:-9]),
    "emptied": lambda path: rewrite(path, b""),
    "deleted": lambda path: path.unlink(),
    "longer": lambda path: rewrite(path, path.read_bytes() + b"garbage"),
}


@pytest.mark.parametrize("reopen", [False, True], ids=["open", "reopened"])
@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", ["ids-*.bin", "codes-*.bin", "vectors-*.bin", "dead-*.bin", "manifest.json", "*"])
def test_the_next_search_answers_right_when_a_file_is(tmp_path: Path, name: str, damage: str, reopen: bool) -> None:
    source = filled()
    index = opened(tmp_path, source)
    index.catch_up()
    source.delete(3)
    index.catch_up()
    assert_holds(index, source.rows())
    for path in [path for path in tmp_path.glob(name) if path.name != "writer.lock"]:
        DAMAGES[damage](path)
    if reopen:
        index = opened(tmp_path, source)
        index.catch_up()
    assert_nearest(index, source.rows(), vector(2).astype(np.float32), 50)
    source.put(3, [vector(33)])
    index.catch_up()
    assert_holds(index, source.rows())
    assert_holds(opened(tmp_path, source), source.rows())


def test_a_deleted_folder_is_built_again(tmp_path: Path) -> None:
    source = filled()
    index, other = opened(tmp_path / "v", source), opened(tmp_path / "v", source)
    index.catch_up()
    assert_holds(other, source.rows())
    shutil.rmtree(tmp_path / "v")
    source.delete(2)
    source.put(1, [vector(seed) for seed in range(500, 504)])
    index.catch_up()
    assert_nearest(index, source.rows(), vector(2).astype(np.float32), 50)
    assert_holds(other, source.rows())


def test_a_search_without_a_catch_up_finds_a_deleted_folder_too(tmp_path: Path) -> None:
    source = filled()
    index = opened(tmp_path / "v", source)
    index.catch_up()
    assert len(index) == len(source.rows())
    shutil.rmtree(tmp_path / "v")
    assert_holds(index, source.rows())


def test_a_vector_that_changed_behind_an_untouched_time_is_noticed(tmp_path: Path) -> None:
    source = filled()
    index = opened(tmp_path, source)
    index.catch_up()
    assert_holds(index, source.rows())
    (path,) = tmp_path.glob("vectors-*.bin")
    before = path.stat()
    with path.open("r+b") as file:
        file.write(np.tile(vector(99), 20).tobytes())
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert "checksum" in index.check()[0]
    assert_holds(index, source.rows())


def test_damage_that_comes_back_after_a_rebuild_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index = opened(tmp_path, filled())
    index.catch_up()
    monkeypatch.setattr(vector_scan, "NORM_TOLERANCE", -1)
    with pytest.raises(StorageBroken, match="Check the disk"):
        index.search(vector(1).astype(np.float32), 3)


@pytest.mark.parametrize("name", ["pwrite", "fsync"])
def test_a_full_disk_is_told_and_leaves_the_index_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    source = filled()
    index = opened(tmp_path, source)
    index.catch_up()
    before = source.rows()
    source.put(41, [vector(41)])

    def full(*_: Any) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, name, full)
        with pytest.raises(StorageFull, match="no room left"):
            index.catch_up()
    assert index.position() == 40
    assert_holds(index, before)
    assert_holds(opened(tmp_path, source), before)
    assert index.catch_up() == 41
    assert_holds(index, source.rows())


def test_a_disk_that_fails_is_told_as_often_as_it_is_asked_and_leaves_no_file_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = filled()
    index = opened(tmp_path, source)
    index.catch_up()
    source.put(41, [vector(41)])

    def broken(*_: Any) -> int:
        raise OSError(errno.EIO, "Input/output error")

    def open_files() -> list[str]:
        gc.collect()  # an error holds what it met, in a circle from Python 3.12 on
        links = [f"/proc/self/fd/{number}" for number in os.listdir("/proc/self/fd")]
        targets = [os.readlink(link) for link in links if os.path.lexists(link)]
        return sorted(target for target in targets if target.startswith(str(tmp_path)))  # others may end meanwhile

    before = len(index), open_files()  # what is mapped
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", broken)
        patch.setattr(os, "ftruncate", broken)
        for _ in range(3):
            with pytest.raises(StorageBroken, match="Check that disk"):
                index.catch_up()
        assert (len(index), open_files()) == before
    assert index.catch_up() == 41
    assert_holds(index, source.rows())


def write_until_killed(folder: Path, start: int) -> None:
    vectors.FEWEST_DEAD = 20
    source = Script(start)
    index = opened(folder, source)
    while True:
        source.length += 3
        index.catch_up()


@pytest.mark.slow
def test_killed_at_any_moment_it_holds_exactly_the_changes_up_to_its_position(tmp_path: Path) -> None:
    dice, reached = random.Random(5), 0
    for _ in range(6):
        writer = multiprocessing.get_context("spawn").Process(target=write_until_killed, args=(tmp_path, reached))
        writer.start()
        deadline = time.monotonic() + 30
        while opened(tmp_path, Script(0)).position() <= reached and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(dice.uniform(0, 0.2))
        writer.kill()
        writer.join()
        now = opened(tmp_path, Script(0)).position()
        assert now > reached
        reached = now
        index = opened(tmp_path, Script(reached))
        assert_holds(index, Script(reached).rows())
        rebuilt = opened(tmp_path.with_name(f"rebuilt-{reached}"), Script(reached))
        rebuilt.catch_up()
        assert_holds(rebuilt, Script(reached).rows())


class Shared(Script):
    """A script whose length is that of a file, so that every process sees the log grow at once."""

    def __init__(self, log: Path) -> None:
        self.log = log

    @property
    def length(self) -> int:  # type: ignore[override]
        return self.log.stat().st_size


def grow_and_follow(folder: Path, seed: int) -> None:
    dice, source = random.Random(seed), Shared(folder / "log")
    index = opened(folder / "index", source)
    while (before := source.length) < 300:
        with source.log.open("ab") as file:
            file.write(b"." * dice.randint(1, 3))
        assert index.catch_up() > before
        if dice.random() < 0.1:
            index.compact()
        assert len(index.search(vector(seed).astype(np.float32), 5)[0]) <= 5


@pytest.mark.slow
def test_two_processes_may_catch_up_at_once(tmp_path: Path) -> None:
    (tmp_path / "log").touch()
    spawn = multiprocessing.get_context("spawn")
    writers = [spawn.Process(target=grow_and_follow, args=(tmp_path, seed)) for seed in (1, 2)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
    assert [writer.exitcode for writer in writers] == [0, 0]
    source = Shared(tmp_path / "log")
    index = opened(tmp_path / "index", source)
    assert index.position() == source.last_change()
    assert_holds(index, source.rows())


def test_threads_search_whole_states_while_one_writes(tmp_path: Path) -> None:
    """Every write replaces all three chunks of every item, so a search that sees a mixture has caught a half state."""
    source, states = Memory(), [[vector(n, item) for item in range(1, 9)] for n in range(12)]
    for item, row in enumerate(states[0], start=1):
        source.put(item, [row] * 3)
    index = opened(tmp_path, source)
    index.catch_up()
    query = vector(1, 1).astype(np.float32)
    truths = [np.sort(np.repeat(widen(np.stack(rows)) @ query, 3)) for rows in states]
    done, wrong = threading.Event(), []

    def search() -> None:
        while not done.is_set():
            scores = np.sort(index.search(query, 100)[1])
            if not any(len(scores) == 24 and np.allclose(scores, truth, atol=2e-3) for truth in truths):
                wrong.append(scores)

    threads = [threading.Thread(target=search) for _ in range(2)]
    for thread in threads:
        thread.start()
    for rows in states[1:]:
        for item, row in enumerate(rows, start=1):
            source.put(item, [row] * 3)
        index.catch_up()
        index.compact()
    done.set()
    for thread in threads:
        thread.join(10)
    assert not wrong
    assert_holds(index, source.rows())


def test_a_batch_may_name_an_item_many_times(tmp_path: Path) -> None:
    source = Memory()
    for n in range(50):
        source.put(1, [vector(n), vector(n, n)])
    index = opened(tmp_path, source)
    index.catch_up()
    assert sum(path.stat().st_size for path in tmp_path.glob("ids-*.bin")) == 16
    assert_holds(index, source.rows())
