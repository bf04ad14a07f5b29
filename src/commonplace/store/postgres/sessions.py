"""The store on PostgreSQL: sessions and what each has seen."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

from commonplace.model import JSON
from commonplace.store.postgres.items import PostgresItems, reads, writes
from commonplace.store.rows import MOST_LISTS, MOST_QUERIES, SESSION_COLUMNS, Returned, SessionList, SessionRow


class PostgresSessions(PostgresItems):
    """A row per session, a row per URI it has seen, a row per list that may be continued."""

    @reads
    def session(self, session: str) -> SessionRow | None:
        return self._session(session)

    def _session(self, session: str) -> SessionRow | None:
        rows = self._all(f"select {SESSION_COLUMNS} from sessions where id = %s", (session,))
        if not rows:
            return None
        identity, client, defaults, queries, created_at, used_at = rows[0]
        return SessionRow(identity, client, json.loads(defaults), tuple(json.loads(queries)), created_at, used_at)

    @writes
    def add_session(self, session: str, client: str, *, now: int, since: int, most: int) -> SessionRow:
        row = self._session(session)
        if row is not None and row.used_at >= since:
            if client in ("", row.client):
                return row
            self._run("update sessions set client = %s where id = %s", (client, session))
            return replace(row, client=client)
        self._sweep(session, since, most - 1)
        self._run(
            f"insert into sessions ({SESSION_COLUMNS}) values (%(id)s, %(client)s, '{{}}', '[]', %(now)s, %(now)s)",
            {"id": session, "client": client, "now": now},
        )
        return SessionRow(session, client, {}, (), now, now)

    @writes
    def touch_session(self, session: str, now: int) -> None:
        self._touch(session, now)

    def _touch(self, session: str, now: int) -> None:
        self._run("update sessions set used_at = greatest(used_at, %s) where id = %s", (now, session))

    @writes
    def end_session(self, session: str) -> bool:
        return self._drop_sessions([session]) > 0

    @writes
    def change_defaults(self, session: str, changes: Mapping[str, JSON], now: int) -> dict[str, JSON]:
        row = self._session(session)
        merged = {**(row.defaults if row else {}), **changes}
        defaults = {name: value for name, value in merged.items() if value is not None}
        self._run("update sessions set defaults = %s where id = %s", (json.dumps(defaults), session))
        self._touch(session, now)
        return defaults

    @reads
    def session_list(self, session: str, key: str) -> SessionList | None:
        rows = self._all("select without, replayed from session_lists where session = %s and key = %s", (session, key))
        return SessionList(json.loads(rows[0][0]), rows[0][1]) if rows else None

    @reads
    def seen(self, session: str) -> list[str]:
        return [
            uri for (uri,) in self._all("select uri from session_uris where session = %s order by position", (session,))
        ]

    @writes
    def mark(self, session: str, returned: Returned, *, now: int, most_uris: int) -> int | None:
        row = self._session(session)
        if row is None:
            return 0  # it was ended while the call was at work
        if returned.unseen and self._one(
            "select 1 from session_uris where session = %s and uri = any(%s::text[]) limit 1",
            (session, list(returned.uris)),
        ):
            return None
        self._see(session, returned.uris, most_uris)
        self._keep_list(session, returned)
        queries = list(dict.fromkeys((returned.query, *row.queries)))[:MOST_QUERIES]
        self._run("update sessions set queries = %s where id = %s", (json.dumps(queries), session))
        self._touch(session, now)
        return int(self._one("select count(*) from session_uris where session = %s", (session,)))

    def _sweep(self, session: str, since: int, most: int) -> None:
        """Make room for a session: remove what has expired, and then the least recently used."""
        rows = self._all(
            """select id from sessions where used_at < %(since)s or id = %(id)s
               union (select id from sessions where used_at >= %(since)s and id <> %(id)s
                      order by used_at desc, id offset %(most)s)""",
            {"since": since, "id": session, "most": max(most, 0)},
        )
        self._drop_sessions([identity for (identity,) in rows])

    def _drop_sessions(self, sessions: Sequence[str]) -> int:
        """Remove sessions with all they remember; returns how many there were."""
        gone = (list(sessions),)
        self._run("delete from session_uris where session = any(%s::text[])", gone)
        self._run("delete from session_lists where session = any(%s::text[])", gone)
        return len(self._all("delete from sessions where id = any(%s::text[]) returning id", gone))

    def _see(self, session: str, uris: Sequence[str], most: int) -> None:
        last = int(self._one("select coalesce(max(position), 0) from session_uris where session = %s", (session,)))
        places = {uri: last + place for place, uri in enumerate(uris, start=1)}
        self._run("delete from session_uris where session = %s and uri = any(%s::text[])", (session, list(places)))
        self._run_all(
            "insert into session_uris (session, uri, position) values (%s, %s, %s)",
            [(session, uri, place) for uri, place in places.items()],
        )
        self._cut("session_uris", session, most)

    def _keep_list(self, session: str, returned: Returned) -> None:
        if begun := returned.begun:
            self._run(
                """insert into session_lists (session, key, position, without, replayed) values (%s, %s, 0, %s, %s)
                   on conflict (space, session, key) do update
                   set position = 0, without = excluded.without, replayed = excluded.replayed""",
                (session, returned.key, json.dumps(list(begun.without)), begun.replayed),
            )
        self._run(
            """update session_lists
               set position = (select max(position) + 1 from session_lists where session = %(session)s)
               where session = %(session)s and key = %(key)s""",
            {"session": session, "key": returned.key},
        )
        self._cut("session_lists", session, MOST_LISTS)

    def _cut(self, table: str, session: str, most: int) -> None:
        """Remove all but the newest."""
        self._run(
            f"""delete from {table} where session = %(session)s and position <=
                  (select position from {table} where session = %(session)s
                   order by position desc limit 1 offset %(most)s)""",
            {"session": session, "most": most},
        )
