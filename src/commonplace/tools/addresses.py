"""Addresses of parts of items: `…#heading`, `…#chunk-3`, `…:line`, `…:line:count`. `…:line@char` is inside a line."""

from __future__ import annotations

import re
from urllib.parse import unquote

LINES = re.compile(r":(\d{1,9})(?:@(\d{1,9}))?(?::(\d{1,9}))?$")
CHUNK = re.compile(r"chunk-(\d{1,7})$")


def whole(uri: str) -> str:
    """Return the address of the item, without the `#part` or the lines it names."""
    address, mark, _ = uri.partition("#")
    return address if mark else LINES.sub("", address)


def inside(path: str) -> str:
    """Return the path of a filter: of an address, the decoded text after its scheme; of anything else, itself."""
    _, mark, rest = path.partition("://")
    return unquote(rest) if mark else path


def span(lines: re.Match[str]) -> tuple[int, int | None]:
    """Return the first line, counted from 1, and the last; None means to the end."""
    first = max(1, int(lines[1]))
    return first, first + int(lines[3]) - 1 if lines[3] else None
