"""The files of a source, as packages read them, and those of a folder of this machine.

No link leads out of the root, and none is followed into a folder.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from typing import Protocol

from commonplace.ingest.files.read import Skipped
from commonplace.kinds.documents.folders.walk import (
    OUTSIDE,
    TOO_LARGE,
    FileStat,
    code_of,
    file_of,
    is_inside,
    read_file,
)
from commonplace.kinds.documents.packages.package_paths import EntryRefused, Globs, LeftOut

MIB = 1 << 20
_OUTSIDE = "The link leads out of the package."


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


class FolderTree:
    """The files below a real path, as a `Tree`."""

    def __init__(self, root: str, most: int) -> None:
        self._root, self._most = root, most
        self._inside: dict[str, bool] = {}
        self.unlisted: list[str] = []

    def names(self, globs: Globs) -> Iterator[str]:
        """Yield the paths that the globs take. Raise OSError where the root itself cannot be listed."""
        pending = [""]
        while pending:
            folder = pending.pop()
            try:
                with os.scandir(os.path.join(self._root, folder)) as entries:
                    children = sorted(entries, key=lambda entry: entry.name)
            except OSError:
                if not folder:
                    raise
                self.unlisted.append(folder)
                continue
            for entry in children:
                if entry.is_dir(follow_symlinks=False):
                    if globs.enters(entry.name):
                        pending.append(f"{folder}{entry.name}/")
                elif globs(folder + entry.name):
                    yield folder + entry.name

    def look(self, path: str) -> FileStat:
        """Return a regular file, also behind a link inside the root. Raise EntryRefused or LeftOut for any other."""
        place = os.path.join(self._root, path)
        try:
            status = os.lstat(place)
            is_link = stat.S_ISLNK(status.st_mode)
            if is_link:
                if not self._holds(os.path.realpath(place, strict=True)):
                    raise EntryRefused(_OUTSIDE)
                status = os.stat(place)
            elif not self._folder_is_inside(os.path.dirname(place)):
                raise EntryRefused(_OUTSIDE)
        except (OSError, ValueError) as error:  # a ValueError: the name holds what no file system takes
            raise EntryRefused(_unreadable(error)) from None
        if is_link and stat.S_ISDIR(status.st_mode):
            raise LeftOut("A link to a folder is not followed.")
        if not stat.S_ISREG(status.st_mode):
            raise EntryRefused("This is no regular file.")
        if status.st_size > self._most:
            raise too_large(status.st_size, self._most)
        return file_of(path, status)

    def contents(self, files: Sequence[FileStat]) -> Iterator[tuple[FileStat, bytes | EntryRefused | LeftOut]]:
        """Yield each file as it was while it was read, with its bytes, or the reason why they cannot be read."""
        for file in files:
            try:
                now, data = read_file(self._root, file, self._most)
            except Skipped as skipped:
                reasons = {OUTSIDE: EntryRefused(_OUTSIDE), TOO_LARGE: too_large(self._most + 1, self._most)}
                yield file, reasons.get(str(skipped), EntryRefused("The file changed while it was read. Sync again."))
            except OSError as error:
                yield file, EntryRefused(_unreadable(error))
            else:
                yield now, data

    def _holds(self, real: str) -> bool:
        return real == self._root or is_inside(real, self._root)

    def _folder_is_inside(self, folder: str) -> bool:
        if folder not in self._inside:
            self._inside[folder] = self._holds(os.path.realpath(folder, strict=True))
        return self._inside[folder]


def _unreadable(error: Exception) -> str:
    if isinstance(error, FileNotFoundError):
        return "There is no such file in the package."
    return f"The file cannot be read ({code_of(error) if isinstance(error, OSError) else 'bad name'})."
