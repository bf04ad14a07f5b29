"""Commands for collections of files."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import click

from commonplace.cli.common import ask, progress_bar, with_library
from commonplace.cli.lazy import SomePath, hush, ours
from commonplace.cli.lookup import embed_with_progress, pull_default
from commonplace.errors import CommonplaceError
from commonplace.kinds.documents.folders.library_folders import Collection, Report
from commonplace.kinds.documents.locating import require_collection
from commonplace.library import Library

MOST_NAMED, MOST_ENDINGS = 20, 8
PATIENCE_S = 1.0
"""The seconds that `watch` waits for a model at its end."""
_STDERR = 2


class CommandFailed(CommonplaceError):
    """The error that a collection's update command failed."""

    code, status, exit_code = "command_failed", 500, 1


@click.command()
@click.argument("path", type=SomePath(path_type=Path))
@click.option("--name", help="What to call the collection; the folder's name if left out.")
@click.option("--pattern", help="Which files, as a glob such as **/*.md. [default: every format that can be read]")
@click.option("--ignore", multiple=True, help="Leave these out, as a glob; may be repeated.")
@click.option("--gitignore/--no-gitignore", default=None, help="Leave out what .gitignore files name. [default: yes]")
@click.option("--no-embed", is_flag=True, help="Compute no vectors: the files are found by their words only.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask where another collection has its files.")
@with_library
def add(library: Library, path: Path, name: str | None, pattern: str | None, no_embed: bool, **rules: Any) -> None:
    """Add a folder to the library as a collection, so that it can be searched. Repeat it to bring it up to date.

    What .gitignore files name is left out, and so is what .commonplaceignore files name, in the same syntax.
    """
    ignore, gitignore = rules["ignore"] or None, rules["gitignore"]
    shared = library.folders.overlapping(path, name)
    if shared and not rules["yes"] and sys.stdin.isatty():
        click.echo(_sharing(path, shared), err=True)
        ask("Add it all the same?")
        shared = []  # has been said
    collection = library.folders.ensure(path, name, pattern=pattern, ignore=ignore, gitignore=gitignore)
    print_report(report := index_collection(library, collection.name))
    if collection.takes_all and report.unread:
        click.echo(f"Not read: {unread_files(report.unread)}")
    if shared:
        click.echo(_sharing(path, shared))
    if not no_embed:
        pull_default(library)
        embed_with_progress(library)


def _sharing(path: Path, shared: Sequence[tuple[Collection, str]]) -> str:
    """Return a sentence on the collections that share files with a folder, and how to search them there."""
    names = ", ".join(collection.name for collection, _ in shared[:MOST_NAMED])
    noun = "collection" if len(shared) == 1 else "collections"
    return (
        f"{os.path.realpath(path)} shares files with {noun} {names}, and what is in two collections is found twice. "
        f"`{ours(f'search --path {shlex.quote(shared[0][1])} WORDS')}` searches them there."
    )


def index_collection(library: Library, name: str, *, force: bool = False) -> Report:
    """Bring a collection and the lexical index up to date, with progress."""
    with progress_bar(f"Reading {name}") as progress:
        report = library.folders.update(name, force=force, progress=progress)
    with progress_bar(f"Indexing {name}") as progress:
        library.lexical.catch_up(progress)
    return report


def print_report(report: Report) -> None:
    """Print what an update did on stdout, and what it left out and why on stderr."""
    click.echo(f"Indexed: {report.line()}")
    print_skipped(report)


def unread_files(unread: Counter[str]) -> str:
    """Return how many files of which ending were not read, most first: `12 .png, 3 .zip`."""
    counts = [f"{count} {ending or 'without an ending'}" for ending, count in unread.most_common(MOST_ENDINGS)]
    rest = unread.total() - sum(count for _, count in unread.most_common(MOST_ENDINGS))
    return ", ".join([*counts, f"{rest} others"] if rest else counts)


def print_skipped(report: Report) -> None:
    """Print what an update left out or could not read as text, and why, on stderr."""
    for path, code in report.skipped[:MOST_NAMED]:
        click.echo(f"  skipped {path}: {code}", err=True)
    if len(report.skipped) > MOST_NAMED:
        counts = ", ".join(f"{count} {code}" for code, count in report.reasons().items())
        click.echo(f"  and {len(report.skipped) - MOST_NAMED} more; in all {counts}", err=True)
    for path, what in report.warnings[:MOST_NAMED]:
        click.echo(f"  {path}: {what}", err=True)
    if len(report.warnings) > MOST_NAMED:
        click.echo(f"  and {len(report.warnings) - MOST_NAMED} more that could not all be read", err=True)


def run_update_command(library: Library, collection: Collection) -> None:
    """Run the owner's update command in the collection's root. Only commands that a person typed may call this."""
    command = library.folders.update_command(collection.name)
    if not command:
        return
    click.echo(f"Running: {command}", err=True)
    try:
        done = subprocess.run(  # noqa: S602 - its owner wrote it; what it prints is no result of ours
            command, shell=True, cwd=collection.root, stdout=_STDERR, check=False
        )
    except OSError as error:
        raise CommandFailed(f"The update command of {collection.name} could not be started: {error}.") from error
    if done.returncode:
        raise CommandFailed(f"The update command of {collection.name} failed with status {done.returncode}: {command}")


