"""The keys of instances: 256 random bits, shown once, kept as a digest. A key names its space, and only that one."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets

PREFIX = "cpi"
_KEY = re.compile(rf"{PREFIX}_([a-z0-9][a-z0-9._-]{{0,63}})_([0-9a-f]{{64}})")


def new_key(space: str) -> str:
    return f"{PREFIX}_{space}_{secrets.token_hex(32)}"


def space_of(key: str) -> str | None:
    """The space a key says it is of; None where it is no key."""
    found = _KEY.fullmatch(key)
    return found.group(1) if found else None


def digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()


def is_key_of(key: str, kept: bytes) -> bool:
    """In constant time."""
    return hmac.compare_digest(digest(key), kept)
