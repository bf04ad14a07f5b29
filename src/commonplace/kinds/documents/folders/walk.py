"""Walk a folder for the files that belong to a collection, leaving out what its rules ignore, and read their bytes.

Rules are a collection's own globs, and rule files in .gitignore's syntax. A walk opens only rule files, and no link
leads outside.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple

from commonplace.errors import InvalidInput
from commonplace.ingest.files.read import Skipped, decode
from commonplace.text.glob_patterns import Matcher, matcher, plain_matcher, split_union

RULE_FILE, GIT_RULE_FILE = ".commonplaceignore", ".gitignore"
LARGEST_RULE_FILE = 1 << 20
_AROUND = re.compile(r"\A(?:\.?/)+|/+\Z")
LARGEST = 16 * 1024 * 1024
SKIPPED_FOLDERS = frozenset({"node_modules", "vendor", "dist", "build", "__pycache__"})
"""Folders that are never entered, and with them every hidden one, such as `.git`."""
OUTSIDE, TOO_LARGE, BAD_NAME = "OUTSIDE_COLLECTION", "TOO_LARGE", "BAD_NAME"
CHANGED = "CHANGED_WHILE_READ"
_ATTEMPTS = 3
_UNSAFE = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
"""Characters that a listed name must not hold: they would forge a line, or are no characters at all."""
_MOST_PARTS = 200
_LONGEST_ENDING = 12
_ON_THE_WAY = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY)
_AT_THE_END = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_INODE = (1 << 63) - 1  # SQLite's integers are signed, inodes are not


@dataclass(frozen=True, slots=True)
class Rule:
    """One line of a rule file. It is matched against paths relative to the folder of that file."""

    matches: Matcher
    folders_only: bool
    keeps: bool
    """A line with `!`: a path it matches is not ignored after all."""


def read_rules(text: str) -> list[Rule]:
    """Return the rules of a file, in order. Lines that are no rule are passed over."""
    return [rule for line in text.splitlines() if (rule := _rule(line)) is not None]


def verdict(rules: Sequence[Rule], path: str, is_folder: bool) -> bool | None:
    """Return whether the last rule that matches a path ignores it; None where no rule matches."""
    for rule in reversed(rules):
        if (is_folder or not rule.folders_only) and rule.matches(path):
            return not rule.keeps
    return None


def ignoring(globs: Sequence[str], path: str) -> str | None:
    """Return the first glob that matches a path or a folder it is in, or None."""
    prefixes = list(_prefixes(path))
    for glob in globs:
        matches = leaving_out(glob)
        if any(matches(prefix) for prefix in prefixes):
            return glob
    return None


@lru_cache(maxsize=256)
def leaving_out(glob: str) -> Matcher:
    """Return the matcher of an ignore glob. ./drafts, /drafts and drafts/ all mean drafts in the folder."""
    return matcher(",".join(filter(None, (_AROUND.sub("", part) for part in split_union(glob)))))


def _prefixes(path: str) -> Iterator[str]:
    return accumulate(path.split("/"), "{}/{}".format)


def _rule(line: str) -> Rule | None:
    line = _without_trailing_blanks(line)
    if not line or line.startswith("#"):
        return None
    keeps = line.startswith("!")
    pattern = line[1:] if keeps else line
    folders_only = pattern.endswith("/")
    pattern = pattern.rstrip("/") if folders_only else pattern
    if not pattern:
        return None
    anchored = "/" in pattern
    pattern = pattern.removeprefix("/") if anchored else f"**/{pattern}"
    return Rule(plain_matcher(pattern), folders_only, keeps)


def _without_trailing_blanks(line: str) -> str:
    """Return a line without blanks at its end, except one that a backslash escapes."""
    stripped = line.rstrip(" \t")
    escapes = (len(stripped) - len(stripped.rstrip("\\"))) % 2
    return line[: len(stripped) + escapes]


class FileStat(NamedTuple):
    """A file's path below the root, and the time, size and inode that show whether it has changed."""

    path: str
    mtime_ns: int
    size: int
    inode: int


@dataclass(slots=True)
class Survey:
    """The result of a walk: files to take, and files and folders that were not taken."""

    files: list[FileStat] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)
    """(path, code) of each file that the pattern names and that is not taken, or folder that could not be read."""
    unread: Counter[str] = field(default_factory=Counter)
    """The number of files that the pattern does not name, by their endings: ".png", or "" for none."""
    unlisted: list[str] = field(default_factory=list)
    """Folders that could not be read, with a slash at the end: their files are unknown now."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The part of a folder that a collection takes."""

    root: str
    """A real path, without links."""
    pattern: str
    ignore: tuple[str, ...] = ()
    gitignore: bool = False


