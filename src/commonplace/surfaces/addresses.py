"""Addresses of parts of items: `…#heading`, `…#chunk-3`, `…:line`, `…:line:count`. `…:line@char` is inside a line."""

from __future__ import annotations

import re

LINES = re.compile(r":(\d{1,9})(?:@(\d{1,9}))?(?::(\d{1,9}))?$")
CHUNK = re.compile(r"chunk-(\d{1,7})$")


def whole(uri: str) -> str:
    """The address of the item that an address is of, whatever part of it that says."""
    address, mark, _ = uri.partition("#")
    return address if mark else LINES.sub("", address)
