"""`commonplace install`: an entry for Commonplace in an MCP client's own file, or a `qmd` on the path."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from commonplace.cli.client_files import ClientFile, opened, replace_file
from commonplace.cli.clients import (
    CLIENTS,
    DISTRIBUTION,
    Client,
    Entry,
    address_entry,
    command_entry,
    config_path,
    is_place,
    parts,
    renewed,
)
from commonplace.cli.clients import (
    is_ours as is_our_entry,
)
from commonplace.cli.configs import Uneditable, put, render
from commonplace.cli.lazy import ours
from commonplace.errors import AlreadyExists, InvalidInput
from commonplace.profiles.registry import DEFAULT, profile, profile_names
from commonplace.settings import PREFIX
from commonplace.tools.profile import Registry

QMD_COMMAND = "qmd-command"
"""What is installed and taken away by this name is no client's entry, but a program on the path."""
MARK = "# The qmd of Commonplace. `commonplace uninstall qmd-command` removes it."
_PROGRAM = "qmd"
_LONGEST = 4096
"""The bytes of a program that are read to see whether it is ours."""


def script(home: str | None) -> str:
    """Return the text of the command: ours, on the library of `home` or on the usual one."""
    chosen = f"export {PREFIX}HOME={shlex.quote(os.path.abspath(os.path.expanduser(home)))}\n" if home else ""
    return f'#!/bin/sh\n{MARK}\n{chosen}exec {shlex.quote(sys.executable)} -P -m commonplace.qmd.cli "$@"\n'


def put_on_path(home: str | None, environment: Mapping[str, str]) -> tuple[Path, bool]:
    """Return the path of our `qmd`, and whether it was written now.

    Raise AlreadyExists where the path has another `qmd`, and InvalidInput where no folder on it can be written.
    """
    others = [path for path in _on_path(environment) if not _is_our_script(path)]
    if others:
        raise AlreadyExists(
            f"{others[0]} is another program called qmd, and stays. `commonplace qmd` does what ours would do."
        )
    text = script(home)
    target = next(_on_path(environment), None) or _folder(environment) / _PROGRAM
    if target.is_file() and target.read_text("utf-8") == text:
        return target, False
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        fresh = target.with_name(f".{_PROGRAM}.new")
        fresh.write_text(text, "utf-8")
        fresh.chmod(0o755)
        fresh.replace(target)
    except OSError as error:
        said = f"{target} cannot be written: {error.strerror}. Check that path and its permissions."
        raise InvalidInput(said) from error
    return target, True


def ours_on_path(environment: Mapping[str, str]) -> list[Path]:
    """Return every `qmd` of ours that the path leads to."""
    return [path for path in _on_path(environment) if _is_our_script(path)]


def _is_our_script(path: Path) -> bool:
    """Return whether a program is the script that `put_on_path` writes."""
    try:
        with path.open("rb") as file:
            return MARK.encode() in file.read(_LONGEST)
    except OSError:
        return False


def _folders(environment: Mapping[str, str]) -> Iterator[Path]:
    for folder in dict.fromkeys(environment.get("PATH", "").split(os.pathsep)):
        if os.path.isabs(folder):
            yield Path(folder)


def _on_path(environment: Mapping[str, str]) -> Iterator[Path]:
    """Yield every `qmd` on the PATH in its order, executable or not."""
    for folder in _folders(environment):
        if os.path.lexists(folder / _PROGRAM):
            yield folder / _PROGRAM


def _folder(environment: Mapping[str, str]) -> Path:
    """Return the folder of the path that `commonplace` is in, or the user's own for programs."""
    beside = shutil.which("commonplace", path=environment.get("PATH"))
    own = Path(os.path.expanduser("~"), ".local", "bin")
    for folder in [*([Path(beside).parent] if beside else []), own]:
        if folder in _folders(environment) and (os.access(folder, os.W_OK) or folder == own):
            return folder
    raise InvalidInput(
        f'No folder on your PATH can take the command. Put {own} on it (export PATH="{own}:$PATH") and repeat this.'
    )


