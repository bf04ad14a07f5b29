"""What a package may name: paths below its root, and ids that fit on a line."""

from __future__ import annotations

import re

MANIFEST = "manifest.json"
LONGEST_ID = 1000
_DRIVE = re.compile(r"[A-Za-z]:")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_UNSAFE = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
"""What an id in a list of ids must not hold: it would forge a line, or is no character at all."""


class EntryRefused(Exception):
    """One entry of a package that fails. Its message is the sentence to report; the rest of the package goes on."""


class LeftOut(Exception):
    """A file that is no document, which is no failure. Its message is the reason to report."""


def inner_path(path: str) -> str:
    """A path from the package root, without `.`, `..` and doubled slashes."""
    if "\0" in path:
        raise EntryRefused("The path holds a NUL byte.")
    if _SCHEME.match(path):
        raise EntryRefused('This is an address, not a path. Write it as {"url": …}.')
    if _DRIVE.match(path):
        raise EntryRefused("The path begins with a drive letter. Write it from the package root.")
    if path.startswith(("/", "\\")):
        raise EntryRefused("The path is absolute. Write it from the package root.")
    parts: list[str] = []
    for part in path.split("/"):
        if part == ".." and not parts:
            raise EntryRefused("The path leaves the package.")
        if part == "..":
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    if not parts:
        raise EntryRefused("The path names no file.")
    return "/".join(parts)


def check_id(name: str) -> str:
    if not name.strip() or len(name) > LONGEST_ID or _UNSAFE.search(name):
        raise EntryRefused(f"A document's id has 1–{LONGEST_ID} characters and none that break a line.")
    return name


def printable(name: str) -> str:
    """A name for a report, whatever bytes the file system holds."""
    return name if not _UNSAFE.search(name) else repr(name)[1:-1]
