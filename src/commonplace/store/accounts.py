"""Users of a shared server, the spaces they work in, and the keys they call with: what both databases agree on."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, NamedTuple

from commonplace.errors import Command, InvalidInput, NotFound
from commonplace.store.shaping import moment

FILE = "accounts.db"
"""The file in a home that holds its users and keys."""
SCOPES = ("read", "write", "admin")
"""The scopes a key can have. Each implies those before it."""
LONGEST_LABEL = 100
LONGEST_LIFE = timedelta(days=36_500)
IDLE_US = 12 * 3600 * 1_000_000
"""How long a login to the page lasts without being used, in microseconds."""
TOUCH_US = 60 * 1_000_000
"""How long a use of a login is not noted again, in microseconds."""

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_KEY = re.compile(r"cp_([0-9a-f]{12})_([A-Za-z0-9_-]{43})")
_LOGIN = re.compile(r"[A-Za-z0-9_-]{43}")
_NO_DIGEST = bytes(32)


@dataclass(frozen=True, slots=True)
class User:
    """A user who may call the server. Their items are those of their space, which several users may share."""

    name: str
    space: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Key:
    """A key without its secret, so that it may be shown."""

    id: str
    user: str
    scopes: tuple[str, ...]
    label: str
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    collections: tuple[str, ...] = ()
    """The only collections of documents that it shows; empty for everything in the space."""

    @property
    def state(self) -> Literal["active", "expired", "revoked"]:
        if self.revoked_at is not None:
            return "revoked"
        return "expired" if self.expires_at is not None and self.expires_at <= datetime.now(UTC) else "active"


class Grant(NamedTuple):
    """The user, space, scopes and collections that a valid key stands for."""

    user: str
    space: str
    scopes: frozenset[str]
    collections: tuple[str, ...] = ()


class NewKey(NamedTuple):
    """A key that was just made: the part that is shown, and the secret, of which only the digest is stored."""

    id: str
    secret: str

    @property
    def text(self) -> str:
        """Return the key as its user writes it."""
        return f"cp_{self.id}_{self.secret}"


def new_key() -> NewKey:
    """Return a random key."""
    return NewKey(secrets.token_hex(6), secrets.token_urlsafe(32))


def new_login() -> str:
    """Return a random text for the cookie of a login; only its digest is stored."""
    return secrets.token_urlsafe(32)


def is_login(text: str) -> bool:
    """Return whether a text may be the cookie of a login."""
    return _LOGIN.fullmatch(text) is not None


def split_key(key: str) -> NewKey:
    """Return the id and the secret of a key as its user writes it; two empty texts where it is malformed."""
    parts = _KEY.fullmatch(key)
    return NewKey(*parts.groups()) if parts else NewKey("", "")


def checked_name(kind: str, name: str) -> str:
    """Return the name of a user or a space. Raise InvalidInput, naming the `kind`, where it cannot be one."""
    if not _NAME.fullmatch(name):
        raise InvalidInput(
            f"A {kind} is named with a-z, 0-9, dots, dashes and underscores, 64 at most and first a letter or digit, "
            f"not {name!r}."
        )
    return name


def joined_scopes(scopes: Iterable[str]) -> str:
    """Return scopes in their order, joined by blanks. Raise InvalidInput where one is unknown or there is none."""
    wanted = set(scopes)
    if not wanted or not wanted <= set(SCOPES):
        raise InvalidInput(f"A key's scopes are {', '.join(SCOPES)}: at least one of them, and nothing else.")
    return " ".join(scope for scope in SCOPES if scope in wanted)


def expiry(label: str, expires_in: timedelta | None, now: int) -> int | None:
    """Return when a key ends, in microseconds since 1970, or None for never.

    Raise InvalidInput where its label is too long or cannot be printed, or its life is over already or too long.
    """
    if len(label) > LONGEST_LABEL or not label.isprintable():
        raise InvalidInput(f"A label has at most {LONGEST_LABEL} printable characters. Choose a shorter one.")
    if expires_in is not None and not timedelta(0) < expires_in <= LONGEST_LIFE:
        raise InvalidInput(f"A key expires in the future, within {LONGEST_LIFE.days} days, or never.")
    return None if expires_in is None else now + expires_in // timedelta(microseconds=1)


def taken_user(name: str) -> InvalidInput:
    """Return the error for a user who is there already."""
    return InvalidInput(f"There is already a user {name}. Choose another name.")


def unknown_user(name: str) -> NotFound:
    """Return the error for a user who is not there."""
    return NotFound(f"There is no user {name!r}. `", Command("users list"), "` shows them.")


def unknown_key(key_id: str) -> NotFound:
    """Return the error for a key that is not there."""
    return NotFound(f"There is no key {key_id}. `", Command("keys list"), "` shows them.")


def digest_of(secret: str) -> bytes:
    """Return the SHA-256 of a secret, which is what is stored of it."""
    return hashlib.sha256(secret.encode("ascii")).digest()


def key_from(row: Any) -> Key:
    """Return the key of a row: id, user, scopes, label, times of creation, expiry and revocation, collections."""
    key_id, user, scopes, label, created, expires, revoked, collections = row
    expires_at, revoked_at = (None if micros is None else moment(micros) for micros in (expires, revoked))
    shown = tuple(scopes.split()), label, moment(created)
    return Key(key_id, user, *shown, expires_at, revoked_at, tuple(json.loads(collections)))


def grant_from(row: Any, secret: str, now: int) -> Grant | None:
    """Return what a key stands for, or None where the secret is another, or the key has expired or was revoked.

    The row has: digest, times of revocation and expiry, user, space, scopes, collections. It is None for an unknown
    key, for which the secret is compared all the same, so that each refusal takes about as long.
    """
    digest = row[0] if row else _NO_DIGEST
    is_same = hmac.compare_digest(digest_of(secret), digest)
    return granted(row[1:], now) if row is not None and is_same else None


def granted(row: Any, now: int) -> Grant | None:
    """Return what a key stands for, or None where it has expired or was revoked.

    The row has: times of revocation and expiry, user, space, scopes, collections.
    """
    revoked, expires, user, space, scopes, collections = row
    if revoked is not None or (expires is not None and expires <= now):
        return None
    return Grant(user, space, frozenset(scopes.split()), tuple(json.loads(collections)))
