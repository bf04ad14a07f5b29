"""Who may call a shared server: users, the spaces they work in, and the keys they call with. One file per home."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import secrets
import time
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal, NamedTuple

from commonplace.errors import InvalidInput, NotFound
from commonplace.lazy_dataclass import dataclass
from commonplace.store.sqlite.connection import Database, explained

FILE = "accounts.db"
SCOPES = ("read", "write", "admin")
"""What a key may allow. Each implies those before it."""
LONGEST_LABEL = 100
LONGEST_LIFE = timedelta(days=36_500)

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_KEY = re.compile(r"cp_([0-9a-f]{12})_([A-Za-z0-9_-]{43})")
_NO_DIGEST = bytes(32)
_COLUMNS = "id, user, scopes, label, created_at, expires_at, revoked_at, collections"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class User:
    """Someone who may call. Their items are those of their space; several users may share one."""

    name: str
    space: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Key:
    """A key as it may be shown: all but its secret."""

    id: str
    user: str
    scopes: tuple[str, ...]
    label: str
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    collections: tuple[str, ...] = ()
    """The only collections of documents it shows; none: everything in the space."""

    @property
    def state(self) -> Literal["active", "expired", "revoked"]:
        if self.revoked_at is not None:
            return "revoked"
        return "expired" if self.expires_at is not None and self.expires_at <= datetime.now(UTC) else "active"


class Grant(NamedTuple):
    """What a valid key stands for."""

    user: str
    space: str
    scopes: frozenset[str]
    collections: tuple[str, ...] = ()


class Accounts:
    """The users and keys of a home. Any number of threads and processes may share the file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with explained(path):
            _make_private(path)
        self._database = Database(path, "accounts_migrations")

    def close(self) -> None:
        self._database.close()

    def add_user(self, name: str, space: str | None = None) -> User:
        """Add a user. Without a space of another name, theirs is named as they are."""
        user = User(_name("user", name), _name("space", name if space is None else space), _time(_now()))
        with explained(self.path), self._database.writing() as db:
            if db.execute("select 1 from users where name = ?", (name,)).fetchone():
                raise InvalidInput(f"There is already a user {name}. Choose another name.")
            db.execute("insert into users values (?, ?, ?)", (user.name, user.space, _micros(user.created_at)))
        return user

    def users(self) -> list[User]:
        with explained(self.path):
            rows: list[Any] = (
                self._database.reading().execute("select name, space, created_at from users order by name").fetchall()
            )
        return [User(name, space, _time(created)) for name, space, created in rows]

    def remove_user(self, name: str) -> User:
        """Remove a user and revoke their keys for good. What is in their space stays."""
        with explained(self.path), self._database.writing() as db:
            row: Any = db.execute("select name, space, created_at from users where name = ?", (name,)).fetchone()
            if row is None:
                raise _no_user(name)
            db.execute("delete from users where name = ?", (name,))
            db.execute("update keys set revoked_at = ? where user = ? and revoked_at is null", (_now(), name))
        return User(row[0], row[1], _time(row[2]))

    def create_key(
        self,
        user: str,
        scopes: Iterable[str] = ("read",),
        label: str = "",
        expires_in: timedelta | None = None,
        collections: Iterable[str] = (),
    ) -> str:
        """Make a key and return it. This is the only time it can be seen: what is kept cannot be turned back."""
        kept = " ".join(_scopes(scopes))
        public, secret, now = secrets.token_hex(6), secrets.token_urlsafe(32), _now()
        expires = _end(label, expires_in, now)
        with explained(self.path), self._database.writing() as db:
            if not db.execute("select 1 from users where name = ?", (user,)).fetchone():
                raise _no_user(user)
            db.execute(
                f"insert into keys (digest, {_COLUMNS}) values (?, ?, ?, ?, ?, ?, ?, null, ?)",
                (_digest(secret), public, user, kept, label, now, expires, json.dumps(list(collections))),
            )
        return f"cp_{public}_{secret}"

    def keys(self, user: str | None = None) -> list[Key]:
        """Every key ever made, revoked ones too; those of one user where one is named."""
        query = f"select {_COLUMNS} from keys where ?1 is null or user = ?1 order by user, created_at, id"
        with explained(self.path):
            rows: list[Any] = self._database.reading().execute(query, (user,)).fetchall()
        return [_key(row) for row in rows]

    def revoke(self, key_id: str) -> Key:
        """End a key. It counts from the next request on, in every process. Revoking twice changes nothing."""
        with explained(self.path), self._database.writing() as db:
            db.execute("update keys set revoked_at = ? where id = ? and revoked_at is null", (_now(), key_id))
            row: Any = db.execute(f"select {_COLUMNS} from keys where id = ?", (key_id,)).fetchone()
        if row is None:
            raise NotFound(f"There is no key {key_id}. `commonplace keys list` shows them.")
        return _key(row)

    def verify(self, key: str) -> Grant | None:
        """Whose key this is; None where it is malformed, unknown, expired or revoked, all at about the same cost."""
        parts = _KEY.fullmatch(key)
        public, secret = parts.groups() if parts else ("", "")
        with explained(self.path):
            row: Any = (
                self._database.reading()
                .execute(
                    """select digest, revoked_at, expires_at, name, space, scopes, collections
                       from keys join users on name = user where id = ?""",
                    (public,),
                )
                .fetchone()
            )
        digest, revoked, expires, name, space, scopes, collections = row or (_NO_DIGEST, None, None, "", "", "", "[]")
        same = hmac.compare_digest(_digest(secret), digest)
        if row is None or not same or revoked is not None or (expires is not None and expires <= _now()):
            return None
        return Grant(name, space, frozenset(scopes.split()), tuple(json.loads(collections)))


