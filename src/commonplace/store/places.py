"""Where in a table something is: the places it is inside of, as an index and a database look them up."""

from __future__ import annotations

import hashlib
from functools import lru_cache

LONGEST_HASH = 24
KEPT = 1_000
"""Places whose hashes are kept at hand: what is indexed together is mostly inside the same ones."""


def escaped(token: str) -> str:
    """A key as a JSON Pointer writes it (RFC 6901)."""
    return token.replace("~", "~0").replace("/", "~1") if "~" in token or "/" in token else token


def around(pointer: str) -> list[str]:
    """Every place a pointer is inside of, the whole value first, itself last. The pointer is a valid one."""
    parts = pointer.split("/")
    return ["/".join(parts[:end]) for end in range(1, len(parts) + 1)]


@lru_cache(KEPT)
def scope_hash(pointer: str) -> str:
    """A place as indexes know it: keys may be long."""
    return hashlib.sha256(pointer.encode("utf-8")).hexdigest()[:LONGEST_HASH]


@lru_cache(KEPT)
def place_number(table: str, generation: int, pointer: str) -> int:
    """A place of one generation of a table as the store looks it up: 63 bits."""
    digest = hashlib.sha256(f"{table}.{generation}.{pointer}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1
