"""A document's name as it is looked up: hashed for its docid, backwards for the ends of paths, folded for any case."""

from __future__ import annotations

import hashlib
import re
from typing import Any

from commonplace.text.normal import normalized

SHORTEST = 6
"""Hexadecimal digits of a docid, unless two documents share them."""

_ENDING = re.compile(r"[^./]*\.(?=[^/])")
"""The ending of a path that is written backwards. A name that only begins with a dot has none."""


def name_hash(*name: Any) -> str:
    """Return the SHA-256 of a collection and a path, of which a docid is the beginning."""
    return hashlib.sha256("/".join(name).encode()).hexdigest()


def backwards(file: str) -> str:
    """Return a name in NFC, last character first."""
    return (file if file.isascii() else normalized("NFC", file))[::-1]


def name_backwards(*name: Any) -> str:
    """Return the collection and the path, joined by a slash, backwards."""
    return backwards("/".join(name))


def folded(name: str) -> tuple[str, str]:
    """Return the ending of a name that is written backwards, such as `dm.` or '', and the rest, in any case."""
    ending = _ENDING.match(name)
    return (ending[0].casefold(), name[ending.end() :].casefold()) if ending else ("", name.casefold())


def stem_and_ending(path: str, *, with_ending: bool) -> dict[str, str | None]:
    """Return what the end of a path is looked up by in any case; the ending of one that lacks its own is None."""
    end = backwards(path)
    ending, stem = folded(end)
    return {"stem": stem, "ending": ending} if with_ending else {"stem": end.casefold(), "ending": None}


def hex_range(prefix: str) -> dict[str, str]:
    """Return the bounds of hexadecimal texts that begin with this: `g` is after every digit."""
    return {"low": prefix, "high": prefix + "g"}


def digits_needed(docid: str, *neighbours: str | None) -> int:
    """Return the fewest digits of a docid, from `SHORTEST` on, that no neighbor shares."""
    length = SHORTEST
    for other in filter(None, neighbours):
        while docid[:length] == other[:length] and length < len(docid):
            length += 1
    return length
