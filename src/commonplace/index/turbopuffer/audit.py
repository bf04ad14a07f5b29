"""The comparison of a namespace with the ledger of what was sent there."""

from __future__ import annotations

from dataclasses import dataclass

from commonplace.index.turbopuffer.ledger import Ledger
from commonplace.index.turbopuffer.settings import is_table
from commonplace.index.turbopuffer.wire import TurbopufferWire


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference between a namespace and the ledger: ids of unknown rows, chunks of missing or altered rows."""

    stray: list[str]
    lost: list[int]
    whole: bool
    """True if the ledger has no row of the namespace at all."""


def compare(wire: TurbopufferWire, ledger: Ledger, namespace: str) -> Difference:
    """Return the difference between a namespace and the ledger, after reading the ids of all its rows.

    Rows of later changes than the ledger's position are another server's, and no difference. Raises as the wire does.
    """
    ledger_rows, position = ledger.all_ids(namespace), ledger.position()
    stray: list[str] = []
    lost = {identity: chunk for identity, (chunk, _) in ledger_rows.items()}
    for hit in wire.rows(namespace, "digest", "version"):
        if hit.version > position:
            lost.pop(hit.id, None)
        elif hit.id not in ledger_rows:
            stray.append(hit.id)
        elif hit.digest == ledger_rows[hit.id][1].hex():
            lost.pop(hit.id)
    return Difference(stray, sorted(lost.values()), not ledger_rows)


def drop_gone(wire: TurbopufferWire, ledger: Ledger, deleted: set[int], version: int) -> None:
    """Remove at once, not row by row, the namespaces of tables all of whose items are among `deleted`."""
    counts = ledger.counts()
    for namespace, items in ledger.held(deleted).items():
        if is_table(namespace) and sum(items.values()) == counts.get(namespace):
            wire.vacate(namespace, version)
            ledger.replace(list(items), [], {}, None)
            ledger.forget(namespace)
