"""The leftovers of a library: indexes of stores and models that are gone, and rows that belong to nothing."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from commonplace.index.files import PART_SUFFIX
from commonplace.ingest.embedding import Embedding
from commonplace.store.base import Store


@dataclass(frozen=True, slots=True)
class Rubbish:
    """The leftovers of a library, found or dropped."""

    caches: tuple[Path, ...]
    """Folders and files of indexes that nobody opens any more."""
    cache_bytes: int
    rows: dict[str, int]
    """The number of rows of each sort."""


def rubbish(store: Store, folder: Path, embedding: Embedding) -> Rubbish:
    """Return what there is to drop. `folder` is the library's."""
    caches = tuple(sorted(_caches(store, folder, embedding.folder)))
    return Rubbish(caches, sum(map(_size, caches)), store.leftovers())


def clean(store: Store, folder: Path, embedding: Embedding) -> Rubbish:
    """Drop the leftovers, then give room back to the vectors' file and to the disk. Return what was dropped."""
    leftovers = rubbish(store, folder, embedding)
    for cache in leftovers.caches:
        if cache.is_dir():
            shutil.rmtree(cache, ignore_errors=True)
        else:
            cache.unlink(missing_ok=True)
    dropped = store.leftovers(drop=True)
    if index := embedding.index():
        index.catch_up()
        index.compact()
    store.vacuum()
    return Rubbish(leftovers.caches, leftovers.cache_bytes, dropped)


def _caches(store: Store, folder: Path, indexes: Path) -> list[Path]:
    names = {f"vectors-{model.fingerprint[:8]}" for model in store.models()}
    stale = [path for path in folder.glob("index-*") if path != indexes]
    stale += [path for path in indexes.glob("vectors-*") if path.name not in names]
    return stale + list(folder.glob(f"*{PART_SUFFIX}"))


def _size(place: Path) -> int:
    files = place.rglob("*") if place.is_dir() else [place]
    return sum(file.stat().st_size for file in files if file.is_file())
