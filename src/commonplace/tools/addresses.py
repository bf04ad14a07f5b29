"""Addresses of parts of items: `…#heading`, `…#chunk-3`, `…:line`, `…:line:count`. `…:line@char` is inside a line."""

from __future__ import annotations

import re
from urllib.parse import unquote

LINES = re.compile(r":(\d{1,9})(?:@(\d{1,9}))?(?::(\d{1,9}))?$")
CHUNK = re.compile(r"chunk-(\d{1,7})$")


def whole(uri: str) -> str:
    """The address of the item that an address is of, whatever part of it that says."""
    address, mark, _ = uri.partition("#")
    return address if mark else LINES.sub("", address)


def inside(path: str) -> str:
    """Return a path in a filter as it was meant: of an address what follows its scheme, which encodes some letters."""
    _, mark, rest = path.partition("://")
    return unquote(rest) if mark else path


def span(lines: re.Match[str]) -> tuple[int, int | None]:
    """The first line that is meant, counted from 1, and the last, unless it is all from there on."""
    first = max(1, int(lines[1]))
    return first, first + int(lines[3]) - 1 if lines[3] else None
