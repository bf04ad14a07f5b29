"""Pages of a search: a list that stays the same while it is walked, cursors into it, and a page's token budget.

A list is frozen in this process as far as it was read, so that a walk meets every entry once and in one order,
whatever is written meanwhile. A cursor also carries enough to go on where the list is no longer in memory: after a
restart, in another process, or when many other lists were begun since.
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
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from commonplace.errors import InvalidInput
from commonplace.index.scope import Ids
from commonplace.model import JSON, fingerprint
from commonplace.store.items import Items
from commonplace.store.rows import Moment
from commonplace.store.stored_settings import StoredSettings

if TYPE_CHECKING:
    from commonplace.space import Space

KEPT_S = 3600.0
MOST_WALKS = 128
MOST_PAGE = 100
STRANGE = "cursor does not belong to this search; run it again without cursor"
PAGE_PARAMETERS = ("limit", "offset", "cursor", "max_tokens", "include_images", "explain_query", "highlight")

_FORM = struct.Struct(">8s8sIqqq?")
_SIGNATURE = 8
T = TypeVar("T")


Column = NDArray[np.float64] | NDArray[np.float32] | NDArray[np.int64] | None
"""The values of one key of `scores`. NaN, rank 0 and a column of None stand for null."""


@dataclass(frozen=True, slots=True)
class ListRows:
    """The first rows of a list, in order; `complete` where it has no more."""

    items: Ids
    created: Ids
    complete: bool
    scores: Mapping[str, Column] = field(default_factory=dict)
    chunks: Ids | None = None
    """The best chunk of each row, where there is one."""
    head: int = 0
    """How many rows at the beginning were reranked."""

    def __len__(self) -> int:
        return len(self.items)

    def record(self, row: int) -> dict[str, JSON]:
        """Return the scores of one row by their names."""
        return {key: None if column is None else _plain(column[row]) for key, column in self.scores.items()}

    def only(self, selection: NDArray[np.bool_] | Ids) -> ListRows:
        """Return the rows of a mask, or those at these indexes, in that order."""
        scores = {key: None if column is None else column[selection] for key, column in self.scores.items()}
        chunks = None if self.chunks is None else self.chunks[selection]
        return ListRows(self.items[selection], self.created[selection], self.complete, scores, chunks)

    def followed_by(self, other: ListRows) -> ListRows:
        """Return these rows and those of the other list that are not among them."""
        rest = other.only(np.isin(other.items, self.items, invert=True))
        scores = {key: _joined(column, rest.scores[key]) for key, column in self.scores.items()}
        items, created = np.concatenate([self.items, rest.items]), np.concatenate([self.created, rest.created])
        return ListRows(items, created, other.complete, scores, _joined(self.chunks, rest.chunks))


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
    """A maker of one search's list."""

    @property
    def loose(self) -> bool:
        """Return whether the list was relaxed to some of the words; a cursor carries this along."""
        ...

    def first(self, count: int) -> ListRows:
        """Return at least the first `count` rows, or all."""
        ...

    def deeper(self, rows: ListRows, count: int) -> ListRows:
        """Return the same list with at least `count` rows, or all, as of when it was first made."""
        ...

    def again(self, cursor: Cursor, count: int) -> tuple[ListRows, int]:
        """Return the list made anew for a cursor whose list is gone, without later entries, and the row to go on at."""
        ...


@dataclass(frozen=True, slots=True)
class Cursor:
    """A position in a walk: after `last`, the entry at `position - 1`. Items stored after `upto` are not part."""

    digest: bytes
    walk: bytes
    position: int
    upto: int
    last: Moment
    loose: bool
    head: tuple[int, ...] = ()
    """The reranked items in their order, while the next page begins among them or right after them."""


class ListWalk:
    """A list that is being walked. Its lock lets one thread at a time extend it."""

    def __init__(self, lister: Lister, rows: ListRows, upto: int) -> None:
        self.id = secrets.token_bytes(8)
        self.upto = upto
        self.lister, self.rows = lister, rows
        self.used = time.monotonic()
        self._lock = threading.Lock()

    def reach(self, count: int) -> ListRows:
        """Return the list with at least `count` rows, or all."""
        with self._lock:
            if len(self.rows) < count and not self.rows.complete:
                self.rows = self.lister.deeper(self.rows, max(count, 2 * len(self.rows)))
            return self.rows


class Walks:
    """The walks of one library, the most recent `MOST_WALKS`, and the key that signs its cursors."""

    def __init__(self, space: Space) -> None:
        self._key = bytes.fromhex(str(space.store.drawer(StoredSettings).settle("cursor_key", secrets.token_hex(16))))
        self._walks: OrderedDict[bytes, ListWalk] = OrderedDict()
        self._lock = threading.Lock()

    def keep(self, walk: ListWalk) -> None:
        """Keep a walk for `KEPT_S` seconds, and forget the oldest ones."""
        with self._lock:
            walk.used = time.monotonic()
            self._walks[walk.id] = walk
            self._walks.move_to_end(walk.id)
            while len(self._walks) > MOST_WALKS or next(iter(self._walks.values())).used < walk.used - KEPT_S:
                self._walks.popitem(last=False)

    def find(self, walk: bytes) -> ListWalk | None:
        """Return the walk with this id, or None where it is gone."""
        with self._lock:
            return self._walks.get(walk)

    def sign(self, cursor: Cursor) -> str:
        """Return a cursor as signed text."""
        last = cursor.last
        packed = _FORM.pack(
            cursor.digest, cursor.walk, cursor.position, cursor.upto, last.item_id, last.created_at, cursor.loose
        )
        packed += _pack(cursor.head)
        return base64.urlsafe_b64encode(packed + self._signature(packed)).decode().rstrip("=")

    def read(self, text: str, digest: bytes) -> Cursor:
        """Return the cursor of a text. Raise InvalidInput where it is not ours or of another search."""
        try:
            packed = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        except ValueError:
            raise InvalidInput(STRANGE) from None
        body, signature = packed[:-_SIGNATURE], packed[-_SIGNATURE:]
        if len(body) < _FORM.size or not secrets.compare_digest(signature, self._signature(body)):
            raise InvalidInput(STRANGE)
        own_digest, walk, position, upto, item_id, created_at, loose = _FORM.unpack_from(body)
        if own_digest != digest:
            raise InvalidInput(STRANGE)
        return Cursor(digest, walk, position, upto, Moment(item_id, created_at), loose, _unpack(body[_FORM.size :]))

    def _signature(self, packed: bytes) -> bytes:
        return fingerprint(self._key, packed, size=_SIGNATURE)


