"""turbopuffer as an index: a follower of the log that keeps one row per chunk there, words and vectors together."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Protocol, TypeVar

import apsw
import numpy as np
from numpy.typing import NDArray

from commonplace.errors import StorageBroken, StorageFull, Unavailable
from commonplace.index.base import Progress, Unacknowledged, WordSource
from commonplace.index.engine import Floats
from commonplace.index.files import writable, writer_lock
from commonplace.index.follower import IndexDamaged
from commonplace.index.lexical_query import LexicalQuery
from commonplace.index.scope import Ids, Scope
from commonplace.index.turbopuffer_audit import compare, drop_gone, remove_stray
from commonplace.index.turbopuffer_ledger import Ledger
from commonplace.index.turbopuffer_reader import TurbopufferReader
from commonplace.index.turbopuffer_rows import Row, rows_of
from commonplace.index.turbopuffer_send import Sender, Unit, full_requests
from commonplace.index.turbopuffer_settings import Naming, is_table
from commonplace.index.turbopuffer_wire import NotReady, Wire
from commonplace.index.vector_scan import NORM_TOLERANCE, widen
from commonplace.model import CHUNK_BITS

log = logging.getLogger(__name__)

LEDGER = "ledger.db"
BATCH = 1_000
"""Changes read at a time."""
GROUP = 100
"""Items read at a time."""
LOCK_S = 60.0
_LONGEST_ERROR = 500

T = TypeVar("T")


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


class TurbopufferIndex:
    """A `WordIndex`, and what `TurbopufferVectors` searches. Any number of threads and processes may share it.

    What is wrong with the ledger ends in sending everything anew; what is wrong with the service is said: a search is
    refused, and what was to be written waits for the next one.
    """

    def __init__(
        self,
        folder: Path,
        source: WordSource,
        fallback_language: str,
        *,
        wire: Wire,
        naming: Naming,
        models: Models | None = None,
    ) -> None:
        self._folder, self._source, self._fallback = folder, source, fallback_language
        self._wire, self._naming, self._models = wire, naming, models
        self._lock = threading.RLock()
        self._failed: tuple[float, Unavailable] | None = None

    def exists(self) -> bool:
        """Whether it was ever made."""
        return self._path.exists()

    @property
    def _path(self) -> Path:
        return self._folder / LEDGER

    # following

    def position(self) -> int:
        return self._healing(lambda: self._read(lambda ledger: ledger.position()) if self.exists() else 0)

    def position_of(self, fingerprint: str) -> int:
        """The last change whose vectors of a model are there too; 0 where the rows hold those of another."""

        def ask(ledger: Ledger) -> int:
            return ledger.position() if ledger.fact("model") == fingerprint else 0

        return self._healing(lambda: self._read(ask) if self.exists() else 0)

    def catch_up(self, progress: Progress | None = None) -> int:
        """Apply what is pending. What the service does not take stays pending, and `check` says why."""
        try:
            self._healing(lambda: self._level(progress))
        except Unavailable as error:
            log.info("The index is behind: %s", error)
            self._failed = time.monotonic(), error
        return self.position()

    def raise_since(self, moment: float) -> None:
        """Raise what `catch_up` met with since then, so that one search does not wait for it twice."""
        if self._failed and self._failed[0] >= moment:
            raise self._failed[1]

    def reset(self) -> None:
        def empty() -> None:
            with self._lock, self._writing() as ledger:
                ledger.clear()

        self._healing(empty)

    def use(self, fingerprint: str, dims: int) -> None:
        """Keep the vectors of this model from now on. Rows are sent anew where they have those of another, or none."""

        def choose() -> None:
            if self.exists() and self._read(lambda ledger: ledger.fact("model")) == fingerprint:
                return
            with self._lock, self._writing() as ledger:
                if ledger.fact("model") != fingerprint:
                    ledger.clear()
                    ledger.note(model=fingerprint, dims=dims)

        self._healing(choose)

    def check(self) -> list[str]:
        """What is wrong, one sentence each. Where the service has other rows than were sent, they are sent anew."""
        try:
            return self._healing(lambda: self._read(self._problems)) if self.exists() else []
        except Unavailable as error:
            return [str(error)]

    def trouble(self) -> str:
        """Why something is still pending, in one sentence; empty where nothing went wrong."""
        return str(
            self._healing(lambda: self._read(lambda ledger: ledger.fact("trouble")) if self.exists() else "") or ""
        )

    def refusals(self) -> list[tuple[int, str]]:
        """The chunks that the service would not take, and why."""
        return self._healing(lambda: self._read(lambda ledger: ledger.refusals()) if self.exists() else [])

    def doubt(self, project_id: str, table_id: str) -> None:
        """Have the rows of a table compared with what was sent, and put right, before the next search."""
        namespace = self._naming.table(project_id, table_id)
        if self.exists():
            self._healing(lambda: self._read(lambda ledger: ledger.doubt(namespace)) if self.exists() else None)

    def clean(self, tables: Sequence[tuple[str, str]], *, others: bool, dry_run: bool) -> tuple[int, int]:
        """Remove the rows of these tables that nothing explains, and of `others` that are none of them all rows.

        Returns how many rows that were, and how many tables could not be looked at. After the first of these no
        other is tried: it is the service that is not there.
        """
        names = [self._naming.table(*table) for table in tables]
        removed = done = 0
        try:
            if not dry_run:
                self._healing(self._level)
            if others:
                listed = self._wire.namespaces(self._naming.tables)
                names += [name for name in listed if self._naming.is_table(name) and name not in names]
            for name in names:
                removed += self._healing(partial(self._cleaned, name, dry_run=dry_run))
                done += 1
        except (Unavailable, NotReady) as error:
            log.info("The index could not be looked over: %s", error)
            return removed, max(1, len(names) - done)
        return removed, 0

    def _cleaned(self, namespace: str, *, dry_run: bool) -> int:
        """How many rows of a namespace nobody knows of."""
        if dry_run and not self.exists():
            return len(compare(self._wire, None, namespace).stray)
        if dry_run:
            return self._read(lambda ledger: len(compare(self._wire, ledger, namespace).stray))
        with self._lock, self._writing() as ledger:
            found = compare(self._wire, ledger, namespace)
            remove_stray(self._wire, Sender(self._wire, ledger, None), namespace, found)
            return len(found.stray)

    def places(self, chunks: Sequence[int]) -> dict[int, tuple[str, str]]:
        """The namespace and document id of each chunk that is there."""
        return self._healing(lambda: self._read(lambda ledger: ledger.ids(chunks)) if self.exists() else {})

    def _problems(self, ledger: Ledger) -> list[str]:
        problems = [str(trouble)] if (trouble := ledger.fact("trouble")) else []
        if ledger.position() == self._source.last_change():
            for namespace, count in ledger.counts().items():
                there = self._wire.count(namespace)
                if there != count:
                    problems.append(f"The namespace {namespace} has {there} rows, not {count}. They will be sent anew.")
                    ledger.note(suspect=1)
        refused = ledger.refusals()
        if refused:
            problems.append(f"{len(refused)} passages were rejected and cannot be found: {refused[0][1]}")
        return problems

    def _level(self, progress: Progress | None = None) -> None:
        """Raises Unavailable where the service does not take what is pending."""
        with self._lock:
            if self.exists() and self._read(self._is_level):
                return
            with self._writing() as ledger:
                try:
                    self._follow(ledger, progress)
                except NotReady:
                    sentence = "The index has not acknowledged a write. It stays pending; try again in a moment."
                    ledger.note(trouble=sentence)
                    raise Unacknowledged(sentence, retry_after=1.0) from None
                except Unavailable as error:
                    ledger.note(trouble=str(error)[:_LONGEST_ERROR])
                    raise
                ledger.note(trouble=None)

    def _is_level(self, ledger: Ledger) -> bool:
        if not ledger.fact("ready") or ledger.fact("suspect") or ledger.fact("trouble") or ledger.in_doubt():
            return False
        if ledger.doubted():
            return False
        return ledger.position() == self._source.last_change()

    def _follow(self, ledger: Ledger, progress: Progress | None) -> None:
        if ledger.position() > self._source.last_change() or ledger.fact("suspect"):
            ledger.clear()
        if not ledger.fact("ready"):
            self._empty_service()
            ledger.note(ready=1)
        self._drop_gone(ledger)
        model = self._model(ledger)
        sender = Sender(self._wire, ledger, None if model is None else model.dims)
        while batch := self._source.changes(ledger.position(), BATCH):
            items = list(dict.fromkeys(change.item_id for change in batch))
            done = 0
            for some in full_requests(self._units(items, model), sender.dims):
                done += len(some)
                sender.send(some, batch[-1].seq if done == len(items) else None)
                if progress:
                    progress(done, len(items))
        sender.sweep()
        for namespace in ledger.doubted():
            self._mend(ledger, sender, model, namespace)
        self._drop_empty(ledger)

    def _drop_gone(self, ledger: Ledger) -> None:
        if not any(map(is_table, ledger.counts())):
            return
        deleted: set[int] = set()
        after = ledger.position()
        while batch := self._source.changes(after, BATCH):
            deleted.update(change.item_id for change in batch if change.op == "delete")
            after = batch[-1].seq
        if deleted:
            drop_gone(self._wire, ledger, deleted)

    def _mend(self, ledger: Ledger, sender: Sender, model: Model | None, namespace: str) -> None:
        """Remove rows that nobody knows of; send again those that are not there, or were rejected."""
        found = compare(self._wire, ledger, namespace)
        remove_stray(self._wire, sender, namespace, found)
        ledger.lost(found.lost)
        rejected = [chunk for chunk, _ in ledger.refusals()]
        items = sorted({chunk >> CHUNK_BITS for chunk in (*found.lost, *rejected)})
        for some in full_requests(self._units(items, model), sender.dims):
            sender.send(some, None)
        sender.sweep()
        ledger.trust(namespace)

    def _empty_service(self) -> None:
        """Rows that nobody here knows of must not answer, nor be counted."""
        self._wire.delete_all(self._naming.items)
        for namespace in self._wire.namespaces(self._naming.tables):
            if self._naming.is_table(namespace):
                self._wire.delete_all(namespace)

    def _drop_empty(self, ledger: Ledger) -> None:
        """The namespace of a table that is gone goes too."""
        for namespace in ledger.emptied():
            self._wire.delete_all(namespace)
            ledger.forget(namespace)

    def _model(self, ledger: Ledger) -> Model | None:
        """The model whose vectors the rows hold."""
        chosen = ledger.fact("model")
        known = self._models.models() if chosen and self._models else ()
        return next((model for model in known if model.fingerprint == chosen), None)

    def _units(self, items: Sequence[int], model: Model | None) -> Iterator[Unit]:
        """What each item has now, in the order they were first changed: what took the place of another comes after."""
        for start in range(0, len(items), GROUP):
            group = items[start : start + GROUP]
            vectors = self._vectors(group, model)
            found = {item.id: item for item in self._source.indexed(group)}
            for item_id in group:
                item = found.get(item_id)
                rows = rows_of(item, self._fallback, self._naming) if item else iter(())
                yield item_id, [_with(row, vectors.get(row.chunk)) for row in rows]

    def _vectors(self, items: Sequence[int], model: Model | None) -> dict[int, Floats]:
        if model is None or self._models is None:
            return {}
        ids, halves = self._models.vectors_of(model.id, items)
        if not len(ids):
            return {}
        wide = widen(halves.reshape(len(ids), model.dims))
        sound = np.abs(np.vecdot(wide, wide) - 1) < NORM_TOLERANCE
        return dict(zip(ids[sound].tolist(), wide[sound], strict=True))

    # searching

    def ask(self, work: Callable[[TurbopufferReader], T]) -> T:
        """Do something with a reader of the index, level with the log."""

        def run() -> T:
            self._level()
            ledger = Ledger(self._path)
            ledger.begin()  # kept for as long as somebody keeps the reader
            return work(TurbopufferReader(self._wire, ledger, self._fallback))

        with self._wire.asking():
            return self._healing(run)

    def languages(self) -> tuple[str, ...]:
        """The languages that stem this library's queries, commonest first."""
        return self.ask(lambda reader: reader.languages())

    def search(self, query: LexicalQuery, k: int, scope: Scope) -> tuple[Ids, Floats]:
        """Chunk ids and BM25 scores, best first, ties by id. Never fewer than `k` where that many match the scope."""
        return self.ask(lambda reader: reader.search(query, k, scope))

    # the ledger

    def _read(self, work: Callable[[Ledger], T]) -> T:
        ledger = Ledger(self._path)
        try:
            return work(ledger)
        finally:
            ledger.close()

    @contextmanager
    def _writing(self) -> Iterator[Ledger]:
        """The ledger, for the only writer among all threads and processes."""
        with writer_lock(self._folder, LOCK_S), writable(self._folder):
            ledger = Ledger(self._path, create=not self._path.exists())
            try:
                yield ledger
            finally:
                ledger.close()

    def _healing(self, work: Callable[[], T]) -> T:
        """Do it; where the ledger turns out damaged, forget it and do it again."""
        try:
            return self._explained(work)
        except IndexDamaged as damage:
            log.info("Sending the index anew: %s", damage)
        with self._lock, writer_lock(self._folder, LOCK_S):
            for path in self._folder.glob(f"{LEDGER}*"):
                path.unlink(missing_ok=True)
        try:
            return self._explained(work)
        except IndexDamaged as damage:
            raise StorageBroken(f"The ledger in {self._folder} cannot be kept: {damage}. Check that disk.") from damage

    def _explained(self, work: Callable[[], T]) -> T:
        try:
            return work()
        except apsw.FullError:
            raise StorageFull(
                f"There is no room left on the disk that holds {self._folder}. Free some and repeat: nothing stored "
                "is lost, and the index goes on from where it stopped."
            ) from None
        except apsw.Error as error:
            raise IndexDamaged(f"{self._path}: {error}") from error


def _with(row: Row, vector: Floats | None) -> Row:
    return row if vector is None else row.with_vector(vector)
