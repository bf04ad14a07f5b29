"""The users and keys of a shared server, kept in the database that its servers share."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import timedelta
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
from commonplace.store.postgres.items import PostgresItems, reads, writes
from commonplace.store.postgres.schema import check, migrate
from commonplace.store.shaping import moment, now_micros

SPACE = "@accounts"
"""No space of a user's can have this name, so nothing that is done in one sees who the others are."""

_COLUMNS = 'id, "user", scopes, label, created_at, expires_at, revoked_at, collections'


class PostgresAccounts(PostgresItems):
    """The users and keys of a home that any number of servers share; its methods are those of `Accounts`."""

    def __init__(self, url: str, *, owner: str = "", connections: int = 20, space: str = SPACE) -> None:
        if owner:
            migrate(owner, url)
        check(url, connections)
        super().__init__(url, space, connections)

    @writes
    def add_user(self, name: str, space: str | None = None) -> User:
        now = now_micros()
        user = User(checked_name("user", name), checked_name("space", name if space is None else space), moment(now))
        if self._one("select 1 from users where name = %s", (name,)):
            raise taken_user(name)
        self._run(
            "insert into users (name, works_in, created_at) values (%s, %s, %s)",
            (user.name, user.space, now),
        )
        return user

    @reads
    def users(self) -> list[User]:
        rows = self._all("select name, works_in, created_at from users order by name")
        return [User(name, space, moment(created)) for name, space, created in rows]

    @writes
    def remove_user(self, name: str) -> User:
        rows = self._all("delete from users where name = %s returning name, works_in, created_at", (name,))
        if not rows:
            raise unknown_user(name)
        self._run('update keys set revoked_at = %s where "user" = %s and revoked_at is null', (now_micros(), name))
        return User(rows[0][0], rows[0][1], moment(rows[0][2]))

    @writes
    def create_key(
        self,
        user: str,
        scopes: Iterable[str] = ("read",),
        label: str = "",
        expires_in: timedelta | None = None,
        collections: Iterable[str] = (),
    ) -> str:
        scope_text, key, now = joined_scopes(scopes), new_key(), now_micros()
        expires_at = expiry(label, expires_in, now)
        if not self._one("select 1 from users where name = %s", (user,)):
            raise unknown_user(user)
        self._run(
            f"insert into keys (digest, {_COLUMNS}) values (%s, %s, %s, %s, %s, %s, %s, null, %s)",
            (digest_of(key.secret), key.id, user, scope_text, label, now, expires_at, json.dumps(list(collections))),
        )
        return key.text

    @reads
    def keys(self, user: str | None = None) -> list[Key]:
        among = "" if user is None else 'where "user" = %(user)s'
        rows = self._all(f'select {_COLUMNS} from keys {among} order by "user", created_at, id', {"user": user})
        return [key_from(row) for row in rows]

    @writes
    def revoke(self, key_id: str) -> Key:
        self._run("update keys set revoked_at = %s where id = %s and revoked_at is null", (now_micros(), key_id))
        rows = self._all(f"select {_COLUMNS} from keys where id = %s", (key_id,))
        if not rows:
            raise unknown_key(key_id)
        return key_from(rows[0])

    @reads
    def verify(self, key: str) -> Grant | None:
        parts = split_key(key)
        rows = self._all(
            """select digest, revoked_at, expires_at, name, works_in, scopes, collections
               from keys join users on name = "user" where id = %s""",
            (parts.id,),
        )
        return grant_from(rows[0] if rows else None, parts.secret, now_micros())

    def log_in(self, key: str) -> str | None:
        return None if self.verify(key) is None else self._add_login(split_key(key).id)

    @writes
    def _add_login(self, key_id: str) -> str:
        login, now = new_login(), now_micros()
        self._run("delete from logins where used_at <= %s", (now - IDLE_US,))
        self._run("insert into logins (digest, key, used_at) values (%s, %s, %s)", (digest_of(login), key_id, now))
        return login

    def verify_login(self, login: str) -> Grant | None:
        if not is_login(login):
            return None
        now = now_micros()
        row = self._login(digest_of(login), now - IDLE_US)
        if row is None:
            return None
        if row[0] < now - TOUCH_US:
            self._touch_login(digest_of(login), now)
        return granted(row[1:], now)

    @reads
    def _login(self, digest: bytes, since: int) -> Any:
        rows = self._all(
            """select used_at, revoked_at, expires_at, name, works_in, scopes, collections
               from logins join keys on keys.id = key join users on name = "user"
               where logins.digest = %s and used_at > %s""",
            (digest, since),
        )
        return rows[0] if rows else None

    @writes
    def _touch_login(self, digest: bytes, now: int) -> None:
        self._run("update logins set used_at = %s where digest = %s", (now, digest))

    @writes
    def log_out(self, login: str) -> None:
        if is_login(login):
            self._run("delete from logins where digest = %s", (digest_of(login),))
