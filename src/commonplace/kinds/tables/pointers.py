"""JSON Pointers (RFC 6901): places in a value, compared as tuples of tokens and never as strings.

What is indexed knows them as items and the database have them.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from functools import lru_cache

from commonplace.errors import InvalidInput
from commonplace.kinds.tables.rows import DirtyRow
from commonplace.kinds.tables.shredding import index_of

Tokens = tuple[str, ...]
_BAD_TILDE = re.compile(r"~(?![01])")
LONGEST = 100_000
KEPT = 1_000
"""Places whose numbers are kept at hand: what is indexed together is mostly inside the same ones."""


def parse(pointer: str, argument: str = "json_path") -> Tokens:
    """Return the tokens of a caller's pointer. Raise InvalidInput, with how to write it, where it is malformed."""
    if pointer == "":
        return ()
    if not pointer.startswith("/"):
        raise _refused(argument, pointer, _hint(pointer))
    if len(pointer) > LONGEST:
        raise _refused(argument, pointer[:40], f"a pointer has at most {LONGEST} characters")
    if _BAD_TILDE.search(pointer):
        raise _refused(argument, pointer, "write ~0 for ~ and ~1 for /; no other character follows ~")
    place = tokens(pointer)
    if "-" in place:
        raise _refused(argument, pointer, "- names the place after a list's end, where nothing is; use an index")
    return place


def tokens(pointer: str) -> Tokens:
    """Return the tokens of a pointer that was made here, whatever the keys. A caller's goes through `parse`."""
    if not pointer:
        return ()
    parts = pointer[1:].split("/")
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in parts) if "~" in pointer else tuple(parts)


def plain_tokens(pointer: str) -> Tokens:
    """Return the tokens of a pointer with U+0000 written as `~n`, as items have it."""
    return tokens(pointer.replace("~n", "\0"))


def render(place: Sequence[str | int]) -> str:
    """Return the pointer of these tokens."""
    return "".join(f"/{escaped(str(token))}" for token in place)


def escaped(token: str) -> str:
    """Return a key as a JSON Pointer writes it."""
    return token.replace("~", "~0").replace("/", "~1") if "~" in token or "/" in token else token


def plain(pointer: str) -> str:
    """Return a pointer as items have it: without U+0000, which the store takes in no text of theirs.

    No pointer has a tilde before anything but 0 and 1, so that nothing is taken for another.
    """
    return pointer.replace("\0", "~n")


def is_stale(pointer: str, dirty: DirtyRow) -> bool:
    """Return whether what is indexed at a place, written as items have it, may differ from the data by now."""
    place = plain(dirty.pointer)
    if dirty.alone or dirty.first is None:
        return pointer == place if dirty.alone else True
    element = index_of(pointer[len(place) + 1 :].partition("/")[0])
    return pointer != place and (element is None or element >= dirty.first)


@lru_cache(KEPT)
def place_number(table: str, generation: int, pointer: str) -> int:
    """Return a place of one generation of a table as the database looks it up: 63 bits."""
    digest = hashlib.sha256(f"{table}.{generation}.{pointer}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1


def is_inside(place: Sequence[str], container: Sequence[str]) -> bool:
    """Return whether a place is the container itself or anywhere in it."""
    return len(place) >= len(container) and tuple(place[: len(container)]) == tuple(container)


def relative(pointer: str, base: str) -> str:
    """Return a pointer relative to a base that it is inside of."""
    return pointer[len(base) :]


def _hint(pointer: str) -> str:
    if pointer.startswith("#"):
        return 'leave the # out: "" is the whole value and "/a" its member a'
    return f'begin with a slash: "/{pointer[:40]}", or use "" for the whole value'


def _refused(argument: str, pointer: str, hint: str) -> InvalidInput:
    shown = pointer if len(pointer) <= 60 else f"{pointer[:60]}…"
    return InvalidInput(f'{argument} must be a JSON Pointer, not "{shown}": {hint}.', argument=argument)
