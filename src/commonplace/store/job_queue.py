"""Jobs: work that is done later. A claim is a lease, so that work of a process that died is taken up by another."""

from __future__ import annotations

import json

from commonplace.model import JSON
from commonplace.store.dialect import Tuned
from commonplace.store.rows import LONGEST_WAIT, Job
from commonplace.store.session import Drawer, reads, writes_unordered
from commonplace.store.shaping import json_text

_CLAIM = """update jobs set claimed_until = clock() + :lease, attempts = attempts + 1 where id =
    (select id from jobs where kind = :kind and run_after not between clock() + 1 and clock() + :longest
     and claimed_until not between clock() + 1 and clock() + :longest order by run_after, id limit 1{})
  returning id, kind, payload, attempts"""
_CLAIM_NEXT = Tuned(sqlite=_CLAIM.format(""), postgres=_CLAIM.format(" for update skip locked"))


class JobQueue(Drawer):
    """A row per job that is not finished."""

    @writes_unordered
    def enqueue(self, kind: str, payload: dict[str, JSON], delay_s: float = 0) -> int:
        """Store a job to be run after a delay in seconds, and return its id."""
        row = self._db.row(
            """insert into jobs (kind, payload, run_after) values (:kind, :payload, clock() + :delay)
               returning id""",
            {"kind": kind, "payload": json_text(payload), "delay": int(delay_s * 1e6)},
        )
        return int(row[0]) if row else 0

    @writes_unordered
    def claim(self, kind: str, lease_s: float) -> Job | None:
        """Return the job of a kind that has waited longest, leased for some seconds; None where nothing is due."""
        row = self._db.row(_CLAIM_NEXT, {"kind": kind, "lease": int(lease_s * 1e6), "longest": LONGEST_WAIT})
        return Job(row[0], row[1], json.loads(row[2]), row[3]) if row else None

    @writes_unordered
    def finish(self, job: Job) -> None:
        """Remove a job that is done, unless its lease ran out and another has claimed it since."""
        query = "delete from jobs where id = :id and attempts = :attempts"
        self._db.run(query, {"id": job.id, "attempts": job.attempts})

    @writes_unordered
    def fail(self, job: Job, error: str, retry_s: float) -> None:
        """Put a job off for some seconds with what went wrong, unless another has claimed it since."""
        self._db.run(
            """update jobs set claimed_until = 0, run_after = clock() + :retry, error = :error
               where id = :id and attempts = :attempts""",
            {"retry": int(retry_s * 1e6), "error": _storable(error), "id": job.id, "attempts": job.attempts},
        )

    @reads
    def total(self) -> int:
        """Return the number of jobs that are not finished."""
        row = self._db.row("select count(*) from jobs")
        return int(row[0]) if row else 0


def _storable(error: str) -> str:
    """Return an error's text without U+0000 and lone surrogates, which no text holds here: it may quote its cause."""
    return error.replace("\0", "\ufffd").encode(errors="replace").decode()
