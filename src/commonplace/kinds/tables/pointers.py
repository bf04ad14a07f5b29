"""JSON Pointers (RFC 6901): places in a value, compared as tuples of tokens and never as strings."""

from __future__ import annotations

import re
from collections.abc import Sequence

from commonplace.errors import InvalidInput
from commonplace.store.places import escaped

Tokens = tuple[str, ...]
_BAD_TILDE = re.compile(r"~(?![01])")
LONGEST = 100_000


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
