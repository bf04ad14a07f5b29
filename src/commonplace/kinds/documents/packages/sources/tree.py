"""What every source of files has in common."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from commonplace.kinds.documents.folders.walk import FileStat
from commonplace.kinds.documents.packages.globs import Globs
from commonplace.kinds.documents.packages.places import EntryRefused, LeftOut

MIB = 1 << 20


class Tree(Protocol):
    """The files below a package root."""

    unlisted: list[str]
    """Folders that could not be read, with a slash at the end: nobody knows what is in them now."""

    def names(self, globs: Globs) -> Iterator[str]:
        """The paths that the globs take."""
        ...

    def look(self, path: str) -> FileStat:
        """What tells whether a file has changed. Refused, or LeftOut, for one that is not taken."""
        ...

    def contents(self, files: Sequence[FileStat]) -> Iterator[tuple[FileStat, bytes | EntryRefused | LeftOut]]:
        """The bytes of files that `look` gave, in any order."""
        ...


def too_large(size: int, most: int) -> EntryRefused:
    return EntryRefused(
        f"The file has {size / MIB:.1f} MiB; {most // MIB} are the most. Split it, or raise package_file_mb."
    )
