"""The command that tells an MCP client about Commonplace."""

from __future__ import annotations

import os
import re
import sys
import sysconfig
import time
from pathlib import Path
from typing import Any

import click

from commonplace.cli.clients import (
    CLIENTS,
    Client,
    Entry,
    address_entry,
    command_entry,
    config_path,
    is_ours,
    is_place,
    parts,
    renewed,
)
from commonplace.cli.configs import Uneditable, Unreadable, put, read, render
from commonplace.errors import CommonplaceError, InvalidInput
from commonplace.surfaces.profile import profile_names

_NAME = re.compile(r"[A-Za-z0-9_-]{1,40}")


class ClientFile(CommonplaceError):
    """A client's file that is left as it was. Ends a process with EX_CONFIG."""

    code, status, exit_code = "client_file", 500, 78


@click.command()
@click.argument("client", type=click.Choice(list(CLIENTS)))
@click.option("--name", default="commonplace", show_default=True, help="What the client calls the server.")
@click.option("--profile", help="Which tools the client sees; the default profile if left out.")
@click.option("--allow-writes", is_flag=True, help="Let this client's agents remember, revise and forget.")
@click.option("--http", "url", help="Use the server that runs at this address instead of starting one.")
@click.option("--print", "only_print", is_flag=True, help="Print what would be added; write nothing.")
@click.pass_context
def install(context: click.Context, /, client: str, only_print: bool, **wishes: Any) -> None:
    """Tell an MCP client about this library, in the client's own configuration file.

    The file is copied beside itself first; everything else in it stays as it is. Repeat it at any time.
    """
    chosen, name = CLIENTS[client], wishes["name"]
    if not _NAME.fullmatch(name):
        raise InvalidInput("--name is made of 1 to 40 letters, digits, - and _.")
    entry = _entry(chosen, context.obj["home"], context.obj["space"], wishes)
    path = Path(config_path(chosen, sys.platform, os.environ, os.path.expanduser("~")))
    if only_print:
        click.echo(f"For {path}:", err=True)
        click.echo(render(chosen.key, name, entry, chosen.format), nl=False)
        return
    click.echo(_installed(chosen, path, name, entry))


def _entry(client: Client, home: str | None, space: str, wishes: dict[str, Any]) -> Entry:
    """What the client is told: our command with the library it belongs to, or the address of a running server."""
    profile, writes, url = wishes["profile"], wishes["allow_writes"], wishes["url"]
    if profile is not None and profile not in profile_names():
        raise InvalidInput(f"{profile!r} is no profile. The profiles are {', '.join(profile_names())}.")
    if url is not None:
        if writes:
            raise InvalidInput("A server that runs already decides about writes: start it with --allow-writes instead.")
        return address_entry(client, _address(client, url, profile))
    command, *arguments = _command()
    arguments += ["--home", os.path.abspath(os.path.expanduser(home))] if home else []
    arguments += ["--space", space] if space != "default" else []
    arguments += ["mcp"]
    arguments += ["--profile", profile] if profile else []
    arguments += ["--allow-writes"] if writes else []
    try:
        "".join([command, *arguments]).encode("utf-8")
    except UnicodeEncodeError as error:
        raise InvalidInput(
            "The path of the command or the home is not UTF-8, which no client's file can hold."
        ) from error
    return command_entry(client, command, arguments)


def _address(client: Client, url: str, profile: str | None) -> str:
    if client.commands_only:
        raise InvalidInput(
            f"{client.title} takes only commands from its file. Leave --http out, or add {url} to its connectors."
        )
    found = parts(url)
    if found.scheme not in ("http", "https") or not found.netloc or not is_place(found.path):
        raise InvalidInput(f"{url!r} is not an address that MCP is at. Write it as http://127.0.0.1:8377/mcp.")
    place = found.path.rstrip("/")
    if not profile or place.endswith(f"/mcp/{profile}"):
        return url
    if not place.endswith("/mcp"):
        raise InvalidInput(f"{url} is not the address of all profiles. Leave --profile out, or end it with /mcp.")
    return found._replace(path=f"{place}/{profile}").geturl()


def _command() -> list[str]:
    """The absolute command that runs this Commonplace: clients start it from anywhere, often without a PATH."""
    script = "commonplace.exe" if sys.platform == "win32" else "commonplace"
    called = Path(sys.argv[0])
    beside = Path(sysconfig.get_path("scripts")) / script
    for candidate in (called if called.name == script else beside, beside):
        if candidate.is_file():
            return [str(candidate.absolute())]
    return [sys.executable, "-m", "commonplace"]


def _installed(client: Client, path: Path, name: str, entry: Entry) -> str:
    """Put the entry into the client's file and say what was done."""
    real = Path(os.path.realpath(path))  # a link into somebody's dotfiles stays a link
    by_hand = f"By hand, add:\n\n{render(client.key, name, entry, client.format)}"
    try:
        raw = real.read_bytes() if real.exists() else b""
        text = raw.decode("utf-8")
        mark = "\ufeff" if text.startswith("\ufeff") else ""
        said = read(text := text.removeprefix(mark), client.format)
        servers = said.get(client.key)
        old = servers.get(name) if isinstance(servers, dict) else None
        if old is not None and not is_ours(old):
            raise ClientFile(
                f"{path} has another server called {name!r}. Choose another name with --name, or remove that one."
            )
        wanted = renewed(old, entry) if old is not None else entry
        if old == wanted:
            return f"Commonplace is already installed in {client.title} ({path}). Nothing was changed."
        backup = replace_file(real, raw, (mark + put(text, client.format, client.key, name, wanted)).encode("utf-8"))
    except Uneditable as error:
        raise ClientFile(f"{path} was left as it is: {error}. {by_hand}") from error
    except (Unreadable, UnicodeDecodeError) as error:
        raise ClientFile(f"{path} cannot be read: {error}. Mend it or move it away, then repeat this.") from error
    except OSError as error:
        raise ClientFile(f"{path} cannot be edited: {error.strerror}. {by_hand}") from error
    kept = f"\nThe file as it was: {backup}" if backup else ""
    return f"Installed in {client.title}: {path}{kept}\n{client.then}"


def replace_file(path: Path, old: bytes, new: bytes) -> Path | None:
    """Write a file in one step, keeping its mode and a copy of what it was. A file someone else just wrote is left."""
    path.parent.mkdir(parents=True, exist_ok=True)
    exists = path.exists()
    mode = path.stat().st_mode & 0o777 if exists else 0o600
    backup = _create(path, time.strftime(".%Y%m%d-%H%M%S.backup"), old, mode) if exists else None
    fresh = _create(path, ".new", new, mode)
    try:
        if (path.read_bytes() if path.exists() else b"") != old:
            raise ClientFile(f"{path} was changed by another program meanwhile and was left as it is. Repeat this.")
        os.replace(fresh, path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        if backup:
            backup.unlink()
        raise
    return backup


def _create(path: Path, suffix: str, content: bytes, mode: int) -> Path:
    """A new file beside `path`, never one that is there, and never readable by more people than `path` is."""
    for attempt in range(100):
        beside = path.with_name(f"{path.name}{suffix}{f'-{attempt}' if attempt else ''}")
        try:
            handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
        except FileExistsError:
            continue
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(beside, mode)
        return beside
    raise FileExistsError(17, f"there are too many copies of {path.name} beside it")


COMMANDS = {"install": install}
