"""The files that items came from, where several files have to do with one item."""

from __future__ import annotations

from pathlib import Path

from commonplace.ingest.imports.source import Record
from commonplace.store.base import Store
from commonplace.store.rows import ImportSource


def remembered(store: Store, record: Record, path: str, position: str, mark: bytes) -> ImportSource | None:
    """Return what came from a place before; else the very same record from another, which has moved."""
    source = store.import_source(record["kind"], path, position)
    if source is None and (same := _same_elsewhere(store, record, mark)):
        source = same._replace(path=path, position=position)
        store.set_import_source(source)
    return source


def _same_elsewhere(store: Store, record: Record, mark: bytes) -> ImportSource | None:
    """Return where a record came from last, whatever has been made of its item in the library since."""
    kind = record["kind"]
    if "id" in record:
        item = store.item(kind, None, str(record["id"]), body=False)
        candidates = [item.id] if item else []
    else:
        candidates = store.named(kind, str(record.get("title") or record.get("name") or ""))
    for candidate in candidates:
        latest = max(store.import_sources_of(candidate), key=lambda one: one.version, default=None)
        if latest and latest.hash == mark:
            return latest
    return None


def is_shared(store: Store, source: ImportSource) -> bool:
    """Return whether another file that is still there was alike and became the same item: from now on they are two."""
    others = [one for one in store.import_sources_of(source.item_id) if one[:3] != source[:3]]
    return any(one.path == source.path or Path(one.path).exists() for one in others)


def was_imported(store: Store, item_id: int, version: int) -> bool:
    """Return whether a version of an item came from a file. Otherwise somebody made or edited it in the library."""
    return any(one.version == version for one in store.import_sources_of(item_id))