def walk(selection: Selection) -> Survey:
    """Return the files of a folder and what was not taken. Raise OSError where the root itself cannot be listed."""
    return _Walk(selection).run()


def inner_pattern(pattern: str, root: str) -> tuple[str, list[str]]:
    """Return a pattern without `..`, and the parts of it that name files outside the root.

    `docs/../*.md` means `*.md`, and `../here/*.md` the same in a folder called `here`. Nothing outside is looked at.
    """
    inside, outside = [], []
    for part in split_union(pattern):
        components = _resolved(part.split("/"), root)
        if components is None:
            outside.append(part)
        else:
            inside.append("/".join(components))
    return ",".join(inside), outside


def check_pattern(pattern: str) -> None:
    """Raise InvalidInput for a pattern that can match nothing."""
    parts = split_union(pattern)
    if not parts or len(parts) > _MOST_PARTS:
        raise InvalidInput(f"A pattern has 1–{_MOST_PARTS} parts, such as **/*.md. This one has {len(parts)}.")
    for part in parts:
        if part.startswith(("/", "~")):
            raise InvalidInput(f"A pattern matches paths inside the folder, such as **/*.md. {part!r} is absolute.")
    matcher(pattern)


def _resolved(components: Sequence[str], root: str) -> list[str] | None:
    """Return the components without `.` and `..`, or None where they lead outside the root."""
    resolved: list[str] = []
    above = 0
    parents = root.strip("/").split("/")
    for component in components:
        if component in ("", "."):
            continue
        if component == "..":
            if resolved and resolved[-1] == "**":
                return None
            above += not resolved
            del resolved[-1:]
        elif above and not resolved and component == parents[-above]:
            above -= 1
        else:
            resolved.append(component)
        if above > len(parents):
            return None
    return None if above else resolved


class _Walk:
    """One walk of one folder."""

    def __init__(self, selection: Selection) -> None:
        self._root = selection.root
        self._ignore = selection.ignore
        self._rule_files = (GIT_RULE_FILE, RULE_FILE) if selection.gitignore else (RULE_FILE,)
        pattern, outside = inner_pattern(selection.pattern, selection.root)
        self._matches: Matcher = matcher(pattern)
        self._survey = Survey(skipped=[(part, OUTSIDE) for part in outside])

    def run(self) -> Survey:
        """Return the survey. Raise OSError where the root cannot be listed."""
        pending: list[tuple[str, list[tuple[int, list[Rule]]]]] = [("", [])]
        while pending:
            folder, rules = pending.pop()
            try:
                with os.scandir(os.path.join(self._root, folder)) as entries:
                    children = sorted(entries, key=lambda entry: entry.name)
            except OSError as error:
                if not folder:
                    raise
                self._survey.unlisted.append(folder)
                self._survey.skipped.append((folder, code_of(error)))
                continue
            rules = self._with_rules(folder, children, rules)
            pending += [(path, rules) for entry in children if (path := self._take(entry, folder, rules))]
        self._survey.files.sort()
        self._survey.skipped.sort()
        return self._survey

    def _with_rules(
        self, folder: str, children: Sequence[os.DirEntry[str]], rules: list[tuple[int, list[Rule]]]
    ) -> list[tuple[int, list[Rule]]]:
        """Return the rules in force in a folder, outermost first, each list with the length of its folder's path."""
        own: list[Rule] = []
        for name in self._rule_files:
            for entry in children:
                if entry.name == name and entry.is_file(follow_symlinks=False):
                    own += read_rules(self._rule_text(entry, folder))
        return [*rules, (len(folder), own)] if own else rules

    def _rule_text(self, entry: os.DirEntry[str], folder: str) -> str:
        try:
            with open(open_inside(self._root, folder + entry.name), "rb") as file:
                return decode(file.read(LARGEST_RULE_FILE))[0]
        except OSError as error:
            self._survey.skipped.append((folder + entry.name, code_of(error)))
            return ""

    def _take(self, entry: os.DirEntry[str], folder: str, rules: list[tuple[int, list[Rule]]]) -> str | None:
        """Note a file that is taken. Return the path of a folder to enter, with a slash at its end, or None."""
        name = entry.name
        if name.startswith("."):
            return None
        path = folder + name
        is_folder = entry.is_dir(follow_symlinks=False)
        if is_folder and name in SKIPPED_FOLDERS:
            return None
        if self._is_ignored(path, is_folder, rules):
            return None
        if not is_folder and not self._matches(path):
            self._survey.unread.update([ending_of(name)] if entry.is_file(follow_symlinks=False) else [])
            return None
        if _UNSAFE.search(name):
            self._survey.skipped.append((repr(path)[1:-1], BAD_NAME))
            return None
        if is_folder:
            return path + "/"
        try:
            self._note(entry, path)
        except OSError as error:
            self._survey.skipped.append((path, code_of(error)))
        return None

    def _note(self, entry: os.DirEntry[str], path: str) -> None:
        status = entry.stat(follow_symlinks=False)
        if stat.S_ISLNK(status.st_mode):
            real = os.path.realpath(entry.path, strict=True)
            status = os.stat(real)
            if stat.S_ISREG(status.st_mode) and not is_inside(real, self._root):
                self._survey.skipped.append((path, OUTSIDE))
                return
        if not stat.S_ISREG(status.st_mode):
            return
        if status.st_size > LARGEST:
            self._survey.skipped.append((path, TOO_LARGE))
            return
        self._survey.files.append(file_of(path, status))

    def _is_ignored(self, path: str, is_folder: bool, rules: list[tuple[int, list[Rule]]]) -> bool:
        if self._ignore and ignoring(self._ignore, path) is not None:
            return True
        for start, own in reversed(rules):
            ignored = verdict(own, path[start:], is_folder)
            if ignored is not None:
                return ignored
        return False


