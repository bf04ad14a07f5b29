"""Pages of a search: a list that stays what it was while it is walked, cursors into it, and the budget of a page.

A list is frozen as far as it was read, in this process, so that a walk meets every entry once and in one order,
whatever is written meanwhile. A cursor also carries enough to go on where the list is not at hand any more: after a
restart, in another process, or when many others were begun since.
"""

from __future__ import annotations

import base64
import json
import secrets
import struct
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from commonplace.errors import InvalidInput
from commonplace.index.scope import Ids
from commonplace.lazy_dataclass import dataclass
from commonplace.model import JSON, fingerprint
from commonplace.store.rows import Moment

if TYPE_CHECKING:
    from commonplace.library import Library

KEPT_S = 3600.0
MOST_WALKS = 128
MOST_PAGE = 100
STRANGE = "cursor does not belong to this search; run it again without cursor"
PAGE_PARAMETERS = ("limit", "offset", "cursor", "max_tokens", "include_images", "explain_query", "highlight")

_FORM = struct.Struct(">8s8sIqqq?")
_SIGNATURE = 8
T = TypeVar("T")


Column = NDArray[np.float64] | NDArray[np.float32] | NDArray[np.int64] | None
"""The values of one key of `scores`: NaN and rank 0 stand for null, as does a column of None."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Entries in their order, as far as it is known."""

    items: Ids
    created: Ids
    complete: bool
    scores: Mapping[str, Column] = field(default_factory=dict)
    chunks: Ids | None = None
    """The best chunk of each, where there is one."""
    head: int = 0
    """How many at the beginning are not where they were found, but in an order of their own."""

    def __len__(self) -> int:
        return len(self.items)

    def record(self, row: int) -> dict[str, JSON]:
        """The scores of one entry."""
        return {key: None if column is None else _plain(column[row]) for key, column in self.scores.items()}

    def only(self, kept: NDArray[np.bool_] | Ids) -> Rows:
        """Those that are chosen, or those at these places, in that order."""
        scores = {key: None if column is None else column[kept] for key, column in self.scores.items()}
        chunks = None if self.chunks is None else self.chunks[kept]
        return Rows(self.items[kept], self.created[kept], self.complete, scores, chunks)

    def followed_by(self, other: Rows) -> Rows:
        """This and what the other has beyond it."""
        rest = other.only(np.isin(other.items, self.items, invert=True))
        scores = {key: _joined(column, rest.scores[key]) for key, column in self.scores.items()}
        items, created = np.concatenate([self.items, rest.items]), np.concatenate([self.created, rest.created])
        return Rows(items, created, other.complete, scores, _joined(self.chunks, rest.chunks))


def _joined(one: Any, other: Any) -> Any:
    return None if one is None else np.concatenate([one, other])


def _plain(value: np.generic) -> float | int | None:
    if isinstance(value, np.integer):
        return int(value) or None
    number = float(value.item())
    if number != number:
        return None
    return round(number, 6) if isinstance(value, np.float32) else number  # no more digits than it has