def _make_private(path: Path) -> None:
    """The file is its owner's alone from the first moment; SQLite gives its companions the same mode.

    An existing file is never opened here: closing it would drop the locks of this process's own connections.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    if path.is_file() and path.stat().st_mode & 0o077:
        path.chmod(0o600)


def _name(what: str, name: str) -> str:
    if not _NAME.fullmatch(name):
        raise InvalidInput(
            f"A {what} is named with a-z, 0-9, dots, dashes and underscores, 64 at most and first a letter or digit, "
            f"not {name!r}."
        )
    return name


def _scopes(scopes: Iterable[str]) -> list[str]:
    given = set(scopes)
    if not given or not given <= set(SCOPES):
        raise InvalidInput(f"A key's scopes are {', '.join(SCOPES)}: at least one of them, and nothing else.")
    return [scope for scope in SCOPES if scope in given]


def _end(label: str, expires_in: timedelta | None, now: int) -> int | None:
    """When a key ends, once its label and its life are found to be fit."""
    if len(label) > LONGEST_LABEL or not label.isprintable():
        raise InvalidInput(f"A label has at most {LONGEST_LABEL} printable characters. Choose a shorter one.")
    if expires_in is not None and not timedelta(0) < expires_in <= LONGEST_LIFE:
        raise InvalidInput(f"A key expires in the future, within {LONGEST_LIFE.days} days, or never.")
    return None if expires_in is None else now + expires_in // timedelta(microseconds=1)


def _no_user(name: str) -> NotFound:
    return NotFound(f"There is no user {name!r}. `commonplace users list` shows them.")


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("ascii")).digest()


def _key(row: Any) -> Key:
    name, user, scopes, label, created, expires, revoked, collections = row
    until, ended = (None if moment is None else _time(moment) for moment in (expires, revoked))
    held = tuple(scopes.split()), label, _time(created)
    return Key(name, user, *held, until, ended, tuple(json.loads(collections)))


def _now() -> int:
    return time.time_ns() // 1000


def _micros(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(microseconds=1)


def _time(micros: int) -> datetime:
    return _EPOCH + timedelta(microseconds=micros)
