"""Packages in a git repository. The clone is bare and never checked out: files are read as the commit has them.

So there is nothing a hook, filter, submodule or link of the repository could act on. git gets an argument list and an
environment of its own, in which no configuration of the user, the system or the repository counts.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from commonplace.errors import DownloadFailed, NotFound, TooLarge, Unavailable
from commonplace.kinds.documents.folders.walk import FileStat
from commonplace.kinds.documents.packages.package_paths import EntryRefused, Globs, LeftOut
from commonplace.kinds.documents.packages.source import PackageSource, without_credentials
from commonplace.kinds.documents.packages.tree import MIB, too_large
from commonplace.models.web import authorization, certificates
from commonplace.settings import Settings

TIME_LIMIT_S = 600.0
_LOOK_S = 0.5
"""The interval at which the size of the clone is checked while git runs."""

_AT_ONCE = 32 * MIB
_LONGEST_LIST = 128 * MIB
"""The most bytes of a commit's file list, a million files and more. Identical folders cost a repository nothing, so a
small one can list files without end."""
_SHA_256 = 64
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_SHORT_COMMIT = re.compile(r"[0-9a-fA-F]{7,64}")
_KEPT = "refs/commonplace/kept"
_GIVES_UP = ("fatal:", "error:")
_NO_REASON = "Could not read from remote repository"
_PASSED = (
    "PATH", "HOME", "TMPDIR", "SSH_AUTH_SOCK", "SSL_CERT_DIR", "http_proxy", "https_proxy", "HTTPS_PROXY",
    "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY",
)  # fmt: skip
_CONFIG = {
    "core.hooksPath": "/dev/null",
    "core.symlinks": "false",
    "core.fsmonitor": "false",
    "core.attributesFile": "/dev/null",
    "credential.helper": "",
    "fetch.recurseSubmodules": "false",
    "submodule.recurse": "false",
    "http.followRedirects": "false",
    "protocol.allow": "never",
    "gc.auto": "0",
    "gc.autoDetach": "false",
    "gc.pruneExpire": "now",
    "maintenance.auto": "false",
    "safe.bareRepository": "all",
    "fetch.unpackLimit": "1",
}


class _TookTooLong(DownloadFailed):
    """git ran longer than `TIME_LIMIT_S`."""


class _Blob(NamedTuple):
    """A file of a commit, as `git ls-tree` lists it."""

    mode: str
    oid: str
    size: int


class Repository:
    """The files of one commit below a folder in it, as a `Tree`."""

    def __init__(self, source: PackageSource, clone: Path, settings: Settings) -> None:
        self._source, self._clone = source, clone
        self._most = settings.package_file_mb * MIB
        self._most_in_all = settings.package_total_mb * MIB
        self._git = _Git(source)
        self.root = ""
        """The package root in the repository; "" is the repository's own."""
        self.unlisted: list[str] = []
        self._blobs: dict[str, _Blob] = {}
        self._init = ["init", "--quiet", "--bare", "--template="]

    def resolve(self) -> str:
        """Return the commit that the source means now, or "" where only a whole clone can tell. Raise NotFound."""
        listed = self._git.run("ls-remote", "--", self._git.address).decode("utf-8", "replace")
        refs = {name: oid for oid, _, name in (line.partition("\t") for line in listed.splitlines())}
        if any(len(oid) == _SHA_256 for oid in refs.values()):
            self._init.append("--object-format=sha256")
        ref = self._source.ref
        names = (f"refs/heads/{ref}", f"refs/tags/{ref}^{{}}", f"refs/tags/{ref}", ref) if ref else ("HEAD",)
        for name in names:
            if name in refs:
                return refs[name]
        if _COMMIT.fullmatch(ref):
            return ref
        if _SHORT_COMMIT.fullmatch(ref):
            return ""
        raise NotFound(f"{self._source.shown} has no {ref or 'HEAD'}. Name a branch, tag or commit that it has.")

    def fetch(self, commit: str) -> str:
        """Bring a commit into the clone, alone where the server allows that, and return it.

        A clone that git cannot use, because it is damaged or a killed git has left it locked, is made anew. Raise
        DownloadFailed, TooLarge or NotFound.
        """
        is_new = not (self._clone / "HEAD").exists()
        try:
            return self._ensure(commit)
        except (DownloadFailed, TooLarge) as error:
            self._discard()
            if is_new or isinstance(error, _TookTooLong | TooLarge):
                raise
        return self._ensure(commit)

    def _ensure(self, commit: str) -> str:
        """Return the commit, fetched where the clone does not have it."""
        if not (self._clone / "HEAD").exists():
            self._discard()
            self._clone.mkdir(parents=True)
            self._local(*self._init, ".")
        if not commit or not self._has(commit):
            commit = self._download(commit)
            self._local("update-ref", _KEPT, commit)
            self._local("-c", "gc.auto=1000", "-c", "gc.autoPackLimit=20", "gc", "--auto", "--quiet")
        return commit

    def survey(self, commit: str) -> None:
        """Read the list of the commit's files."""
        listed = self._from_clone("ls-tree", "-r", "-z", "-l", "--full-tree", commit, endless=True)
        for line in listed.split(b"\0"):
            about, _, path = line.partition(b"\t")
            if path:
                mode, _, oid, size = about.decode("ascii").split()
                self._blobs[os.fsdecode(path)] = _Blob(mode, oid, int(size) if size.isdigit() else 0)

    def has(self, path: str) -> bool:
        """Return whether the commit has a regular file of this path."""
        return path in self._blobs and self._blobs[path].mode.startswith("100")

    def names(self, globs: Globs) -> Iterator[str]:
        """Yield the paths from the package root that the globs take, without submodules."""
        start = f"{self.root}/" if self.root else ""
        for path, blob in sorted(self._blobs.items()):
            if path.startswith(start) and blob.mode != "160000" and globs(path[len(start) :]):
                yield path[len(start) :]

    def look(self, path: str) -> FileStat:
        """Return a file; it has no time and no inode. Raise EntryRefused or LeftOut for one that is not taken."""
        blob = self._blobs.get(f"{self.root}/{path}" if self.root else path)
        if blob is None or blob.mode == "160000":
            raise EntryRefused("There is no such file in the package.")
        if blob.mode == "120000":
            raise LeftOut("A link in a repository is not followed.")
        if blob.size > self._most:
            raise too_large(blob.size, self._most)
        return FileStat(path, 0, blob.size, 0)

    def contents(self, files: Sequence[FileStat]) -> Iterator[tuple[FileStat, bytes | EntryRefused | LeftOut]]:
        """Yield each file with its bytes, some 32 MiB at a time. Raise TooLarge where all together have too many."""
        total = sum(file.size for file in files)
        if total > self._most_in_all:
            raise TooLarge(
                f"{self._source.shown} has {total // MIB} MiB of documents; {self._most_in_all // MIB} are the most. "
                "Take fewer, or raise package_total_mb."
            )
        batch: list[FileStat] = []
        for file in files:
            batch.append(file)
            if sum(each.size for each in batch) >= _AT_ONCE:
                yield from self._read(batch)
                batch = []
        yield from self._read(batch)

    def _read(self, files: Sequence[FileStat]) -> Iterator[tuple[FileStat, bytes]]:
        if not files:
            return
        oids = [self._blobs[f"{self.root}/{file.path}" if self.root else file.path].oid for file in files]
        output = self._from_clone("cat-file", "--batch", input="".join(f"{oid}\n" for oid in oids).encode())
        at = 0
        for file in files:
            start = output.index(b"\n", at) + 1
            yield file, output[start : start + file.size]
            at = start + file.size + 1

    def _has(self, commit: str) -> bool:
        try:
            self._local("cat-file", "-e", f"{commit}^{{commit}}")
        except DownloadFailed:
            return False
        return True

    def _download(self, commit: str) -> str:
        """Fetch a commit alone, or the whole repository where the server refuses that, and return the commit."""
        options = (
            "fetch",
            "--quiet",
            "--no-tags",
            "--no-recurse-submodules",
            "--no-write-fetch-head",
            "--update-shallow",
        )
        if commit:
            try:
                self._local(
                    *options, "--depth=1", "--", self._git.address, f"+{commit}:{_KEPT}", most=self._most_in_all
                )
                return self._peeled(commit)
            except DownloadFailed:
                if not self._source.ref or not _SHORT_COMMIT.fullmatch(self._source.ref):
                    raise
        specs = ("+refs/heads/*:refs/all/heads/*", "+refs/tags/*:refs/all/tags/*")
        self._local(*options, "--", self._git.address, *specs, most=self._most_in_all)
        return self._peeled(commit or self._source.ref)

    def _peeled(self, name: str) -> str:
        """Return the commit that a name stands for. Raise NotFound where there is none."""
        try:
            return self._local("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}").decode("ascii").strip()
        except DownloadFailed:
            raise NotFound(f"{self._source.shown} has no commit {name}.") from None

    def _from_clone(self, *arguments: str, input: bytes = b"", endless: bool = False) -> bytes:
        """Return what git prints about a commit that the clone has. Where it fails the clone is damaged, and removed.

        `endless`: the output may have any length.
        """
        try:
            if endless:
                return self._git.listed(*arguments, folder=self._clone)
            return self._local(*arguments, input=input)
        except DownloadFailed:
            self._discard()
            raise

    def _discard(self) -> None:
        shutil.rmtree(self._clone, ignore_errors=True)

    def _local(self, *arguments: str, input: bytes = b"", most: int | None = None) -> bytes:
        """Return what git prints when it is run in the clone."""
        return self._git.run(*arguments, folder=self._clone, input=input, most=most)


