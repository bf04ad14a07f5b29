"""Where a package comes from: the forms a source may be written in, and the one id that all of them share."""

from __future__ import annotations

import hashlib
import os
import posixpath
import re
from pathlib import Path
from typing import Literal
from urllib.parse import SplitResult, quote, unquote, urlsplit, urlunsplit

from commonplace.errors import InvalidInput
from commonplace.kinds.documents.packages.places import MANIFEST, EntryRefused, inner_path
from commonplace.lazy_dataclass import dataclass

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
    """One place a package can be read from."""

    kind: Kind
    url: str
    """Normalised, and with the credentials that were written into it: never shown, never stored."""
    path: Path | None = None
    """Of what lies on this machine; a repository is cloned from there all the same."""
    ref: str = ""
    manifest: str = ""

    @property
    def host(self) -> str:
        """Where the user's own source is; empty for what lies on this machine."""
        return "" if self.path else (urlsplit(self.url).hostname or "")

    @property
    def shown(self) -> str:
        """As it may be printed and kept: without credentials."""
        if self.path is not None and self.kind != "repository":
            return str(self.path)
        extra = f"?manifest={quote(self.manifest)}" if self.manifest else ""
        prefix = "git+" if self.kind == "repository" else ""
        return f"{prefix}{without_credentials(self.url)}{extra}{f'#{self.ref}' if self.ref else ''}"

    @property
    def canonical_id(self) -> str:
        if self.path is None or self.kind == "repository":
            return f"pkg:{self.shown}"
        # A folder and its manifest.json are one package, so they have one id.
        root = self.path.parent if self.kind == "manifest" and self.path.name == MANIFEST else self.path
        return f"pkg:{root.as_uri()}"

    @property
    def key(self) -> str:
        """The parent of its documents in the store."""
        return key_of(self.canonical_id)


def key_of(canonical_id: str) -> str:
    return f"pkg-{hashlib.sha256(canonical_id.encode()).hexdigest()[:12]}"


def read_source(text: str, base: Path) -> PackageSource:
    """A source as people write it. Relative paths start at `base`; nothing is looked at but links in the path."""
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
    """An address as it may be shown. The user of an ssh address stays: it says whom to ask for, and is no secret."""
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
    parts = urlsplit(url)
    if parts.netloc not in ("", "localhost"):
        raise InvalidInput(f"{without_credentials(url)} names another machine. Write file:/// and a path.")
    if not parts.path.startswith("/"):
        raise InvalidInput(f"{url} is no absolute path. Write file:/// and one, or the path alone.")
    return Path(os.fsdecode(unquote_bytes(parts.path)))


def unquote_bytes(path: str) -> bytes:
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
    found: dict[str, str] = {}
    for mark, value in _PARTS.findall(text):
        name = "ref" if mark == "#" else "manifest"
        if mark == "?" and not value.startswith("manifest="):
            raise InvalidInput(f"?{value} is not known. A repository takes ?manifest=PATH and #REF.")
        value = unquote(value.removeprefix("manifest=") if mark == "?" else value)
        if name in found:
            raise InvalidInput(f"A repository has one {'#REF' if name == 'ref' else '?manifest=PATH'}, not two.")
        found[name] = _checked_ref(value) if name == "ref" else _checked_manifest(value)
    return found


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
