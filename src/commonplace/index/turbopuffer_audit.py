"""What a namespace has against what is known to have been sent there."""

from __future__ import annotations

from commonplace.index.turbopuffer_ledger import Ledger
from commonplace.index.turbopuffer_send import Sender
from commonplace.index.turbopuffer_settings import is_table
from commonplace.index.turbopuffer_wire import Wire
from commonplace.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Difference:
    """Rows that nobody here knows of, by their ids, and rows that are not there, by their chunks."""

    stray: list[str]
    lost: list[int]
    whole: bool
    """Whether nothing is known of the namespace at all."""


def compare(wire: Wire, ledger: Ledger | None, namespace: str) -> Difference:
    """Reads the ids of all its rows. Raises what the wire raises."""
    known = ledger.all_ids(namespace) if ledger else {}
    stray: list[str] = []
    lost = dict(known)
    for identity in wire.ids(namespace):
        if identity not in known:
            stray.append(identity)
        lost.pop(identity, None)
    return Difference(stray, sorted(lost.values()), not known)


def remove_stray(wire: Wire, sender: Sender, namespace: str, found: Difference) -> None:
    if found.stray and found.whole:
        wire.delete_all(namespace)
    else:
        sender.remove(namespace, found.stray)


def drop_gone(wire: Wire, ledger: Ledger, deleted: set[int]) -> None:
    """Where all items of a table are deleted, its namespace goes at once rather than row by row."""
    counts = ledger.counts()
    for namespace, items in ledger.held(deleted).items():
        if is_table(namespace) and sum(items.values()) == counts.get(namespace):
            wire.delete_all(namespace)
            ledger.replace(list(items), [], {}, None)
            ledger.forget(namespace)
