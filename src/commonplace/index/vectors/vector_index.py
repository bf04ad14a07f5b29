"""The vector follower: one vector per embedded chunk, found by cosine, kept level with the log."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from commonplace.errors import StorageBroken
from commonplace.index.followers import IndexDamaged, VectorSource
from commonplace.index.scope import distinct
from commonplace.index.sealed_files import REBUILDS, check_content, stamp, writable, writer_lock
from commonplace.index.vectors.file import Append, Loaded, Stamp, VectorFolder, VectorManifest
from commonplace.index.vectors.scan import (
    BLOCK,
    NORM_TOLERANCE,
    STRAY_BITS,
    Floats,
    Halves,
    Ids,
    VectorRows,
    code_words,
    codes_of,
    common_direction,
    widen,
)
from commonplace.model import Change

BATCH = 4_096
"""Changes per commit."""
GROUP = 256
"""Items whose vectors are in memory at a time while the log is applied."""
FEWEST_DEAD = 1_000
RESAMPLE_FROM = 1_000
ENOUGH_SAMPLED = 20_000
MOST_SAMPLED = 16_384

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _State:
    """Rows, and the stamps on disk that show whether they are still the latest."""

    commit: tuple[int, int, int] | None
    manifest: VectorManifest | None
    rows: VectorRows
    vectors: tuple[Path, Stamp] | None


class VectorIndex:
    """Vectors of chunks on disk, shared by any number of threads and processes. A `Follower`.

    The fingerprint names the model that made the vectors: an index made by another is emptied and built again.
    Damage on disk is repaired from the source where it is noticed, and the call that noticed it still answers.
    """

    def __init__(
        self, folder: Path, source: VectorSource, dims: int, fingerprint: str, *, lock_timeout: float = 60.0
    ) -> None:
        self._folder = VectorFolder(folder)
        self._source, self._dims, self._fingerprint = source, dims, fingerprint
        self._lock_timeout = lock_timeout
        self._refreshing = threading.RLock()
        self._loaded: Loaded | None = None
        self._state: _State | None = None

    def __len__(self) -> int:
        return self._answer(len)

    def position(self) -> int:
        """Return the last change in the latest durable commit; 0 when empty, damaged or made by another model."""
        state = self._state
        if state is not None and state.commit == self._folder.manifest_stamp():
            return state.manifest.position if state.manifest else 0
        try:
            with writable(self._folder.path):
                manifest = self._folder.manifest()
        except IndexDamaged:
            return 0
        return manifest.position if manifest and self._is_ours(manifest) else 0

    def catch_up(self) -> int:
        """Apply what is pending and return the position. Takes no lock where nothing is pending."""
        last = self._source.last_change()
        if self.position() == last:
            return last
        for _ in range(REBUILDS):
            with suppress(IndexDamaged), self._writing():
                return self._level().position
        with self._writing():
            return self._level().position

    def reset(self) -> None:
        """Remove everything, the position included."""
        with self._writing():
            self._start_over()

    def compact(self) -> None:
        """Catch up, then rewrite the live rows in the order of their ids, and drop the rest."""
        with self._writing():
            self._rewrite(self._level())

    def check(self) -> list[str]:
        """Return what is wrong with the index, one sentence each, after reading all of it; [] when nothing is."""
        with self._writing():
            try:
                manifest = self._folder.manifest()
                return [] if manifest is None else list(self._problems(manifest))
            except IndexDamaged as damage:
                return [str(damage)]

    def search(
        self, query: NDArray[np.float32], k: int, items: Ids | None = None, without: Ids | None = None
    ) -> tuple[Ids, Floats]:
        """Return the `k` chunks nearest to the query and their exact cosines, best first, ties by chunk id.

        `items`: the sorted, unique ids of the items to search; None searches all. `without`: of those to leave out.
        Fewer than `k` come back only where the filter admits fewer. The choice of rows is exact for small and for
        well filtered sets, and right for about 98 in 100 of the best ten otherwise; a score is always exact.
        """
        self._check_dims(query)
        return self._answer(lambda rows: rows.search(query, k, items, without))

    def scores(self, query: NDArray[np.float32], chunk_ids: Ids) -> Floats:
        """Return the exact cosine of each chunk; NaN for one that has no vector."""
        self._check_dims(query)
        return self._answer(lambda rows: rows.scores(query, chunk_ids))

    def sample(self) -> Floats:
        """Return the vectors of some chunks, evenly spaced; of all where they are few."""
        return self._answer(lambda rows: rows.sample())

    def _check_dims(self, query: NDArray[Any]) -> None:
        if query.size != self._dims:
            raise ValueError(f"the query has {query.size} dimensions, the index {self._dims}")

    def _is_ours(self, manifest: VectorManifest) -> bool:
        return manifest.fingerprint == self._fingerprint and manifest.dims == self._dims

    @contextmanager
    def _writing(self) -> Iterator[None]:
        with writer_lock(self._folder.path, self._lock_timeout), writable(self._folder.path):
            yield

    # Reading

    def _answer(self, ask: Callable[[VectorRows], T]) -> T:
        """Return `ask` of the current rows; where they turn out damaged, rebuild the index and ask again.

        Raise `StorageBroken` if they are damaged again after that.
        """
        for _ in range(REBUILDS):
            with suppress(IndexDamaged):
                return self._ask(ask)
            self._heal()
        try:
            return self._ask(ask)
        except IndexDamaged as damage:
            raise StorageBroken(
                f"The vector index in {self._folder.path} was rebuilt and is damaged again ({damage}). Check the disk."
            ) from damage

    def _ask(self, ask: Callable[[VectorRows], T]) -> T:
        state = self._current()
        try:
            return ask(state.rows)
        except IndexDamaged:
            self._forget(state)
            raise

    def _forget(self, state: _State) -> None:
        """Start over after a generation proved wrong though its files look untouched, so that nobody trusts them."""
        with self._writing():
            manifest = self._folder.manifest()
            if manifest and state.manifest and manifest.generation == state.manifest.generation:
                self._start_over()

    def _heal(self) -> None:
        """Start over unless the index can be loaded, because another process rebuilt it meanwhile; then catch up."""
        with suppress(IndexDamaged), self._writing():  # catching up mends what is still wrong
            try:
                self._refresh(writing=True)
            except IndexDamaged:
                self._start_over()
        self.catch_up()

    def _current(self) -> _State:
        state = self._state
        if state is not None and self._is_latest(state):
            return state
        return self._refresh(writing=False)

    def _is_latest(self, state: _State) -> bool:
        """Return True if nothing was committed or changed since, by two calls of `stat`.

        A mapped file that was cut short must not be read: that would kill the process.
        """
        if state.commit != self._folder.manifest_stamp():
            return False
        if state.vectors is None:
            return True
        path, loaded_stamp = state.vectors
        try:
            return stamp(path) == loaded_stamp
        except IndexDamaged:
            return False

    def _refresh(self, *, writing: bool) -> _State:
        """Load the latest commit, again if it was replaced meanwhile. Raise `IndexDamaged` if it cannot be used."""
        with self._refreshing:
            while True:
                commit = self._folder.manifest_stamp()
                try:
                    with writable(self._folder.path):
                        self._state = self._load(commit, writing=writing)
                except (IndexDamaged, FileNotFoundError) as error:
                    self._loaded = None
                    if commit == self._folder.manifest_stamp():
                        raise IndexDamaged(str(error)) from error
                else:
                    return self._state

    def _load(self, commit: tuple[int, int, int] | None, *, writing: bool) -> _State:
        manifest = self._folder.manifest()
        if manifest is None:
            if self._state is not None and self._state.manifest is not None:
                raise IndexDamaged("the whole index is gone")
            return _State(commit, None, _no_rows(self._dims), None)
        if not self._is_ours(manifest):
            raise IndexDamaged("the index was made by another model")
        if self._loaded is None or self._loaded.generation != manifest.generation:
            self._loaded = Loaded(self._folder, manifest)
        path = self._folder.path / manifest.name("vectors")
        vectors = (path, stamp(path)) if manifest.rows else None
        return _State(commit, manifest, self._loaded.advance(manifest, writing=writing), vectors)

    # Writing: every method from here on is called with the writer lock held

    def _start_over(self) -> VectorManifest:
        manifest = self._folder.start_over(self._dims, self._fingerprint)
        with self._refreshing:
            self._loaded = None
        return manifest

    def _ready(self) -> VectorManifest:
        """Return the latest commit, ready for an append, or a new empty one."""
        try:
            manifest = self._folder.manifest()
            if manifest and self._is_ours(manifest) and manifest.position <= self._source.last_change():
                return self._folder.prepare(manifest)
        except IndexDamaged:
            pass
        return self._start_over()

    def _level(self) -> VectorManifest:
        try:
            return self._follow(self._ready())
        except IndexDamaged:
            return self._follow(self._start_over())

    def _follow(self, manifest: VectorManifest) -> VectorManifest:
        target = self._source.last_change()  # what comes meanwhile is left to the next caller
        while manifest.position < target and (batch := self._source.changes(manifest.position, BATCH)):
            manifest = self._apply(manifest, batch)
            if _wants_rewrite(manifest):
                manifest = self._rewrite(manifest)
        return manifest

    def _apply(self, manifest: VectorManifest, batch: Sequence[Change]) -> VectorManifest:
        """Write the present state of every item that the changes name, in one commit."""
        rows = self._refresh(writing=True).rows
        items = distinct(np.array([change.item_id for change in batch], np.int64))
        with Append(self._folder, manifest) as append:
            for start in range(0, len(items), GROUP):
                self._replace(rows, items[start : start + GROUP], append)
            return append.commit(batch[-1].seq)

    def _replace(self, rows: VectorRows, items: Ids, append: Append) -> None:
        """Write only the difference: a row whose chunk has the same vector as before stays where it is."""
        ids, vectors = _usable(*self._source.vectors_of(items.tolist()))
        old = rows.of_items(items)
        old = old[np.argsort(rows.ids[old])]
        same, places = _same_rows(rows.ids[old], rows.vectors[old], ids, vectors)
        fresh = np.ones(len(ids), np.bool_)
        fresh[places] = False
        if not append.rows and fresh.any():
            append.set_direction(common_direction(widen(vectors)), len(vectors))
        append.bury(old[~same])
        append.add(ids[fresh], vectors[fresh])

    def _rewrite(self, manifest: VectorManifest) -> VectorManifest:
        """Commit the live rows alone as a new generation, with a common direction computed anew."""
        rows = self._refresh(writing=True).rows
        live = np.arange(len(rows.ids)) if rows.live is None else np.flatnonzero(rows.live)
        live = live[np.argsort(rows.ids[live])]
        fresh = VectorManifest(self._folder.next_generation(), self._dims, self._fingerprint)
        with Append(self._folder, fresh) as append:
            sample = live[:: max(1, -(-len(live) // MOST_SAMPLED))]
            append.set_direction(common_direction(widen(rows.vectors[sample])), len(live))
            for start in range(0, len(live), BLOCK):
                part = live[start : start + BLOCK]
                append.add(rows.ids[part], rows.vectors[part])
            committed = append.commit(manifest.position)
        self._folder.remove_others(committed.generation)
        return committed

    def _problems(self, manifest: VectorManifest) -> Iterator[str]:
        for kind, sealed in manifest.seals.items():
            if sealed.size:
                check_content(self._folder.path / manifest.name(kind), sealed)
        if not self._is_ours(manifest):
            yield f"the index was made by {manifest.fingerprint} ({manifest.dims} dimensions)"
            return
        if manifest.position > self._source.last_change():
            yield f"the index is at change {manifest.position}, after the last one, {self._source.last_change()}"
        yield from _row_problems(self._refresh(writing=True).rows)


def _no_rows(dims: int) -> VectorRows:
    none = np.empty(0, np.int64)
    return VectorRows(none, (), np.empty((0, dims), np.float16), None, np.zeros(dims, np.float32))


def _wants_rewrite(manifest: VectorManifest) -> bool:
    """Return True if too many rows are dead, or the codes were made with the common direction of too few rows."""
    outgrown = manifest.sampled < ENOUGH_SAMPLED and manifest.rows >= max(RESAMPLE_FROM, 4 * manifest.sampled)
    return outgrown or manifest.dead > max(FEWEST_DEAD, manifest.rows // 4)


def _usable(ids: Ids, vectors: Halves) -> tuple[Ids, Halves]:
    """Return the rows sorted by id, without vectors whose length is not one: they have no direction to compare."""
    order = np.argsort(ids)
    ids, vectors = np.asarray(ids, np.int64)[order], np.asarray(vectors, np.float16)[order]
    wide = widen(vectors)
    sound = np.abs(np.vecdot(wide, wide) - 1) < NORM_TOLERANCE
    return ids[sound], vectors[sound]


def _same_rows(old_ids: Ids, old: Halves, ids: Ids, vectors: Halves) -> tuple[NDArray[np.bool_], Ids]:
    """Return the mask of the old rows that are among the new, and their places there. Both are sorted by id."""
    if not len(ids):
        return np.zeros(len(old_ids), np.bool_), np.empty(0, np.int64)
    places = np.minimum(np.searchsorted(ids, old_ids), len(ids) - 1)
    same = (ids[places] == old_ids) & (vectors[places].view(np.uint16) == old.view(np.uint16)).all(axis=1)
    return same, places[same]


def _row_problems(rows: VectorRows) -> Iterator[str]:
    live_ids = rows.ids if rows.live is None else rows.ids[rows.live]
    if len(distinct(live_ids)) != len(live_ids):
        yield "a chunk has more than one row"
    words = code_words(rows.vectors.shape[1])
    for number, block in enumerate(rows.codes):
        vectors = widen(rows.vectors[number * BLOCK : (number + 1) * BLOCK])
        if np.any(np.abs(np.vecdot(vectors, vectors) - 1) > NORM_TOLERANCE):
            yield f"a vector in block {number} is not of length one"
        differing = codes_of(vectors, rows.direction) ^ block[:, : len(vectors)].T.reshape(-1, words)
        if np.any(np.bitwise_count(differing).sum(axis=1) > STRAY_BITS):
            yield f"a code in block {number} is not that of its vector"
