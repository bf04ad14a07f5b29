"""Commands that move a home between files and a PostgreSQL database."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from commonplace.cli.common import Progress, counted, progress_bar
from commonplace.errors import InvalidInput, NotFound
from commonplace.settings import Settings
from commonplace.space import space_folder
from commonplace.store.opening import check_postgres

if TYPE_CHECKING:  # psycopg is an extra, and takes a moment to load
    from commonplace.store.postgres.homes import Homes
    from commonplace.store.postgres.moving import Moved, Watch

_URL = click.argument("url", required=False)
_ABANDON = click.option("--abandon", is_flag=True, help="Remove what an unfinished run has left, and copy nothing.")
Way = Callable[[str, "Watch"], "Moved"]


@click.group()
def migrate() -> None:
    """Move a home from files to a PostgreSQL database, or back.

    All spaces are copied, with the users and their keys; with `commonplace --space NAME migrate …` that space alone.
    URL is the database's address, which may be left out where COMMONPLACE_STORE is set. The source stays as it is.

    First stop every server that uses the destination: what it writes during the copy would be lost, or spoil it. You
    may stop the copy at any time and repeat the command to continue. A copied space can be opened once it is complete
    and has been compared with its source.
    """


@migrate.command("sqlite-to-postgres")
@_URL
@_ABANDON
@click.pass_context
def to_postgres(context: click.Context, url: str | None, abandon: bool) -> None:
    """Copy the files of this home into a database."""
    homes = _homes(context, url)
    homes.open()
    chosen = _space(context)
    spaces = [chosen] if chosen else homes.spaces_in_files()
    if not spaces:
        raise NotFound(f"There are no libraries in {homes.folder}.")
    if abandon:
        _abandon(spaces, homes.abandon_database)
        return
    _move(spaces, homes.to_database)
    if not chosen:
        _report_users(homes.accounts_to_database())
    click.echo("Set COMMONPLACE_STORE to that address. The files are as they were.")


@migrate.command("postgres-to-sqlite")
@_URL
@_ABANDON
@click.pass_context
def to_sqlite(context: click.Context, url: str | None, abandon: bool) -> None:
    """Copy what a database holds into files of this home."""
    homes = _homes(context, url)
    homes.open()
    chosen = _space(context)
    spaces = [chosen] if chosen else homes.spaces_in_database()
    if not spaces:
        raise NotFound("There are no spaces in that database.")
    if abandon:
        _abandon(spaces, homes.abandon_file)
        return
    _move(spaces, homes.to_file)
    if not chosen:
        _report_users(homes.accounts_to_file())
    click.echo("Unset COMMONPLACE_STORE. The database is as it was.")


def _homes(context: click.Context, url: str | None) -> Homes:
    home = context.obj["home"]
    settings = Settings.load(home=Path(home) if home else None)
    settings = replace(settings, store=url or settings.store)
    if not settings.store:
        raise InvalidInput("Name the database: postgresql://USER:PASSWORD@HOST/DATABASE, or set COMMONPLACE_STORE.")
    check_postgres(settings)
    from commonplace.store.postgres.homes import Homes

    return Homes(settings.home.expanduser(), settings.store, settings.store_owner)


def _space(context: click.Context) -> str | None:
    """Return the space that the command line names, or None. Raise InvalidInput for an invalid name."""
    named = context.find_root().get_parameter_source("space") is not ParameterSource.DEFAULT
    space = str(context.obj["space"])
    space_folder(Path(), space)  # refuses what is no name
    return space if named else None


def _move(spaces: list[str], way: Way) -> None:
    for space in spaces:
        moved = way(space, _watch(space))
        nouns = {"items": "item", "chunks": "passage", "changes": "change"}
        rows = ", ".join(counted(moved.rows[table], noun) for table, noun in nouns.items())
        click.echo(f"{space}: {rows}, {'there before' if moved.before else 'compared and alike'}")


def _watch(space: str) -> Watch:
    def watch(step: str) -> AbstractContextManager[Progress]:
        return progress_bar(f"{space}, {step}")

    return watch


def _abandon(spaces: list[str], way: Callable[[str], bool]) -> None:
    for space in spaces:
        click.echo(f"{space}: {'removed' if way(space) else 'nothing was left unfinished'}")


def _report_users(count: int) -> None:
    if count:
        click.echo(f"{counted(count, 'user')}, with their keys")


COMMANDS: dict[str, Any] = {"migrate": migrate}
