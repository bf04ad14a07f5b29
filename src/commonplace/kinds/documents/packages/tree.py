"""The files of a source, as packages read them: those of a folder of this machine, and those of a `.tar.gz`.

No link leads out of the root, and none is followed into a folder. Of an archive nothing is unpacked onto the disk, and
every member is checked before any is read.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import stat
import tarfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, NamedTuple, Protocol

from commonplace.errors import InvalidInput, TooLarge
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
from commonplace.kinds.documents.packages.package_paths import EntryRefused, Globs, LeftOut, inner_path
from commonplace.settings import Settings

if TYPE_CHECKING:
    from typing_extensions import Buffer

MIB = 1 << 20
_OUTSIDE = "The link leads out of the package."
_PIECE = 1 << 20
_LATEST = 1 << 32
_LINK = "A link in an archive is not followed."


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


class _Member(NamedTuple):
    """A regular file of an archive."""

    position: int
    """Its index in the archive. The last member of a name counts, as when an archive is unpacked."""
    size: int
    mtime: int


class Archive:
    """The files of an archive below a folder in it, as a `Tree`."""

    def __init__(self, file: IO[bytes], shown: str, settings: Settings) -> None:
        self._file, self._shown, self._settings = file, shown, settings
        self._most = settings.package_file_mb * MIB
        self.sha256 = _sha256(file)
        self.root = ""
        """The package root in the archive; "" is the archive's own."""
        self.unlisted: list[str] = []
        self._members: dict[str, _Member] = {}
        self._links: set[str] = set()

    def survey(self) -> None:
        """Check every member. Raise InvalidInput, which names the member, or TooLarge for the whole archive."""
        total = 0
        with self._opened() as (archive, unpacked):
            for position, member in enumerate(archive):
                if position >= self._settings.package_members:
                    raise TooLarge(
                        f"{self._shown} has more than {self._settings.package_members} members. Nothing of it was "
                        "taken: split it, or raise package_members."
                    )
                self._note(member, position)
                total += member.size if member.isreg() else 0
                if total > self._settings.package_total_mb * MIB:
                    raise self._too_much()
            if not unpacked.ends_in_zeros():
                raise tarfile.ReadError("a header in it is damaged")

    def manifests(self, name: str) -> list[str]:
        """Return the folders that have a file of this name: [""] for the root, else those one level down."""
        folders = [path.rpartition("/")[0] for path in self._members if path.rpartition("/")[2] == name]
        return [""] if "" in folders else sorted(folder for folder in folders if "/" not in folder)

    def names(self, globs: Globs) -> Iterator[str]:
        """Yield the paths from the package root that the globs take, links too."""
        start = f"{self.root}/" if self.root else ""
        for path in sorted({*self._members, *self._links}):
            if path.startswith(start) and globs(path[len(start) :]):
                yield path[len(start) :]

    def look(self, path: str) -> FileStat:
        """Return a member; its position stands for an inode. Raise EntryRefused or LeftOut for any other."""
        place = self._place(path)
        if place in self._links:
            raise LeftOut(_LINK)
        member = self._members.get(place)
        if member is None:
            raise EntryRefused("There is no such file in the package.")
        if member.size > self._most:
            raise too_large(member.size, self._most)
        return FileStat(path, member.mtime, member.size, member.position)

    def contents(self, files: Sequence[FileStat]) -> Iterator[tuple[FileStat, bytes | EntryRefused | LeftOut]]:
        """Yield each file with its bytes, in one pass over the archive."""
        files_by_position = {file.inode: file for file in files}
        if not files_by_position:
            return
        with self._opened() as (archive, _):
            for position, member in enumerate(archive):
                file = files_by_position.pop(position, None)
                if file is not None:
                    stream = archive.extractfile(member)
                    yield file, stream.read() if stream else EntryRefused("There is no such file in the package.")
                if not files_by_position:
                    return

    def _place(self, path: str) -> str:
        return f"{self.root}/{path}" if self.root else path

    def _note(self, member: tarfile.TarInfo, position: int) -> None:
        """Add a member. Raise InvalidInput for one that is not allowed."""
        is_link = member.issym() or member.islnk()
        if not (member.isreg() or member.isdir() or is_link):
            raise self._refused(member.name, "It is a device, a pipe or the like.")
        if member.size < 0:
            raise self._refused(member.name, "Its size is below zero.")
        try:
            path = inner_path(member.name) if member.name.strip("./") or ".." in member.name else ""
        except EntryRefused as refused:
            raise self._refused(member.name, str(refused)) from None
        if is_link and _leaves(path if member.issym() else "", member.linkname):
            raise self._refused(member.name, "It is a link that leaves the archive.")
        self._members.pop(path, None)
        self._links.discard(path)
        if is_link:
            self._links.add(path)
        elif member.isreg():
            time_ns = int(min(max(member.mtime, 0), _LATEST) * 1_000_000_000)  # a header may claim any time
            self._members[path] = _Member(position, member.size, time_ns)

    def _refused(self, name: str, reason: str) -> InvalidInput:
        return InvalidInput(
            f"{self._shown} is refused because of its member {name!r}: {reason} Nothing of it was taken."
        )

    def _too_much(self) -> TooLarge:
        return TooLarge(
            f"{self._shown} unpacks to more than {self._settings.package_total_mb} MiB. Nothing of it was taken: split "
            "it, or raise package_total_mb."
        )

    @contextmanager
    def _opened(self) -> Iterator[tuple[tarfile.TarFile, _Bounded]]:
        """Yield the archive and its unpacked stream. Raise InvalidInput or TooLarge for whatever goes wrong in it."""
        self._file.seek(0)
        most = self._settings.package_total_mb * MIB + self._settings.package_members * 4 * tarfile.BLOCKSIZE
        try:
            with gzip.GzipFile(fileobj=self._file, mode="rb") as unzipped:
                bounded = _Bounded(unzipped, most, max(self._most, _PIECE))
                with tarfile.open(fileobj=bounded, mode="r:", errorlevel=2) as archive:
                    yield archive, bounded
        except _TooMuch:
            raise self._too_much() from None
        except (tarfile.TarError, OSError, EOFError, zlib.error, ValueError, OverflowError) as error:
            raise InvalidInput(f"{self._shown} is no .tar.gz that can be read ({error}). Nothing was taken.") from None


