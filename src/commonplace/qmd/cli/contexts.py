"""`context`: descriptions of collections, folders and files."""

from __future__ import annotations

from typing import Any

import click

from commonplace.cli.common import painted, with_library
from commonplace.errors import NotFound
from commonplace.kinds.documents.collection_files import CollectionFiles
from commonplace.kinds.documents.folders.folder_collections import is_described
from commonplace.library import Library
from commonplace.qmd.cli.advice import address, command, decoded
from commonplace.qmd.cli.formats import as_json
from commonplace.qmd.tools.naming import is_address, without_scheme

Place = tuple[str | None, str]
"""A collection (None for everything) and a path inside it."""


@click.group("context")
def context() -> None:
    """Describe the library, a collection, a folder or a file to those who search."""


@context.command()
@click.argument("words", nargs=-1, metavar="[PATH] TEXT")
@click.option("--collection", "name", help="Describe this collection, or --path inside it.")
@click.option("--path", "inside", default="", help="A folder or file inside --collection.")
@with_library
def add(library: Library, words: tuple[str, ...], name: str | None, inside: str) -> None:
    """Describe a place: / for everything, an address in or of a collection, or a path on disk (here, if left out)."""
    if inside and name is None:
        raise click.UsageError("--path goes with --collection.")
    if not 1 <= len(words) <= (2 if name is None else 1):
        raise click.UsageError("Give a path and a text, or a text alone for the current folder.")
    given, text = ("", words[0]) if len(words) == 1 else _ordered(*words)
    place = (name, inside) if name is not None else _place(library, given or ".")
    library.folders.set_context(*place, text)
    click.echo(f"✓ Added context for: {_shown(place)}")


def _ordered(first: str, second: str) -> tuple[str, str]:
    """Return (path, text), also for the reverse order if only the second word can be a path."""
    if is_address(second) and not is_address(first):
        return second, first
    return first, second


def _place(library: Library, given: str) -> Place:
    if given == "/":
        return None, ""
    if is_address(given):
        collection, _, path = decoded(without_scheme(given)).partition("/")
        if not collection:
            return None, ""
        return library.folders.get(collection).name, path
    found = library.folders.locate(given)
    if not found:
        raise NotFound(f"{given} is in no collection. Give a path inside one, or its address.")
    collection_found, path = found[0]
    return collection_found.name, path


def _shown(place: Place) -> str:
    collection, path = place
    return "/" if collection is None else address(collection, path.strip("/"))


@context.command("list")
@click.option("--json", "json_wanted", is_flag=True, help="Print JSON.")
@with_library
def list_contexts(library: Library, json_wanted: bool) -> None:
    """List all descriptions, and what each of them describes."""
    found = library.folders.contexts()
    if json_wanted:
        records = [{"path": _shown((one.collection, one.path)), "context": one.text} for one in found]
        click.echo(as_json(records), nl=False)
        return
    if not found:
        click.echo(f"No contexts configured. Use '{command('context add')}' to add one.", err=True)
    for one in found:
        click.echo(painted(_shown((one.collection, one.path)), fg="cyan"))
        for line in one.text.split("\n"):
            click.echo(f"  {line}".rstrip())


@click.command()
@click.argument("path")
@with_library
def remove(library: Library, path: str) -> None:
    """Remove the description of a place."""
    place = _place(library, path)
    library.folders.remove_context(*place)
    click.echo(f"✓ Removed context for: {_shown(place)}")


@context.command()
@click.option("--json", "json_wanted", is_flag=True, help="Print JSON.")
@with_library
def check(library: Library, json_wanted: bool) -> None:
    """List collections and their top folders that have no description of their own."""
    missing = []
    for collection in library.folders.all():
        folders = {
            path.split("/", 1)[0]
            for path in library.store.drawer(CollectionFiles).versions(collection.name)
            if "/" in path
        }
        places = ["", *sorted(folders)]
        missing += [
            _shown((collection.name, place)) for place in places if not is_described(collection.contexts, place)
        ]
    if json_wanted:
        click.echo(as_json(missing), nl=False)
        return
    for place in missing:
        click.echo(place)
    if not missing:
        click.echo("✓ All collections and top folders have context.")
    else:
        click.echo(f"Add one with: {command('context add')} PATH TEXT", err=True)


for _name in ("remove", "rm"):
    context.add_command(remove, _name)

COMMANDS: dict[str, Any] = {"context": context}
