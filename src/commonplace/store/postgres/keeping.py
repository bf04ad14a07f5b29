"""The store on PostgreSQL: jobs and settings."""

from __future__ import annotations

import json

from commonplace.model import JSON
from commonplace.store.postgres.connection import CLOCK
from commonplace.store.postgres.items import PostgresItems, reads, writes
from commonplace.store.postgres.problems import explained
from commonplace.store.rows import LONGEST_WAIT, Job
from commonplace.store.shaping import json_text


class PostgresKeeping(PostgresItems):
    """Jobs with leases, and settings by name."""

    # jobs: a claim is a lease, so that work of a process that died is taken up by another

    def enqueue(self, kind: str, payload: dict[str, JSON], delay_s: float = 0) -> int:
        with explained(self.name), self._database.changing():
            query = f"insert into jobs (kind, payload, run_after) values (%s, %s, {CLOCK} + %s) returning id"
            return int(self._one(query, (kind, json_text(payload), int(delay_s * 1e6))))

    def claim(self, kind: str, lease_s: float) -> Job | None:
        to_come = f"between {CLOCK} + 1 and {CLOCK} + {LONGEST_WAIT}"
        with explained(self.name), self._database.changing():
            rows = self._all(
                f"""update jobs set claimed_until = {CLOCK} + %(lease)s, attempts = attempts + 1 where id =
                      (select id from jobs where kind = %(kind)s and run_after not {to_come}
                       and claimed_until not {to_come} order by run_after, id limit 1 for update skip locked)
                    returning id, kind, payload, attempts""",
                {"kind": kind, "lease": int(lease_s * 1e6)},
            )
            return Job(rows[0][0], rows[0][1], json.loads(rows[0][2]), rows[0][3]) if rows else None

    def finish(self, job: Job) -> None:
        with explained(self.name), self._database.changing():
            self._run("delete from jobs where id = %s and attempts = %s", (job.id, job.attempts))

    def fail(self, job: Job, error: str, retry_s: float) -> None:
        with explained(self.name), self._database.changing():
            self._run(
                f"""update jobs set claimed_until = 0, run_after = {CLOCK} + %s, error = %s
                    where id = %s and attempts = %s""",
                (int(retry_s * 1e6), _storable(error), job.id, job.attempts),
            )

    @reads
    def job_total(self) -> int:
        return int(self._one("select count(*) from jobs"))

    # settings

    @reads
    def setting(self, name: str) -> JSON:
        value = self._one("select value from settings where name = %s", (name,))
        return None if value is None else json.loads(value)

    @writes
    def set_setting(self, name: str, value: JSON) -> None:
        self._run(
            """insert into settings (name, value) values (%s, %s)
               on conflict (space, name) do update set value = excluded.value""",
            (name, json_text(value)),
        )

    def settle(self, name: str, value: JSON) -> JSON:
        settled = self.setting(name)
        if settled is None:  # asked at every opening, which is not to wait for who writes just then
            self._settle(name, value)
            settled = self.setting(name)
        return settled

    @writes
    def _settle(self, name: str, value: JSON) -> None:
        self._run(
            "insert into settings (name, value) values (%s, %s) on conflict (space, name) do nothing",
            (name, json_text(value)),
        )


def _storable(error: str) -> str:
    """Return an error's text without U+0000 and lone surrogates, which no text holds here: it may quote its cause."""
    return error.replace("\0", "\ufffd").encode(errors="replace").decode()
