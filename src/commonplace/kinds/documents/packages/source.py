"""Read the source of a package in any form it may be written in, and give it one id."""

from __future__ import annotations

import hashlib
import os
import posixpath
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import SplitResult, quote, unquote, urlsplit, urlunsplit

from commonplace.errors import InvalidInput
from commonplace.kinds.documents.packages.package_paths import MANIFEST, EntryRefused, inner_path

Kind = Literal["folder", "manifest", "archive", "repository"]
ARCHIVE_ENDINGS = (".tar.gz", ".tgz")
_FORMS = (
    "a folder, a .json manifest, a .tar.gz or .tgz archive (each a path or an http(s) address, a folder only a path), "
    "or git+https://, git+ssh:// or git+file://"
)
_PORTS = {"http": 80, "https": 443, "ssh": 22}
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(//)?")
_SHELL = re.compile(r"[\s;&|$`<>(){}'\"\\!*\x00-\x1f\x7f]")
_REF = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._/@+=-]{0,254}")
_PARTS = re.compile(r"([?#])([^?#]*)")


@dataclass(frozen=True, slots=True)
class PackageSource:
    """A place that a package is read from."""

    kind: Kind
    url: str
    """Normalized, and with the credentials that were written into it: never shown, never stored."""
    path: Path | None = None
    """The path, where the source is on this machine; a repository is cloned from there all the same."""
    ref: str = ""
    """The branch, tag or commit of a repository; "" is its HEAD."""
    manifest: str = ""
    """The path of the manifest in a repository; "" is manifest.json at its root."""

    @property
    def host(self) -> str:
        """Return the host of the source, or "" where it is on this machine."""
        return "" if self.path else (urlsplit(self.url).hostname or "")

    @property
    def shown(self) -> str:
        """Return the source as it may be printed and stored: without credentials."""
        if self.path is not None and self.kind != "repository":
            return str(self.path)
        extra = f"?manifest={quote(self.manifest)}" if self.manifest else ""
        prefix = "git+" if self.kind == "repository" else ""
        return f"{prefix}{without_credentials(self.url)}{extra}{f'#{self.ref}' if self.ref else ''}"

    @property
    def canonical_id(self) -> str:
        """Return the id of the collection: `pkg:` and the normalized address."""
        if self.path is None or self.kind == "repository":
            return f"pkg:{self.shown}"
        # A folder and its manifest.json are one package, so they have one id.
        root = self.path.parent if self.kind == "manifest" and self.path.name == MANIFEST else self.path
        return f"pkg:{root.as_uri()}"

    @property
    def key(self) -> str:
        """Return the parent of its documents in the store."""
        return key_of(self.canonical_id)


def key_of(canonical_id: str) -> str:
    """Return the parent of a package's documents in the store."""
    return f"pkg-{hashlib.sha256(canonical_id.encode()).hexdigest()[:12]}"


def read_source(text: str, base: Path) -> PackageSource:
    """Return a source from its written form. Raise InvalidInput where it has none of the forms.

    A relative path starts from `base`. Nothing is opened; only links in a path are resolved.
    """
    text = text.strip()
    if not text or "\0" in text:
        raise InvalidInput(f"A source is {_FORMS}: not {text!r}.")
    if text.startswith("-"):
        raise InvalidInput(f"A source does not begin with a dash: {text!r}. Write ./{text} for a path.")
    try:
        if text.lower().startswith("git+"):
            return _repository(text[4:])
        scheme = _SCHEME.match(text)
        if scheme and scheme[1].lower() in ("http", "https"):
            return _remote(text)
        if scheme and scheme[1].lower() == "file":
            return _local(_file_path(text))
    except ValueError as error:
        raise InvalidInput(f"{without_credentials(text)} is no address ({error}). A source is {_FORMS}.") from None
    if scheme and scheme[2]:
        raise InvalidInput(f"{scheme[1]}: is no kind of source. A source is {_FORMS}.")
    return _local(base / os.path.expanduser(text))