_NAME = re.compile(r"[A-Za-z0-9_-]{1,40}")


@click.command()
@click.argument("client", type=click.Choice([*CLIENTS, QMD_COMMAND]))
@click.option("--name", default="commonplace", show_default=True, help="What the client calls the server.")
@click.option("--profile", help="Which tools the client sees; the default profile if left out.")
@click.option(
    "--allow-writes/--read-only",
    "allow_writes",
    default=None,
    help="Whether this client's agents may remember, revise and forget. On a terminal it is asked; else read-only.",
)
@click.option("--http", "url", help="Use the server that runs at this address instead of starting one.")
@click.option("--print", "only_print", is_flag=True, help="Print what would be written; write nothing.")
@click.pass_context
def install(context: click.Context, /, client: str, only_print: bool, **wishes: Any) -> None:
    """Tell an MCP client about this library, in the client's own configuration file.

    The file is copied beside itself first; everything else in it stays as it is. Repeat it at any time;
    `commonplace uninstall CLIENT` takes the entry out again.

    `qmd-command` is no client: it puts a command called qmd on your PATH, which is `commonplace qmd`.
    """
    if client == QMD_COMMAND:
        _install_qmd(context, only_print)
        return
    chosen, name = CLIENTS[client], wishes["name"]
    if not _NAME.fullmatch(name):
        raise InvalidInput("--name is made of 1 to 40 letters, digits, - and _.")
    path = Path(config_path(chosen, sys.platform, os.environ, os.path.expanduser("~")))
    entry = _entry(chosen, context.obj["home"], context.obj["space"], wishes)  # refuses what does not go together
    fixed = _fixed_rights(wishes["profile"])
    if fixed is None and wishes["allow_writes"] is None and not wishes["url"] and not only_print and _is_asked():
        wishes["allow_writes"] = _ask_for_writes(chosen, path, name)
        entry = _entry(chosen, context.obj["home"], context.obj["space"], wishes)
    if only_print:
        click.echo(f"For {path}:", err=True)
        click.echo(render(chosen.key, name, entry, chosen.format), nl=False)
    else:
        click.echo(_installed(chosen, path, name, entry))
    click.echo(fixed or _rights(context, client, wishes), err=only_print)


def _install_qmd(context: click.Context, only_print: bool) -> None:
    options = [
        option.opts[0]
        for option in context.command.params
        if option.name not in ("client", "only_print")
        and context.get_parameter_source(str(option.name)) is ParameterSource.COMMANDLINE
    ]
    if options:
        raise InvalidInput(f"{options[0]} is for MCP clients. qmd-command takes --print alone.")
    by_option = context.find_root().get_parameter_source("home") is ParameterSource.COMMANDLINE
    home = context.obj["home"] if by_option else None
    if only_print:
        click.echo(script(home), nl=False)
        return
    path, written = put_on_path(home, os.environ)
    said = f"qmd is {path} now, and does what `commonplace qmd` does." if written else f"{path} is there already."
    click.echo(f"{said} `commonplace uninstall {QMD_COMMAND}` removes it.")


def _fixed_rights(name: str | None) -> str | None:
    """Return a sentence on what agents may do if the profile alone decides it, else None."""
    chosen = profile(name or DEFAULT)
    if chosen.always_writes:
        return f"Agents may search, read and write: the {chosen.name} profile exists to be written to."
    if not any(tool.writes for tool in Registry(chosen, writable=True).tools):
        return f"It is read-only: the {chosen.name} profile has no tool that writes."
    return None


def _is_asked() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()


