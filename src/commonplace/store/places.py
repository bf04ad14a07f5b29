"""Places in a table and what they are inside of, as an index and a database look them up."""

from __future__ import annotations

import hashlib
from functools import lru_cache

from commonplace.store.shredding import index_of
from commonplace.store.table_rows import DirtyRow

LONGEST_HASH = 24
KEPT = 1_000
"""Places whose hashes are kept at hand: what is indexed together is mostly inside the same ones."""


def escaped(token: str) -> str:
    """Return a key as a JSON Pointer writes it (RFC 6901)."""
    return token.replace("~", "~0").replace("/", "~1") if "~" in token or "/" in token else token


def plain(pointer: str) -> str:
    """Return a pointer as items have it: without U+0000, which the store takes in no text of theirs.

    No pointer has a tilde before anything but 0 and 1, so that nothing is taken for another.
    """
    return pointer.replace("\0", "~n")


def around(pointer: str) -> list[str]:
    """Return every place a pointer is inside of, the whole value first, itself last. The pointer is a valid one."""
    parts = pointer.split("/")
    return ["/".join(parts[:end]) for end in range(1, len(parts) + 1)]


def is_stale(pointer: str, dirty: DirtyRow) -> bool:
    """Return whether what is indexed at a place, written as items have it, may differ from the data by now."""
    place = plain(dirty.pointer)
    if dirty.alone or dirty.first is None:
        return pointer == place if dirty.alone else True
    element = index_of(pointer[len(place) + 1 :].partition("/")[0])
    return pointer != place and (element is None or element >= dirty.first)


@lru_cache(KEPT)
def scope_hash(pointer: str) -> str:
    """Return a place as indexes know it: hexadecimal digits, as keys may be long."""
    return hashlib.sha256(pointer.encode("utf-8")).hexdigest()[:LONGEST_HASH]


@lru_cache(KEPT)
def place_number(table: str, generation: int, pointer: str) -> int:
    """Return a place of one generation of a table as the store looks it up: 63 bits."""
    digest = hashlib.sha256(f"{table}.{generation}.{pointer}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1
