"""`get`, `multi-get` and `ls`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from unicodedata import normalize
from urllib.parse import unquote

import click

from commonplace.cli.common import painted, with_library
from commonplace.errors import NotFound
from commonplace.kinds.documents.document_names import DocumentNames
from commonplace.kinds.documents.folders.folder_collections import packages
from commonplace.library import Library
from commonplace.model import JSON, Filter, Item
from commonplace.qmd.cli.advice import address, command
from commonplace.qmd.cli.formats import (
    FORMATS,
    PrintedDocument,
    as_json,
    documents,
    format_options,
    one_document,
    print_as_it_is,
)
from commonplace.qmd.cli.query_commands import place_of
from commonplace.qmd.tools.document_texts import Contexts, Gathered, excerpt, gather, read, shown
from commonplace.qmd.tools.file_names import NamedLines, find, locate, without_scheme
from commonplace.qmd.tools.index_status import moment
from commonplace.store.items import Items
from commonplace.store.listing import Listing

MAX_BYTES = 65_536
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_HALF_A_YEAR = timedelta(days=180)

_LINES = click.option("-l", "--lines", "most", type=click.IntRange(min=1), help="How many lines at most.")
_NUMBERS = click.option("--line-numbers/--no-line-numbers", "numbered", default=True, help="Number the lines, or not.")


@click.command()
@click.argument("file")
@click.option("--from", "first", type=int, default=1, help="The first line; what the name says counts before this.")
@_LINES
@_NUMBERS
@click.option("--full-path", is_flag=True, help="The path on disk instead of the qmd:// one.")
@format_options("cli", "json", "md", "xml")
@with_library
def get(
    library: Library, file: str, first: int, most: int | None, numbered: bool, full_path: bool, format: str | None
) -> None:
    """Print a document: a path, a docid or a qmd:// address, with :from or :from:count at its end if you like."""
    located = _from_here(library, file) or locate(library, file)
    item = read(library, located.name)
    text = shown(item.body or "", located.first or max(1, first), located.lines or most, numbered=numbered).text
    roots = _roots(library) if full_path else {}
    document = PrintedDocument(
        _docids(library, [item.id])[item.id],
        place_of(item.parent, item.key, roots),
        item.title,
        Contexts(library).of(item.parent, item.key),
        text,
    )
    print_as_it_is(one_document(document, format or "cli"))


def _from_here(library: Library, file: str) -> NamedLines | None:
    """Return the document at `./path` or `../path` from the current folder, else None."""
    return find(library, os.path.abspath(file)) if file.startswith(("./", "../")) else None


@click.command("multi-get")
@click.argument("pattern")
@_LINES
@click.option("--max-bytes", type=click.IntRange(min=1), default=MAX_BYTES, show_default=True, help="Skip larger ones.")
@_NUMBERS
@format_options(*FORMATS)
@with_library
def multi_get(
    library: Library, pattern: str, most: int | None, max_bytes: int, numbered: bool, format: str | None
) -> None:
    """Print many documents: a glob, or names, docids and globs between commas."""
    gathered = gather(library, pattern)
    if not gathered.documents:
        first = f"No files matched pattern: {pattern}"
        raise NotFound("\n".join([first, *(error for error in gathered.errors if error != first)]), code="no_match")
    if gathered.total > len(gathered.documents):
        click.echo(
            f"[LIMITED: {len(gathered.documents)} of {gathered.total} matching files shown. "
            "Narrow the pattern to see the rest.]",
            err=True,
        )
    for error in gathered.errors:
        click.echo(error, err=True)
    print_as_it_is(documents(_documents(library, gathered, most, max_bytes, numbered), format or "cli"))


def _documents(
    library: Library, gathered: Gathered, most: int | None, max_bytes: int, numbered: bool
) -> list[PrintedDocument]:
    """Return the documents in the pattern's order, reading only bodies of up to `max_bytes`."""
    store, ids = library.store, [one.name.item_id for one in gathered.documents]
    sizes, docids, contexts = store.drawer(Items).body_sizes(ids), _docids(library, ids), Contexts(library)
    small = {
        item.id: item
        for item in store.drawer(Items).get([id for id in ids if sizes.get(id, 0) <= max_bytes], body=True)
    }
    large = {item.id: item for item in store.drawer(Items).get([id for id in ids if id not in small])}
    found = []
    for one in gathered.documents:
        name, item = one.name, small.get(one.name.item_id) or large.get(one.name.item_id)
        if item is None or item.id not in docids:
            continue  # it went a moment ago
        file = place_of(name.collection, name.path, {})
        document = PrintedDocument(docids[item.id], file, item.title, contexts.of(name.collection, name.path))
        if item.body is None:
            found.append(_skipped(document, sizes[item.id]))
        else:
            text = excerpt(item.body, one, most, numbered=numbered)
            found.append(PrintedDocument(document.docid, file, item.title, document.context, text))
    return found


