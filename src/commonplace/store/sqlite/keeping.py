"""The store on SQLite: jobs and settings."""

from __future__ import annotations

import json

from commonplace.model import JSON
from commonplace.store.rows import LONGEST_WAIT, Job
from commonplace.store.shaping import json_text, now_micros
from commonplace.store.sqlite.items import SqliteItems, guarded


class SqliteKeeping(SqliteItems):
    """Jobs with leases, and settings by name."""

    # jobs: a claim is a lease, so that work of a process that died is taken up by another

    @guarded
    def enqueue(self, kind: str, payload: dict[str, JSON], delay_s: float = 0) -> int:
        with self._database.writing() as db:
            db.execute(
                "insert into jobs (kind, payload, run_after) values (?, ?, ?)",
                (kind, json_text(payload), now_micros() + int(delay_s * 1e6)),
            )
            return db.last_insert_rowid()

    @guarded
    def claim(self, kind: str, lease_s: float) -> Job | None:
        now = now_micros()
        with self._database.writing() as db:
            row = db.execute(
                """update jobs set claimed_until = :until, attempts = attempts + 1 where id =
                     (select id from jobs where kind = :kind and run_after not between :later and :latest
                      and claimed_until not between :later and :latest
                      order by run_after, id limit 1)
                   returning id, kind, payload, attempts""",
                {"kind": kind, "later": now + 1, "latest": now + LONGEST_WAIT, "until": now + int(lease_s * 1e6)},
            ).fetchone()
            return Job(row[0], row[1], json.loads(row[2]), row[3]) if row else None

    @guarded
    def finish(self, job: Job) -> None:
        with self._database.writing() as db:
            db.execute("delete from jobs where id = ? and attempts = ?", (job.id, job.attempts))

    @guarded
    def fail(self, job: Job, error: str, retry_s: float) -> None:
        with self._database.writing() as db:
            db.execute(
                "update jobs set claimed_until = 0, run_after = ?, error = ? where id = ? and attempts = ?",
                (now_micros() + int(retry_s * 1e6), error, job.id, job.attempts),
            )

    @guarded
    def job_total(self) -> int:
        return int(next(self._database.reading().execute("select count(*) from jobs"))[0])

    # settings

    @guarded
    def setting(self, name: str) -> JSON:
        row = self._database.reading().execute("select value from settings where name = ?", (name,)).fetchone()
        return json.loads(row[0]) if row else None

    @guarded
    def set_setting(self, name: str, value: JSON) -> None:
        with self._database.writing() as db:
            db.execute(
                "insert into settings values (?, ?) on conflict do update set value = excluded.value",
                (name, json_text(value)),
            )

    @guarded
    def settle(self, name: str, value: JSON) -> JSON:
        settled = self.setting(name)
        if settled is None:  # asked at every opening, which is not to wait for who writes just then
            with self._database.writing() as db:
                db.execute("insert or ignore into settings values (?, ?)", (name, json_text(value)))
            settled = self.setting(name)
        return settled
