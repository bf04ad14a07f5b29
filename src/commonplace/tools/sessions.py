"""Sessions: what one caller has seen, asked for last, and wants by default.

A session lives in the space's own store, so it survives a restart and any process can serve it. `find` only reads;
everything a call has to remember is one transaction at its end.
"""

from __future__ import annotations

import json
import re
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from commonplace.errors import Busy, InvalidInput
from commonplace.model import JSON, fingerprint
from commonplace.settings import Settings
from commonplace.store.base import Store
from commonplace.store.session_marks import Returned, SessionList, SessionMarks, SessionRow
from commonplace.tools.soft_config import read_defaults

NEW = "new"
"""The handle for a new session with an id nobody can guess."""
MOST_ATTEMPTS = 50
"""How often a page is computed again because other calls of its session returned a part of it first."""
_TOUCHES_PER_LIFE = 60
_HANDLE = re.compile(r"[A-Za-z0-9._:-]{1,128}")
_LONGEST_CLIENT = 200

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SearchAnswer(Generic[T]):
    """The answer of a search that left some URIs out, and its counts."""

    answer: T
    uris: Sequence[str]
    """The URIs in the answer, in its order."""
    found: int
    """The number of known matches, without those left out: `Page.found`."""
    skipped: int = 0
    """The number of matches left out: `Page.skipped`."""


@dataclass(frozen=True, slots=True)
class SessionReport:
    """The part of a reply that is about its session."""

    id: str
    seen: int
    """The number of URIs the session has seen, this reply's included."""
    skipped: int
    """The number of matches left out because the session had seen them."""
    replayed: bool
    """Whether the session had seen all matches, so that they are shown again."""

    def record(self) -> dict[str, JSON]:
        return {"id": self.id, "seen": self.seen, "skipped": self.skipped, "replayed": self.replayed}


@dataclass(frozen=True, slots=True)
class ResultList:
    """A list of results of one session, as one of its pages needs it."""

    key: str
    without: frozenset[str]
    """The URIs that every page of this list leaves out."""
    begins: bool
    """Whether this page is the first of the list."""
    replayed: bool = False
    dedupe: bool = True

    def unfiltered(self) -> ResultList:
        """Return the same list with nothing left out."""
        return replace(self, without=frozenset(), replayed=True)


@dataclass(frozen=True, slots=True)
class Session:
    """One caller's session, as stored when it was looked up."""

    id: str
    client: str
    defaults: Mapping[str, JSON]
    recent_queries: tuple[str, ...]
    """Newest first."""
    used_at: int
    _sessions: Sessions = field(repr=False, compare=False)
    clamped: frozenset[str] = frozenset()
    """Defaults that were set out of range in this very call."""

    @property
    def fades(self) -> bool:
        """True if it is time to store that the session is in use."""
        return self._sessions.fades(self)

    def touch(self) -> None:
        """Store that the session is in use. Writes seldom: at most 60 times in the lifetime of an unused session."""
        self._sessions.touch(self)

    def set_defaults(self, changes: Mapping[str, JSON]) -> Session:
        """Merge defaults, None removing one, and return the session with them. Numbers are moved into their range."""
        values, clamped = read_defaults(changes)
        return replace(self, defaults=self._sessions.change_defaults(self.id, values), clamped=clamped)

    def asked(self, query: str) -> SessionReport:
        """Store the query of a search that leaves nothing out and marks nothing as seen."""
        return SessionReport(self.id, self._sessions.asked(self.id, query), 0, replayed=False)

    def begin(self, listing: JSON, offset: int, *, dedupe: bool = True) -> ResultList:
        """Return the list that a page belongs to. `listing` is all that tells one list from another.

        Offset 0 begins a list: what has been seen by now is left out of all its pages. Later pages go on with it, or
        begin one where it is not known (any more).
        """
        return self._sessions.begin(self.id, _key(listing), offset, dedupe=dedupe)

    def returned(
        self, listing: ResultList, query: str, uris: Sequence[str], *, skipped: int = 0, most_uris: int | None = None
    ) -> SessionReport | None:
        """Store what a page returned, in one step. Return None if another call returned some of it first."""
        seen = self._sessions.mark(self.id, listing, query, uris, most_uris)
        return None if seen is None else SessionReport(self.id, seen, skipped, listing.replayed)