class Lister(Protocol):
    """How a search makes its list."""

    @property
    def loose(self) -> bool:
        """Whether the list was made with less than all that was asked for; a cursor brings that along."""
        ...

    def first(self, count: int) -> Rows:
        """At least the first `count`, or all."""
        ...

    def deeper(self, rows: Rows, count: int) -> Rows:
        """The same list at least so far, as of when it was first made."""
        ...

    def again(self, cursor: Cursor, count: int) -> tuple[Rows, int]:
        """The list anew for a cursor whose own is gone, without what was stored since, and where to go on in it."""
        ...


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where a walk goes on: behind `last`, the entry at `position - 1`; what was stored after `upto` is not part."""

    digest: bytes
    walk: bytes
    position: int
    upto: int
    last: Moment
    loose: bool
    head: tuple[int, ...] = ()
    """The entries that had an order of their own, in it, while the next page begins among them or right behind."""


class Walk:
    """A list that is being walked, by one thread at a time."""

    def __init__(self, lister: Lister, rows: Rows, upto: int) -> None:
        self.id = secrets.token_bytes(8)
        self.upto = upto
        self.lister, self.rows = lister, rows
        self.used = time.monotonic()
        self._lock = threading.Lock()

    def reach(self, count: int) -> Rows:
        """The list with at least so many rows, or all."""
        with self._lock:
            if len(self.rows) < count and not self.rows.complete:
                self.rows = self.lister.deeper(self.rows, max(count, 2 * len(self.rows)))
            return self.rows


class Walks:
    """The walks of one library, and the key its cursors are signed with."""

    def __init__(self, library: Library) -> None:
        self._key = bytes.fromhex(str(library.store.settle("cursor_key", secrets.token_hex(16))))
        self._walks: OrderedDict[bytes, Walk] = OrderedDict()
        self._lock = threading.Lock()

    def keep(self, walk: Walk) -> None:
        with self._lock:
            walk.used = time.monotonic()
            self._walks[walk.id] = walk
            self._walks.move_to_end(walk.id)
            while len(self._walks) > MOST_WALKS or next(iter(self._walks.values())).used < walk.used - KEPT_S:
                self._walks.popitem(last=False)

    def find(self, walk: bytes) -> Walk | None:
        with self._lock:
            return self._walks.get(walk)

    def sign(self, cursor: Cursor) -> str:
        last = cursor.last
        packed = _FORM.pack(
            cursor.digest, cursor.walk, cursor.position, cursor.upto, last.item_id, last.created_at, cursor.loose
        )
        packed += _pack(cursor.head)
        return base64.urlsafe_b64encode(packed + self._signature(packed)).decode().rstrip("=")

    def read(self, text: str, digest: bytes) -> Cursor:
        try:
            packed = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        except ValueError:
            raise InvalidInput(STRANGE) from None
        body, signature = packed[:-_SIGNATURE], packed[-_SIGNATURE:]
        if len(body) < _FORM.size or not secrets.compare_digest(signature, self._signature(body)):
            raise InvalidInput(STRANGE)
        found, walk, position, upto, item_id, created_at, loose = _FORM.unpack_from(body)
        if found != digest:
            raise InvalidInput(STRANGE)
        return Cursor(digest, walk, position, upto, Moment(item_id, created_at), loose, _unpack(body[_FORM.size :]))

    def _signature(self, packed: bytes) -> bytes:
        return fingerprint(self._key, packed, size=_SIGNATURE)


def _pack(items: Sequence[int]) -> bytes:
    """How many bytes each takes, then each; nothing for none."""
    if not items:
        return b""
    size = (max(items).bit_length() + 7) // 8
    return bytes([size]) + b"".join(item.to_bytes(size, "big") for item in items)


def _unpack(packed: bytes) -> tuple[int, ...]:
    size = packed[0] if packed else 1
    return tuple(int.from_bytes(packed[at : at + size], "big") for at in range(1, len(packed), size))


def walks_of(library: Library) -> Walks:
    return library.keeping(Walks)


def digest_of(tool: str, given: Mapping[str, JSON]) -> bytes:
    """What a cursor belongs to: everything that decides the list. Page parameters may change from page to page."""
    kept = {name: value for name, value in given.items() if name not in PAGE_PARAMETERS}
    return fingerprint(tool, json.dumps(kept, sort_keys=True), size=8)


@dataclass(frozen=True, slots=True)
class Taken:
    """One page of a walk: rows that are still there, where in the list each stands, and where the next page begins."""

    rows: Rows
    places: Sequence[int]
    position: int


L = TypeVar("L", bound=Lister)


class Paging(Generic[L]):
    """The pages of one call: where it begins, and the cursor with which the next one goes on."""

    def __init__(self, library: Library, tool: str, given: Mapping[str, JSON], lister: L) -> None:
        if "cursor" in given and given.get("offset"):
            raise InvalidInput("Use cursor or offset, not both")
        self._library = library
        self._digest = digest_of(tool, given)
        self.limit = min(given["limit"], MOST_PAGE)
        self._requested = given["limit"]
        self._offset = given.get("offset", 0)
        self.cursor = walks_of(library).read(given["cursor"], self._digest) if "cursor" in given else None
        self.lister = lister
        """The one that made the list: an earlier call's, where this one goes on with that list."""
        self._walk: Walk | None = None

    def take(self, load: Callable[[Sequence[int]], Mapping[int, T]]) -> tuple[Taken, dict[int, T]]:
        """The entries of this page, filled up from further on where some are gone, and what was loaded of them."""
        walk, position = self._begin(self.lister)
        self._walk, self.lister = walk, cast(L, walk.lister)
        places: list[int] = []
        loaded: dict[int, T] = {}
        rows = walk.rows
        while len(places) < self.limit:
            wanted = self.limit - len(places)
            rows = walk.reach(position + wanted + 1)
            batch = rows.items[position : position + wanted].tolist()
            if not batch:
                break
            found = load(batch)
            places += [position + place for place, item in enumerate(batch) if item in found]
            loaded.update(found)
            position += len(batch)
        return Taken(rows, places, position), loaded

    def _begin(self, lister: Lister) -> tuple[Walk, int]:
        cursor = self.cursor
        if cursor is None:
            upto = self._library.store.last_item()
            return Walk(lister, lister.first(self._offset + self.limit + 1), upto), self._offset
        walk = walks_of(self._library).find(cursor.walk)
        if walk is not None:
            return walk, cursor.position
        rows, position = lister.again(cursor, self.limit + 1)
        return Walk(lister, rows, cursor.upto), position

    def cursor_after(self, taken: Taken, kept: int) -> str | None:
        """Where the next page begins when only so many of this one are returned; None where there is nothing more."""
        walk = self._walk
        position = taken.position if kept == len(taken.places) else taken.places[kept]
        if walk is None or position >= len(taken.rows):
            return None
        walks = walks_of(self._library)
        walks.keep(walk)
        rows = taken.rows
        last = Moment(int(rows.items[position - 1]), int(rows.created[position - 1]))
        head = tuple(rows.items[: rows.head].tolist()) if position <= rows.head else ()
        return walks.sign(Cursor(self._digest, walk.id, position, walk.upto, last, walk.lister.loose, head))

    def clamped(self) -> dict[str, JSON]:
        if self._requested == self.limit:
            return {}
        return {"clamped_limit": {"requested": self._requested, "applied": self.limit}}


def within(records: Sequence[Mapping[str, JSON]], budget: int | None) -> tuple[int, dict[str, JSON]]:
    """How many of the records fit, the first always, and what is said of it where a budget was given."""
    if budget is None:
        return len(records), {}
    used = kept = 0
    for record in records:
        size = tokens_of(record)
        if kept and used + size > budget:
            break
        used, kept = used + size, kept + 1
    return kept, {"tokens": {"budget": budget, "used": used, "omitted": len(records) - kept}}


def tokens_of(record: Mapping[str, JSON]) -> int:
    """A quarter of the characters of its compact JSON, image data left out."""
    if record.get("images"):
        record = {**record, "images": [{**image, "data": ""} for image in record["images"]]}
    return -(-len(json.dumps(record, ensure_ascii=False, separators=(",", ":"))) // 4)
