"""`commonplace uninstall`: what `install` wrote goes again, or everything that Commonplace has on this machine."""

from __future__ import annotations

import os
import shutil
import sys
from contextlib import suppress
from functools import reduce
from pathlib import Path
from typing import Any

import click

import commonplace
from commonplace.cli.client_files import ClientFile, Config, backups, opened, replace_file
from commonplace.cli.clients import CLIENTS, DISTRIBUTION, Client, config_path, is_ours
from commonplace.cli.common import ask, counted
from commonplace.cli.configs import InvalidConfig, Uneditable, alike, drop, put, read
from commonplace.cli.install import QMD_COMMAND, ours_on_path
from commonplace.cli.where import ConfiguredClient, UsedPath, configured_clients, names_of_ours, places, shown_size
from commonplace.errors import InvalidInput
from commonplace.settings import Settings, user_path
from commonplace.space import SPACES


@click.command()
@click.argument("client", required=False, type=click.Choice([*CLIENTS, QMD_COMMAND]))
@click.option("--name", help="Only the entry of this name; every one that starts Commonplace if left out.")
@click.option("--everything", is_flag=True, help="Remove all that Commonplace has on this machine but your data.")
@click.option("--data", is_flag=True, help="With --everything: libraries, users, settings and keys, too.")
@click.option("--yes", is_flag=True, help="With --everything: do not ask.")
@click.pass_context
def uninstall(
    context: click.Context, client: str | None, name: str | None, everything: bool, data: bool, yes: bool
) -> None:
    """Take Commonplace out of an MCP client's configuration file, or out of all of them.

    Where nothing else has changed since `install`, the file is again what it was before, to the byte.
    `qmd-command` is the command called qmd that `install qmd-command` put on your PATH.
    """
    if everything:
        if client or name:
            raise InvalidInput("--everything goes without a client and without --name.")
        _remove_everything(Settings.load(home=context.obj["home"]), data=data, yes=yes)
    elif data or yes:
        raise InvalidInput("--data and --yes go with --everything.")
    elif client == QMD_COMMAND:
        _remove_command()
    elif client:
        click.echo(take_out(CLIENTS[client], _path(CLIENTS[client]), name))
    else:
        found = list(configured_clients())
        left = _take_all_out(found, name)
        if not found:
            click.echo("No client has an entry of Commonplace. Nothing was changed.")
        click.echo("Library and program are still here: `commonplace uninstall --everything` lists what would go.")
        _end_with(left)


def _path(client: Client) -> Path:
    return Path(config_path(client, sys.platform, os.environ, os.path.expanduser("~")))


def _remove_command() -> None:
    found = ours_on_path(os.environ)
    for path in found:
        path.unlink()
        click.echo(f"Removed {path}")
    if not found:
        click.echo("There is no qmd of Commonplace on your PATH. Nothing was changed.")


def _take_all_out(found: list[ConfiguredClient], name: str | None = None) -> list[ClientFile]:
    """Remove our entries from each client's file, print what was done, and return the errors."""
    left = []
    for client in found:
        try:
            click.echo(take_out(CLIENTS[client.name], client.path, name))
        except ClientFile as error:
            left.append(error)
    return left


def _end_with(left: list[ClientFile]) -> None:
    """Raise one error with all that is left to be done by hand, if anything is."""
    if left:
        raise ClientFile("\n".join(str(error) for error in left))


def take_out(client: Client, path: Path, name: str | None = None) -> str:
    """Remove our entries, or the one of this name, from a client's file. Return what was done. Raise ClientFile."""
    try:
        config = opened(client, path)
        names = _names(client, path, config, name)
        if not names:
            return f"{client.title} has no entry of Commonplace ({path}). Nothing was changed."
        before = [(copy, text) for copy in backups(config.path) if (text := _text(client, copy)) is not None]
        unentered = [(copy, text) for copy, text in before if not set(names) & _entries(client, text).keys()]
        original = next(
            (text for _, text in unentered if _with_entries(client, config, names, text) == config.text), None
        )
        if original is None and not unentered and _with_entries(client, config, names, "") == config.text:
            config.path.unlink()  # `install` made it, and nothing else is in it
            original, kept = "", None
        else:
            key_was_there = not unentered or client.key in read(unentered[0][1], client.format)
            text = _without(client, config.text, names, key_was_there) if original is None else original
            kept = replace_file(config.path, config.raw, config.encoded(text))
        if original is not None:
            _forget(client, names, original, [*before, *([(kept, config.text)] if kept else [])])
            kept = None
    except Uneditable as error:
        raise ClientFile(f"{path} was left as it is: {error}. Remove the entry by hand.") from error
    except OSError as error:
        raise ClientFile(f"{path} cannot be edited: {error.strerror}. Remove the entry by hand.") from error
    said = f"Taken out of {client.title}: {', '.join(names)} ({path})"
    return f"{said}\nThe file with it: {kept}" if kept else said


