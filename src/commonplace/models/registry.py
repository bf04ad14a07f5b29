"""The package registry as a source of files: which one to ask, and where it keeps a wheel."""

from __future__ import annotations

import configparser
import json
import os
import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urljoin, urlsplit

from commonplace.errors import DownloadFailed
from commonplace.models.web import read_url, shown

PYPI = "https://pypi.org/simple"
_VARIABLES = ("COMMONPLACE_REGISTRY", "PIP_INDEX_URL", "UV_INDEX_URL", "UV_DEFAULT_INDEX")
_JSON = "application/vnd.pypi.simple.v1+json"
_ACCEPT = f"{_JSON}, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.01"


def registry_url(given: str | None = None) -> str:
    """Return the registry to ask: the one given, else the one this machine's own tools are told to use, else PyPI."""
    from_environment = (os.environ.get(name) for name in _VARIABLES)
    from_pip = (_index_url(path) for path in pip_config_files())
    return next((url for url in (given, *from_environment, *from_pip) if url), PYPI)


def pip_config_files() -> Iterator[Path]:
    """Yield pip's configuration files, the one that wins first."""
    variable = os.environ.get("PIP_CONFIG_FILE")
    if variable == os.devnull:
        return
    if variable:
        yield Path(variable)
    name = "pip.ini" if sys.platform == "win32" else "pip.conf"
    yield Path(sys.prefix) / name
    home = Path.home()
    for base in (os.environ.get("XDG_CONFIG_HOME"), os.environ.get("APPDATA"), home / ".config"):
        if base:
            yield Path(base) / "pip" / name
    yield home / "Library" / "Application Support" / "pip" / name
    yield home / ("pip" if sys.platform == "win32" else ".pip") / name
    yield Path("/etc/xdg/pip/pip.conf")
    yield Path("/etc/pip.conf")


def wheel_url(package: str, version: str, registry: str) -> str:
    """Return where the wheel of this exact version is. Any platform's will do: only data files are taken out of it."""
    page = f"{registry.rstrip('/')}/{_normal(package)}/"
    url_by_name = {name: url for name, url in _links(page) if _is_wheel_of(name, package, version)}
    if not url_by_name:
        raise DownloadFailed(
            f"{shown(registry)} has no wheel of {package} {version}. "
            "Set COMMONPLACE_REGISTRY to a registry that has it, such as https://pypi.org/simple."
        )
    best = min(url_by_name, key=lambda name: (not name.endswith("-none-any.whl"), name))
    return _with_password_of(registry, url_by_name[best])


def _links(page: str) -> list[tuple[str, str]]:
    """Return the (file name, address) of every file on a project's page, in whichever of the two formats it comes."""
    body, response = read_url(page, accept=_ACCEPT)
    content_type = (response.headers.get("Content-Type") or "").partition(";")[0].strip()
    try:
        if content_type == _JSON:
            return [(file["filename"], urljoin(response.url, file["url"])) for file in json.loads(body)["files"]]
        anchors = _Anchors()
        anchors.feed(body.decode("utf-8", "replace"))
        return [(text.strip(), urljoin(response.url, href)) for href, text in anchors.found]
    except (ValueError, KeyError, TypeError) as error:
        raise DownloadFailed(
            f"{shown(page)} is not a package index ({error}). Set COMMONPLACE_REGISTRY to a simple index address."
        ) from error


class _Anchors(HTMLParser):
    """A parser that gathers the (href, text) of every link of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, str]] = []
        self._open = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        href = dict(attrs).get("href")
        self._open = tag == "a" and href is not None
        if self._open and href is not None:
            self.found.append((href, ""))

    def handle_data(self, data: str) -> None:
        if self._open:
            href, text = self.found[-1]
            self.found[-1] = (href, text + data)

    def handle_endtag(self, tag: str) -> None:
        self._open = False


def _index_url(path: Path) -> str | None:
    parser = configparser.ConfigParser(interpolation=None)
    try:
        parser.read(path, encoding="utf-8")
    except (configparser.Error, OSError, UnicodeDecodeError):
        return None  # pip's own file: pip is the one to complain about it
    return parser.get("global", "index-url", fallback=None) or parser.get("global", "index_url", fallback=None)


def _is_wheel_of(filename: str, package: str, version: str) -> bool:
    if not filename.endswith(".whl"):
        return False
    name, wheel_version, *_ = [*filename.split("-"), ""]
    return _normal(name) == _normal(package) and wheel_version == version


def _normal(name: str) -> str:
    """Return a project's name as PEP 503 compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _with_password_of(registry: str, url: str) -> str:
    """Return a file's address with the password of the registry, where both are on one host.

    A registry that asked for a password for its index asks for it for its files too.
    """
    source, target = urlsplit(registry), urlsplit(url)
    userinfo, _, host = source.netloc.rpartition("@")
    if userinfo and host == target.netloc and source.scheme == target.scheme:
        return target._replace(netloc=f"{userinfo}@{host}").geturl()
    return url