def update_collections(library: Library, names: tuple[str, ...], *, force: bool = False) -> int:
    """Update these collections, or all, one after the other; returns how many failed. Update commands run first."""
    collections = [library.folders.get(name) for name in dict.fromkeys(names)] if names else library.folders.all()
    failed = 0
    for number, collection in enumerate(collections, start=1):
        click.echo(f"[{number}/{len(collections)}] {collection.name} ({collection.files})")
        try:
            run_update_command(library, collection)
            print_report(index_collection(library, collection.name, force=force))
        except CommonplaceError as error:
            click.echo(str(error), err=True)
            failed += 1
    return failed


_NAMES = click.option("-c", "--collection", "names", multiple=True, help="Only this collection; may be repeated.")


@click.command()
@_NAMES
@click.option("--force", is_flag=True, help="Look into every file, whatever its time says.")
@with_library
def update(library: Library, names: tuple[str, ...], force: bool) -> int:
    """Bring collections up to date with their folders. Words only: `embed` or `watch` make the vectors."""
    before = library.store.last_change()
    called = tuple(require_collection(library, name) for name in names)
    failed = update_collections(library, called, force=force)
    if failed:
        return 1
    click.echo("✓ All collections updated.")
    if library.store.last_change() != before and library.embedding.chosen and (count := _pending(library)):
        wanting = "1 passage needs" if count == 1 else f"{count} passages need"
        click.echo(f"Run `{ours('embed')}` to update embeddings ({wanting} vectors)")
    return 0


def _pending(library: Library) -> int:
    return library.embedding.coverage().pending


@click.command()
@_NAMES
@click.option("--no-embed", is_flag=True, help="Compute no vectors: changes are found by their words only.")
@with_library
def watch(library: Library, names: tuple[str, ...], no_embed: bool) -> None:
    """Keep collections up to date while their files change, until Ctrl-C.

    Computes vectors too, if the library has some.
    """
    stop = threading.Event()

    def end(number: int, frame: FrameType | None) -> None:
        stop.set()

    def say(name: str, report: Report) -> None:
        try:
            click.echo(f"{name}: {report.line()}")
        except BrokenPipeError:  # nobody reads on
            hush()
            stop.set()

    names = tuple(require_collection(library, name) for name in names)
    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    watched = [library.folders.get(name) for name in names] if names else library.folders.all()
    for collection in watched:
        click.echo(f"Watching {collection.name} ({collection.root})", err=True)
    try:
        answered = library.folders.watch(
            stop, names=names, embed=not no_embed, updated=say, failed=_complain, patience=PATIENCE_S
        )
        if not answered:
            _leave()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _leave() -> NoReturn:
    """End the process at once: a thread waits for a model, and its vectors are computed another time."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def _complain(name: str, sentence: str) -> None:
    click.echo(sentence, err=True)


@click.command()
@click.argument("old")
@click.argument("new")
@with_library
def rename(library: Library, old: str, new: str) -> None:
    """Give a collection another name. Documents, vectors and contexts move along."""
    old = require_collection(library, old)
    library.folders.rename(old, new)
    click.echo(f"Renamed {old} to {new}")


@click.command()
@click.argument("name")
@click.argument("path", type=SomePath(path_type=Path))
@with_library
def move(library: Library, name: str, path: Path) -> None:
    """Tell the library where a collection's folder is now, and read it there. Documents, vectors and contexts stay."""
    name = require_collection(library, name)
    click.echo(f"{name} is {library.folders.move(name, path).root} now")
    print_report(index_collection(library, name))


@click.command()
@click.argument("name")
@with_library
def include(library: Library, name: str) -> None:
    """Search a collection whenever no other is named."""
    name = require_collection(library, name)
    library.folders.change(name, included=True)
    click.echo(f"{name} is searched by default")


@click.command()
@click.argument("name")
@with_library
def exclude(library: Library, name: str) -> None:
    """Search a collection only when it is named."""
    name = require_collection(library, name)
    library.folders.change(name, included=False)
    click.echo(f"{name} is searched only when it is named")


@click.command("update-command")
@click.argument("name")
@click.argument("command", default="")
@with_library
def update_command(library: Library, name: str, command: str) -> None:
    """Run a command in the collection's folder before each `update`, such as `git pull`. Without one: run none."""
    name = require_collection(library, name)
    library.folders.set_update_command(name, command)
    click.echo(f"{name} is updated by: {command}" if command.strip() else f"{name} has no update command")


COMMANDS = {"add": add, "update": update, "watch": watch}
OF_COLLECTIONS = (rename, move, include, exclude, update_command)
"""The commands of `commonplace collections` for folders alone."""
