"""Nearest vectors in memory: a scan over sign bits finds candidates, and their float16 rows give the exact cosines.

`bench/vectors.py` prints what a whole search costs and finds; the numbers of single steps below were taken by hand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commonplace.index.followers import IndexDamaged
from commonplace.index.scope import distinct
from commonplace.model import CHUNK_BITS

Ids = NDArray[np.int64]
Halves = NDArray[np.float16]
Floats = NDArray[np.float32]
Mask = NDArray[np.bool_]
Words = NDArray[np.uint64]

BLOCK = 8_192
"""Rows scanned at a time: the work arrays stay in the second-level cache."""
EXACT_ROWS = 2_000
"""Up to this many rows (or a fiftieth of all) reading every vector costs less than choosing which to read."""
FEWEST_FINALISTS, MOST_FINALISTS = 600, 8_000
"""Bounds of the number of rows rescored exactly, a fiftieth of all. Half as many lose 2 in 100 of the best ten."""
ONE_IN = 50
SPACED = 256
"""Rows of a sample that stands for all vectors."""
SAMPLED = 8_192
"""Distances sampled to estimate how near a row has to be; with less than twice as many rows all are compared."""
CHECKED = 16
"""Best rows of a search whose sign bits are compared with their codes, to notice vectors that changed on disk."""
STRAY_BITS = 2
"""Bits by which a sound row may differ from its code: another CPU may round a tiny value to the other sign."""
NORM_TOLERANCE = 0.02
_SLACK = 1.1 * NORM_TOLERANCE
"""The relative difference between the products of two rows with equal cosines, at the two bounds of length."""
_RUN = 16
_SORT_TAIL = 4_096
_SCORED_AT_ONCE = 256
_HALF_BITS = np.int32(-0x70002000)  # 0x8fffe000: sign, exponent and fraction of a half, moved into place
_HALF_SCALE = np.float32(2.0**112)


def widen(halves: Halves) -> Floats:
    """Return `halves.astype(float32)` for finite values, six times faster (0.10 ms against 0.65 for 1,000 rows of 384).

    A half shifted into the bits of a float lacks the difference of the exponents' biases; one multiplication
    adds it, subnormals included. Infinities come out as large numbers, which no check of norms lets pass.
    """
    floats = _unscaled(halves)
    return np.multiply(floats, _HALF_SCALE, out=floats)


def _unscaled(halves: Halves) -> Floats:
    """Return the floats of `widen` before that multiplication."""
    bits = halves.view(np.int16).astype(np.int32)
    np.left_shift(bits, 13, out=bits)
    np.bitwise_and(bits, _HALF_BITS, out=bits)
    return bits.view(np.float32)


def unit(vector: NDArray[Any]) -> Floats | None:
    """Return the vector scaled to length one; None if its length is zero or not finite."""
    floats: Floats = np.asarray(vector, dtype=np.float32).ravel()
    length = float(np.linalg.norm(floats))
    return floats / np.float32(length) if np.isfinite(length) and length > 0 else None


def common_direction(rows: Floats, fewest: int = 64) -> Floats:
    """Return the direction of the mean of the rows, at length one; zeros for fewer than `fewest` rows."""
    mean = unit(rows.mean(axis=0)) if len(rows) >= fewest else None
    return np.zeros(rows.shape[1], np.float32) if mean is None else mean


def code_words(dims: int) -> int:
    """Return the number of 64-bit words in the code of a vector."""
    return -(-dims // 64)


def codes_of(rows: Floats, direction: Floats) -> Words:
    """Return the sign bits of each row without its part along the common direction.

    Embeddings share a large mean, on which most plain sign bits are wasted: at 100,000 rows and 1,000 finalists
    recall@10 is 0.94 for plain signs, 0.98 for these. Taking the mean itself away instead is no better and suffers
    more when the mean was taken from other text (0.95). Queries are coded by the same function.
    """
    along = np.vecdot(rows, direction)
    bits = np.packbits(rows > along[:, None] * direction, axis=1)
    padded = np.zeros((len(rows), 8 * code_words(rows.shape[1])), np.uint8)
    padded[:, : bits.shape[1]] = bits
    return padded.view(np.uint64)


class RowOrder:
    """An order of rows by chunk id. Rows never change their id, so one sort serves later snapshots of a generation.

    Rows that came after the sort are compared one by one until they are many enough to sort again.
    """

    def __init__(self) -> None:
        self._sorted: tuple[NDArray[np.int32], Ids] = (np.empty(0, np.int32), np.empty(0, np.int64))

    def find(self, ids: Ids, lows: Ids, highs: Ids) -> Ids:
        """Return the rows, unordered, whose id is in one of the sorted, disjoint ranges `low <= id < high`."""
        if not len(lows):
            return np.empty(0, np.int64)
        order, keys = self._up_to_date(ids)
        starts, ends = np.searchsorted(keys, lows), np.searchsorted(keys, highs)
        counts = ends - starts
        places = np.repeat(starts - (np.cumsum(counts) - counts), counts) + np.arange(counts.sum())
        tail = ids[len(order) :]
        rows: Ids = order[places].astype(np.int64)
        if len(tail):
            ranges = np.searchsorted(lows, tail, side="right") - 1
            inside = (ranges >= 0) & (tail < highs[ranges])
            rows = np.concatenate([rows, np.flatnonzero(inside) + len(order)])
        return rows if len(order) <= len(ids) else rows[rows < len(ids)]

    def _up_to_date(self, ids: Ids) -> tuple[NDArray[np.int32], Ids]:
        order, keys = self._sorted
        if len(ids) - len(order) > max(_SORT_TAIL, len(order) // 8):
            order = np.argsort(ids, kind="stable").astype(np.int32)
            keys = ids[order]
            self._sorted = (order, keys)
        return order, keys


@dataclass(frozen=True, slots=True)
class VectorRows:
    """A snapshot of all vectors. It never changes, so any number of threads may search it while others write."""

    ids: Ids
    codes: Sequence[Words]
    """Blocks of `BLOCK` rows, words first: a scan reads each word of all rows in one run."""
    vectors: Halves
    live: Mask | None
    """None when no row is dead."""
    direction: Floats
    order: RowOrder = field(default_factory=RowOrder)
    last: list[tuple[Ids, Mask]] = field(default_factory=list)
    """The items of the last filter and the mask of their rows: successive searches often share a filter."""
    spaced: list[Floats] = field(default_factory=list)
    """The sample of the vectors, after the first call of `sample`; empty before."""

    def __len__(self) -> int:
        return len(self.ids) if self.live is None else int(np.count_nonzero(self.live))

    def search(
        self, query: NDArray[Any], k: int, items: Ids | None = None, without: Ids | None = None
    ) -> tuple[Ids, Floats]:
        """Return the `k` chunks nearest to the query and their cosines, best first, ties by chunk id."""
        towards = unit(query)
        if towards is None or k <= 0:
            return np.empty(0, np.int64), np.empty(0, np.float32)
        rows = self._contenders(self._candidates(towards, k, self._allowed(items, without)), towards, k)
        scores = self._cosines(rows, towards)
        best = _best(scores, self.ids[rows], k)
        self._check_codes(rows[best[:CHECKED]])
        return self.ids[rows[best]], scores[best]

    def scores(self, query: NDArray[Any], chunk_ids: Ids) -> Floats:
        """Return the cosine of each chunk; NaN for a chunk without a vector."""
        towards = unit(query)
        if towards is None or not len(chunk_ids):
            return np.full(len(chunk_ids), np.nan, np.float32)
        unique_ids = distinct(chunk_ids)
        rows = self._alive(self.order.find(self.ids, unique_ids, unique_ids + 1))
        cosines = np.full(len(unique_ids), np.nan, np.float32)
        cosines[np.searchsorted(unique_ids, self.ids[rows])] = self._cosines(rows, towards)
        return cosines[np.searchsorted(unique_ids, chunk_ids)]

    def sample(self) -> Floats:
        """Return the vectors of at most `SPACED` live rows, evenly spaced."""
        if not self.spaced:
            rows = np.arange(len(self.ids)) if self.live is None else np.flatnonzero(self.live)
            step = -(-len(rows) // SPACED) or 1
            self.spaced.append(widen(self.vectors.take(rows[::step], axis=0)))
        return self.spaced[0]

    def of_items(self, items: Ids) -> Ids:
        """Return the live rows of some items, whose ids are sorted and unique."""
        return self._alive(self.order.find(self.ids, items << CHUNK_BITS, (items + 1) << CHUNK_BITS))

    def code_of(self, row: int) -> Words:
        """Return the code of one row."""
        return self.codes[row // BLOCK][:, row % BLOCK]

    def _candidates(self, towards: Floats, k: int, allowed: Mask | None) -> Ids:
        count = len(self.ids) if allowed is None else int(np.count_nonzero(allowed))
        share = len(self.ids) // ONE_IN
        deep = FEWEST_FINALISTS + 3 * k  # a list of a thousand is no better for ten times as many
        finalists = max(min(10 * k, deep), FEWEST_FINALISTS, min(share, MOST_FINALISTS))
        if count <= max(EXACT_ROWS, finalists, share):
            return np.arange(count) if allowed is None else np.flatnonzero(allowed)
        code = codes_of(towards[None], self.direction)[0]
        return closest_codes(self.codes, self.ids, code, finalists, allowed if count < len(self.ids) else None)

    def _allowed(self, items: Ids | None, without: Ids | None) -> Mask | None:
        """Return the mask of the rows to search; None for all rows."""
        allowed = self.live if items is None else self._mask_of(items)
        if without is None:
            return allowed
        allowed = np.ones(len(self.ids), np.bool_) if allowed is None else allowed.copy()
        allowed[self.of_items(without)] = False
        return allowed

    def _mask_of(self, items: Ids) -> Mask:
        for last_items, last_mask in self.last:
            if last_items is items:
                return last_mask
        mask = self._live_mask_of(items)
        self.last[:] = [(items, mask)]
        return mask

    def _live_mask_of(self, items: Ids) -> Mask:
        """Return the mask of the live rows of the items. Few items are looked up in the sort, many in a table."""
        total = len(self.ids)
        if not len(items) or len(items) * 128 < total or int(items[-1]) - int(items[0]) > 16 * total + BLOCK:
            allowed = np.zeros(total, np.bool_)
            allowed[self.of_items(items)] = True
            return allowed
        allowed = _rows_in_table(self.ids, items)
        return allowed if self.live is None else np.logical_and(allowed, self.live, out=allowed)

    def _alive(self, rows: Ids) -> Ids:
        return rows if self.live is None else rows[self.live[rows]]

    def _contenders(self, rows: Ids, towards: Floats, k: int) -> Ids:
        """Return the rows that may be among the `k` nearest, by products alone: lengths are one but for rounding.

        A product of exactly 0 is the sign of a row that was wiped on disk, so those rows are returned as well: the
        check of their length in `_cosines` then raises.
        """
        if len(rows) <= 2 * k:
            return rows
        products = np.empty(len(rows), np.float32)
        scaled = towards * _HALF_SCALE  # instead of scaling every row, which gives the same to the last bit
        for start in range(0, len(rows), _SCORED_AT_ONCE):
            part = slice(start, start + _SCORED_AT_ONCE)
            np.vecdot(_unscaled(self.vectors.take(rows[part], axis=0)), scaled, out=products[part])
        last = float(np.partition(products, len(rows) - k)[len(rows) - k])
        contenders: Ids = rows[(products >= last - abs(last) * _SLACK) | (products == 0)]
        return contenders

    def _cosines(self, rows: Ids, towards: Floats) -> Floats:
        """Return exact cosines, row by row (`vecdot`): a chunk's score is the same to the last bit in any company.

        Raise `IndexDamaged` if the length of a row is not one.
        """
        cosines = np.empty(len(rows), np.float32)
        for start in range(0, len(rows), _SCORED_AT_ONCE):
            part = slice(start, start + _SCORED_AT_ONCE)
            vectors = widen(self.vectors.take(rows[part], axis=0))  # half of what it takes by plain indexing
            squares = np.vecdot(vectors, vectors)
            if np.any(np.abs(squares - 1) > NORM_TOLERANCE):
                raise IndexDamaged("a vector no longer has length one")
            cosines[part] = np.vecdot(vectors, towards) / np.sqrt(squares)
        return cosines

    def _check_codes(self, rows: Ids) -> None:
        """Raise `IndexDamaged` if the code of a row is not that of its vector."""
        if not len(rows):
            return
        codes = codes_of(widen(self.vectors[rows]), self.direction)
        differing = codes ^ np.array([self.code_of(row) for row in rows.tolist()])
        stray = rows[np.bitwise_count(differing).sum(axis=1) > STRAY_BITS]
        if len(stray):
            raise IndexDamaged(f"row {stray[0]} has a vector that is not the one it was coded from")


def closest_codes(blocks: Sequence[Words], ids: Ids, code: Words, count: int, allowed: Mask | None) -> Ids:
    """Return the `count` rows whose codes differ from `code` in the fewest bits, ties by id.

    A sample gives the distance that the last of them most likely has, so that only the few rows within it are sorted
    (5 ms per million codes of 256 bits; 12 for sorting all). Where fewer than `count` are within it, all are sorted.
    """
    distances = _distances(blocks, len(ids), code)
    near = None if len(ids) < 2 * SAMPLED else distances <= _likely_limit(distances, count, allowed)
    if near is not None and allowed is not None:
        near &= allowed
    if near is None or np.count_nonzero(near) < count:
        near = allowed
    if near is None:
        return _closest(distances, ids, count)
    rows = near.nonzero()[0]
    closest: Ids = rows[_closest(distances[rows], ids[rows], count)]
    return closest


def _distances(blocks: Sequence[Words], count: int, code: Words) -> NDArray[np.uint16]:
    """Return the number of bits in which each row differs from a code."""
    distances = np.empty(count, np.uint16)
    differing, counts = np.empty((len(code), BLOCK), np.uint64), np.empty((len(code), BLOCK), np.uint8)
    for start, block in zip(range(0, count, BLOCK), blocks, strict=True):
        part = distances[start : start + BLOCK]
        size = len(part)
        np.bitwise_xor(block[:, :size], code[:, None], out=differing[:, :size])
        np.bitwise_count(differing[:, :size], out=counts[:, :size])
        np.add.reduce(counts[:, :size], axis=0, dtype=np.uint16, out=part)
    return distances


def _likely_limit(distances: NDArray[np.uint16], count: int, allowed: Mask | None) -> int:
    """Return a distance that most likely at least `count` rows are within, estimated from a sample.

    It takes short runs of rows: of rows that come in fives, as those of a table may, every fifteenth is of one kind.
    """
    stride = _RUN * (len(distances) // SAMPLED)
    whole = len(distances) // stride * stride
    sample, total = distances[:whole].reshape(-1, stride)[:, :_RUN].ravel(), len(distances)
    if allowed is not None:
        sample, total = sample[allowed[:whole].reshape(-1, stride)[:, :_RUN].ravel()], int(np.count_nonzero(allowed))
    expected = count * len(sample) / max(total, 1)
    place = int(expected + 3 * expected**0.5) + 3
    return int(np.partition(sample, place)[place]) if place < len(sample) else int(np.iinfo(np.uint16).max)


def _closest(distances: NDArray[np.uint16], ids: Ids, count: int) -> Ids:
    """Return the first `count` places by distance, then id: the choice does not depend on the order of writing."""
    if len(distances) <= count:
        return np.arange(len(distances))
    # Counting is three times as fast as a partition: there are only as many distances as a code has bits.
    limit = np.searchsorted(np.bincount(distances).cumsum(), count)
    sure, tied = np.flatnonzero(distances < limit), np.flatnonzero(distances == limit)
    room = count - len(sure)
    if room < len(tied):
        tied = tied[np.argpartition(ids[tied], room - 1)[:room]]
    return np.concatenate([sure, tied])


def _best(scores: Floats, ids: Ids, k: int) -> Ids:
    """Return the places of the `k` best scores, best first, ties by id."""
    if k < len(scores):
        limit = np.partition(scores, len(scores) - k)[len(scores) - k]
        places = np.flatnonzero(scores >= limit)
    else:
        places = np.arange(len(scores))
    return places[np.lexsort((ids[places], -scores[places]))][:k]


def _rows_in_table(ids: Ids, items: Ids) -> Mask:
    """Return the mask of the rows of the items, by a table with a place for every id from the first to the last."""
    before = int(items[0]) - 1
    table = np.zeros(int(items[-1]) - before + 2, np.bool_)
    table[items - before] = True
    mask = np.empty(len(ids), np.bool_)
    for start in range(0, len(ids), BLOCK):
        part = slice(start, start + BLOCK)
        table.take((ids[part] >> CHUNK_BITS) - before, mode="clip", out=mask[part])
    return mask
