"""The commands that say how the library is and keep it: `status`, `doctor`, `backup`, `restore`."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from commonplace.cli.common import ask, counted, with_library
from commonplace.cli.lazy import as_typed, ours
from commonplace.cli.lookup import how_to_use
from commonplace.kinds.memories.tools.environment import without_effect
from commonplace.library import Library, restore
from commonplace.model import number_of
from commonplace.models import STATIC, catalog, is_gone
from commonplace.settings import Settings
from commonplace.store.sqlite.store import check_backup

if TYPE_CHECKING:
    from commonplace.ingest.library_status import Status
    from commonplace.kinds.documents.folders.library_folders import FolderState


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@with_library
def status(library: Library, as_json: bool) -> None:
    """Show what is in the library and how ready it is."""
    state = library.status()
    if as_json:
        click.echo(json.dumps(_record(library, state), ensure_ascii=False, indent=2))
        return
    coverage = state.coverage
    click.echo(f"Library: {library.folder}")
    for kind, count in state.items.items():
        click.echo(f"  {number_of(kind, count)}")
    from commonplace.kinds.documents.folders.folder_collections import (
        packages,  # walking and reading files, which a search does not
    )

    packaged = packages(library.store)
    folders = {folder.collection: folder for folder in library.folders.states()}
    for name, count in sorted({**dict.fromkeys(folders, 0), **state.collections}.items()):
        kind = "package" if name in packaged else "collection"
        click.echo(f"  {kind} {packaged.get(name, name)}: {counted(count, 'document')}")
        if name in folders:
            click.echo(f"    {_folder_line(folders[name])}")
    waiting = state.changes - state.indexed
    ready = f"{counted(waiting, 'change')} still to be indexed, by the next search" if waiting > 0 else "all indexed"
    click.echo(f"  {counted(state.chunks, 'passage')}, {ready}")
    if state.index_trouble:
        click.echo(f"  {state.index_trouble}")
    if coverage.model is None:
        click.echo(f"  no vectors yet: run `{ours('embed')}` to search by meaning")
    else:
        done = f"{coverage.embedded} of {counted(coverage.total, 'passage')}"
        click.echo(f"  {done} embedded with {coverage.model}{_reads(coverage.model)}")
        if state.pending:
            click.echo(f"  {as_typed(state.pending.sentence)}")
        if is_gone(coverage.model, library.settings.models):
            pull = f"`{ours(f'models pull {coverage.model}')}`"
            click.echo(f"  {coverage.model} is not here any more, so searches go by words only: {pull}")
    if moving := state.switching:
        further = f"`{ours(f'embed --model {moving.model}')}`"
        done = f"{moving.embedded} of {counted(moving.total, 'passage')}"
        click.echo(f"  on the way to {moving.model}: {done}; {further} goes on")
    if (better := state.better_model) and not moving:
        click.echo(f"  {better} would find more: {how_to_use(library, better)}")


def _folder_line(state: FolderState) -> str:
    """Return a sentence: where a collection's folder is, when it was last read, whether it has changed since."""
    at = state.looked_at
    read = f"{state.root}, read {at.astimezone():%Y-%m-%d %H:%M:%S}" if at else f"{state.root}, not read from here yet"
    if state.level:
        return f"{read}, level"
    if state.trouble:
        return f"{read}. {state.trouble}"
    changed = " and changed since" if state.level is False and at else ""
    return f"{read}{changed}: `{ours(f'update {shlex.quote(state.collection)}')}` brings it level"


def _record(library: Library, state: Status) -> dict[str, Any]:
    coverage, moving = state.coverage, state.switching
    return {
        "library": str(library.folder),
        "items": state.items,
        "collections": state.collections,
        "passages": state.chunks,
        "changes": state.changes,
        "indexed": state.indexed,
        "index_trouble": state.index_trouble or None,
        "model": coverage.model,
        "embedded": coverage.embedded,
        "pending": coverage.pending,
        "better_model": state.better_model,
        "on_the_way_to": moving.model if moving else None,
        "folders": [_folder_record(folder) for folder in library.folders.states()],
    }


def _folder_record(state: FolderState) -> dict[str, Any]:
    return {
        "collection": state.collection,
        "path": str(state.root),
        "looked_at": state.looked_at.isoformat() if state.looked_at else None,
        "level": state.level,
        "trouble": state.trouble or None,
    }


def _reads(model: str) -> str:
    """Return the languages a model of ours reads, as the end of a sentence; "" for other models."""
    languages = catalog()[model].card.languages if model in catalog() else frozenset({"en"} if model == STATIC else ())
    if not languages:
        return ""
    return ", which reads English" if languages == {"en"} else f", which reads {len(languages)} languages"


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@with_library
def doctor(library: Library, as_json: bool) -> int:
    """Check everything, reading every byte, and say what is wrong. The exit code is 1 if anything is."""
    problems = [as_typed(problem) for problem in library.doctor()]
    state = library.status()
    coverage = state.coverage
    if as_json:
        found = {"problems": problems, "model": coverage.model, "passages": coverage.total}
        more = {"better_model": state.better_model, "without_effect": without_effect()}
        click.echo(json.dumps({**found, "embedded": coverage.embedded, **more}, ensure_ascii=False, indent=2))
        return 1 if problems else 0
    for problem in problems:
        click.echo(problem)
    click.echo(
        f"Model: {coverage.model or 'none yet'}; {coverage.embedded} of {counted(coverage.total, 'passage')} embedded"
    )
    if state.better_model:
        click.echo(f"{state.better_model} would find more: {how_to_use(library, state.better_model)}.")
    if ignored := without_effect():
        click.echo(f"Set in the environment, and without effect here: {', '.join(ignored)}")
    click.echo("Everything is in order." if not problems else f"{counted(len(problems), 'problem')}.")
    return 1 if problems else 0


@click.command()
@click.argument("target", type=click.Path(path_type=Path, dir_okay=False))
@with_library
def backup(library: Library, target: Path) -> None:
    """Copy the library into one file, while others go on using it."""
    library.backup(target)
    click.echo(f"Backed up to {target}")


@click.command("restore")
@click.argument("source", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.pass_context
def restore_backup(context: click.Context, source: Path, yes: bool) -> None:
    """Replace the library with a backup. Indexes are rebuilt by the next search."""
    home = Path(context.obj["home"]) if context.obj["home"] else Settings.load().home
    check_backup(source)
    if not yes:
        ask(f"Replace everything in {home} (space {context.obj['space']})?")
    restore(source, home, context.obj["space"])
    click.echo(f"Restored from {source}")


COMMANDS = {"status": status, "doctor": doctor, "backup": backup, "restore": restore_backup}
