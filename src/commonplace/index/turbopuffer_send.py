"""Writing rows: what has changed and nothing else, in requests of a bounded size, each known before it is sent."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from typing import Any

from commonplace.index.turbopuffer_ledger import Ledger, Sent
from commonplace.index.turbopuffer_rows import Row, schema
from commonplace.index.turbopuffer_settings import is_table
from commonplace.index.turbopuffer_wire import Refused, Wire
from commonplace.lazy_dataclass import dataclass
from commonplace.model import CHUNK_BITS

MOST_ROWS = 1_000
MOST_BYTES = 8 * 1024 * 1024
PAUSE_S = 1.0
"""The least time between two requests of one run to a namespace: the service takes one batch a second."""

Unit = tuple[int, list[Row]]
"""An item and the rows it has now."""


@dataclass(slots=True)
class _Request:
    """Rows of a namespace, and the ids of rows that they supersede."""

    namespace: str
    rows: list[Row] = field(default_factory=list)
    deletes: list[str] = field(default_factory=list)
    size: int = 0


class Sender:
    """Writes for one run of a follower, which alone writes."""

    def __init__(self, wire: Wire, ledger: Ledger, dims: int | None) -> None:
        self._wire, self._ledger, self.dims = wire, ledger, dims
        self._written: dict[str, float] = {}

    def send(self, units: Sequence[Unit], position: int | None) -> None:
        """Make the service have just these rows of these items; then note it, and how far the log is followed."""
        items = [item for item, _ in units]
        known = self._ledger.sent(items)
        rows = [row for _, some in units for row in some]
        kept = {(row.namespace, row.id) for row in rows}
        stale = [row for row in rows if not _is_known(row, known.get(row.chunk))]
        self._ledger.announce((row.namespace, row.id) for row in stale)
        refused: dict[int, str] = {}
        fresh = {row.chunk for row in stale}
        for request in self._requests(units, fresh, known, kept):
            refused |= self._write(request)
        taken = [row for row in rows if row.chunk not in refused]
        self._ledger.replace(items, taken, refused, position)

    def sweep(self) -> None:
        """Remove what was sent by a run that died before it could note it, and is not there any more."""
        orphans: defaultdict[str, list[str]] = defaultdict(list)
        for namespace, identity in self._ledger.orphans():
            orphans[namespace].append(identity)
        for namespace, ids in orphans.items():
            self.remove(namespace, ids)
        self._ledger.acknowledge()

    def remove(self, namespace: str, ids: Sequence[str]) -> None:
        """Remove rows that the ledger does not know."""
        for start in range(0, len(ids), MOST_ROWS):
            self._request(namespace, [], ids[start : start + MOST_ROWS])

    def _requests(
        self, units: Iterable[Unit], fresh: set[int], known: dict[int, Sent], kept: set[tuple[str, str]]
    ) -> Iterator[_Request]:
        """An item's superseded ids go with the first of its rows, and no id is in two places."""
        gone: defaultdict[int, list[Sent]] = defaultdict(list)
        for chunk, sent in known.items():
            if (sent.namespace, sent.id) not in kept:
                gone[chunk >> CHUNK_BITS].append(sent)
        filling: dict[str, _Request] = {}
        for item, rows in units:
            for sent in gone[item]:
                request = filling.setdefault(sent.namespace, _Request(sent.namespace))
                request.deletes.append(sent.id)
            for row in rows:
                if row.chunk not in fresh:
                    continue
                request = filling.setdefault(row.namespace, _Request(row.namespace))
                size = row.size(self.dims)
                if len(request.rows) + 1 > MOST_ROWS or (request.rows and request.size + size > MOST_BYTES):
                    yield request
                    request = filling[row.namespace] = _Request(row.namespace)
                request.rows.append(row)
                request.size += size
        yield from filling.values()

    def _write(self, request: _Request) -> dict[int, str]:
        """Returns which chunks were rejected, and why. A rejected batch is sent row by row, once."""
        if not request.rows and not request.deletes:
            return {}
        try:
            self._request(request.namespace, request.rows, request.deletes)
        except Refused as first:
            if not request.rows:
                raise
            refused: dict[int, str] = {}
            if request.deletes:
                self._request(request.namespace, [], request.deletes, paced=False)
            for row in request.rows:
                try:
                    self._request(request.namespace, [row], [], paced=False)
                except Refused as error:
                    refused[row.chunk] = str(error)
            if len(refused) == len(request.rows) > 1:
                raise first  # it is not a row that is wrong
            return refused
        return {}

    def _request(self, namespace: str, rows: Sequence[Row], deletes: Sequence[str], *, paced: bool = True) -> None:
        if paced:
            self._pace(namespace)
        payloads: list[dict[str, Any]] = [row.payload(self.dims) for row in rows]
        asked = schema(self.dims, of_table=is_table(namespace))
        self._wire.write(namespace, payloads, deletes, asked, vectors=self.dims is not None)
        self._written[namespace] = time.monotonic()

    def _pace(self, namespace: str) -> None:
        last = self._written.get(namespace)
        if last is not None:
            time.sleep(max(0.0, last + PAUSE_S - time.monotonic()))


def full_requests(units: Iterable[Unit], dims: int | None) -> Iterator[list[Unit]]:
    """The items in runs of about as many rows as a request holds; a run is sent before the next is made."""
    run: list[Unit] = []
    rows = size = 0
    for unit in units:
        run.append(unit)
        rows += len(unit[1])
        size += sum(row.size(dims) for row in unit[1])
        if rows >= MOST_ROWS or size >= MOST_BYTES:
            yield run
            run, rows, size = [], 0, 0
    if run:
        yield run


def _is_known(row: Row, sent: Sent | None) -> bool:
    return sent is not None and (sent.namespace, sent.id, sent.digest) == (row.namespace, row.id, row.digest)
