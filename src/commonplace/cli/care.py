"""Commands that keep a library safe."""

from __future__ import annotations

import json
from pathlib import Path
from typing import IO

import click

from commonplace.cli.common import ask, counted, with_library, written
from commonplace.cli.lazy import as_typed, ours
from commonplace.cli.library import how_to_use
from commonplace.kinds.memories.tools.environment import without_effect
from commonplace.library import Library, restore
from commonplace.settings import Settings
from commonplace.store.sqlite.store import check_backup


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


@click.command("everything")
@click.argument("target", default="-", type=click.Path())
@with_library
def export_everything(library: Library, target: str) -> None:
    """Write every item of the library as a line of JSON: folders, attachments and JSON tables included, keys not."""
    with written(target) as output:
        for line in library.export():
            output.write(line + "\n")


@click.command("everything")
@click.argument("source", type=click.File("r", encoding="utf-8", errors="surrogateescape"))
@with_library
def import_everything(library: Library, source: IO[str]) -> None:
    """Import what `export everything` wrote."""
    click.echo(f"Imported: {counted(library.import_(source), 'item')}")
    for instance in library.store.instances():
        if not instance.hint:
            makes = f"`{ours(f'tables instance update {instance.name} --rotate-key')}` makes"
            click.echo(f"The instance {instance.name} has no key yet: {makes} one.", err=True)


COMMANDS = {"doctor": doctor, "backup": backup, "restore": restore_backup}
