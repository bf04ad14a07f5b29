"""The paths and ids that a package may name, and the globs that choose its paths."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate

from commonplace.errors import InvalidInput
from commonplace.kinds.documents.folders.walk import SKIPPED_FOLDERS
from commonplace.text.glob_patterns import SPECIAL, Matcher, expand, plain_matcher

MANIFEST = "manifest.json"
LONGEST_ID = 1000
_DRIVE = re.compile(r"[A-Za-z]:")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_UNSAFE = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
"""Characters that a listed id must not hold: they would forge a line, or are no characters at all."""
IMPLIED = ("**/*.md", "**/*.markdown", "**/*.mdx", "**/*.txt")
MOST_PATTERNS = 200
_HERE = re.compile(r"\A(?:\./+)+")


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


@dataclass(frozen=True)
class Globs:
    """Patterns over paths from the package root. A comma is no separator here: a list has one pattern per element.

    Hidden names and folders such as `node_modules` are passed over unless a pattern spells that part out.
    """

    take: tuple[str, ...] = IMPLIED
    leave: tuple[str, ...] = ()

    def __call__(self, path: str) -> bool:
        """Return whether a path is taken: a pattern of `take` matches it, and none of `leave` it or a folder above."""
        parts = path.split("/")
        if not self._taken(path, parts):
            return False
        prefixes = list(accumulate(parts, "{}/{}".format))
        return not any(matches(prefix) for matches in self._left for prefix in prefixes)

    def enters(self, folder: str) -> bool:
        """Return whether anything below a folder of this name could be taken."""
        return not _is_special(folder, is_folder=True) or any(
            _spells(part, folder) for parts in self._taken_parts for part in parts
        )

    def _taken(self, path: str, parts: Sequence[str]) -> bool:
        special = any(_is_special(part, is_folder=True) for part in parts[:-1]) or _is_special(parts[-1])
        if not special:
            return any(matches(path) for matches in self._taken_whole)
        return any(_matches(tuple(pattern), tuple(parts)) for pattern in self._taken_parts)

    @cached_property
    def _plain(self) -> list[str]:
        return [_HERE.sub("", plain) for pattern in self.take for plain in expand(pattern)]

    @cached_property
    def _taken_whole(self) -> list[Matcher]:
        return [plain_matcher(plain) for plain in self._plain]

    @cached_property
    def _taken_parts(self) -> list[list[str]]:
        return [[part for part in plain.split("/") if part] for plain in self._plain]

    @cached_property
    def _left(self) -> list[Matcher]:
        plain = (_HERE.sub("", plain) for pattern in self.leave for plain in expand(pattern))
        return [plain_matcher(each.rstrip("/")) for each in plain]


def check_globs(patterns: Iterable[str], place: str) -> tuple[str, ...]:
    """Return the patterns. Raise InvalidInput for one that can match nothing; `place` is its file and key path."""
    globs = tuple(patterns)
    if len(globs) > MOST_PATTERNS:
        raise InvalidInput(f"{place} has {len(globs)} patterns; {MOST_PATTERNS} are the most.")
    for pattern in globs:
        if not pattern.strip("./ ") or pattern.startswith(("/", "~")) or ".." in pattern.split("/") or "\0" in pattern:
            raise InvalidInput(
                f"{place}: a pattern speaks of paths inside the package, such as **/*.md: not {pattern!r}."
            )
        expand(pattern)
    return globs


def _is_special(part: str, *, is_folder: bool = False) -> bool:
    """Return whether a component is taken only where a pattern spells it out."""
    return part.startswith(".") or (is_folder and part in SKIPPED_FOLDERS)


def _spells(pattern: str, part: str) -> bool:
    """Return whether a component of a pattern spells out a special one."""
    if part.startswith("."):
        return pattern.startswith((".", "\\.")) and bool(_component(pattern)(part))
    return SPECIAL.isdisjoint(pattern) and bool(_component(pattern)(part))


@lru_cache(maxsize=1024)
def _component(pattern: str) -> Matcher:
    return plain_matcher(pattern)


def _matches(pattern: Sequence[str], parts: Sequence[str]) -> bool:
    """Return whether a pattern matches component by component, as the few paths with special components need.

    The time is bounded by the product of the two lengths and the number of components.
    """
    ends = {0}
    for index, component in enumerate(pattern):
        ends = _after(component, parts, ends, last=index == len(pattern) - 1)
    return len(parts) in ends


def _after(component: str, parts: Sequence[str], starts: set[int], *, last: bool) -> set[int]:
    """Return the numbers of parts that may be matched after one more component of the pattern, from those before it."""
    if component != "**":
        return {at + 1 for at in starts if at < len(parts) and _fits(component, parts[at], at < len(parts) - 1)}
    ends = set() if last else set(starts)
    for start in starts:
        for at in range(start, len(parts)):
            if _is_special(parts[at], is_folder=at < len(parts) - 1):
                break
            ends.add(at + 1)
    return ends


def _fits(component: str, part: str, is_folder: bool) -> bool:
    if _is_special(part, is_folder=is_folder):
        return _spells(component, part)
    return bool(_component(component)(part))
