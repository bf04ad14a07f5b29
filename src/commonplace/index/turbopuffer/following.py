"""Following the log: one run of the only writer of a ledger, which brings the service level with the store.

Several servers may follow one log, each with a ledger of its own. So no row is removed just because the ledger does not
know it: the rows of a namespace that is new to the ledger are compared with those that should be there, and every write
and removal carries its version of the log. Rows of later versions stay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from commonplace.index.followers import Progress, WordSource
from commonplace.index.scope import Ids
from commonplace.index.turbopuffer.ledger import Ledger
from commonplace.index.turbopuffer.parts import ServiceHit
from commonplace.index.turbopuffer.rows import Row, rows_of
from commonplace.index.turbopuffer.send import Sender, Unit, full_requests
from commonplace.index.turbopuffer.service_settings import Naming, is_table, model_tag
from commonplace.index.turbopuffer.wire import TurbopufferWire
from commonplace.index.vectors.scan import NORM_TOLERANCE, widen
from commonplace.index.words.snapshot import Floats
from commonplace.model import CHUNK_BITS, IndexedItem

BATCH = 1_000
"""Changes read at a time."""
GROUP = 100
"""Items read at a time."""
READINGS = 4
"""Attempts to read items while the store does not change; after the last, the older version is written."""
_ANY_VERSION = 1 << 62


class VectorModel(Protocol):
    """A model whose vectors the store has."""

    @property
    def id(self) -> int: ...
    @property
    def dims(self) -> int: ...
    @property
    def fingerprint(self) -> str: ...


class ModelSource(Protocol):
    """The source of models and their vectors. The store implements it."""

    def models(self) -> Sequence[VectorModel]:
        """Return all models that the store knows."""
        ...

    def vectors_of(self, model_id: int, item_ids: Sequence[int]) -> tuple[Ids, NDArray[np.float16]]:
        """Return ids and vectors of all chunks of these items that have a vector of a model."""
        ...


@dataclass(frozen=True, slots=True)
class Log:
    """The source that is followed, and the names of its rows."""

    source: WordSource
    models: ModelSource | None
    fallback_language: str
    naming: Callable[[], Naming]


class Following:
    """One run over a ledger that nobody else writes meanwhile. Its methods raise what the wire raises."""

    def __init__(self, wire: TurbopufferWire, ledger: Ledger, log: Log) -> None:
        self._wire, self._ledger, self._source, self._models = wire, ledger, log.source, log.models
        self._fallback = log.fallback_language
        self._naming = log.naming().with_model(str(ledger.fact("model") or ""))
        self._model = self._chosen()
        self._sender = Sender(wire, ledger, ledger.fact("dims"))

    def run(self, progress: Progress | None) -> None:
        """Apply what is pending."""
        if self._ledger.position() > self._source.last_change():
            self._ledger.clear()
        self._drop_gone()
        while batch := self._source.changes(self._ledger.position(), BATCH):
            items = list(dict.fromkeys(change.item_id for change in batch))
            sent = 0
            for some in full_requests(self._units(items), self._sender.dims):
                sent += len(some)
                self._send(some, batch[-1].seq if sent == len(items) else None)
                if progress:
                    progress(sent, len(items))
        self._sender.sweep()
        if not self._ledger.fact("ready"):
            self._settle()
        for namespace in self._ledger.doubted():
            self._mend(namespace)
        self._drop_empty()
        self.drop_left(self._ledger.left())

    def remove_stray(self, namespace: str) -> int:
        """Remove the rows of a namespace that the ledger does not know, and return their number."""
        difference = compare(self._wire, self._ledger, namespace)
        if difference.stray and difference.whole:
            self._wire.vacate(namespace, self._ledger.position())
        else:
            self._sender.remove(namespace, difference.stray)
        return len(difference.stray)

    # rows that are there already

    def _send(self, units: Sequence[Unit], position: int | None) -> None:
        for namespace in {row.namespace for unit in units for row in unit.rows}:
            self._look(namespace)
        self._sender.send(units, position)

    def _look(self, namespace: str) -> None:
        """Store what a namespace holds before the first row is sent to it: other servers may have sent rows there."""
        if not self._ledger.fact("ready") and not self._ledger.has_looked(namespace):
            hits = self._wire.rows(namespace, "digest", "version")
            anew = bool(self._ledger.fact("anew"))
            self._ledger.look(namespace, (ServiceHit(hit.id, version=hit.version) if anew else hit for hit in hits))

    def _settle(self) -> None:
        """Remove the other rows that were found, but not those of later changes, once all rows are sent."""
        self._look(self._naming.items)
        for namespace in self._wire.namespaces(self._naming.mark) or ():
            if self._naming.is_table(namespace):
                self._look(namespace)
        for namespace, ids in self._ledger.strays().items():
            if namespace in self._ledger.counts():
                self._sender.remove(namespace, ids)
            else:
                self._wire.vacate(namespace, self._ledger.position())
        self._ledger.settle()

    def _mend(self, namespace: str) -> None:
        """Remove unknown rows of a namespace, and send again those that are missing or were rejected."""
        difference = compare(self._wire, self._ledger, namespace)
        self._sender.remove(namespace, difference.stray)
        self._ledger.lost(difference.lost)
        rejected = [chunk for chunk, _ in self._ledger.refusals()]
        items = sorted({chunk >> CHUNK_BITS for chunk in (*difference.lost, *rejected)})
        for some in full_requests(self._units(items), self._sender.dims):
            self._sender.send(some, None)
        self._sender.sweep()
        self._ledger.trust(namespace)

    # namespaces that go

    def _drop_gone(self) -> None:
        """Remove the namespaces of tables that the pending changes delete as a whole."""
        if not any(map(is_table, self._ledger.counts())):
            return
        deleted: set[int] = set()
        after = self._ledger.position()
        while batch := self._source.changes(after, BATCH):
            deleted.update(change.item_id for change in batch if change.op == "delete")
            after = batch[-1].seq
        if deleted:
            drop_gone(self._wire, self._ledger, deleted, after)

    def _drop_empty(self) -> None:
        """Remove the namespaces that have no rows any more."""
        for namespace in self._ledger.emptied():
            self._wire.vacate(namespace, self._ledger.position())
            self._ledger.forget(namespace)

    def drop_left(self, namespaces: Iterable[str], *, others: bool = False) -> None:
        """Remove namespaces of this log whose vectors are of a model that the store no longer knows.

        One without vectors, from before there was a model, goes if this server made it, or with `others`. Namespaces
        that this server left behind in a log that is no more go too.
        """
        known_tags = {model_tag(model.fingerprint) for model in (self._models.models() if self._models else ())}
        current_tags = {*known_tags, model_tag(self._naming.model)}
        for namespace in namespaces:
            tag = self._naming.model_of(namespace)
            version = self._source.last_change()
            if tag is None and namespace in self._ledger.left() and not namespace.startswith(self._naming.mark):
                version = _ANY_VERSION
            elif tag is None or tag in current_tags or not (tag or others or self._ledger.has_made(namespace)):
                continue
            self._wire.vacate(namespace, version)
            self._ledger.gone(namespace)

    # items

    def _chosen(self) -> VectorModel | None:
        """Return the model whose vectors the rows hold; None if there is none."""
        fingerprint = self._ledger.fact("model")
        models = self._models.models() if fingerprint and self._models else ()
        return next((model for model in models if model.fingerprint == fingerprint), None)

    def _units(self, items: Sequence[int]) -> Iterator[Unit]:
        """Yield the present rows of each item, in the order of first changes: a replacement is after its original."""
        for start in range(0, len(items), GROUP):
            group = items[start : start + GROUP]
            version, items_by_id, vectors = self._read(group)
            for item_id in group:
                item = items_by_id.get(item_id)
                rows = rows_of(item, self._fallback, self._naming) if item else iter(())
                yield Unit(item_id, [_with(row, vectors.get(row.chunk), version) for row in rows], version)

    def _read(self, items: Sequence[int]) -> tuple[int, dict[int, IndexedItem], dict[int, Floats]]:
        """Return (version, items by id, vectors by chunk): at least as of that change, and exactly if writes pause."""
        for _ in range(READINGS):
            version = self._source.last_change()
            vectors = self._vectors(items)
            items_by_id = {item.id: item for item in self._source.indexed(items)}
            if self._source.last_change() == version:
                break
        return version, items_by_id, vectors

    def _vectors(self, items: Sequence[int]) -> dict[int, Floats]:
        """Return the vectors of length one, by chunk."""
        if self._model is None or self._models is None:
            return {}
        ids, halves = self._models.vectors_of(self._model.id, items)
        if not len(ids):
            return {}
        wide = widen(halves.reshape(len(ids), self._model.dims))
        sound = np.abs(np.vecdot(wide, wide) - 1) < NORM_TOLERANCE
        return dict(zip(ids[sound].tolist(), wide[sound], strict=True))


def _with(row: Row, vector: Floats | None, version: int) -> Row:
    return replace(row, vector=vector, version=version)


# the comparison of a namespace with the ledger of what was sent there


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
