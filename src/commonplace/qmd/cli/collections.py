"""`collection`: the folders, and what is taken from each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from commonplace.cli.common import painted, with_library
from commonplace.cli.folders import index_collection, print_skipped
from commonplace.cli.lazy import SomePath
from commonplace.errors import CommonplaceError
from commonplace.kinds.documents.folders.library_folders import Collection, Report
from commonplace.library import Library
from commonplace.model import JSON
from commonplace.qmd.cli.advice import address, command
from commonplace.qmd.cli.formats import as_json
from commonplace.qmd.tools.status import lacking, moment
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

COMMANDS: dict[str, Any] = {"collection": collection}
