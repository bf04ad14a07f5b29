"""The paths and ids that a package may name: paths below its root, and ids that fit on a line."""

from __future__ import annotations

import re

MANIFEST = "manifest.json"
LONGEST_ID = 1000
_DRIVE = re.compile(r"[A-Za-z]:")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_UNSAFE = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
"""Characters that a listed id must not hold: they would forge a line, or are no characters at all."""


class EntryRefused(Exception):
    """An entry of a package that fails alone. Its message is the sentence to report."""


class LeftOut(Exception):
    """A file that is no document, which is no failure. Its message is the reason to report."""


def inner_path(path: str) -> str:
    """Return a path from the package root without `.`, `..` and doubled slashes. Raise EntryRefused for any other."""
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
    """Return an id. Raise EntryRefused where it is blank, too long or would break a line."""
    if not name.strip() or len(name) > LONGEST_ID or _UNSAFE.search(name):
        raise EntryRefused(f"A document's id has 1–{LONGEST_ID} characters and none that break a line.")
    return name


def printable(name: str) -> str:
    """Return a name as a report can print it, whatever bytes the file system holds."""
    return name if not _UNSAFE.search(name) else repr(name)[1:-1]
