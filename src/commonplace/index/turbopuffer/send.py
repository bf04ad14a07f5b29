"""Sending rows: only what has changed, in requests of bounded size, each announced in the ledger before it is sent."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from commonplace.errors import Unavailable
from commonplace.index.turbopuffer.ledger import Ledger, Sent
from commonplace.index.turbopuffer.rows import Row, schema
from commonplace.index.turbopuffer.service_errors import RequestRejected, RequestTooLarge
from commonplace.index.turbopuffer.service_settings import is_table
from commonplace.index.turbopuffer.wire import TurbopufferWire
from commonplace.model import CHUNK_BITS

MOST_ROWS = 1_000
MOST_BYTES = 8 * 1024 * 1024
PAUSE_S = 1.0
"""The least time between two requests of one run to a namespace: the service accepts one batch a second."""
LOOK_BYTES = 64 * 1024 * 1024
"""Bytes written to a namespace after which the service is asked how much it still has to index."""
MOST_UNINDEXED = 1_000_000_000
"""Bytes not indexed yet at which writing pauses: above 2 GB the service refuses writes, and it is slow long before."""
INDEX_WAIT_S = 30.0


@dataclass(frozen=True, slots=True)
class Unit:
    """An item and the rows it has, as of a change of the log."""

    item: int
    rows: list[Row]
    version: int


@dataclass(slots=True)
class _Request:
    """A write to a namespace: rows, and the ids of rows they supersede, unless those are of a later change."""

    namespace: str
    version: int
    rows: list[Row] = field(default_factory=list)
    deletes: list[str] = field(default_factory=list)
    size: int = 0


class Sender:
    """The writes of one run of a follower, the only writer of its ledger. Other servers may write the same rows."""

    def __init__(self, wire: TurbopufferWire, ledger: Ledger, dims: int | None) -> None:
        self._wire, self._ledger, self.dims = wire, ledger, dims
        self._written: dict[str, float] = {}
        self._unseen: defaultdict[str, int] = defaultdict(int)

    def send(self, units: Sequence[Unit], position: int | None) -> None:
        """Replace the rows of these items on the service by these; then store them and the position in the ledger."""
        items = [unit.item for unit in units]
        known = self._ledger.sent(items)
        rows = [row for unit in units for row in unit.rows]
        current_ids = {(row.namespace, row.id) for row in rows}
        unknown = [row for row in rows if not _is_known(row, known.get(row.chunk))]
        already_there = self._ledger.found(unknown)
        new_rows = [row for row in unknown if row.chunk not in already_there]
        self._ledger.announce((row.namespace, row.id) for row in new_rows)
        refused: dict[int, str] = {}
        fresh = {row.chunk for row in new_rows}
        for request in self._requests(units, fresh, known, current_ids):
            refused |= self._write(request)
        before = {(sent.namespace, sent.id) for sent in known.values()}
        rejected_ids = ((row.namespace, row.id) for row in new_rows if row.chunk in refused)
        self._ledger.withdraw(place for place in rejected_ids if place not in before)
        accepted_rows = [row for row in rows if row.chunk not in refused]
        self._ledger.replace(items, accepted_rows, refused, position)

    def sweep(self) -> None:
        """Remove rows of runs that died after sending them and before storing them in the ledger."""
        orphans: defaultdict[str, list[str]] = defaultdict(list)
        for namespace, identity in self._ledger.orphans():
            orphans[namespace].append(identity)
        for namespace, ids in orphans.items():
            self.remove(namespace, ids)
        self._ledger.acknowledge()

    def remove(self, namespace: str, ids: Sequence[str]) -> None:
        """Remove rows that the ledger does not know, unless they are of later changes than its position."""
        for start in range(0, len(ids), MOST_ROWS):
            self._request(_Request(namespace, self._ledger.position(), deletes=list(ids[start : start + MOST_ROWS])))

    def _requests(
        self, units: Iterable[Unit], fresh: set[int], known: dict[int, Sent], current_ids: set[tuple[str, str]]
    ) -> Iterator[_Request]:
        """Yield the requests for some items. An item's superseded ids are in the request with the first of its rows."""
        superseded: defaultdict[int, list[Sent]] = defaultdict(list)
        for chunk, sent in known.items():
            if (sent.namespace, sent.id) not in current_ids:
                superseded[chunk >> CHUNK_BITS].append(sent)
        filling: dict[str, _Request] = {}
        for unit in units:
            for sent in superseded[unit.item]:
                request = filling.setdefault(sent.namespace, _Request(sent.namespace, unit.version))
                request.version = min(request.version, unit.version)
                request.deletes.append(sent.id)
            for row in unit.rows:
                if row.chunk not in fresh:
                    continue
                request = filling.setdefault(row.namespace, _Request(row.namespace, unit.version))
                size = row.size(self.dims)
                if len(request.rows) + 1 > MOST_ROWS or (request.rows and request.size + size > MOST_BYTES):
                    yield request
                    request = filling[row.namespace] = _Request(row.namespace, unit.version)
                request.rows.append(row)
                request.size += size
        yield from filling.values()

    def _write(self, request: _Request) -> dict[int, str]:
        """Send a request, in halves if it is too large. Return the chunks that were rejected, and why."""
        if not request.rows and not request.deletes:
            return {}
        try:
            self._request(request)
        except RequestRejected as error:
            if not request.rows:
                raise
            if request.deletes:
                self._request(_Request(request.namespace, request.version, deletes=request.deletes), paced=False)
            if not isinstance(error, RequestTooLarge):
                return _Sifting(self, request).refused(error)
            if len(request.rows) == 1:
                raise
            return self._in_halves(request)
        self._look(request.namespace, request.size)
        return {}

    def _in_halves(self, request: _Request) -> dict[int, str]:
        middle = len(request.rows) // 2
        refused: dict[int, str] = {}
        for rows in (request.rows[:middle], request.rows[middle:]):
            refused |= self._write(_Request(request.namespace, request.version, rows, size=request.size // 2))
        return refused

    def rejects(self, like: _Request, rows: Sequence[Row]) -> RequestRejected | None:
        """Send some rows of a request. Return the error if they were rejected, None if they were accepted."""
        try:
            self._request(_Request(like.namespace, like.version, list(rows)), paced=False)
        except RequestRejected as error:
            return error
        return None

    def _request(self, request: _Request, *, paced: bool = True) -> None:
        if paced:
            self._pace(request.namespace)
        payloads: list[dict[str, Any]] = [row.payload(self.dims) for row in request.rows]
        attributes = schema(self.dims, of_table=is_table(request.namespace))
        self._wire.write(
            request.namespace, payloads, request.deletes, attributes, request.version, vectors=self.dims is not None
        )
        self._written[request.namespace] = time.monotonic()

    def _pace(self, namespace: str) -> None:
        last = self._written.get(namespace)
        if last is not None:
            time.sleep(max(0.0, last + PAUSE_S - time.monotonic()))

    def _look(self, namespace: str, size: int) -> None:
        """Wait while the service has much to index. Raise Unavailable if that takes longer than `INDEX_WAIT_S`."""
        self._unseen[namespace] += size
        if self._unseen[namespace] < LOOK_BYTES:
            return
        self._unseen[namespace] = 0
        deadline = time.monotonic() + INDEX_WAIT_S
        while (left := self._wire.unindexed(namespace)) > MOST_UNINDEXED:
            if time.monotonic() + PAUSE_S > deadline:
                raise Unavailable(
                    f"The service has {left / 1e9:.1f} GB of {namespace} to index before it takes more. "
                    "What is pending is sent later.",
                    code="index_busy",
                    retry_after=INDEX_WAIT_S,
                )
            time.sleep(PAUSE_S)


class _Sifting:
    """A search for the bad rows of a rejected request: one among 300 costs 12 requests at most."""

    def __init__(self, sender: Sender, request: _Request) -> None:
        self._sender, self._request = sender, request
        self._accepted = 0

    def refused(self, first: RequestRejected) -> dict[int, str]:
        """Send all rows but the bad ones. Return those and why. Raise `first` if none of several rows is accepted."""
        reasons: dict[int, str] = {}
        rows = self._request.rows
        error: RequestRejected | None = first
        while error is not None:
            rows = self._without_one(rows, error, reasons)
            error = self._rejects(rows) if rows else None
            if not self._accepted and len(reasons) > 1:
                raise first  # the fault is not in a row
        return reasons

    def _without_one(self, rows: list[Row], error: RequestRejected, reasons: dict[int, str]) -> list[Row]:
        """Find one bad row among rows with at least one, store its reason, and return the rows not accepted yet."""
        untried: list[Row] = []
        known = len(rows) == 1
        while len(rows) > 1:
            half = rows[: len(rows) // 2]
            rejected = self._rejects(half)
            known = rejected is not None and len(half) == 1
            if rejected is None:
                rows = rows[len(half) :]
            else:
                untried += rows[len(half) :]
                rows, error = half, rejected
        reason = error if known else self._rejects(rows)
        if reason is not None:
            reasons[rows[0].chunk] = str(reason)
        return untried

    def _rejects(self, rows: list[Row]) -> RequestRejected | None:
        error = self._sender.rejects(self._request, rows)
        self._accepted += len(rows) if error is None else 0
        return error


def full_requests(units: Iterable[Unit], dims: int | None) -> Iterator[list[Unit]]:
    """Yield the items in runs of about as many rows as a request holds; a run is sent before the next is read."""
    run: list[Unit] = []
    rows = size = 0
    for unit in units:
        run.append(unit)
        rows += len(unit.rows)
        size += sum(row.size(dims) for row in unit.rows)
        if rows >= MOST_ROWS or size >= MOST_BYTES:
            yield run
            run, rows, size = [], 0, 0
    if run:
        yield run


def _is_known(row: Row, sent: Sent | None) -> bool:
    return sent is not None and (sent.namespace, sent.id, sent.digest) == (row.namespace, row.id, row.digest)
