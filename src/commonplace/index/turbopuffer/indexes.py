"""The indexes of one space on turbopuffer, which share a connection and, of passages, the rows.

In a search by vectors the service proposes the nearest, and the store's own vectors give exact cosines.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Protocol, TypeVar

import numpy as np

from commonplace.index.followers import VectorSource, WordSource
from commonplace.index.scope import Ids, Scope
from commonplace.index.turbopuffer.following import ModelSource
from commonplace.index.turbopuffer.parts import MOST_HITS
from commonplace.index.turbopuffer.remote_index import TurbopufferIndex
from commonplace.index.turbopuffer.remote_reader import Shortlist, TurbopufferReader, deeper, near_depth
from commonplace.index.turbopuffer.service_errors import NotReady
from commonplace.index.turbopuffer.service_settings import Naming, service
from commonplace.index.turbopuffer.wire import TurbopufferWire
from commonplace.index.vectors.scan import SPACED, unit, widen
from commonplace.index.words.snapshot import Floats
from commonplace.model import CHUNK_BITS
from commonplace.settings import Settings

_TIE = 1e-5
"""The most by which the service's distances and ours differ."""

T = TypeVar("T")


class TurbopufferVectors:
    """A `NearIndex` over the rows of a `TurbopufferIndex`."""

    def __init__(self, index: TurbopufferIndex, source: VectorSource, dims: int, fingerprint: str) -> None:
        self._index, self._source = index, source
        self._dims, self._fingerprint = dims, fingerprint
        self._sample: tuple[int, Floats] | None = None

    def __len__(self) -> int:
        return self._ask(lambda reader: reader.ledger.embedded())

    def position(self) -> int:
        """Return the last acknowledged change with vectors of this model."""
        return self._index.position_of(self._fingerprint)

    def catch_up(self) -> int:
        """Apply what is pending, with the vectors of this model, and return the position."""
        self._index.use(self._fingerprint, self._dims)
        return self._index.catch_up()

    def reset(self) -> None:
        """Make the next writer send every row anew."""
        self._index.reset()
        self._index.use(self._fingerprint, self._dims)

    def compact(self) -> None:
        """Catch up, and remove the namespaces of models that are gone. The service frees room by itself."""
        self.catch_up()
        self._index.drop_left()

    def check(self) -> list[str]:
        """Return []: the check of the index of words looks over the rows, vectors included."""
        return []

    def search(self, query: Floats, k: int, items: Ids | None = None, without: Ids | None = None) -> tuple[Ids, Floats]:
        """Return the `k` chunks nearest to the query and their exact cosines, best first, ties by chunk id.

        The choice of chunks is the service's and approximate; a score is always exact.
        """
        self._check_dims(query)
        towards = unit(query)
        if towards is None or k <= 0 or (items is not None and not len(items)):
            return np.empty(0, np.int64), np.empty(0, np.float32)
        return self._ask(lambda reader: self._nearest(reader, towards, k, reader.candidates.scope_of(items, without)))

    def scores(self, query: Floats, chunk_ids: Ids) -> Floats:
        """Return the exact cosine of each chunk; NaN for one that has no vector."""
        self._check_dims(query)
        towards = unit(query)
        if towards is None or not len(chunk_ids):
            return np.full(len(chunk_ids), np.nan, np.float32)
        cosines = self._cosines(towards, np.unique(chunk_ids))
        return np.array([cosines.get(chunk, np.nan) for chunk in chunk_ids.tolist()], np.float32)

    def sample(self) -> Floats:
        """Return the vectors of the chunks that were written last, from the store: the service is not asked."""
        last = self._source.last_change()
        cached = self._sample
        if cached is None or cached[0] != last:
            items = {change.item_id for change in self._source.changes(max(0, last - SPACED), SPACED)}
            vectors = np.asarray(self._source.vectors_of(sorted(items))[1], np.float16)[:SPACED]
            cached = self._sample = last, widen(vectors.reshape(-1, self._dims))
        return cached[1]

    def _nearest(self, reader: TurbopufferReader, towards: Floats, k: int, scope: Scope) -> tuple[Ids, Floats]:
        try:
            return self._nearest_chunks(reader, towards, k, scope)
        except NotReady:
            return np.empty(0, np.int64), np.empty(0, np.float32)

    def _nearest_chunks(self, reader: TurbopufferReader, towards: Floats, k: int, scope: Scope) -> tuple[Ids, Floats]:
        depth = near_depth(k)
        while depth <= MOST_HITS:
            shortlist = reader.candidates.nearest(towards, scope, depth)
            best = self._best(reader.live(shortlist.hits, scope), towards, k)
            if shortlist.cut is None or _settled(best, shortlist, k):
                return best
            depth = deeper(depth)
        every = [hit for hits in reader.candidates.every(("embedded", "Eq", True), scope) for hit in hits]
        return self._best(reader.live(every, scope), towards, k)

    def _best(self, chunks: list[int], towards: Floats, k: int) -> tuple[Ids, Floats]:
        cosines = self._cosines(towards, np.array(chunks, np.int64))
        ids = np.array(sorted(cosines), np.int64)
        scores = np.array([cosines[chunk] for chunk in ids.tolist()], np.float32)
        order = np.lexsort((ids, -scores))[:k]
        return ids[order], scores[order]

    def _cosines(self, towards: Floats, chunks: Ids) -> dict[int, float]:
        """Return cosines by chunk, row by row (`vecdot`): a score is the same to the last bit in any company."""
        if not len(chunks):
            return {}
        ids, halves = self._source.vectors_of(np.unique(chunks >> CHUNK_BITS).tolist())
        requested = np.isin(ids, chunks)
        if not requested.any():
            return {}
        vectors = widen(np.asarray(halves)[requested])
        squares = np.vecdot(vectors, vectors)
        cosines = np.vecdot(vectors, towards) / np.sqrt(np.where(squares > 0, squares, 1))
        return dict(zip(ids[requested].tolist(), cosines.tolist(), strict=True))

    def _ask(self, work: Callable[[TurbopufferReader], T]) -> T:
        self._index.use(self._fingerprint, self._dims)
        return self._index.ask(work)

    def _check_dims(self, query: Floats) -> None:
        if query.size != self._dims:
            raise ValueError(f"the query has {query.size} dimensions, the index {self._dims}")


