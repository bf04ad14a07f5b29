"""Commands that serve the library to agents."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from commonplace.cli.common import split_names, with_library
from commonplace.cli.loading import nothing_collected
from commonplace.errors import Command, Denied, InvalidInput, NotFound
from commonplace.library import Library
from commonplace.profiles.registry import DEFAULT, profile, profile_names
from commonplace.server.logs import log_to
from commonplace.server.principal import OWNER, Principal
from commonplace.settings import PREFIX, Settings
from commonplace.tools.profile import Profile, Registry, StartOptions
from commonplace.tools.tool import Call, Reply, View

if TYPE_CHECKING:  # thirteen tools come with it, which other profiles do without
    from commonplace.kinds.memories.tools.environment import Door

_WRITES = click.option("--allow-writes", is_flag=True, help="Let agents write: remember, revise and forget.")
_NO_WATCH = click.option("--no-watch", is_flag=True, help="Leave folders alone until `commonplace update` reads them.")
_PROFILE = click.option(
    "--profile", "name", default=DEFAULT, show_default=True, help=f"One of {', '.join(profile_names())}."
)


MEMORY = "memory"
_NARROWED = ("documents", "all")
"""Profiles that take the options on what is shown of the documents."""

_PROJECT = click.option(
    "--project",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="The folder whose context.json declares collections of documents.  [default: the nearest from here up]",
)
_NO_GLOBAL = click.option(
    "--no-global", is_flag=True, help="Show only the project's collections of documents, not your own."
)
_COLLECTIONS = click.option(
    "--collections", multiple=True, metavar="A,B", help="Show only these collections of documents."
)


@click.command()
@_PROFILE
@click.option("--instance", metavar="NAME", help="Serve an instance of tables instead: the tools bound to it.")
@_WRITES
@_NO_WATCH
@_PROJECT
@_NO_GLOBAL
@_COLLECTIONS
@click.pass_context
def mcp(
    context: click.Context,
    name: str,
    instance: str | None,
    allow_writes: bool,
    no_watch: bool,
    project: Path | None,
    no_global: bool,
    collections: tuple[str, ...],
) -> None:
    """Serve one MCP client on standard input and output."""
    if instance is not None:
        options = _options(context, allow_writes, no_watch)
        _serve_instance(_settings(options), instance, options.space)
        return
    served = profile(name)
    if name not in _NARROWED and (project or no_global or collections):
        raise InvalidInput("--project, --no-global and --collections are for --profile documents.")
    options = _options(context, allow_writes, no_watch, project, no_global, collections)
    settings = _settings(options, name)
    view = _view(served, settings, options)
    owner = replace(OWNER, space=context.obj["space"])
    if reads_variables(name, os.environ) and (door := _door()):
        _serve_door(settings, door, owner, name)
        return
    with nothing_collected():
        from commonplace.server.mcp import serve_stdio  # the SDK costs half a second to import
        from commonplace.server.service import Service

    service = Service(settings, view=view)
    try:
        serve_stdio(service, name, owner)
    finally:
        service.close()


def _serve_instance(settings: Settings, name: str, space: str) -> None:
    """Serve an instance on stdio. It needs no key: whoever may open the space's files may serve its instances."""
    with Library.open(settings.home, space, settings) as library:
        try:
            row = library.tables.instances.find(name)
        except NotFound as error:
            from commonplace.cli.table_tools import as_commands  # for mistakes alone

            raise NotFound(as_commands(str(error)), **error.details) from None
    if not row.enabled:
        raise Denied(f'The instance "{row.name}" is disabled. `', Command("tables instance update"), "` enables it.")
    from commonplace.server.instances import principal_of, serve_instance
    from commonplace.server.service import Service

    service = Service(settings)
    try:
        serve_instance(service, principal_of(row, space))
    finally:
        service.close()


def reads_variables(profile: str, environment: Mapping[str, str]) -> bool:
    """Return whether a process that serves this profile on stdio reads the variables of mcp-context-server."""
    return profile == MEMORY or environment.get(f"{PREFIX}COMPAT") == "context-server"


def _door() -> Door | None:
    from commonplace.kinds.memories.tools.environment import door_of

    return door_of(os.environ)