def _skipped(document: PrintedDocument, size: int) -> PrintedDocument:
    kilobytes = max(1, (size + 512) // 1024)
    reason = f"File too large ({kilobytes}KB). Use '{command('get')} {document.file}' to retrieve."
    return PrintedDocument(document.docid, document.file, document.title, document.context, reason=reason)


def _docids(library: Library, ids: Sequence[int]) -> dict[int, str]:
    return {item_id: f"#{docid}" for item_id, docid in library.store.drawer(DocumentNames).docids(ids).items()}


def _roots(library: Library) -> dict[str, str]:
    return {collection.name: str(collection.root) for collection in library.folders.all()}


@click.command()
@click.argument("place", default="", metavar="[COLLECTION[/PREFIX]]")
@click.option("--json", "json_wanted", is_flag=True, help="Print JSON.")
@with_library
def ls(library: Library, place: str, json_wanted: bool) -> None:
    """List collections, or the documents of one, with their sizes and dates."""
    name, _, prefix = without_scheme(place).lstrip("/").partition("/")
    if not name:
        _list_collections(library, json_wanted)
        return
    prefix, there = prefix.strip("/"), _items(library, name)
    items = [item for item in there if _is_under(item.key, prefix)]
    items = items or [item for item in there if _is_under(item.key, unquote(prefix))]
    sizes = library.store.drawer(Items).body_sizes([item.id for item in items])
    if json_wanted:
        docids = _docids(library, [item.id for item in items])
        click.echo(as_json([_record(item, sizes.get(item.id, 0), docids) for item in items]), nl=False)
        return
    if not items:
        click.echo(f"No files found under {address(name, prefix).rstrip('/')}", err=True)
        return
    shown_sizes = {item.id: _size(sizes.get(item.id, 0)) for item in items}
    width = max(map(len, shown_sizes.values()))
    for item in items:
        path = painted(place_of(name, item.key, {}), fg="cyan")
        click.echo(f"{shown_sizes[item.id]:>{width}}  {_date(item.updated_at)}  {path}")


def _list_collections(library: Library, json_wanted: bool) -> None:
    counts = library.store.drawer(Listing).parents("document")
    found = library.folders.all()
    if json_wanted:
        records = [
            {"name": one.name, "path": str(one.root), "pattern": one.pattern, "documents": counts.get(one.name, 0)}
            for one in found
        ]
        click.echo(as_json(records), nl=False)
        return
    if not found:
        click.echo(f"No collections found. Run '{command('collection add')} .' to index files.", err=True)
        return
    click.echo("Collections:\n")
    for one in found:
        click.echo(f"  {painted(address(one.name), fg='cyan')}  ({counts.get(one.name, 0)} files)")


def _items(library: Library, name: str) -> list[Item]:
    """Return the documents of a collection by path. Raise NotFound for no such collection."""
    if name not in library.store.drawer(Listing).parents("document") or name in packages(library.store):
        library.folders.get(name)
    filter, found, last = Filter(kinds=("document",), parents=(name,)), list[Item](), 0
    while batch := library.store.drawer(Listing).scan(filter, after=last):
        found += batch
        last = batch[-1].id
    return sorted(found, key=lambda item: item.key)


def _is_under(path: str, prefix: str) -> bool:
    path, prefix = normalize("NFC", path), normalize("NFC", prefix)
    return not prefix or path == prefix or path.startswith(f"{prefix}/")


def _record(item: Item, size: int, docids: dict[int, str]) -> dict[str, JSON]:
    return {
        "file": place_of(item.parent, item.key, {}),
        "docid": docids.get(item.id),
        "title": item.title,
        "bytes": size,
        "modified": moment(item.updated_at.astimezone(UTC)),
    }


def _size(bytes: int) -> str:
    if bytes < 1024:
        return f"{bytes} B"
    return f"{bytes / 1024:.1f} KB" if bytes < 1024 * 1024 else f"{bytes / 1024 / 1024:.1f} MB"


def _date(when: datetime, now: datetime | None = None) -> str:
    """Return a date as `ls -l` does: with the time, or with the year if it is half a year away."""
    local, today = when.astimezone(), now or datetime.now(UTC)
    clock = f"{local.hour:02}:{local.minute:02}"
    return f"{_MONTHS[local.month - 1]} {local.day:2} {clock if abs(today - when) < _HALF_A_YEAR else f' {local.year}'}"


COMMANDS: dict[str, Any] = {"get": get, "multi-get": multi_get, "ls": ls}
