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
from commonplace.index.base import Progress, Unacknowledged, WordSource
from commonplace.index.files import writable, writer_lock
from commonplace.index.follower import IndexDamaged
from commonplace.index.scope import Ids, Scope
from commonplace.index.turbopuffer.audit import compare
from commonplace.index.turbopuffer.errors import Missing, NotReady
from commonplace.index.turbopuffer.following import Following, Log, Models
from commonplace.index.turbopuffer.ledger import Ledger
from commonplace.index.turbopuffer.reader import TurbopufferReader
from commonplace.index.turbopuffer.settings import Naming
from commonplace.index.turbopuffer.wire import Wire
from commonplace.index.words.engine import Floats
from commonplace.index.words.query import LexicalQuery

log = logging.getLogger(__name__)

LEDGER = "ledger.db"
LOCK_S = 60.0
INDEXING_S = 5.0
"""How long `check` waits for the service to have indexed what was written."""
_LONGEST_ERROR = 500
_NOT_THERE = "The index lacks rows that the service had taken. They are being sent again; try again in a moment."

T = TypeVar("T")


class TurbopufferIndex:
    """A `WordIndex`, and what `TurbopufferVectors` searches. Any number of threads and processes may share it.

    What is wrong with the ledger ends in comparing all rows anew; what is wrong with the service is said: a search is
    refused, and what was to be written waits for the next one.
    """

    def __init__(
        self,
        folder: Path,
        source: WordSource,
        fallback_language: str,
        *,
        wire: Wire,
        naming: Callable[[], Naming],
        models: Models | None = None,
    ) -> None:
        """`naming` tells what the namespaces of the log are called that the source was last asked about."""
        self._folder, self._source, self._fallback = folder, source, fallback_language
        self._wire, self._log = wire, Log(source, models, fallback_language, naming)
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
        return self._healing(lambda: self._read(self._position) if self.exists() else 0)

    def position_of(self, fingerprint: str) -> int:
        """The last change whose vectors of a model are there too; 0 where the rows hold those of another."""

        def ask(ledger: Ledger) -> int:
            return self._position(ledger) if ledger.fact("model") == fingerprint else 0

        return self._healing(lambda: self._read(ask) if self.exists() else 0)

    def _position(self, ledger: Ledger) -> int:
        """The last change that the service surely has: none, while rows of it are in doubt, or it is of another log."""
        return ledger.position() if self._is_of_this_log(ledger) and not ledger.doubted() else 0

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
        """Have every row sent anew by who writes next. What should be there stays meanwhile: others may search it."""

        def empty() -> None:
            with self._lock, self._writing() as ledger:
                ledger.clear(anew=1)

        self._healing(empty)

    def use(self, fingerprint: str, dims: int) -> None:
        """Keep the vectors of this model from now on, in namespaces of their own."""

        def choose() -> None:
            if self.exists() and self._read(lambda ledger: ledger.fact("model")) == fingerprint:
                return
            with self._lock, self._writing() as ledger:
                if ledger.fact("model") != fingerprint:
                    ledger.choose(fingerprint, dims)

        self._healing(choose)

    def check(self) -> list[str]:
        """What is wrong, one sentence each. Rows that the service lacks are sent again by who writes next."""
        try:
            return self._healing(lambda: self._read(self._problems)) if self.exists() else []
        except Unavailable as error:
            return [str(error)]
        except NotReady:
            return ["The service has not answered yet what rows it has. Look again in a moment."]

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
        if self.exists():
            self._healing(
                lambda: self._read(lambda ledger: ledger.doubt(self._naming(ledger).table(project_id, table_id)))
            )

    def clean(self, tables: Sequence[tuple[str, str]], *, others: bool, dry_run: bool) -> tuple[int, int]:
        """Remove the rows of these tables that nothing explains, and of `others` that are none of them all rows.

        Returns how many rows that were, and how many tables could not be looked at. After the first of these no
        other is tried: it is the service that is not there. A key that may not list namespaces finds no others.
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
        """Remove the namespaces of this log that were made for vectors of models that the store no longer knows."""

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
        """How many rows of a namespace nobody knows of."""
        if dry_run:
            return self._read(lambda ledger: len(compare(self._wire, ledger, namespace).stray))
        with self._lock, self._writing() as ledger:
            return Following(self._wire, ledger, self._log).remove_stray(namespace)

    def _naming(self, ledger: Ledger) -> Naming:
        """What the namespaces are called whose rows hold the vectors that are wanted."""
        return self._log.naming().with_model(str(ledger.fact("model") or ""))

    def places(self, chunks: Sequence[int]) -> dict[int, tuple[str, str]]:
        """The namespace and document id of each chunk that is there."""
        return self._healing(lambda: self._read(lambda ledger: ledger.ids(chunks)) if self.exists() else {})

    def _problems(self, ledger: Ledger) -> list[str]:
        problems = [str(trouble)] if (trouble := ledger.fact("trouble")) else []
        if ledger.position() == self._source.last_change():
            for namespace, count in ledger.counts().items():
                problems += self._problems_of(ledger, namespace, count)
        refused = ledger.refusals()
        if refused:
            problems.append(f"{len(refused)} passages were rejected and cannot be found: {refused[0][1]}")
        return problems

    def _problems_of(self, ledger: Ledger, namespace: str, count: int) -> list[str]:
        """What is wrong with a namespace. Only its ids tell what it lacks, and they are read where a count differs."""
        try:
            same = self._wire.count(namespace) == count
        except Missing:
            same = False
        found = None if same else compare(self._wire, ledger, namespace)
        if found and (found.lost or found.stray):
            ledger.doubt(namespace)
            lost, stray = len(found.lost), len(found.stray)
            more = f" and has {stray} that nobody sent" if stray else ""
            return [f"The namespace {namespace} lacks {lost} of {count} rows{more}. The next search puts that right."]
        deadline = time.monotonic() + INDEXING_S
        while left := self._wire.unindexed(namespace):
            if time.monotonic() > deadline:
                return [f"The service has {left} bytes of {namespace} to index yet. They are found, but slowly."]
            time.sleep(min(0.2, INDEXING_S))
        return []

    def _level(self, progress: Progress | None = None) -> None:
        """Raises Unavailable where the service does not take what is pending."""
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
        """Begin anew where the log is another: a backup was restored. Its changes have numbers of their own.

        Until somebody says which vectors are wanted, they are those of the newest model that the store knows.
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
        if not self._is_of_this_log(ledger):
            return False
        if not ledger.fact("ready") or ledger.fact("trouble") or ledger.in_doubt() or ledger.doubted():
            return False
        return ledger.position() == self._source.last_change()

    # searching

    def ask(self, work: Callable[[TurbopufferReader], T]) -> T:
        """Do something with a reader of the index, level with the log.

        Where the service turns out to lack a namespace that has rows, they are sent again, and the work is done again.
        """

        def run() -> T:
            for _ in range(2):
                self._level()
                ledger = Ledger(self._path)
                ledger.begin()  # kept for as long as somebody keeps the reader
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