def _serve_door(settings: Settings, door: Door, owner: Principal, name: str) -> None:
    """Serve a profile at /mcp over HTTP, for clients configured for another server."""
    from commonplace.server.auth import Gate, TokenGate, check_binding, make_gate
    from commonplace.server.http import serve_http

    if door.token:
        gate: Gate = TokenGate(door.token, replace(owner, name=door.client))
    else:
        check_binding(settings, door.host)
        gate = make_gate(settings, owner=owner)
    serve_http(settings, gate, door.host, door.port, first=name, view=View(space=owner.space))


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=8377, show_default=True, help="The port to listen on.")
@click.option(
    "--proxy-headers", is_flag=True, help="Trust X-Forwarded-For and X-Forwarded-Proto from a proxy on this machine."
)
@_WRITES
@_NO_WATCH
@_PROJECT
@_NO_GLOBAL
@_COLLECTIONS
@click.pass_context
def serve(
    context: click.Context,
    host: str,
    port: int,
    proxy_headers: bool,
    allow_writes: bool,
    no_watch: bool,
    project: Path | None,
    no_global: bool,
    collections: tuple[str, ...],
) -> None:
    """Serve MCP at /mcp and /mcp/PROFILE, WebSocket at /ws, and plain calls under /api/v1."""
    options = _options(context, allow_writes, no_watch, project, no_global, collections)
    settings = _settings(options)
    view = _view(profile("all"), settings, options)
    from commonplace.server.auth import check_binding, make_gate
    from commonplace.server.http import serve_http

    check_binding(settings, host)
    gate = make_gate(settings, owner=replace(OWNER, space=context.obj["space"]))
    shown = f"[{host}]" if ":" in host else host

    def say(port: int) -> None:
        click.echo(f"Commonplace is at http://{shown}:{port}/mcp (Ctrl-C ends it)", err=True)

    serve_http(settings, gate, host, port, proxy_headers=proxy_headers, view=view, ready=say)


def _options(
    context: click.Context,
    allow_writes: bool,
    no_watch: bool,
    project: Path | None = None,
    no_global: bool = False,
    collections: tuple[str, ...] = (),
) -> StartOptions:
    home = context.obj["home"]
    chosen = {
        "home": Path(home) if home else None,
        "allow_writes": True if allow_writes else None,
        "watch": False if no_watch else None,
    }
    settings = {name: value for name, value in chosen.items() if value is not None}
    return StartOptions(settings, context.obj["space"], project, not no_global, split_names(collections))


def _view(served: Profile, settings: Settings, options: StartOptions) -> View:
    return served.view(settings, options) if served.view else View(space=options.space)


def _settings(options: StartOptions, name: str = DEFAULT) -> Settings:
    """Return the settings to serve a profile with, prepared and with the log set up as they say."""
    starting = profile(MEMORY if reads_variables(name, os.environ) else name)
    settings = Settings.load(**{**starting.variables(os.environ), **options.settings})
    log_to(level=settings.log_level)
    starting.prepare(settings, options)
    return settings


@click.command()
@click.argument("name")
@click.argument("arguments", default="{}")
@click.option("--profile", "profile_name", default="all", help="The profile that has the tool.")
@click.option("--allow-writes", is_flag=True, hidden=True, expose_value=False)  # who has a shell may, as ever
@with_library
def call(library: Library, name: str, arguments: str, profile_name: str) -> None:
    """Call a tool as an agent would: its name, its arguments as a JSON object, its answer as JSON."""
    found = profile(profile_name)
    registry = Registry(found, writable=True, hidden=found.hidden(library.settings))
    tool = registry.find(name)
    if tool is None:
        raise NotFound(registry.unknown(name))
    from commonplace.kinds.tables.values import parsed  # other commands start without it

    try:
        given = parsed(arguments, "The arguments", within=())
    except ValueError as error:
        raise InvalidInput(f'The arguments are not JSON: {error}. Write them as \'{{"query": "tea"}}\'.') from error
    if not isinstance(given, dict):
        raise InvalidInput('The arguments are not an object. Write them as \'{"query": "tea"}\'.')
    view = _view(found, library.settings, StartOptions(space=library.folder.name))
    answer = tool.call(Call(library, view=view), given)
    shown = answer.structured or {"content": answer.content} if isinstance(answer, Reply) else answer
    click.echo(json.dumps(shown, ensure_ascii=False, indent=2))


COMMANDS = {"call": call, "mcp": mcp, "serve": serve}