def _settled(best: tuple[Ids, Floats], shortlist: Shortlist, k: int) -> bool:
    """Return True if there are `k` chunks, all nearer than any that was left out."""
    return len(best[0]) >= k and shortlist.cut is not None and float(best[1][-1]) > 1 + shortlist.cut + _TIE


PASSAGES = "lexical"
"""The folder of the index of chunks, whose rows carry vectors too."""


class LoggedSource(Protocol):
    """The store, as far as it has the id of its log."""

    @property
    def log(self) -> str | None:
        """Return the id of the log that was seen last, as JSON; None before the first look."""
        ...


class TurbopufferSpace:
    """A factory of indexes, with the signatures of the local ones (`MakeWords`, `MakeVectors`)."""

    def __init__(self, settings: Settings, space: str, log: str, store: LoggedSource, models: ModelSource) -> None:
        """Connect to the service that the environment names; raise BadSetting if it names none.

        `log` is the id of the log that the store has now: no other log has it.
        """
        self._store, self._models = store, models
        self._naming = Naming(settings.turbopuffer_prefix, space, log)  # refuses a prefix that cannot be one
        self._wire = TurbopufferWire(service())
        self._passages: TurbopufferIndex | None = None

    def words(self, folder: Path, source: WordSource, language: str) -> TurbopufferIndex:
        """Return an index of words. The one of passages also holds the vectors of `vectors`."""
        passages = folder.name == PASSAGES
        suffix = "" if passages else f"_{folder.name}"
        place = folder.with_name(f"turbopuffer-{folder.name}")
        models = self._models if passages else None

        def naming() -> Naming:
            log = json.loads(self._store.log) if self._store.log else self._naming.log
            return replace(self._naming, log=log, suffix=suffix)

        index = TurbopufferIndex(place, source, language, wire=self._wire, naming=naming, models=models)
        if passages:
            self._passages = index
        return index

    def vectors(self, folder: Path, source: VectorSource, dims: int, fingerprint: str) -> TurbopufferVectors:
        """Return an index of the vectors of one model, in the rows of the index of passages."""
        return TurbopufferVectors(self.passages, source, dims, fingerprint)

    @property
    def passages(self) -> TurbopufferIndex:
        """Return the index of passages, which is created first."""
        assert self._passages is not None, "the index of passages is made first"  # noqa: S101
        return self._passages

    def trouble(self) -> str:
        """Return why something is still pending, in one sentence; empty where nothing went wrong."""
        return self._passages.trouble() if self._passages else ""

    def close(self) -> None:
        """Close the connection."""
        self._wire.close()
