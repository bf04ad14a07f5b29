"""The users and keys of a shared server, kept in the database that its servers share."""

from __future__ import annotations

import hmac
import json
import secrets
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from commonplace.errors import InvalidInput, NotFound
from commonplace.store.accounts import (
    _KEY,
    _NO_DIGEST,
    Grant,
    Key,
    User,
    _digest,
    _end,
    _key,
    _micros,
    _name,
    _no_user,
    _now,
    _scopes,
    _time,
)
from commonplace.store.postgres.items import Items, reads, writes
from commonplace.store.postgres.schema import check, migrate

SPACE = "@accounts"
"""No space of a user's can have this name, so nothing that is done in one sees who the others are."""

_COLUMNS = 'id, "user", scopes, label, created_at, expires_at, revoked_at, collections'


class PostgresAccounts(Items):
    """The same as `Accounts`, for any number of servers."""

    def __init__(self, url: str, *, owner: str = "", connections: int = 20, space: str = SPACE) -> None:
        if owner:
            migrate(owner, url)
        check(url, connections)
        super().__init__(url, space, connections)

    @writes
    def add_user(self, name: str, space: str | None = None) -> User:
        user = User(_name("user", name), _name("space", name if space is None else space), _time(_now()))
        if self._one("select 1 from users where name = %s", (name,)):
            raise InvalidInput(f"There is already a user {name}. Choose another name.")
        self._run(
            "insert into users (name, works_in, created_at) values (%s, %s, %s)",
            (user.name, user.space, _micros(user.created_at)),
        )
        return user

    @reads
    def users(self) -> list[User]:
        rows = self._all("select name, works_in, created_at from users order by name")
        return [User(name, space, _time(created)) for name, space, created in rows]

    @writes
    def remove_user(self, name: str) -> User:
        rows = self._all("delete from users where name = %s returning name, works_in, created_at", (name,))
        if not rows:
            raise _no_user(name)
        self._run('update keys set revoked_at = %s where "user" = %s and revoked_at is null', (_now(), name))
        return User(rows[0][0], rows[0][1], _time(rows[0][2]))

    @writes
    def create_key(
        self,
        user: str,
        scopes: Iterable[str] = ("read",),
        label: str = "",
        expires_in: timedelta | None = None,
        collections: Iterable[str] = (),
    ) -> str:
        kept, public, secret, now = " ".join(_scopes(scopes)), secrets.token_hex(6), secrets.token_urlsafe(32), _now()
        expires = _end(label, expires_in, now)
        if not self._one("select 1 from users where name = %s", (user,)):
            raise _no_user(user)
        self._run(
            f"insert into keys (digest, {_COLUMNS}) values (%s, %s, %s, %s, %s, %s, %s, null, %s)",
            (_digest(secret), public, user, kept, label, now, expires, json.dumps(list(collections))),
        )
        return f"cp_{public}_{secret}"

    @reads
    def keys(self, user: str | None = None) -> list[Key]:
        among = "" if user is None else 'where "user" = %(user)s'
        rows = self._all(f'select {_COLUMNS} from keys {among} order by "user", created_at, id', {"user": user})
        return [_key(row) for row in rows]

    @writes
    def revoke(self, key_id: str) -> Key:
        self._run("update keys set revoked_at = %s where id = %s and revoked_at is null", (_now(), key_id))
        rows = self._all(f"select {_COLUMNS} from keys where id = %s", (key_id,))
        if not rows:
            raise NotFound(f"There is no key {key_id}. `commonplace keys list` shows them.")
        return _key(rows[0])

    @reads
    def verify(self, key: str) -> Grant | None:
        parts = _KEY.fullmatch(key)
        public, secret = parts.groups() if parts else ("", "")
        rows: Any = self._all(
            """select digest, revoked_at, expires_at, name, works_in, scopes, collections
               from keys join users on name = "user" where id = %s""",
            (public,),
        )
        nobody = (_NO_DIGEST, None, None, "", "", "", "[]")
        digest, revoked, expires, name, space, scopes, collections = rows[0] if rows else nobody
        same = hmac.compare_digest(_digest(secret), digest)
        if not rows or not same or revoked is not None or (expires is not None and expires <= _now()):
            return None
        return Grant(name, space, frozenset(scopes.split()), tuple(json.loads(collections)))
