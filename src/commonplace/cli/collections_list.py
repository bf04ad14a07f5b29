"""The output of `commonplace collections list`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import click

from commonplace.cli.common import counted
from commonplace.cli.lazy import ours
from commonplace.kinds.documents.packages.declarations import Holding
from commonplace.kinds.documents.packages.package_sync import SyncOptions, SyncTarget, sync_holding
from commonplace.library import Library
from commonplace.model import Item
from commonplace.store.items import Items
from commonplace.store.listing import Listing


def print_list(library: Library, found: list[Holding], left: Mapping[str, Item], *, as_json: bool) -> None:
    """Print every alias with its source, documents and status; then documents that no alias stands for."""
    counts = library.store.drawer(Listing).parents("document")
    items = {item.key: item for item in library.store.drawer(Items).collections()}
    records = [_record(library, each, counts.get(each.declared.key, 0), items) for each in found]
    others = [_left(id, item, counts[item.key]) for id, item in left.items()]
    if as_json:
        shown = {"collections": records, "undeclared": others} if others else {"collections": records}
        click.echo(json.dumps(shown, ensure_ascii=False, indent=2))
        return
    for holding, record in zip(found, records, strict=True):
        version = f" {record['version']}" if "version" in record else ""
        line = f"{record['collection']}{version}: {counted(record['documentCount'], 'document')}, {record['scope']}"
        click.echo(f"{line}, {record['status']}")
        click.echo(f"  {record['source']}")
        _print_folder(library, holding)
    for other in others:
        click.echo(f"{other['collectionId']}: {counted(other['documentCount'], 'document')}, declared by nothing here")
    if others:
        click.echo(f"  another project's, or left over; `{ours('collections remove ID --drop')}` deletes them")
    if not (found or others):
        advice = (
            f"There are no collections yet. Make one with `{ours('add FOLDER')}`, or declare one with "
            f"`{ours('collections add ALIAS SOURCE')}`."
        )
        click.echo(advice, err=True)


def _left(id: str, item: Item, documents: int) -> dict[str, Any]:
    known = {"collectionId": id, "source": item.fields.get("source"), "documentCount": documents}
    return {**known, "lastSyncAt": item.fields.get("synced_at")}


def _print_folder(library: Library, holding: Holding) -> None:
    if not holding.folder:
        return
    folder = library.folders.get(holding.folder)
    click.echo(f"  {folder.files}{'' if folder.included else ', searched only when named'}")
    for glob in folder.ignore:
        click.echo(f"  without {glob}")
    if command := library.folders.update_command(holding.folder):
        click.echo(f"  updated by: {command}")


def _record(library: Library, holding: Holding, documents: int, items: dict[str, Item]) -> dict[str, Any]:
    known = holding.declared
    record: dict[str, Any] = {
        "collection": known.alias,
        "collectionId": known.collection_id,
        "source": _source(library, holding),
        "scope": known.scope,
        "documentCount": documents,
    }
    record |= {key: value for key, value in (("version", known.version), ("description", known.description)) if value}
    item = items.get(known.key)
    record["status"] = _folder_status(library, holding) if holding.folder else _status(library, holding, item)
    record["lastSyncAt"] = _synced_at(library, holding, item)
    return record


def _source(library: Library, holding: Holding) -> str:
    if holding.declaration is not None:
        return holding.declaration.source().shown
    return str(library.folders.get(holding.folder).root)


def _synced_at(library: Library, holding: Holding, item: Item | None) -> str | None:
    if holding.folder:
        changed = library.folders.changed_at(holding.folder)
        return changed.isoformat(timespec="milliseconds").replace("+00:00", "Z") if changed else None
    return item.fields.get("synced_at") if item else None


def _status(library: Library, holding: Holding, item: Item | None) -> str:
    """Return the result of the last sync, and for a source on this machine whether it has changed since."""
    fields = item.fields if item else {}
    if fields.get("error") or fields.get("failed"):
        return "failed"
    if "synced_at" not in fields:
        return "never synced"
    declaration = holding.declaration
    if declaration is None:
        return "synced"
    if (list(declaration.glob), list(declaration.exclude)) != (fields.get("glob"), fields.get("exclude")):
        return "changed"
    source = declaration.source()
    if source.path is None or source.kind == "repository" or fields.get("urls"):
        return "synced"  # nothing is asked over a network to list what is here
    return _now(library, holding)


def _folder_status(library: Library, holding: Holding) -> str:
    """Return a folder's status; one that never changed is `never synced` if it has something to read."""
    now = _now(library, holding)
    return "never synced" if now == "changed" and library.folders.changed_at(holding.folder) is None else now


def _now(library: Library, holding: Holding) -> str:
    keeping = SyncTarget(library.store, library.folder, library.settings)
    outcome = sync_holding(keeping, library.folders, holding, SyncOptions(dry=True))
    if outcome.error is not None:
        return "failed"
    return "changed" if outcome.changed else "synced"
