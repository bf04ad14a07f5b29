"""Commands that bring memory entries in and out."""

from __future__ import annotations

from pathlib import Path
from typing import IO

import click

from commonplace.cli.common import OUTPUT, counted, with_library, written
from commonplace.cli.lazy import ours
from commonplace.kinds.memories.entry_imports import Imported
from commonplace.kinds.memories.tools.entry_json import export_lines, import_file
from commonplace.library import Library

_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)


@click.command("memory")
@click.option("--thread", help="Only the entries of this thread.")
@OUTPUT
@with_library
def export_memory(library: Library, thread: str | None, target: str) -> None:
    """Write memory entries as lines of JSON, by id, images included."""
    with written(target) as output:
        for line in export_lines(library, thread.strip() if thread is not None else None):
            output.write(line + "\n")


_DRY_RUN = click.option("--dry-run", is_flag=True, help="Store nothing, only say what would be stored.")
_RENUMBER = click.option("--renumber", is_flag=True, help="Give every entry a new id and print the mapping.")


@click.command("memory")
@click.argument("source", type=click.File("rb"))
@_DRY_RUN
@_RENUMBER
@with_library
def import_memory(library: Library, source: IO[bytes], dry_run: bool, renumber: bool) -> None:
    """Import what `export memory` wrote, from a file or, for -, from standard input."""
    _report(import_file(library, source, renumber=renumber, dry_run=dry_run), dry_run=dry_run)


@click.command("context-server")
@click.argument("source", type=_FILE)
@_DRY_RUN
@_RENUMBER
@with_library
def import_context_server(library: Library, source: Path, dry_run: bool, renumber: bool) -> None:
    """Import the entries of an mcp-context-server's SQLite file. The file is only read."""
    done = library.memories.import_context_server(source, renumber=renumber, dry_run=dry_run)
    if done.raw_metadata:
        listed = ", ".join(map(str, done.raw_metadata[:20])) + (", …" if len(done.raw_metadata) > 20 else "")
        click.echo(f"Metadata that is no JSON object is kept as import_raw_metadata in {listed}.", err=True)
    _report(done, dry_run=dry_run)


def _report(done: Imported, *, dry_run: bool) -> None:
    for old, new in done.numbers.items():
        click.echo(f"{old} -> {new}")
    did = "Would import" if dry_run else "Imported"
    stored = f"{counted(done.stored, 'entry')} with {counted(done.images, 'image')}"
    click.echo(f"{did}: {stored}; {done.already} {'was' if done.already == 1 else 'were'} here already")
    if done.stored and not dry_run:
        click.echo(f"Run `{ours('embed')}` to find them by meaning too.", err=True)