class Sessions:
    """The sessions of one space, as one of its callers sees them: the same handle of another is another session."""

    def __init__(
        self, store: Store, settings: Settings, clock: Callable[[], float] = time.time, *, owner: str = ""
    ) -> None:
        self._store = store
        self._marks = store.drawer(SessionMarks)
        self._settings = settings
        self._prefix = f"{fingerprint(owner).hex()}/" if owner else ""  # no handle has a slash
        self._most, self._most_uris = settings.session_max, settings.session_max_uris
        self._life = settings.session_ttl_seconds * 1_000_000
        self._clock = clock

    def of(self, owner: str) -> Sessions:
        """Return the sessions of one caller, where several share a space."""
        return Sessions(self._store, self._settings, self._clock, owner=owner)

    def open(self, handle: str, client: str = "") -> Session:
        """Return the session with the caller's own handle, created on first use; `new` creates one nobody can guess."""
        handle = _new_handle() if handle == NEW else _require_handle(handle)
        session = self.find(handle)
        if session is None:
            return self._add(handle, client)
        session.touch()
        return session

    def issue(self, id: str | None = None, client: str = "") -> str:
        """Begin a session under an id that the server generated, here or in a transport, and return the id.

        Where it is alive already, the client goes on with it, under its own name.
        """
        return self._add(_new_handle() if id is None else _require_handle(id), client).id

    def find(self, id: str) -> Session | None:
        """Return the session of this id if it is alive, else None. One quick read and never a write."""
        row = self._marks.find(self._prefix + id) if _HANDLE.fullmatch(id) else None
        return self._session(row) if row is not None and row.used_at >= self._since() else None

    def end(self, id: str) -> bool:
        """Remove a session with all it remembers. Return False when none is alive."""
        alive = self.find(id) is not None
        return self._marks.end(self._prefix + id) and alive if _HANDLE.fullmatch(id) else False

    # the methods a Session calls

    def fades(self, session: Session) -> bool:
        return self._now() - session.used_at > self._life // _TOUCHES_PER_LIFE

    def touch(self, session: Session) -> None:
        if self.fades(session):
            self._marks.touch(self._prefix + session.id, self._now())

    def change_defaults(self, id: str, changes: Mapping[str, JSON]) -> Mapping[str, JSON]:
        return self._marks.change_defaults(self._prefix + id, changes, self._now())

    def asked(self, id: str, query: str) -> int:
        returned = Returned(query, (), "")
        return self._marks.mark(self._prefix + id, returned, now=self._now(), most_uris=self._most_uris) or 0

    def begin(self, id: str, key: str, offset: int, *, dedupe: bool) -> ResultList:
        known = self._marks.kept_list(self._prefix + id, key) if offset else None
        if not dedupe:
            return ResultList(key, frozenset(), begins=known is None, dedupe=False)
        if known is not None:
            return ResultList(key, frozenset(known.without), begins=False, replayed=known.replayed)
        return ResultList(key, frozenset(self._marks.seen(self._prefix + id)), begins=True)

    def mark(self, id: str, listing: ResultList, query: str, uris: Sequence[str], most_uris: int | None) -> int | None:
        begun = SessionList(sorted(listing.without), listing.replayed) if listing.begins else None
        unseen = listing.begins and listing.dedupe and not listing.replayed
        returned = Returned(query, uris, listing.key, begun, unseen)
        return self._marks.mark(self._prefix + id, returned, now=self._now(), most_uris=most_uris or self._most_uris)

    def _add(self, id: str, client: str) -> Session:
        name, key = client[:_LONGEST_CLIENT].encode("utf-8", "replace").decode(), self._prefix + id
        return self._session(self._marks.add(key, name, now=self._now(), since=self._since(), most=self._most))

    def _session(self, row: SessionRow) -> Session:
        return Session(row.id.removeprefix(self._prefix), row.client, row.defaults, row.queries, row.used_at, self)

    def _now(self) -> int:
        return int(self._clock() * 1_000_000)

    def _since(self) -> int:
        return self._now() - self._life


def deduped(
    session: Session | None,
    run: Callable[[frozenset[str]], SearchAnswer[T]],
    *,
    query: str,
    listing: JSON,
    offset: int,
    dedupe: bool = True,
    most_uris: int | None = None,
) -> tuple[T, SessionReport | None]:
    """Search without what the session has seen, and store what is returned. Without a session, only search.

    `run` searches with these URIs left out, before its limit, and makes its answer. It runs again, with nothing left
    out, when matches exist but all have been seen; and when another call of the session returned some of them first.
    """
    if session is None:
        return run(frozenset()).answer, None
    for _ in range(MOST_ATTEMPTS):
        page = session.begin(listing, offset, dedupe=dedupe)
        search = run(page.without)
        if page.begins and search.skipped and not search.found:
            page = page.unfiltered()
            search = run(page.without)
        report = session.returned(page, query, search.uris, skipped=search.skipped, most_uris=most_uris)
        if report is not None:
            return search.answer, report
    raise Busy("Too many searches share this session at once. Repeat the call, or give each its own session.")


def _new_handle() -> str:
    return secrets.token_urlsafe(24)


def _require_handle(handle: str) -> str:
    if not _HANDLE.fullmatch(handle):
        raise InvalidInput(
            "session must be 1 to 128 characters of A-Z, a-z, 0-9, dot, colon, dash and underscore, or new.",
            argument="session",
        )
    return handle


def _key(listing: JSON) -> str:
    return fingerprint(json.dumps(listing, sort_keys=True)).hex()