def _pack(items: Sequence[int]) -> bytes:
    """Return the number of bytes each item takes, then each item; nothing for no items."""
    if not items:
        return b""
    size = (max(items).bit_length() + 7) // 8
    return bytes([size]) + b"".join(item.to_bytes(size, "big") for item in items)


def _unpack(packed: bytes) -> tuple[int, ...]:
    size = packed[0] if packed else 1
    return tuple(int.from_bytes(packed[at : at + size], "big") for at in range(1, len(packed), size))


def walks_of(space: Space) -> Walks:
    return space.part(Walks)


def digest_of(tool: str, args: Mapping[str, JSON]) -> bytes:
    """Return the digest of a search: of every argument that decides the list. Page parameters are left out."""
    deciding_args = {name: value for name, value in args.items() if name not in PAGE_PARAMETERS}
    return fingerprint(tool, json.dumps(deciding_args, sort_keys=True), size=8)


@dataclass(frozen=True, slots=True)
class WalkPage:
    """One page of a walk: the rows, the indexes of entries that still exist, and where the next page begins."""

    rows: ListRows
    places: Sequence[int]
    position: int


L = TypeVar("L", bound=Lister)


class Paging(Generic[L]):
    """The page of one call: where it begins, and the cursor with which the next call goes on."""

    def __init__(self, space: Space, tool: str, args: Mapping[str, JSON], lister: L) -> None:
        if "cursor" in args and args.get("offset"):
            raise InvalidInput("Use cursor or offset, not both")
        self._library = space
        self._digest = digest_of(tool, args)
        self.limit = min(args["limit"], MOST_PAGE)
        self._requested = args["limit"]
        self._offset = args.get("offset", 0)
        self.cursor = walks_of(space).read(args["cursor"], self._digest) if "cursor" in args else None
        self.lister = lister
        """The maker of the list: an earlier call's, where this call goes on with that list."""
        self._walk: ListWalk | None = None

    def take(self, load: Callable[[Sequence[int]], Mapping[int, T]]) -> tuple[WalkPage, dict[int, T]]:
        """Return this page and its entries as `load` returns them, filled up from further on where some are gone."""
        walk, position = self._begin(self.lister)
        self._walk, self.lister = walk, cast(L, walk.lister)
        places: list[int] = []
        loaded: dict[int, T] = {}
        rows = walk.rows
        while len(places) < self.limit:
            missing = self.limit - len(places)
            rows = walk.reach(position + missing + 1)
            batch = rows.items[position : position + missing].tolist()
            if not batch:
                break
            batch_entries = load(batch)
            places += [position + place for place, item in enumerate(batch) if item in batch_entries]
            loaded.update(batch_entries)
            position += len(batch)
        return WalkPage(rows, places, position), loaded

    def _begin(self, lister: Lister) -> tuple[ListWalk, int]:
        cursor = self.cursor
        if cursor is None:
            upto = self._library.store.drawer(Items).last()
            return ListWalk(lister, lister.first(self._offset + self.limit + 1), upto), self._offset
        walk = walks_of(self._library).find(cursor.walk)
        if walk is not None:
            return walk, cursor.position
        rows, position = lister.again(cursor, self.limit + 1)
        return ListWalk(lister, rows, cursor.upto), position

    def cursor_after(self, walk_page: WalkPage, count: int) -> str | None:
        """Return the cursor after the first `kept` entries of this page; None where the list ends there."""
        walk = self._walk
        position = walk_page.position if count == len(walk_page.places) else walk_page.places[count]
        if walk is None or position >= len(walk_page.rows):
            return None
        walks = walks_of(self._library)
        walks.keep(walk)
        rows = walk_page.rows
        last = Moment(int(rows.items[position - 1]), int(rows.created[position - 1]))
        head = tuple(rows.items[: rows.head].tolist()) if position <= rows.head else ()
        return walks.sign(Cursor(self._digest, walk.id, position, walk.upto, last, walk.lister.loose, head))

    def clamped(self) -> dict[str, JSON]:
        """Return `clamped_limit`, where the limit asked for was too large."""
        if self._requested == self.limit:
            return {}
        return {"clamped_limit": {"requested": self._requested, "applied": self.limit}}


def within(records: Sequence[Mapping[str, JSON]], budget: int | None) -> tuple[int, dict[str, JSON]]:
    """Return how many records fit the budget, the first always, and `tokens` where there is a budget.

    The budget is in tokens.
    """
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
    """Return a quarter of the characters of a record's compact JSON, image data left out."""
    if record.get("images"):
        record = {**record, "images": [{**image, "data": ""} for image in record["images"]]}
    return -(-len(json.dumps(record, ensure_ascii=False, separators=(",", ":"))) // 4)