class _Git:
    """git for one source: it allows one transport, and shows the password in no argument and no message."""

    def __init__(self, source: PackageSource) -> None:
        self.address = str(source.path) if source.path else without_credentials(source.url)
        self._shown = source.shown
        scheme = "file" if source.path else urlsplit(source.url).scheme
        config = {**_CONFIG, f"protocol.{scheme}.allow": "always"}
        if scheme == "https":
            config |= _https_config(source)
        self._environment = {name: os.environ[name] for name in _PASSED if name in os.environ} | {
            "GIT_ALLOW_PROTOCOL": scheme,
            "GIT_ASKPASS": "/bin/false",
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_SSH_COMMAND": "ssh -oBatchMode=yes -oConnectTimeout=30",
            "GIT_TERMINAL_PROMPT": "0",
            "LC_ALL": "C",
            "SSH_ASKPASS": "/bin/false",
            "GIT_CONFIG_COUNT": str(len(config)),
            **{f"GIT_CONFIG_KEY_{at}": key for at, key in enumerate(config)},
            **{f"GIT_CONFIG_VALUE_{at}": value for at, value in enumerate(config.values())},
        }

    def run(self, *arguments: str, folder: Path | None = None, input: bytes = b"", most: int | None = None) -> bytes:
        """Return what git prints. Raise TooLarge where it adds more than `most` bytes to the packs in the folder."""
        if folder is None or most is None:
            return self._run(arguments, folder, input)
        limit = _packed(folder) + most

        def check() -> None:
            if _packed(folder) > limit:
                raise TooLarge(
                    f"{self._shown} has more than {most // MIB} MiB to fetch, which are the most. "
                    "Name a branch, tag or whole commit, or raise package_total_mb."
                )

        return self._run(arguments, folder, input, check)

    def listed(self, *arguments: str, folder: Path) -> bytes:
        """Return what git prints, through a file. Raise TooLarge where that has more than `_LONGEST_LIST` bytes."""
        with tempfile.TemporaryFile(dir=folder) as output:

            def check() -> None:
                if os.fstat(output.fileno()).st_size > _LONGEST_LIST:
                    raise TooLarge(
                        f"{self._shown} lists more than {_LONGEST_LIST // MIB} MiB of files. Nothing was taken."
                    )

            self._run(arguments, folder, b"", check, output.fileno())
            output.seek(0)
            return output.read()

    def _run(
        self,
        arguments: Sequence[str],
        folder: Path | None,
        input: bytes,
        check: Callable[[], None] | None = None,
        stdout: int = subprocess.PIPE,
    ) -> bytes:
        """Return what git prints to a pipe. Raise DownloadFailed where it fails, Unavailable where there is no git."""
        place = ["--git-dir=."] if folder and arguments[0] != "init" else []
        try:
            process = subprocess.Popen(  # noqa: S603  a list, so no shell; what a user wrote stands after `--`
                ["git", *place, *arguments],  # noqa: S607  the user's own git, found as their shell finds it
                cwd=folder or "/",
                env=self._environment,
                stdin=subprocess.PIPE,
                stdout=stdout,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except FileNotFoundError:
            raise Unavailable("git is not installed, and this source is a repository. Install git.") from None
        try:
            out, errors = self._wait(process, input, check)
        except BaseException:
            if process.returncode is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
            raise
        if process.returncode:
            raise DownloadFailed(f"git could not read {self._shown} ({_reason(errors)}).")
        return out

    def _wait(
        self, process: subprocess.Popen[bytes], input: bytes, check: Callable[[], None] | None
    ) -> tuple[bytes, bytes]:
        """Return what git has written to both streams. `check` is called while it runs, and may raise to stop it."""
        deadline = time.monotonic() + TIME_LIMIT_S
        output: tuple[bytes, bytes] | None = None
        while output is None:
            left = deadline - time.monotonic()
            if left <= 0:
                raise _TookTooLong(f"git took more than {TIME_LIMIT_S:.0f} s for {self._shown}. Try again.")
            try:
                output = process.communicate(input, timeout=min(left, _LOOK_S) if check else left)
            except subprocess.TimeoutExpired:
                input = b""  # it is on its way
            if check:
                check()
        return output


def _packed(folder: Path) -> int:
    """Return the bytes in the packs of a clone, including those being written."""
    total = 0
    with suppress(FileNotFoundError), os.scandir(folder / "objects" / "pack") as entries:
        for entry in entries:
            with suppress(FileNotFoundError):
                total += entry.stat().st_size
    return total


def _https_config(source: PackageSource) -> dict[str, str]:
    """Return the settings for the address's password, and for the certificates that every other connection uses too."""
    config = {}
    if secret := authorization(source.url):
        config["http.extraHeader"] = f"Authorization: {secret}"
    if trusted := certificates():  # git that is built without OpenSSL reads none of its variables
        config["http.sslCAPath" if os.path.isdir(trusted) else "http.sslCAInfo"] = os.path.abspath(trusted)
    return config


def _reason(errors: bytes) -> str:
    """Return the line in which git gives up, without the password that an address in it may carry."""
    lines = [line.strip() for line in errors.decode("utf-8", "replace").splitlines() if line.strip()]
    at = next((at for at, line in enumerate(lines) if line.startswith(_GIVES_UP)), len(lines) - 1)
    if at > 0 and _NO_REASON in lines[at]:  # ssh gives the reason in the line before
        at -= 1
    line = lines[at] if lines else "no reason"
    return re.sub(r"//[^/@\s]*@", "//", line.partition(" ")[2] if line.startswith(_GIVES_UP) else line)
