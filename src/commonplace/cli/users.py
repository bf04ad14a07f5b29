"""Commands that keep the users of a shared server, and their keys."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable
from dataclasses import asdict
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import click

from commonplace.cli.common import split_names
from commonplace.cli.lazy import ours
from commonplace.errors import InvalidInput
from commonplace.settings import Settings
from commonplace.space import space_folder
from commonplace.store.accounts import SCOPES, Key, User
from commonplace.store.opening import AnyAccounts, open_accounts
from commonplace.store.sqlite.accounts import Accounts

_LIFE = re.compile(r"([0-9]{1,6})([mhdwy])")
_UNITS = {"m": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400, "y": 365 * 86_400}
_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def _with_accounts(command: Callable[..., Any]) -> Callable[..., Any]:
    """Return a command that gets the accounts of the home, closed afterwards in any case."""

    @click.pass_context
    @functools.wraps(command)
    def run(context: click.Context, /, *args: Any, **kwargs: Any) -> Any:
        home = context.obj["home"]
        accounts = open_accounts(Settings.load(home=Path(home) if home else None))
        try:
            return command(accounts, *args, **kwargs)
        finally:
            accounts.close()

    return run


@click.group()
def users() -> None:
    """Add, list and remove the users of a shared server."""


@users.command("add")
@click.argument("name")
@click.option("--space", help="The space they work in: theirs alone, or one that several share.  [default: their name]")
@_with_accounts
def add_user(accounts: AnyAccounts, name: str, space: str | None) -> None:
    """Add a user. They can call once they have a key."""
    user = accounts.add_user(name, space)
    click.echo(f"Added: {user.name}, in the space {user.space}")
    click.echo(f"`{ours(f'keys create {user.name}')}` makes a key.", err=True)


@users.command("list")
@_JSON
@_with_accounts
def list_users(accounts: AnyAccounts, as_json: bool) -> None:
    """List the users and their spaces."""
    found = accounts.users()
    if as_json:
        _print_json([asdict(user) for user in found])
        return
    for user in found:
        click.echo(f"{user.name}  space {user.space}, since {_day(user.created_at)}")
    if not found:
        click.echo("No users.")


@users.command("remove")
@click.argument("name")
@_with_accounts
def remove_user(accounts: AnyAccounts, name: str) -> None:
    """Remove a user and revoke their keys at once. What is in their space stays on disk."""
    user = accounts.remove_user(name)
    click.echo(f"Removed: {user.name}; their keys are revoked")
    click.echo(_what_stays(accounts, user), err=True)


def _what_stays(accounts: AnyAccounts, user: User) -> str:
    sharing = [other.name for other in accounts.users() if other.space == user.space]
    if sharing:
        return f"The space {user.space} stays: {', '.join(sharing)} still use it."
    if not isinstance(accounts, Accounts):
        return f"The space {user.space} stays in the database."
    folder = space_folder(accounts.path.parent, user.space)
    return f"The space {user.space} stays in {folder}. Delete that folder if nobody needs it any more."


@click.group()
def keys() -> None:
    """Create, list and revoke the keys that users call with."""


@keys.command("create")
@click.argument("user")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    default=("read",),
    show_default=True,
    type=click.Choice(SCOPES),
    help="What the key allows; may be repeated. `write` implies `read`, `admin` implies both.",
)
@click.option("--expires", metavar="TIME", help="When it ends: 30m, 12h, 90d, 2w or 1y from now.  [default: never]")
@click.option("--label", default="", help="A note for you to recognize it by.")
@click.option("--collections", multiple=True, metavar="A,B", help="Restrict the key to these collections of documents.")
@_with_accounts
def create_key(
    accounts: AnyAccounts,
    user: str,
    scopes: tuple[str, ...],
    expires: str | None,
    label: str,
    collections: tuple[str, ...],
) -> None:
    """Create a key and print it, this once: only a hash of it is kept."""
    life = _life(expires) if expires is not None else None
    key = accounts.create_key(user, scopes, label, life, _collections(collections))
    click.echo(key)
    click.echo("Keep it safe: it is not shown again. Send it as `Authorization: Bearer …`.", err=True)


@keys.command("list")
@click.argument("user", required=False)
@_JSON
@_with_accounts
def list_keys(accounts: AnyAccounts, user: str | None, as_json: bool) -> None:
    """List the keys of all users, or of one, without their secrets."""
    found = accounts.keys(user)
    if as_json:
        _print_json([{**asdict(key), "state": key.state} for key in found])
        return
    for key in found:
        click.echo(_line(key))
    if not found:
        click.echo("No keys.")


@keys.command("revoke")
@click.argument("key_id", metavar="ID")
@_with_accounts
def revoke_key(accounts: AnyAccounts, key_id: str) -> None:
    """Revoke a key, from the next request on. `keys list` shows the IDs."""
    key = accounts.revoke(key_id)
    click.echo(f"Revoked: {key.id} of {key.user}")


def _collections(given: tuple[str, ...]) -> tuple[str, ...]:
    """Return the collections of an option. Raise InvalidInput for an empty name: a key without names shows all."""
    if not all(split_names([names]) for names in given):
        raise InvalidInput("--collections names no collection. Name those the key is for, or leave it out for all.")
    return split_names(given)


def _life(text: str) -> timedelta:
    found = _LIFE.fullmatch(text)
    if not found:
        raise InvalidInput(f"--expires takes a number and m, h, d, w or y, such as 90d, not {text!r}.")
    return timedelta(seconds=int(found[1]) * _UNITS[found[2]])


def _line(key: Key) -> str:
    ends = f", until {_day(key.expires_at)}" if key.expires_at else ""
    label = f"  {key.label}" if key.label else ""
    ends += f", only {', '.join(key.collections)}" if key.collections else ""
    return f"{key.id}  {key.user}  {' '.join(key.scopes)}  {key.state}, since {_day(key.created_at)}{ends}{label}"


def _day(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%d")


def _print_json(records: list[dict[str, Any]]) -> None:
    click.echo(json.dumps(records, ensure_ascii=False, indent=2, default=datetime.isoformat))


COMMANDS = {"users": users, "keys": keys}
