"""The keys of instances: 256 random bits, shown once, stored as a digest.

A key names its space, the only one it opens.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets

PREFIX = "cpi"
_KEY = re.compile(rf"{PREFIX}_([a-z0-9][a-z0-9._-]{{0,63}})_([0-9a-f]{{64}})")


def new_key(space: str) -> str:
    """Return a new key for a space."""
    return f"{PREFIX}_{space}_{secrets.token_hex(32)}"


def space_of(key: str) -> str | None:
    """Return the space that a key names; None for a text that is no key."""
    match = _KEY.fullmatch(key)
    return match.group(1) if match else None


def digest(key: str) -> bytes:
    """Return the SHA-256 digest of a key."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()


def is_key_of(key: str, stored_digest: bytes) -> bool:
    """Return whether a key has this digest, comparing in constant time."""
    return hmac.compare_digest(digest(key), stored_digest)
