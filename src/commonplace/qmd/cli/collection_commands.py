"""`collection`: the folders, and what is taken from each; `context`: descriptions of collections, folders and files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from commonplace.cli.common import painted, with_library
from commonplace.cli.folders import index_collection, print_skipped
from commonplace.cli.lazy import SomePath
from commonplace.errors import CommonplaceError, NotFound
from commonplace.kinds.documents.collection_files import CollectionFiles
from commonplace.kinds.documents.folders.folder_collections import is_described
from commonplace.kinds.documents.folders.library_folders import Collection, Report
from commonplace.library import Library
from commonplace.model import JSON
from commonplace.qmd.cli.advice import address, command, decoded
from commonplace.qmd.cli.formats import as_json
from commonplace.qmd.tools.file_names import is_address, without_scheme
from commonplace.qmd.tools.index_status import lacking, moment
from commonplace.store.listing import Listing

PATTERN = "**/*.md"


def print_indexed(report: Report) -> None:
    """Print what an update did, in the line that scripts look for."""
    click.echo(
        f"Indexed: {report.added} new, {report.updated} updated, {report.unchanged} unchanged, {report.removed} removed"
    )
    print_skipped(report)


def print_needed(library: Library) -> None:
    """Print how many documents have no vectors yet, if any."""
    if count := lacking(library):
        click.echo(f"Run '{command('embed')}' to update embeddings ({count} documents need vectors)")


@click.group("collection")
def collection() -> None:
    """Add, list, rename, remove and set up collections."""


@collection.command()
@click.argument("path", type=SomePath(path_type=Path), default=".")
@click.option("--name", help="What to call it; the folder's name if left out.")
@click.option("--mask", "--glob", "pattern", default=PATTERN, show_default=True, help="Which files, as a glob.")
@click.option("--ignore", multiple=True, help="Leave these out, as a glob; may be repeated.")
@click.option("--gitignore", is_flag=True, help="Leave out what .gitignore files name, too.")
@with_library
def add(library: Library, path: Path, name: str | None, pattern: str, ignore: tuple[str, ...], gitignore: bool) -> None:
    """Make a folder a collection and index it."""
    made = library.folders.add(path, name, pattern=pattern, ignore=ignore, gitignore=gitignore)
    try:
        report = index_collection(library, made.name)
    except CommonplaceError:
        library.folders.remove(made.name)
        raise
    click.echo(f"Collection '{made.name}' ({made.root})")
    print_indexed(report)
    print_needed(library)


@collection.command("list")
@click.option("--json", "json_wanted", is_flag=True, help="Print JSON.")
@with_library
def list_collections(library: Library, json_wanted: bool) -> None:
    """Say which collections there are and what is in them."""
    found = library.folders.all()
    if json_wanted:
        click.echo(as_json([_record(library, one) for one in found]), nl=False)
        return
    if not found:
        click.echo(f"No collections found. Run '{command('collection add')} .' to create one.", err=True)
        return
    click.echo(f"Collections ({len(found)}):\n")
    for one in found:
        _print(library, one)
        click.echo()


@collection.command()
@click.argument("name")
@click.option("--json", "json_wanted", is_flag=True, help="Print JSON.")
@with_library
def show(library: Library, name: str, json_wanted: bool) -> None:
    """Say everything about one collection."""
    found = library.folders.get(name)
    if json_wanted:
        click.echo(as_json(_record(library, found)), nl=False)
    else:
        _print(library, found)


def _record(library: Library, found: Collection) -> dict[str, JSON]:
    return {
        "name": found.name,
        "path": str(found.root),
        "pattern": found.pattern,
        "ignore": list(found.ignore),
        "gitignore": found.gitignore,
        "includeByDefault": found.included,
        "update": library.folders.update_command(found.name) or None,
        "documents": library.store.drawer(Listing).parents("document").get(found.name, 0),
        "lastUpdated": moment(library.folders.changed_at(found.name)),
    }


def _print(library: Library, found: Collection) -> None:
    record = _record(library, found)
    excluded = "" if found.included else " [excluded]"
    click.echo(f"{painted(found.name, fg='cyan')} ({address(found.name)}){excluded}")
    click.echo(f"  Path:     {record['path']}")
    click.echo(f"  Pattern:  {found.files}")
    if found.ignore:
        click.echo(f"  Ignore:   {', '.join(found.ignore)}")
    if record["update"]:
        click.echo(f"  Update:   {record['update']}")
    click.echo(f"  Files:    {record['documents']}")
    click.echo(f"  Updated:  {record['lastUpdated'] or 'never'}")


@click.command()
@click.argument("name")
@with_library
def remove(library: Library, name: str) -> None:
    """Forget a collection, its documents and contexts. The files stay where they are."""
    count = library.folders.remove(name)
    click.echo(f"✓ Removed collection '{name}'\n  Deleted {count} documents")


@click.command()
@click.argument("old")
@click.argument("new")
@with_library
def rename(library: Library, old: str, new: str) -> None:
    """Give a collection another name. Documents, vectors and contexts move along."""
    library.folders.rename(old, new)
    click.echo(f"✓ Renamed collection '{old}' to '{new}'")


@collection.command()
@click.argument("name")
@with_library
def include(library: Library, name: str) -> None:
    """Search a collection whenever no other is named."""
    library.folders.change(name, included=True)
    click.echo(f"✓ Collection '{name}' is searched by default")


@collection.command()
@click.argument("name")
@with_library
def exclude(library: Library, name: str) -> None:
    """Search a collection only when it is named."""
    library.folders.change(name, included=False)
    click.echo(f"✓ Collection '{name}' is searched only when it is named")


@collection.command("update-cmd")
@click.argument("name")
@click.argument("command", nargs=-1)
@with_library
def update_cmd(library: Library, name: str, command: tuple[str, ...]) -> None:
    """Run a command in the collection's folder before each `qmd update`. Without one: run none."""
    text = " ".join(command).strip()
    library.folders.set_update_command(name, text)
    click.echo(f"✓ '{name}' is updated by: {text}" if text else f"✓ '{name}' has no update command")


for _names, _command in ((("remove", "rm"), remove), (("rename", "mv"), rename)):
    for _name in _names:
        collection.add_command(_command, _name)


Place = tuple[str | None, str]
"""A collection (None for everything) and a path inside it."""


@click.group("context")
def context() -> None:
    """Describe the library, a collection, a folder or a file to those who search."""


@context.command("add")
@click.argument("words", nargs=-1, metavar="[PATH] TEXT")
@click.option("--collection", "name", help="Describe this collection, or --path inside it.")
@click.option("--path", "inside", default="", help="A folder or file inside --collection.")
@with_library
def add_context(library: Library, words: tuple[str, ...], name: str | None, inside: str) -> None:
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
def remove_context(library: Library, path: str) -> None:
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
    context.add_command(remove_context, _name)

COMMANDS: dict[str, Any] = {"collection": collection, "context": context}