def _names(client: Client, path: Path, config: Config, name: str | None) -> tuple[str, ...]:
    entries = config.entries(client)
    if name is None:
        return names_of_ours(entries)
    if name in entries and not is_ours(entries[name]):
        raise ClientFile(f"{name!r} in {path} is another server, and stays.")
    return (name,) if name in entries else ()


def _text(client: Client, copy: Path) -> str | None:
    try:
        return opened(client, copy).text
    except (ClientFile, OSError):
        return None


def _entries(client: Client, text: str) -> dict[str, Any]:
    servers = read(text, client.format).get(client.key)
    return servers if isinstance(servers, dict) else {}


def _with_entries(client: Client, config: Config, names: tuple[str, ...], text: str) -> str | None:
    """Return the text that `install` would have written with these entries; None if it could not have."""
    entries = config.entries(client)
    try:
        return reduce(lambda done, name: put(done, client.format, client.key, name, entries[name]), names, text)
    except (Uneditable, InvalidConfig):
        return None


def _without(client: Client, text: str, names: tuple[str, ...], keep_empty: bool) -> str:
    return reduce(lambda done, name: drop(done, client.format, client.key, name, keep_empty=keep_empty), names, text)


def _forget(client: Client, names: tuple[str, ...], original: str, copies: list[tuple[Path, str]]) -> None:
    """Delete backups that hold no more than the restored file: the same, or the same with an entry of ours."""
    keep_empty = client.key in (config := read(original, client.format))
    for copy, text in copies:
        with suppress(Uneditable, OSError):
            left = _without(client, text, names, keep_empty)
            if alike(left, original, client.format) or (not config and not read(left, client.format)):
                copy.unlink()


def _remove_everything(settings: Settings, *, data: bool, yes: bool) -> None:
    """List what would be removed, ask, and remove it. The user's own data stays without `--data`."""
    clients, found = list(configured_clients()), [place for place in places(settings) if place.is_there]
    kinds = ("derived", "command", "data") if data else ("derived", "command")
    going = [place for place in found if place.kind in kinds]
    staying = [place for place in found if place.kind == "data" and not data]
    if clients or going:
        click.echo("This would be removed:")
    for each in clients:
        click.echo(f"  {CLIENTS[each.name].title}'s entry {', '.join(each.names)} in {each.path}")
    _list(going)
    if staying:
        click.echo("This is yours and stays (with --data it is removed, too):")
    _list(staying)
    if settings.store:
        click.echo("What is in PostgreSQL stays there: drop its schema `commonplace` yourself.")
    if clients or going:
        if not yes:
            ask("Remove it?")
        left = _take_all_out(clients)
        listed = _worth_saying(going)
        for place in going:
            _remove(place.path)
        removed = [place for place in listed if not place.is_there]
        _tidy(settings)
        click.echo(f"Removed {counted(len(clients) - len(left) + len(removed), 'thing')}.")
    else:
        left = []
        click.echo("There is nothing to remove.")
    click.echo(f"The program itself: {_how_the_program_goes()}")
    _end_with(left)


def _list(rows: list[UsedPath]) -> None:
    for place in _worth_saying(rows):
        click.echo(f"  {place.what} ({shown_size(place.size)}): {place.path}")


def _worth_saying(rows: list[UsedPath]) -> list[UsedPath]:
    """Return the places without locks, which are files of nothing."""
    return [place for place in rows if place.size or place.kind != "derived"]


def _remove(path: Path) -> None:
    """Remove what is at a path; where it cannot be, say why."""
    try:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    except OSError as error:
        click.echo(f"{error.filename or path} cannot be removed: {error.strerror}. Remove it by hand.", err=True)


def _tidy(settings: Settings) -> None:
    """Remove the folders that are empty now; one that holds anything else stays."""
    home = settings.home.expanduser().absolute()
    spaces = list((home / SPACES).iterdir()) if (home / SPACES).is_dir() else []
    folders = [user_path("cache") / "models", user_path("cache"), user_path("config")]
    for folder in (*spaces, home / SPACES, home, *folders):
        with suppress(OSError):
            folder.rmdir()


def _how_the_program_goes() -> str:
    """Return the command that removes what the program was installed by."""
    environment = Path(sys.prefix)
    parts = environment.parts
    if "pipx" in parts:
        return f"`pipx uninstall {DISTRIBUTION}`"
    if any(part.startswith("archive-v") for part in parts):
        return f"`uv cache clean {DISTRIBUTION}`"
    if "uv" in parts and "tools" in parts:
        return f"`uv tool uninstall {DISTRIBUTION}`"
    if (checkout := _checkout()) is not None:
        return f"delete the folder {checkout}"
    return f"`{sys.executable} -m pip uninstall {DISTRIBUTION}`"


def _checkout() -> Path | None:
    """Return the folder that a program which is installed as a link runs from."""
    root = Path(commonplace.__file__).parents[2]
    return root if (root / "pyproject.toml").is_file() else None


COMMANDS = {"uninstall": uninstall}