def _ask_for_writes(client: Client, path: Path, name: str) -> bool:
    """Ask whether agents may write, with the present entry's answer as the default."""
    old = None
    with suppress(OSError):  # said where the file is edited
        old = opened(client, path).entries(client).get(name)
    arguments = old.get("args") if isinstance(old, dict) else None
    allowed = isinstance(arguments, list) and "--allow-writes" in arguments
    click.echo(f"Agents in {client.title} will be able to search and read this library.")
    return click.confirm("May they also write to it: remember, revise and forget?", default=allowed)


def _rights(context: click.Context, client: str, wishes: dict[str, Any]) -> str:
    """Return a sentence on what agents may do now, and how to change that."""
    if wishes["url"]:
        return "Whether agents may write is up to that server: `commonplace serve --allow-writes` lets them."
    other = "--read-only" if wishes["allow_writes"] else "--allow-writes"
    named = f" --name {wishes['name']}" if wishes["name"] != "commonplace" else ""
    shown = f" --profile {wishes['profile']}" if wishes["profile"] else ""
    repeat = f"`{ours(f'install {client}{named}{shown} {other}')}`"
    writing = "remember, revise and forget" if wishes["profile"] in (None, DEFAULT) else "write"
    if wishes["allow_writes"]:
        return f"Agents may search, read, {writing}. {repeat} takes the writing back."
    return f"It is read-only: agents search and read, but change nothing. {repeat} lets them {writing}."


def _entry(client: Client, home: str | None, space: str, wishes: dict[str, Any]) -> Entry:
    """Return the entry to write: our command with its library, or the address of a running server."""
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
    address = parts(url)
    if address.scheme not in ("http", "https") or not address.netloc or not is_place(address.path):
        raise InvalidInput(f"{url!r} is not an address that MCP is at. Write it as http://127.0.0.1:8377/mcp.")
    place = address.path.rstrip("/")
    if not profile or place.endswith(f"/mcp/{profile}"):
        return url
    if not place.endswith("/mcp"):
        raise InvalidInput(f"{url} is not the address of all profiles. Leave --profile out, or end it with /mcp.")
    return address._replace(path=f"{place}/{profile}").geturl()


def _command() -> list[str]:
    """Return the absolute command of this Commonplace: clients start it from anywhere, often without a PATH."""
    if any(part.startswith("archive-v") for part in Path(sys.prefix).parts) and (uvx := shutil.which("uvx")):
        return [uvx, "--from", DISTRIBUTION, "commonplace"]  # uv's cache, which may be cleared at any time
    script = "commonplace.exe" if sys.platform == "win32" else "commonplace"
    called = Path(sys.argv[0])
    beside = Path(sysconfig.get_path("scripts")) / script
    for candidate in (called if called.name == script else beside, beside):
        if candidate.is_file():
            return [str(candidate.absolute())]
    return [sys.executable, "-m", "commonplace"]


def _installed(client: Client, path: Path, name: str, entry: Entry) -> str:
    """Write the entry into the client's file and return what was done. Raise ClientFile."""
    by_hand = f"By hand, add:\n\n{render(client.key, name, entry, client.format)}"
    try:
        config = opened(client, path)
        old = config.entries(client).get(name)
        if old is not None and not is_our_entry(old):
            raise ClientFile(
                f"{path} has another server called {name!r}. Choose another name with --name, or remove that one."
            )
        wanted = renewed(old, entry) if old is not None else entry
        if old == wanted:
            return f"Commonplace is already installed in {client.title} ({path}). Nothing was changed."
        edited = put(config.text, client.format, client.key, name, wanted)
        backup = replace_file(config.path, config.raw, config.encoded(edited))
    except Uneditable as error:
        raise ClientFile(f"{path} was left as it is: {error}. {by_hand}") from error
    except OSError as error:
        raise ClientFile(f"{path} cannot be edited: {error.strerror}. {by_hand}") from error
    kept = f"\nThe file as it was: {backup}" if backup else ""
    return f"Installed in {client.title}: {path}{kept}\n{client.then}"


COMMANDS = {"install": install}