def ending_of(name: str) -> str:
    """Return the ending of a file's name in small letters with its dot, or "" where none names a format."""
    _, dot, ending = name.rpartition(".")
    return f".{ending.lower()}" if dot and 0 < len(ending) <= _LONGEST_ENDING and ending.isalnum() else ""


def file_of(path: str, status: os.stat_result) -> FileStat:
    """Return a file as the system describes it."""
    return FileStat(path, status.st_mtime_ns, status.st_size, status.st_ino & _INODE)


def open_inside(root: str, path: str) -> int:
    """Return a descriptor to read a file below a root.

    Raise OSError, with ELOOP or ENOTDIR where a link is on the way: a folder may have become one since the walk.
    """
    *folders, name = path.split("/")
    folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in folders:
            inner = os.open(part, _ON_THE_WAY, dir_fd=folder)
            os.close(folder)
            folder = inner
        return os.open(name, _AT_THE_END, dir_fd=folder)
    finally:
        os.close(folder)


def read_file(root: str, file: FileStat, most: int = LARGEST) -> tuple[FileStat, bytes]:
    """Return the bytes of a file, with its time, size and inode while they were read.

    Raise Skipped where it is larger than `most`, leads out of the root or keeps changing; OSError where it cannot be
    read. Links lead nowhere outside the root.
    """
    for _ in range(_ATTEMPTS):
        descriptor = _opened(root, file.path)
        try:
            before = os.fstat(descriptor)
            stats = file_of(file.path, before)
            if stats.inode == file.inode and stat.S_ISREG(before.st_mode):
                if stats.size > most:
                    raise Skipped(TOO_LARGE)
                data = _bytes_of(descriptor, stats.size)
                if len(data) == stats.size and stats == file_of(file.path, os.fstat(descriptor)):
                    return stats, data
        finally:
            os.close(descriptor)
        file = _look_again(root, file.path)
    raise Skipped(CHANGED)


def _bytes_of(descriptor: int, size: int) -> bytes:
    """Return `size` bytes, or one more where the file has grown. Network file systems return them in pieces."""
    data = os.read(descriptor, size + 1)
    while len(data) < size and (more := os.read(descriptor, size + 1 - len(data))):
        data += more
    return data


def _opened(root: str, path: str) -> int:
    """Return a descriptor of a file below the root. A link on the way is followed only to a file inside the root."""
    try:
        return open_inside(root, path)
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.ENOTDIR):
            raise
        return open_inside(root, os.path.relpath(_real(root, path), root))


def _look_again(root: str, path: str) -> FileStat:
    """Return a file that has been replaced since the walk. Raise Skipped where it is a link out of the root by now."""
    return file_of(path, os.stat(_real(root, path), follow_symlinks=False))


def _real(root: str, path: str) -> str:
    """Return the real path of a file below the root. Raise Skipped where that is outside."""
    real = os.path.realpath(os.path.join(root, path), strict=True)
    if not is_inside(real, root):
        raise Skipped(OUTSIDE)
    return real


def is_inside(path: str, root: str) -> bool:
    """Return whether a real path is below a real root."""
    return path.startswith(root.rstrip("/") + "/")


def code_of(error: OSError) -> str:
    """Return the system's name of an error: `EACCES`, `ENOENT`, `ELOOP`."""
    return errno.errorcode.get(error.errno or 0, type(error).__name__)