class _TooMuch(Exception):
    """The archive unpacks to more than is allowed."""


class _Bounded(io.RawIOBase):
    """An unpacked stream that raises _TooMuch rather than fill the memory, whatever its headers claim."""

    def __init__(self, file: gzip.GzipFile, most: int, most_at_once: int) -> None:
        super().__init__()
        self._file, self._most, self._at_once = file, most, most_at_once
        self._last = b""

    def ends_in_zeros(self) -> bool:
        """Return whether nothing but zeros follows the last member: tarfile takes a damaged header for the end.

        Reads on to the end of the stream, where gzip's own checksum is.
        """
        piece = self._last
        while piece:
            if piece.strip(b"\0"):
                return False
            piece = self.read(_PIECE)
        return True

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._file.tell()

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        if whence != io.SEEK_SET or offset > self._most:
            raise _TooMuch
        return self._file.seek(offset)

    def read(self, size: int | None = -1, /) -> bytes:
        count = self._at_once if size is None or size < 0 else size
        if count > self._at_once or self._file.tell() > self._most:
            raise _TooMuch
        self._last = self._file.read(count)
        return self._last

    def readinto(self, buffer: Buffer) -> int:
        view = memoryview(buffer).cast("B")
        data = self.read(len(view))
        view[: len(data)] = data
        return len(data)


def _leaves(path: str, target: str) -> bool:
    """Return whether a link at a path leads out of the root at any point, whatever its members are."""
    if target.startswith(("/", "\\")) or "\0" in target:
        return True
    depth = path.count("/")
    for part in target.split("/"):
        depth += -1 if part == ".." else part not in ("", ".")
        if depth < 0:
            return True
    return False


def _sha256(file: IO[bytes]) -> str:
    digest = hashlib.sha256()
    file.seek(0)
    while piece := file.read(_PIECE):
        digest.update(piece)
    return digest.hexdigest()
