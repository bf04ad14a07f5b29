"""The store on SQLite: sessions and what each has seen."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

import apsw

from commonplace.model import JSON
from commonplace.store.rows import MOST_LISTS, MOST_QUERIES, SESSION_COLUMNS, Returned, SessionList, SessionRow
from commonplace.store.sqlite.items import SqliteItems, guarded


class SqliteSessions(SqliteItems):
    """A row per session, a row per URI it has seen, a row per list that may be continued."""

    @guarded
    def session(self, session: str) -> SessionRow | None:
        return _find(self._database.reading(), session)

    @guarded
    def add_session(self, session: str, client: str, *, now: int, since: int, most: int) -> SessionRow:
        with self._database.writing() as db:
            row = _find(db, session)
            if row is not None and row.used_at >= since:
                if client in ("", row.client):
                    return row
                db.execute("update sessions set client = ? where id = ?", (client, session))
                return replace(row, client=client)
            _sweep(db, session, since, most - 1)
            db.execute(
                f"insert into sessions ({SESSION_COLUMNS}) values (:id, :client, '{{}}', '[]', :now, :now)",
                {"id": session, "client": client, "now": now},
            )
            return SessionRow(session, client, {}, (), now, now)

    @guarded
    def touch_session(self, session: str, now: int) -> None:
        with self._database.writing() as db:
            _touch(db, session, now)

    @guarded
    def end_session(self, session: str) -> bool:
        with self._database.writing() as db:
            return _drop(db, [session]) > 0

    @guarded
    def change_defaults(self, session: str, changes: Mapping[str, JSON], now: int) -> dict[str, JSON]:
        with self._database.writing() as db:
            row = _find(db, session)
            merged = {**(row.defaults if row else {}), **changes}
            defaults = {name: value for name, value in merged.items() if value is not None}
            db.execute("update sessions set defaults = ? where id = ?", (json.dumps(defaults), session))
            _touch(db, session, now)
            return defaults

    @guarded
    def session_list(self, session: str, key: str) -> SessionList | None:
        query = "select without, replayed from session_lists where session = ? and key = ?"
        row = self._database.reading().execute(query, (session, key)).fetchone()
        return SessionList(json.loads(row[0]), bool(row[1])) if row else None

    @guarded
    def seen(self, session: str) -> list[str]:
        query = "select uri from session_uris where session = ? order by position"
        return [uri for (uri,) in self._database.reading().execute(query, (session,))]

    @guarded
    def mark(self, session: str, returned: Returned, *, now: int, most_uris: int) -> int | None:
        with self._database.writing() as db:
            row = _find(db, session)
            if row is None:
                return 0  # it was ended while the call was at work
            if returned.unseen and _any_seen(db, session, returned.uris):
                return None
            _see(db, session, returned.uris, most_uris)
            _keep_list(db, session, returned)
            queries = list(dict.fromkeys((returned.query, *row.queries)))[:MOST_QUERIES]
            db.execute("update sessions set queries = ? where id = ?", (json.dumps(queries), session))
            _touch(db, session, now)
            return int(next(db.execute("select count(*) from session_uris where session = ?", (session,)))[0])


def _find(db: apsw.Connection, session: str) -> SessionRow | None:
    row = db.execute(f"select {SESSION_COLUMNS} from sessions where id = ?", (session,)).fetchone()
    if row is None:
        return None
    identity, client, defaults, queries, created_at, used_at = row
    return SessionRow(identity, client, json.loads(defaults), tuple(json.loads(queries)), created_at, used_at)


def _touch(db: apsw.Connection, session: str, now: int) -> None:
    db.execute("update sessions set used_at = max(used_at, ?) where id = ?", (now, session))


def _sweep(db: apsw.Connection, session: str, since: int, most: int) -> None:
    """Make room for a session: remove what has expired, and then the least recently used."""
    rows = db.execute(
        """select id from sessions where used_at < :since or id = :id
           union select id from (select id from sessions where used_at >= :since and id <> :id
                                 order by used_at desc, id limit -1 offset :most)""",
        {"since": since, "id": session, "most": most},
    )
    _drop(db, [identity for (identity,) in rows])


def _drop(db: apsw.Connection, sessions: Sequence[str]) -> int:
    """Remove sessions with all they remember, and return how many there were."""
    gone = (json.dumps(sessions),)
    among = "in (select value from json_each(?))"
    db.execute(f"delete from session_uris where session {among}", gone)
    db.execute(f"delete from session_lists where session {among}", gone)
    db.execute(f"delete from sessions where id {among}", gone)
    return db.changes()


def _any_seen(db: apsw.Connection, session: str, uris: Sequence[str]) -> bool:
    query = "select 1 from session_uris where session = ? and uri in (select value from json_each(?)) limit 1"
    return db.execute(query, (session, json.dumps(list(uris)))).fetchone() is not None


def _see(db: apsw.Connection, session: str, uris: Sequence[str], most: int) -> None:
    db.execute(
        """insert into session_uris (session, uri, position)
           select :session, value,
                  (select coalesce(max(position), 0) + 1 from session_uris where session = :session) + key
           from json_each(:uris) where true
           on conflict do update set position = excluded.position""",
        {"session": session, "uris": json.dumps(list(uris))},
    )
    db.execute(
        """delete from session_uris where session = :session and position <=
             (select position from session_uris where session = :session
              order by position desc limit 1 offset :most)""",
        {"session": session, "most": most},
    )


def _keep_list(db: apsw.Connection, session: str, returned: Returned) -> None:
    values: dict[str, str | int] = {"session": session, "key": returned.key, "most": MOST_LISTS}
    if begun := returned.begun:
        db.execute(
            """insert or replace into session_lists (session, key, position, without, replayed)
               values (:session, :key, 0, :without, :replayed)""",
            {**values, "without": json.dumps(list(begun.without)), "replayed": begun.replayed},
        )
    db.execute(
        """update session_lists
           set position = (select max(position) + 1 from session_lists where session = :session)
           where session = :session and key = :key""",
        values,
    )
    db.execute(
        """delete from session_lists where session = :session and position <=
             (select position from session_lists where session = :session
              order by position desc limit 1 offset :most)""",
        values,
    )