def without_credentials(url: str) -> str:
    """Return an address without credentials. The user of an ssh address stays: it is no secret."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return re.sub(r"//[^/@]*@", "//", url)
    user, _, host = parts.netloc.rpartition("@")
    name = user.partition(":")[0]
    return urlunsplit(parts._replace(netloc=f"{name}@{host}" if name and parts.scheme.endswith("ssh") else host))


def _local(path: Path) -> PackageSource:
    real = Path(os.path.realpath(path))
    kind: Kind = "folder"
    if not real.is_dir():
        name = real.name.lower()
        kind = "manifest" if name.endswith(".json") else "archive" if name.endswith(ARCHIVE_ENDINGS) else "folder"
    return PackageSource(kind, real.as_uri(), real)


def _file_path(url: str) -> Path:
    """Return the path of a `file:` address of this machine."""
    parts = urlsplit(url)
    if parts.netloc not in ("", "localhost"):
        raise InvalidInput(f"{without_credentials(url)} names another machine. Write file:/// and a path.")
    if not parts.path.startswith("/"):
        raise InvalidInput(f"{url} is no absolute path. Write file:/// and one, or the path alone.")
    return Path(os.fsdecode(unquote_bytes(parts.path)))


def unquote_bytes(path: str) -> bytes:
    """Return the bytes of a percent-encoded path, which need not be UTF-8."""
    return unquote(path, errors="surrogateescape").encode("utf-8", "surrogateescape")


def _remote(text: str) -> PackageSource:
    url = _normal(urlsplit(text))
    path = urlsplit(url).path.lower()
    if path.endswith(".json"):
        return PackageSource("manifest", url)
    if path.endswith(ARCHIVE_ENDINGS):
        return PackageSource("archive", url)
    raise InvalidInput(
        f"{without_credentials(url)} ends neither in .json nor in .tar.gz or .tgz. A web server cannot be listed: "
        "name the manifest or an archive."
    )


def _repository(text: str) -> PackageSource:
    cut = min((at for at in (text.find("?"), text.find("#")) if at >= 0), default=len(text))
    address, extras = text[:cut], _extras(text[cut:])
    if _SHELL.search(address) or address.startswith("-"):
        raise InvalidInput(
            f"The address of a repository has no blanks, quotes or characters that a shell would read: not "
            f"{without_credentials(address)!r}. Percent-encode them."
        )
    parts = urlsplit(address)
    scheme = parts.scheme.lower()
    if scheme not in ("https", "ssh", "file"):
        raise InvalidInput(f"git+{scheme}: is no kind of source. A repository is git+https, git+ssh or git+file.")
    if scheme == "file":
        real = Path(os.path.realpath(_file_path(address)))
        return PackageSource("repository", real.as_uri(), real, extras.get("ref", ""), extras.get("manifest", ""))
    if not parts.hostname or parts.hostname.startswith("-"):
        raise InvalidInput(f"{without_credentials(address)} names no host.")
    return PackageSource("repository", _normal(parts), None, extras.get("ref", ""), extras.get("manifest", ""))


def _extras(text: str) -> dict[str, str]:
    """Return `ref` and `manifest` from the end of a repository's address."""
    extras: dict[str, str] = {}
    for mark, value in _PARTS.findall(text):
        name = "ref" if mark == "#" else "manifest"
        if mark == "?" and not value.startswith("manifest="):
            raise InvalidInput(f"?{value} is not known. A repository takes ?manifest=PATH and #REF.")
        value = unquote(value.removeprefix("manifest=") if mark == "?" else value)
        if name in extras:
            raise InvalidInput(f"A repository has one {'#REF' if name == 'ref' else '?manifest=PATH'}, not two.")
        extras[name] = _checked_ref(value) if name == "ref" else _checked_manifest(value)
    return extras


def _checked_ref(ref: str) -> str:
    if not _REF.fullmatch(ref) or ".." in ref or ref.endswith((".lock", "/", ".")) or "//" in ref or "@{" in ref:
        raise InvalidInput(f"#{ref} is no branch, tag or commit. It begins with a letter or digit and has no blanks.")
    return ref


def _checked_manifest(path: str) -> str:
    try:
        return inner_path(path)
    except EntryRefused as refused:
        raise InvalidInput(f"?manifest={path}: {refused}") from None


def _normal(parts: SplitResult) -> str:
    """Return an address with its host in small letters, and without its default port or a slash at its end."""
    host = (parts.hostname or "").lower()
    if not host:
        raise InvalidInput(f"{without_credentials(parts.geturl())} names no host.")
    host = f"[{host}]" if ":" in host else host
    port = f":{parts.port}" if parts.port and parts.port != _PORTS.get(parts.scheme.lower()) else ""
    user = parts.netloc.rpartition("@")[0]
    path = posixpath.normpath(parts.path) if parts.path else ""
    path = "/" + path.strip("/") if path.strip("/") else ""
    netloc = f"{user}@{host}{port}" if user else f"{host}{port}"
    return urlunsplit((parts.scheme.lower(), netloc, path, parts.query, ""))
