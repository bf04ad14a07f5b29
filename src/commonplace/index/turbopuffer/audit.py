"""What a namespace has against what is known to have been sent there."""

from __future__ import annotations

from commonplace.index.turbopuffer.ledger import Ledger
from commonplace.index.turbopuffer.settings import is_table
from commonplace.index.turbopuffer.wire import Wire
from commonplace.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Difference:
    """Rows that nobody here knows of, by their ids, and rows that are not there as they were sent, by their chunks."""

    stray: list[str]
    lost: list[int]
    whole: bool
    """Whether nothing is known of the namespace at all."""


def compare(wire: Wire, ledger: Ledger, namespace: str) -> Difference:
    """Return the difference between a namespace and the ledger, after reading the ids of all its rows.

    Rows of later changes than the ledger follows are another server's, and no difference. Raises what the wire raises.
    """
    known, position = ledger.all_ids(namespace), ledger.position()
    stray: list[str] = []
    lost = {identity: chunk for identity, (chunk, _) in known.items()}
    for hit in wire.rows(namespace, "digest", "version"):
        if hit.version > position:
            lost.pop(hit.id, None)
        elif hit.id not in known:
            stray.append(hit.id)
        elif hit.digest == known[hit.id][1].hex():
            lost.pop(hit.id)
    return Difference(stray, sorted(lost.values()), not known)


def drop_gone(wire: Wire, ledger: Ledger, deleted: set[int], version: int) -> None:
    """Where all items of a table are deleted, its namespace goes at once rather than row by row."""
    counts = ledger.counts()
    for namespace, items in ledger.held(deleted).items():
        if is_table(namespace) and sum(items.values()) == counts.get(namespace):
            wire.vacate(namespace, version)
            ledger.replace(list(items), [], {}, None)
            ledger.forget(namespace)
