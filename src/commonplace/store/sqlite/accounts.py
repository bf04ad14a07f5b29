"""Users and keys in a SQLite file, one for each home."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

from commonplace.store.accounts import (
    IDLE_US,
    TOUCH_US,
    Grant,
    Key,
    User,
    checked_name,
    digest_of,
    expiry,
    grant_from,
    granted,
    is_login,
    joined_scopes,
    key_from,
    new_key,
    new_login,
    split_key,
    taken_user,
    unknown_key,
    unknown_user,
)
from commonplace.store.shaping import moment, now_micros
from commonplace.store.sqlite.connection import SqliteDatabase, explained

_COLUMNS = "id, user, scopes, label, created_at, expires_at, revoked_at, collections"


class Accounts:
    """The users and keys of a home. Any number of threads and processes may share the file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with explained(path):
            _make_private(path)
        self._database = SqliteDatabase(path, "accounts_migrations")

    def close(self) -> None:
        self._database.close()

    def add_user(self, name: str, space: str | None = None) -> User:
        """Add a user, whose space has their own name unless another is given. Raise InvalidInput for a taken name."""
        now = now_micros()
        user = User(checked_name("user", name), checked_name("space", name if space is None else space), moment(now))
        with explained(self.path), self._database.writing() as db:
            if db.execute("select 1 from users where name = ?", (name,)).fetchone():
                raise taken_user(name)
            db.execute("insert into users values (?, ?, ?)", (user.name, user.space, now))
        return user

    def users(self) -> list[User]:
        """Return all users by name."""
        with explained(self.path):
            rows: list[Any] = (
                self._database.reading().execute("select name, space, created_at from users order by name").fetchall()
            )
        return [User(name, space, moment(created)) for name, space, created in rows]

    def remove_user(self, name: str) -> User:
        """Remove a user and revoke their keys for good; return who it was. What is in their space stays."""
        with explained(self.path), self._database.writing() as db:
            row: Any = db.execute("select name, space, created_at from users where name = ?", (name,)).fetchone()
            if row is None:
                raise unknown_user(name)
            db.execute("delete from users where name = ?", (name,))
            db.execute("update keys set revoked_at = ? where user = ? and revoked_at is null", (now_micros(), name))
        return User(row[0], row[1], moment(row[2]))

    def create_key(
        self,
        user: str,
        scopes: Iterable[str] = ("read",),
        label: str = "",
        expires_in: timedelta | None = None,
        collections: Iterable[str] = (),
    ) -> str:
        """Return a new key. This is the only time it can be seen: what is stored cannot be turned back."""
        scope_text, key, now = joined_scopes(scopes), new_key(), now_micros()
        expires_at = expiry(label, expires_in, now)
        with explained(self.path), self._database.writing() as db:
            if not db.execute("select 1 from users where name = ?", (user,)).fetchone():
                raise unknown_user(user)
            db.execute(
                f"insert into keys (digest, {_COLUMNS}) values (?, ?, ?, ?, ?, ?, ?, null, ?)",
                (
                    digest_of(key.secret), key.id, user, scope_text, label, now, expires_at,
                    json.dumps(list(collections)),
                ),
            )  # fmt: skip
        return key.text

    def keys(self, user: str | None = None) -> list[Key]:
        """Return every key ever made, revoked ones too; those of one user where one is named."""
        query = f"select {_COLUMNS} from keys where ?1 is null or user = ?1 order by user, created_at, id"
        with explained(self.path):
            rows: list[Any] = self._database.reading().execute(query, (user,)).fetchall()
        return [key_from(row) for row in rows]

    def revoke(self, key_id: str) -> Key:
        """End a key and return it. It counts from the next request on, in every process; twice changes nothing."""
        with explained(self.path), self._database.writing() as db:
            db.execute("update keys set revoked_at = ? where id = ? and revoked_at is null", (now_micros(), key_id))
            row: Any = db.execute(f"select {_COLUMNS} from keys where id = ?", (key_id,)).fetchone()
        if row is None:
            raise unknown_key(key_id)
        return key_from(row)

    def verify(self, key: str) -> Grant | None:
        """Return what a key stands for; None where it is malformed, unknown, expired or revoked.

        Each of these takes about the same time.
        """
        parts = split_key(key)
        with explained(self.path):
            row: Any = (
                self._database.reading()
                .execute(
                    """select digest, revoked_at, expires_at, name, space, scopes, collections
                       from keys join users on name = user where id = ?""",
                    (parts.id,),
                )
                .fetchone()
            )
        return grant_from(row, parts.secret, now_micros())

    def log_in(self, key: str) -> str | None:
        """Return the cookie of a new login that stands for a key; None where `verify` knows no such key."""
        if self.verify(key) is None:
            return None
        login, now = new_login(), now_micros()
        with explained(self.path), self._database.writing() as db:
            db.execute("delete from logins where used_at <= ?", (now - IDLE_US,))
            db.execute("insert into logins values (?, ?, ?)", (digest_of(login), split_key(key).id, now))
        return login

    def verify_login(self, login: str) -> Grant | None:
        """Return what the key of a login stands for, and note the use; None where either has ended."""
        if not is_login(login):
            return None
        digest, now = digest_of(login), now_micros()
        with explained(self.path):
            row: Any = (
                self._database.reading()
                .execute(
                    """select used_at, revoked_at, expires_at, name, space, scopes, collections
                       from logins join keys on keys.id = key join users on name = user
                       where logins.digest = ? and used_at > ?""",
                    (digest, now - IDLE_US),
                )
                .fetchone()
            )
            if row is None:
                return None
            if row[0] < now - TOUCH_US:
                with self._database.writing() as db:
                    db.execute("update logins set used_at = ? where digest = ?", (now, digest))
        return granted(row[1:], now)

    def log_out(self, login: str) -> None:
        """End a login; twice changes nothing."""
        if is_login(login):
            with explained(self.path), self._database.writing() as db:
                db.execute("delete from logins where digest = ?", (digest_of(login),))


def _make_private(path: Path) -> None:
    """Make the file, its owner's alone from the first moment; SQLite gives its companions the same mode.

    An existing file is never opened here: closing it would drop the locks of this process's own connections.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    if path.is_file() and path.stat().st_mode & 0o077:
        path.chmod(0o600)
