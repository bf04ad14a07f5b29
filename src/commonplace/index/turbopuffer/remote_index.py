"""turbopuffer as an index: a follower of the log that keeps one row per chunk there, words and vectors together."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import apsw

from commonplace.errors import StorageBroken, StorageFull, Unavailable
from commonplace.index.followers import IndexDamaged, Progress, Unacknowledged, WordSource
from commonplace.index.scope import Ids, Scope
from commonplace.index.sealed_files import writable, writer_lock
from commonplace.index.turbopuffer.following import Following, Log, ModelSource, compare
from commonplace.index.turbopuffer.ledger import Ledger
from commonplace.index.turbopuffer.remote_reader import TurbopufferReader
from commonplace.index.turbopuffer.service_errors import NamespaceMissing, NotReady
from commonplace.index.turbopuffer.service_settings import Naming
from commonplace.index.turbopuffer.wire import TurbopufferWire
from commonplace.index.words.lexical_query import LexicalQuery
from commonplace.index.words.snapshot import Floats

log = logging.getLogger(__name__)

LEDGER = "ledger.db"
LOCK_S = 60.0
INDEXING_S = 5.0
"""The longest that `check` waits for the service to index what was written."""
_LONGEST_ERROR = 500
_NOT_THERE = "The index lacks rows that the service had taken. They are being sent again; try again in a moment."

T = TypeVar("T")


class TurbopufferIndex:
    """A `WordIndex` whose rows `TurbopufferVectors` searches too. Any number of threads and processes may share it.

    Damage of the ledger ends in comparing all rows anew. Trouble with the service is an error of the search, and what
    was to be written stays pending for the next one.
    """

    def __init__(
        self,
        folder: Path,
        source: WordSource,
        fallback_language: str,
        *,
        wire: TurbopufferWire,
        naming: Callable[[], Naming],
        models: ModelSource | None = None,
    ) -> None:
        """Connect the parts. `naming` returns the names of the log that the source was last asked about."""
        self._folder, self._source, self._fallback = folder, source, fallback_language
        self._wire, self._log = wire, Log(source, models, fallback_language, naming)
        self._lock = threading.RLock()
        self._failed: tuple[float, Unavailable] | None = None

    def exists(self) -> bool:
        """Return True if the index was ever created."""
        return self._path.exists()

    @property
    def _path(self) -> Path:
        return self._folder / LEDGER

    # following

    def position(self) -> int:
        """Return the last change that the service has acknowledged; 0 when empty or in doubt."""
        return self._healing(lambda: self._read(self._position) if self.exists() else 0)

    def position_of(self, fingerprint: str) -> int:
        """Return the last acknowledged change with vectors of a model; 0 if the rows hold those of another."""

        def ask(ledger: Ledger) -> int:
            return self._position(ledger) if ledger.fact("model") == fingerprint else 0

        return self._healing(lambda: self._read(ask) if self.exists() else 0)

    def _position(self, ledger: Ledger) -> int:
        """Return the last change that the service surely has; 0 while rows are in doubt, or for another log."""
        return ledger.position() if self._is_of_this_log(ledger) and not ledger.doubted() else 0

    def catch_up(self, progress: Progress | None = None) -> int:
        """Apply what is pending and return the position. A failure leaves it pending, and `check` says why."""
        try:
            self._healing(lambda: self._level(progress))
        except Unavailable as error:
            log.info("The index is behind: %s", error)
            self._failed = time.monotonic(), error
        return self.position()

    def raise_since(self, moment: float) -> None:
        """Raise the error of a `catch_up` that failed since `moment` (`time.monotonic`), so that nobody waits twice."""
        if self._failed and self._failed[0] >= moment:
            raise self._failed[1]

    def reset(self) -> None:
        """Make the next writer send every row anew. Present rows stay meanwhile: others may search them."""

        def empty() -> None:
            with self._lock, self._writing() as ledger:
                ledger.clear(anew=1)

        self._healing(empty)

    def use(self, fingerprint: str, dims: int) -> None:
        """Keep the vectors of this model from now on, in their own namespaces."""

        def choose() -> None:
            if self.exists() and self._read(lambda ledger: ledger.fact("model")) == fingerprint:
                return
            with self._lock, self._writing() as ledger:
                if ledger.fact("model") != fingerprint:
                    ledger.choose(fingerprint, dims)

        self._healing(choose)

    def check(self) -> list[str]:
        """Return what is wrong, one sentence each. The next writer sends again what the service lacks."""
        try:
            return self._healing(lambda: self._read(self._problems)) if self.exists() else []
        except Unavailable as error:
            return [str(error)]
        except NotReady:
            return ["The service has not answered yet what rows it has. Look again in a moment."]

    def trouble(self) -> str:
        """Return why something is still pending, in one sentence; empty where nothing went wrong."""
        return str(
            self._healing(lambda: self._read(lambda ledger: ledger.fact("trouble")) if self.exists() else "") or ""
        )

    def refusals(self) -> list[tuple[int, str]]:
        """Return the chunks that the service rejected, and why."""
        return self._healing(lambda: self._read(lambda ledger: ledger.refusals()) if self.exists() else [])

    def doubt(self, project_id: str, table_id: str) -> None:
        """Mark a table's rows as in doubt: before the next search they are compared with what was sent, and mended."""
        if self.exists():
            self._healing(
                lambda: self._read(lambda ledger: ledger.doubt(self._naming(ledger).table(project_id, table_id)))
            )

    def clean(self, tables: Sequence[tuple[str, str]], *, others: bool, dry_run: bool) -> tuple[int, int]:
        """Remove the unknown rows of these tables (project id, table id) and, with `others`, those of all other tables.

        Return how many rows that were, and how many tables could not be looked at. After the first failure no other
        table is tried: the service is not there. A key that may not list namespaces finds no others.
        """
        removed = done = 0
        names: list[str] = []
        try:
            if not dry_run:
                self._healing(self._level)
                if others:
                    self.drop_left()
            elif not self.exists():
                return 0, 0
            naming = self._healing(lambda: self._read(self._naming))
            names = [naming.table(*table) for table in tables]
            if others:
                listed = self._wire.namespaces(naming.mark) or ()
                names += [name for name in listed if naming.is_table(name) and name not in names]
            for name in names:
                removed += self._healing(lambda name=name: self._cleaned(name, dry_run=dry_run))  # type: ignore[misc]
                done += 1
        except (Unavailable, NotReady) as error:
            log.info("The index could not be looked over: %s", error)
            return removed, max(1, (len(names) or len(tables)) - done)
        return removed, 0

    def drop_left(self) -> None:
        """Remove the namespaces of this log with vectors of models that the store no longer knows."""

        def drop() -> None:
            with self._lock, self._writing() as ledger:
                naming = self._naming(ledger)
                if naming.model:
                    names = {*ledger.left(), *(self._wire.namespaces(naming.mark) or ())}
                    Following(self._wire, ledger, self._log).drop_left(sorted(names), others=True)

        try:
            self._healing(drop)
        except (Unavailable, NotReady) as error:
            log.info("What is left of other models stays for now: %s", error)

    def _cleaned(self, namespace: str, *, dry_run: bool) -> int:
        """Remove the unknown rows of a namespace, except in a `dry_run`, and return their number."""
        if dry_run:
            return self._read(lambda ledger: len(compare(self._wire, ledger, namespace).stray))
        with self._lock, self._writing() as ledger:
            return Following(self._wire, ledger, self._log).remove_stray(namespace)

    def _naming(self, ledger: Ledger) -> Naming:
        """Return the names of the namespaces with vectors of the current model."""
        return self._log.naming().with_model(str(ledger.fact("model") or ""))

    def places(self, chunks: Sequence[int]) -> dict[int, tuple[str, str]]:
        """Return the namespace and the row's id of each chunk that was sent, by chunk id."""
        return self._healing(lambda: self._read(lambda ledger: ledger.ids(chunks)) if self.exists() else {})

    def _problems(self, ledger: Ledger) -> list[str]:
        problems = [str(trouble)] if (trouble := ledger.fact("trouble")) else []
        if ledger.position() == self._source.last_change():
            for namespace, count in ledger.counts().items():
                problems += self._problems_of(ledger, namespace, count)
        refusals = ledger.refusals()
        if refusals:
            problems.append(f"{len(refusals)} passages were rejected and cannot be found: {refusals[0][1]}")
        return problems

    def _problems_of(self, ledger: Ledger, namespace: str, count: int) -> list[str]:
        """Return what is wrong with a namespace. Its ids, which show what it lacks, are read only for a wrong count."""
        try:
            same = self._wire.count(namespace) == count
        except NamespaceMissing:
            same = False
        difference = None if same else compare(self._wire, ledger, namespace)
        if difference and (difference.lost or difference.stray):
            ledger.doubt(namespace)
            lost, stray = len(difference.lost), len(difference.stray)
            more = f" and has {stray} that nobody sent" if stray else ""
            return [f"The namespace {namespace} lacks {lost} of {count} rows{more}. The next search puts that right."]
        deadline = time.monotonic() + INDEXING_S
        while left := self._wire.unindexed(namespace):
            if time.monotonic() > deadline:
                return [f"The service has {left} bytes of {namespace} to index yet. They are found, but slowly."]
            time.sleep(min(0.2, INDEXING_S))
        return []

    def _level(self, progress: Progress | None = None) -> None:
        """Send what is pending. Raise Unavailable if the service does not take it."""
        with self._lock:
            if self.exists() and self._read(self._is_level):
                return
            with self._writing() as ledger:
                try:
                    self._begin(ledger)
                    Following(self._wire, ledger, self._log).run(progress)
                except NotReady:
                    sentence = "The index has not acknowledged a write. It stays pending; try again in a moment."
                    ledger.note(trouble=sentence)
                    raise Unacknowledged(sentence, retry_after=1.0) from None
                except Unavailable as error:
                    ledger.note(trouble=str(error)[:_LONGEST_ERROR])
                    raise
                ledger.note(trouble=None)

    def _begin(self, ledger: Ledger) -> None:
        """Start over if the log is another, which a restored backup has: its changes have other numbers.

        Until somebody calls `use`, the vectors are those of the newest model that the store knows.
        """
        if not self._is_of_this_log(ledger):
            ledger.follow(self._log.naming().log)
        models = self._log.models.models() if self._log.models and not ledger.fact("model") else ()
        if models:
            newest = max(models, key=lambda model: model.id)
            ledger.choose(newest.fingerprint, newest.dims)

    def _is_of_this_log(self, ledger: Ledger) -> bool:
        self._source.last_change()  # which also notices that the log is another
        return bool(ledger.fact("log") == self._log.naming().log)

    def _is_level(self, ledger: Ledger) -> bool:
        """Return True if nothing is pending or in doubt."""
        if not self._is_of_this_log(ledger):
            return False
        if not ledger.fact("ready") or ledger.fact("trouble") or ledger.in_doubt() or ledger.doubted():
            return False
        return ledger.position() == self._source.last_change()

    # searching

    def ask(self, work: Callable[[TurbopufferReader], T]) -> T:
        """Return `work` of a reader that is level with the log.

        If the service lacks a namespace that has rows, they are sent again, and `work` runs again. Raise
        `Unacknowledged` if it still lacks them.
        """

        def run() -> T:
            for _ in range(2):
                self._level()
                ledger = Ledger(self._path)
                ledger.begin()  # lasts as long as somebody holds the reader
                reader = TurbopufferReader(self._wire, ledger, self._fallback)
                answer = work(reader)
                if not reader.missing:
                    return answer
                self._doubt_all(reader.missing)
            raise Unacknowledged(_NOT_THERE, retry_after=1.0)

        with self._wire.asking():
            return self._healing(run)

    def _doubt_all(self, namespaces: Iterable[str]) -> None:
        def doubt(ledger: Ledger) -> None:
            for namespace in namespaces:
                ledger.doubt(namespace)

        self._read(doubt)

    def languages(self) -> tuple[str, ...]:
        """Return the languages that stem this library's queries, commonest first."""
        return self.ask(lambda reader: reader.languages())

    def search(self, query: LexicalQuery, k: int, scope: Scope) -> tuple[Ids, Floats]:
        """Return chunk ids and BM25 scores, best first, ties by id; `k` of them where that many match the scope."""
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
        """Yield the ledger to the only writer among all threads and processes."""
        with writer_lock(self._folder, LOCK_S), writable(self._folder):
            ledger = Ledger(self._path, create=not self._path.exists())
            try:
                yield ledger
            finally:
                ledger.close()

    def _healing(self, work: Callable[[], T]) -> T:
        """Return `work()`; where the ledger turns out damaged, delete it and try again."""
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
        """Return `work()`. Raise `StorageFull` or `IndexDamaged` for an error of SQLite."""
        try:
            return work()
        except apsw.FullError:
            raise StorageFull(
                f"There is no room left on the disk that holds {self._folder}. Free some and repeat: nothing stored "
                "is lost, and the index goes on from where it stopped."
            ) from None
        except apsw.Error as error:
            raise IndexDamaged(f"{self._path}: {error}") from error
