"""Jobs that a write leaves for later: indexing, embedding, changing generations, sending to a service.

Safe to kill, safe to repeat.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from commonplace.errors import CommonplaceError, Unavailable
from commonplace.index.followers import Progress, ServiceIndex
from commonplace.ingest.embedding import Embedding
from commonplace.kinds.tables.drawer import TableDrawer
from commonplace.kinds.tables.indexing import Indexer
from commonplace.kinds.tables.node_drawer import JobDrawer, NodeDrawer
from commonplace.kinds.tables.rows import Nodes, TableJob, TableRow
from commonplace.model import item_of
from commonplace.store.base import Store
from commonplace.store.items import Items
from commonplace.store.rows import LONGEST_WAIT

MOST_FOLLOWED = 100_000
"""Changes that are searched for those of one place; with more, all of the place counts as pending."""
LEASE_S = 10.0
MOST_ATTEMPTS = 3
PAUSES_S = (1.0, 10.0)
LONGEST_ERROR = 500
EMBEDDED = 512
"""Nodes whose missing vectors one step looks for."""
WRITTEN = 100_000
SENDING = "sending"
"""A mark in the progress of a job whose own work is done: only sending to a service is left."""
STEP_S = 0.5
_machine = socket.gethostname()
_working = threading.Lock()


@dataclass(frozen=True, slots=True)
class Lack:
    """The chunks of one place that are still to be sent, those that were rejected, and a sentence about either."""

    pending: int = 0
    rejected: int = 0
    reason: str = ""


NOTHING = Lack()


class Remote:
    """The index that a service holds for one library."""

    def __init__(self, store: Store, index: ServiceIndex, embedding: Embedding) -> None:
        self._store, self.index, self._embedding = store, index, embedding

    def send(self, progress: Progress) -> None:
        """Send what the service lacks, with the vectors there are. Raise Unavailable where it does not take all."""
        model = self._embedding.serving()
        if model is not None:
            self.index.use(model.fingerprint, model.dims)
        self.index.catch_up(progress)
        if trouble := self.index.trouble():
            raise Unavailable(trouble)

    def lack(self, nodes: Nodes) -> Lack:
        """Return what the service has not acknowledged of some nodes."""
        refused = [(item_of(chunk), reason) for chunk, reason in self.index.refusals()]
        inside = np.isin(np.array([item for item, _ in refused], dtype=np.int64), nodes.items)
        reasons = [reason for (_, reason), is_inside in zip(refused, inside, strict=True) if is_inside]
        pending = self._pending(nodes)
        reason = self.index.trouble() if pending else ""
        return Lack(pending, len(reasons), reason or next(iter(reasons), ""))

    def _pending(self, nodes: Nodes) -> int:
        model, last = self._embedding.serving(), self._store.last_change()
        position = self.index.position_of(model.fingerprint) if model else self.index.position()
        if position >= last:
            return 0
        if last - position > MOST_FOLLOWED:
            return int(nodes.chunks.sum())
        changed = [change.item_id for change in self._store.changes(position, MOST_FOLLOWED)]
        return int(nodes.chunks[np.isin(nodes.items, np.array(changed, dtype=np.int64))].sum())


class Jobs:
    """The jobs of one library's tables. Any process may take one whose holder is gone."""

    def __init__(self, store: Store, embedding: Embedding, indexer: Indexer, remote: Remote | None = None) -> None:
        self._store, self._embedding, self._indexer, self._remote = store, embedding, indexer, remote
        self._table_rows, self._node_rows = store.drawer(TableDrawer), store.drawer(NodeDrawer)
        self._job_rows = store.drawer(JobDrawer)
        self._holder = f"{_machine}:{os.getpid()}:{_started(os.getpid())}"

    def step(self, table: int | None = None, *, send: bool = True) -> bool:
        """Do one step of the first job that can be taken, or of one table's. Return whether there was one.

        Without `send` nothing is sent to a service: the next search does that.
        """
        if not _working.acquire(blocking=False):
            return False
        try:
            job = self._claim(table)
            if job is None:
                return False
            try:
                self._advance(job, send=send)
            except CommonplaceError as error:
                self._fail(job, str(error))
            except Exception as error:
                self._fail(job, f"{type(error).__name__} while indexing. The next write or search_reindex tries again.")
                raise
            return True
        finally:
            _working.release()

    def run(self, table: int | None, seconds: float) -> None:
        """Do steps until no job or no time is left, for a search, which itself sends what a service lacks."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and self.step(table, send=False):
            pass

    def _claim(self, table: int | None) -> TableJob | None:
        """Return the first job that is due and free, leased to this process, or None."""
        jobs = self._job_rows.jobs(table)
        now = self._job_rows.clock() if jobs else 0
        for job in jobs:
            if _is_to_come(job.run_after, now) or (job.attempts >= MOST_ATTEMPTS and not self._is_sent(job)):
                continue
            ours = job.holder == self._holder
            free = not job.holder or not _is_to_come(job.lease_until, now) or is_gone(job.holder)
            if (ours or free) and (leased := self._job_rows.claim(job, self._holder, LEASE_S)):
                return leased
        return None

    def _advance(self, job: TableJob, *, send: bool) -> None:
        """Do the next step of a job: index, embed, tidy, switch, or send and finish."""
        table = self._table_rows.numbered_table(job.table)
        if table is None:
            self._job_rows.finish(job)
            return
        if any(tool.started_at is None for tool in self._table_rows.search_tools(job.table)):
            self._table_rows.tools_started(job.table, time.time_ns() // 1000)
        dirty = self._node_rows.dirty_of(job.table, limit=1)
        if dirty:
            self._index(job, table)
        elif self._embed(job, table):
            return
        elif table.leaving is not None:
            self._tidy(job, table)
        elif table.building is not None:
            self._switch(job, table)
        else:
            if send and self._remote:
                self._send(job, self._remote)
            with self._store.transaction():
                self._table_rows.tools_indexed(job.table, time.time_ns() // 1000)
                self._job_rows.finish(job)

    def _is_sent(self, job: TableJob) -> bool:
        """Return whether a job was held up only by a service, which has taken everything since."""
        return SENDING in job.progress and self._remote is not None and not self._remote.index.trouble()

    def _send(self, job: TableJob, remote: Remote) -> None:
        """Send what the service lacks, extending the lease meanwhile."""

        def beat(*_: int) -> None:
            self._job_rows.beat(job, {**job.progress, SENDING: True}, LEASE_S)

        beat()
        remote.send(beat)

    def _index(self, job: TableJob, table: TableRow) -> None:
        """Put or remove nodes in small transactions, so that writers get in between, for `STEP_S` seconds."""
        deadline = time.monotonic() + STEP_S
        steps = int(job.progress.get("steps", 0))
        while time.monotonic() < deadline:
            with self._store.transaction():
                current = self._table_rows.numbered_table(table.number)
                # The generation that answers searches now comes first.
                current_dirty = self._node_rows.dirty_of(table.number, current.generation, limit=1) if current else []
                dirty = current_dirty or self._node_rows.dirty_of(table.number, limit=1)
                steps += 1
                progress = {**job.progress, "steps": steps}
                if current is None or not dirty or not self._job_rows.beat(job, progress, LEASE_S):
                    return
                self._indexer.step(current, dirty[0])

    def _embed(self, job: TableJob, table: TableRow) -> bool:
        """Make vectors for nodes that lack some, for `STEP_S` seconds. Return False where none lacks any."""
        generation = table.generation if table.building is None else table.building
        checkpoint_name = f"embedded {generation}"
        checkpoint = int(job.progress.get(checkpoint_name, 0))
        since = int(job.progress.get("since", self._store.last_change()))
        deadline = time.monotonic() + STEP_S
        while time.monotonic() < deadline:
            ids = self._node_rows.node_ids(
                table.id, generation, "", after=checkpoint, upto=self._store.drawer(Items).last(), limit=EMBEDDED
            )
            if not ids:
                return self._embed_written(table, generation, since)
            lacking = len(ids) - len(self._embedding.embed_items(ids, most=8 * EMBEDDED, seconds=LEASE_S / 2))
            checkpoint = checkpoint if lacking else ids[-1]
            if not self._job_rows.beat(job, {**job.progress, checkpoint_name: checkpoint, "since": since}, LEASE_S):
                return True
        return True

    def _embed_written(self, table: TableRow, generation: int, since: int) -> bool:
        """Make vectors for nodes that were written while the others got theirs. Return whether some still lack them."""
        written_items = {change.item_id for change in self._store.changes(since, WRITTEN) if change.op == "put"}
        ids = (
            self._node_rows.nodes_at(table.id, generation, "", sorted(written_items)).items.tolist()
            if written_items
            else []
        )
        return bool(set(ids) - self._embedding.embed_items(ids, most=8 * EMBEDDED, seconds=LEASE_S / 2))

    def _switch(self, job: TableJob, table: TableRow) -> None:
        """Put the new generation in the old one's place, at once. Only one at a time may be on its way out."""
        with self._store.transaction():
            current = self._table_rows.numbered_table(table.number)
            ready = current is not None and current.leaving is None and not self._node_rows.dirty_of(table.number)
            if not ready or current is None or current.building is None:
                return
            self._table_rows.change_table(
                replace(current, generation=current.building, building=None, leaving=current.generation)
            )
            self._job_rows.beat(job, job.progress, LEASE_S)

    def _tidy(self, job: TableJob, table: TableRow) -> None:
        """Remove the next nodes of the generation before."""
        with self._store.transaction():
            current = self._table_rows.numbered_table(table.number)
            if current is None or current.leaving is None:
                return
            old = current.leaving
            ids = self._node_rows.node_ids(table.id, old, "", after=0, upto=self._store.drawer(Items).last(), limit=500)
            self._store.drawer(Items).delete(ids)
            self._node_rows.drop_dirty_of(table.number, old)
            if not ids:
                self._table_rows.change_table(replace(current, leaving=None))
            self._job_rows.beat(job, job.progress, LEASE_S)

    def _fail(self, job: TableJob, sentence: str) -> None:
        """Note an error and schedule the retry."""
        with suppress(CommonplaceError):  # a full disk keeps this from being noted too; the lease runs out by itself
            pause = PAUSES_S[min(job.attempts, len(PAUSES_S) - 1)]
            self._job_rows.fail(job, sentence[:LONGEST_ERROR], pause)


def _is_to_come(moment: int, now: int) -> bool:
    """Return whether a moment is in the future, but not so far that only a changed clock explains it."""
    return now < moment <= now + LONGEST_WAIT


def is_gone(holder: str) -> bool:
    """Return whether a holder was a process of this machine that no longer runs."""
    machine, _, rest = holder.rpartition(":")[0].rpartition(":")
    started = holder.rpartition(":")[2]
    if machine != _machine or not rest.isdecimal():
        return False
    try:
        os.kill(int(rest), 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return _started(int(rest)) != started


def _started(pid: int) -> str:
    """Return when a process began, as its system counts; "" where the system does not say."""
    with suppress(OSError, IndexError):
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()[19]
    return ""
