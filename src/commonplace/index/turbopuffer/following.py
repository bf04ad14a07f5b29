"""Following the log: one run of the only writer of a ledger, which brings the service level with the store.

Several servers may follow one log, each with a ledger of its own. So nothing is removed because it is not known: what
is there when a namespace is first seen is compared with what should be, row by row, and every write and every removal
says which version of the log it is of. What is there of a later one stays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from commonplace.index.base import Progress, WordSource
from commonplace.index.scope import Ids
from commonplace.index.turbopuffer.audit import compare, drop_gone
from commonplace.index.turbopuffer.ledger import Ledger
from commonplace.index.turbopuffer.parts import Hit
from commonplace.index.turbopuffer.rows import Row, rows_of
from commonplace.index.turbopuffer.send import Sender, Unit, full_requests
from commonplace.index.turbopuffer.settings import Naming, is_table, model_tag
from commonplace.index.turbopuffer.wire import Wire
from commonplace.index.vectors.scan import NORM_TOLERANCE, widen
from commonplace.index.words.engine import Floats
from commonplace.lazy_dataclass import dataclass
from commonplace.model import CHUNK_BITS, IndexedItem

BATCH = 1_000
"""Changes read at a time."""
GROUP = 100
"""Items read at a time."""
READINGS = 4
"""How often items are read again because the store has changed meanwhile, before the older version is claimed."""
_ANY_VERSION = 1 << 62


class Model(Protocol):
    """A model whose vectors the store has."""

    @property
    def id(self) -> int: ...
    @property
    def dims(self) -> int: ...
    @property
    def fingerprint(self) -> str: ...


class Models(Protocol):
    """Where vectors come from. The store implements it."""

    def models(self) -> Sequence[Model]: ...
    def vectors_of(self, model_id: int, item_ids: Sequence[int]) -> tuple[Ids, NDArray[np.float16]]: ...


@dataclass(frozen=True, slots=True)
class Log:
    """What is followed, and what its rows are called."""

    source: WordSource
    models: Models | None
    fallback_language: str
    naming: Callable[[], Naming]


class Following:
    """One run over a ledger that nobody else writes meanwhile. Everything it does raises what the wire raises."""

    def __init__(self, wire: Wire, ledger: Ledger, log: Log) -> None:
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
            done = 0
            for some in full_requests(self._units(items), self._sender.dims):
                done += len(some)
                self._send(some, batch[-1].seq if done == len(items) else None)
                if progress:
                    progress(done, len(items))
        self._sender.sweep()
        if not self._ledger.fact("ready"):
            self._settle()
        for namespace in self._ledger.doubted():
            self._mend(namespace)
        self._drop_empty()
        self.drop_left(self._ledger.left())

    def remove_stray(self, namespace: str) -> int:
        """Remove the rows of a namespace that nobody here knows of; returns how many they were."""
        found = compare(self._wire, self._ledger, namespace)
        if found.stray and found.whole:
            self._wire.vacate(namespace, self._ledger.position())
        else:
            self._sender.remove(namespace, found.stray)
        return len(found.stray)

    # what is there already

    def _send(self, units: Sequence[Unit], position: int | None) -> None:
        for namespace in {row.namespace for unit in units for row in unit.rows}:
            self._look(namespace)
        self._sender.send(units, position)

    def _look(self, namespace: str) -> None:
        """Before the first row is sent to a namespace: what other servers, or this one before, have sent there."""
        if not self._ledger.fact("ready") and not self._ledger.has_looked(namespace):
            hits = self._wire.rows(namespace, "digest", "version")
            anew = bool(self._ledger.fact("anew"))
            self._ledger.look(namespace, (Hit(hit.id, version=hit.version) if anew else hit for hit in hits))

    def _settle(self) -> None:
        """All that should be there is: the rest of what was found goes, but for what is of later changes."""
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
        """Remove rows that nobody knows of; send again those that are not there, or were rejected."""
        found = compare(self._wire, self._ledger, namespace)
        self._sender.remove(namespace, found.stray)
        self._ledger.lost(found.lost)
        rejected = [chunk for chunk, _ in self._ledger.refusals()]
        items = sorted({chunk >> CHUNK_BITS for chunk in (*found.lost, *rejected)})
        for some in full_requests(self._units(items), self._sender.dims):
            self._sender.send(some, None)
        self._sender.sweep()
        self._ledger.trust(namespace)

    # what is gone

    def _drop_gone(self) -> None:
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
        """The namespace of a table that is gone goes too."""
        for namespace in self._ledger.emptied():
            self._wire.vacate(namespace, self._ledger.position())
            self._ledger.forget(namespace)

    def drop_left(self, namespaces: Iterable[str], *, others: bool = False) -> None:
        """Remove namespaces of this log that hold the vectors of no model that the store still knows.

        One without vectors, from before there was a model, goes when this server has made it, or with `others`. So
        does what this server has left of a log that is no more.
        """
        known = {model_tag(model.fingerprint) for model in (self._models.models() if self._models else ())}
        kept = {*known, model_tag(self._naming.model)}
        for namespace in namespaces:
            tag = self._naming.model_of(namespace)
            version = self._source.last_change()
            if tag is None and namespace in self._ledger.left() and not namespace.startswith(self._naming.mark):
                version = _ANY_VERSION
            elif tag is None or tag in kept or not (tag or others or self._ledger.has_made(namespace)):
                continue
            self._wire.vacate(namespace, version)
            self._ledger.gone(namespace)

    # items

    def _chosen(self) -> Model | None:
        """The model whose vectors the rows hold."""
        fingerprint = self._ledger.fact("model")
        known = self._models.models() if fingerprint and self._models else ()
        return next((model for model in known if model.fingerprint == fingerprint), None)

    def _units(self, items: Sequence[int]) -> Iterator[Unit]:
        """What each item has now, in the order they were first changed: what took the place of another comes after."""
        for start in range(0, len(items), GROUP):
            group = items[start : start + GROUP]
            version, known, vectors = self._read(group)
            for item_id in group:
                item = known.get(item_id)
                rows = rows_of(item, self._fallback, self._naming) if item else iter(())
                yield Unit(item_id, [_with(row, vectors.get(row.chunk), version) for row in rows], version)

    def _read(self, items: Sequence[int]) -> tuple[int, dict[int, IndexedItem], dict[int, Floats]]:
        """Return items and their vectors, and the last change that they are surely of: exactly that, if it can be."""
        for _ in range(READINGS):
            version = self._source.last_change()
            vectors = self._vectors(items)
            known = {item.id: item for item in self._source.indexed(items)}
            if self._source.last_change() == version:
                break
        return version, known, vectors

    def _vectors(self, items: Sequence[int]) -> dict[int, Floats]:
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
