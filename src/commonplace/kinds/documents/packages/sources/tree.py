"""The interface of every source of files."""

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
    """Folders that could not be read, with a slash at the end: their files are unknown now."""

    def names(self, globs: Globs) -> Iterator[str]:
        """Yield the paths from the package root that the globs take."""
        ...

    def look(self, path: str) -> FileStat:
        """Return a file with the time, size and inode it has. Raise EntryRefused or LeftOut for one not taken."""
        ...

    def contents(self, files: Sequence[FileStat]) -> Iterator[tuple[FileStat, bytes | EntryRefused | LeftOut]]:
        """Yield each file that `look` returned with its bytes, or the reason why it has none, in any order."""
        ...


def too_large(size: int, most: int) -> EntryRefused:
    """Return the refusal of a file with more than `most` bytes."""
    return EntryRefused(
        f"The file has {size / MIB:.1f} MiB; {most // MIB} are the most. Split it, or raise package_file_mb."
    )
