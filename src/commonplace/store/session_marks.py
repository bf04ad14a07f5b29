"""Search sessions: what one caller has seen, asked for last and wants by default, and the lists that may be continued.

The caller brings the time, so that a call has one moment.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from commonplace.model import JSON
from commonplace.store.dialect import NO_LIMIT, Tuned
from commonplace.store.session import Drawer, reads, writes

MOST_LISTS = MOST_QUERIES = 20
"""How many lists and queries a session remembers."""


@dataclass(frozen=True, slots=True)
class SessionRow:
    """A session as it is kept. Times are microseconds since 1970."""

    id: str
    client: str
    defaults: Mapping[str, JSON]
    queries: tuple[str, ...]
    """Newest first."""
    created_at: int
    used_at: int


_COLUMNS = "id, client, defaults, queries, created_at, used_at"


@dataclass(frozen=True, slots=True)
class SessionList:
    """The URIs that one list of a session leaves out, from its first page to its last."""

    without: Sequence[str]
    replayed: bool = False


@dataclass(frozen=True, slots=True)
class Returned:
    """The URIs that one call of a session has returned, and the list they are a page of."""

    query: str
    uris: Sequence[str]
    key: str
    """Names the list it is a page of."""
    begun: SessionList | None = None
    """The list, where this is its first page."""
    unseen: bool = False
    """Whether all of it is given out as not seen before."""


_PLACED = """insert into session_uris (session, uri, position)
  select :session, uri, nr + (select coalesce(max(position), 0) from session_uris where session = :session)
  from rows(:uris uri text) as returned where true"""
_SEE = Tuned(
    sqlite=f"{_PLACED} on conflict key(session, uri) do update set position = excluded.position",
    # A URI may be too long for a key of an index there.
    postgres=f"""with again as (delete from session_uris where session = :session and uri in each(:again text))
        {_PLACED}""",
)


class SessionMarks(Drawer):
    """A row per session, a row per URI it has seen, a row per list that may be continued."""

    @reads
    def find(self, session: str) -> SessionRow | None:
        """Return the session of this id, or None."""
        return self._find(session)

    @writes
    def add(self, session: str, client: str, *, now: int, since: int, most: int) -> SessionRow:
        """Return the session of this id, made unless one was used since. A client that is named has it now.

        Where it is made, those not used since then go, and then the least recently used until there are `most` of them.
        """
        row = self._find(session)
        if row is not None and row.used_at >= since:
            if client in ("", row.client):
                return row
            self._db.run("update sessions set client = :client where id = :id", {"client": client, "id": session})
            return replace(row, client=client)
        self._sweep(session, since, most - 1)
        self._db.run(
            f"insert into sessions ({_COLUMNS}) values (:id, :client, '{{}}', '[]', :now, :now)",
            {"id": session, "client": client, "now": now},
        )
        return SessionRow(session, client, {}, (), now, now)

    @writes
    def touch(self, session: str, now: int) -> None:
        """Note that a session was used at this time."""
        self._db.run(
            "update sessions set used_at = greatest(used_at, :now) where id = :id", {"now": now, "id": session}
        )

    @writes
    def end(self, session: str) -> bool:
        """Remove a session with all it remembers, and return whether there was one."""
        return self._drop([session]) > 0

    @writes
    def change_defaults(self, session: str, changes: Mapping[str, JSON], now: int) -> dict[str, JSON]:
        """Merge changes into a session's defaults, None removing one, and return them."""
        row = self._find(session)
        merged = {**(row.defaults if row else {}), **changes}
        defaults = {name: value for name, value in merged.items() if value is not None}
        self._db.run(
            "update sessions set defaults = :defaults, used_at = greatest(used_at, :now) where id = :id",
            {"defaults": json.dumps(defaults), "now": now, "id": session},
        )
        return defaults

    @reads
    def kept_list(self, session: str, key: str) -> SessionList | None:
        """Return a list that a session may continue, by its key, or None."""
        query = "select without, replayed from session_lists where session = :session and key = :key"
        row = self._db.row(query, {"session": session, "key": key})
        return SessionList(json.loads(row[0]), bool(row[1])) if row else None

    @reads
    def seen(self, session: str) -> list[str]:
        """Return the URIs that a session has seen, oldest first."""
        query = "select uri from session_uris where session = :session order by position"
        return [uri for (uri,) in self._db.all(query, {"session": session})]

    @writes
    def mark(self, session: str, returned: Returned, *, now: int, most_uris: int) -> int | None:
        """Store what a call has returned, in one transaction, and return how many URIs its session has seen.

        It keeps at most `most_uris`. Return None, and change nothing, where another call has meanwhile returned some
        of what counts as unseen.
        """
        row = self._find(session)
        if row is None:
            return 0  # it was ended while the call was at work
        if returned.unseen and self._any_seen(session, returned.uris):
            return None
        self._see(session, returned.uris, most_uris)
        self._keep_list(session, returned)
        queries = list(dict.fromkeys((returned.query, *row.queries)))[:MOST_QUERIES]
        self._db.run(
            "update sessions set queries = :queries, used_at = greatest(used_at, :now) where id = :id",
            {"queries": json.dumps(queries), "now": now, "id": session},
        )
        total = self._db.row("select count(*) from session_uris where session = :session", {"session": session})
        return int(total[0]) if total else 0

    def _find(self, session: str) -> SessionRow | None:
        row = self._db.row(f"select {_COLUMNS} from sessions where id = :id", {"id": session})
        if row is None:
            return None
        identity, client, defaults, queries, created_at, used_at = row
        return SessionRow(identity, client, json.loads(defaults), tuple(json.loads(queries)), created_at, used_at)

    def _sweep(self, session: str, since: int, most: int) -> None:
        """Make room for a session: remove what has expired, and then the least recently used."""
        rows = self._db.all(
            """select id from sessions where used_at < :since or id = :id
               union select id from (select id from sessions where used_at >= :since and id <> :id
                                     order by used_at desc, id limit :all offset :most) as surplus""",
            {"since": since, "id": session, "most": max(most, 0), "all": NO_LIMIT},
        )
        self._drop([identity for (identity,) in rows])

    def _drop(self, sessions: Sequence[str]) -> int:
        """Remove sessions with all they remember, and return how many there were."""
        gone = {"gone": sessions}
        self._db.run("delete from session_uris where session in each(:gone text)", gone)
        self._db.run("delete from session_lists where session in each(:gone text)", gone)
        return len(self._db.all("delete from sessions where id in each(:gone text) returning id", gone))

    def _any_seen(self, session: str, uris: Sequence[str]) -> bool:
        query = "select 1 from session_uris where session = :session and uri in each(:uris text) limit 1"
        return self._db.row(query, {"session": session, "uris": uris}) is not None

    def _see(self, session: str, uris: Sequence[str], most: int) -> None:
        """Put these URIs after all that the session has seen, and remove all but the newest."""
        last_of_each = reversed(dict.fromkeys(reversed(uris)))
        places = [(uri,) for uri in last_of_each]
        self._db.run(_SEE, {"session": session, "uris": places, "again": uris})
        self._cut("session_uris", session, most)

    def _keep_list(self, session: str, returned: Returned) -> None:
        values = {"session": session, "key": returned.key}
        if begun := returned.begun:
            self._db.run(
                """insert into session_lists (session, key, position, without, replayed)
                   values (:session, :key, 0, :without, :replayed)
                   on conflict key(session, key) do update
                   set position = 0, without = excluded.without, replayed = excluded.replayed""",
                {**values, "without": json.dumps(list(begun.without)), "replayed": begun.replayed},
            )
        self._db.run(
            """update session_lists
               set position = (select max(position) + 1 from session_lists where session = :session)
               where session = :session and key = :key""",
            values,
        )
        self._cut("session_lists", session, MOST_LISTS)

    def _cut(self, table: str, session: str, most: int) -> None:
        """Remove all but the newest."""
        self._db.run(
            f"""delete from {table} where session = :session and position <=
                  (select position from {table} where session = :session
                   order by position desc limit 1 offset :most)""",
            {"session": session, "most": most},
        )
