"""Commands that serve the library to agents."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import click

from commonplace.cli.common import with_library
from commonplace.errors import InvalidInput, NotFound, WritesDisabled
from commonplace.library import Library
from commonplace.settings import Settings
from commonplace.surfaces.memory.environment import adopt_database, aliases, is_wanted
from commonplace.surfaces.profile import DEFAULT, Registry, profile, profile_names
from commonplace.surfaces.tool import Call, Reply

_WRITES = click.option("--allow-writes", is_flag=True, help="Let agents write: remember, revise and forget.")
_PROFILE = click.option(
    "--profile", "name", default=DEFAULT, show_default=True, help=f"One of {', '.join(profile_names())}."
)


@click.command()
@_PROFILE
@_WRITES
@click.pass_context
def mcp(context: click.Context, name: str, allow_writes: bool) -> None:
    """Serve one MCP client on standard input and output."""
    profile(name)
    settings = _settings(context, allow_writes, name)
    from commonplace.server.mcp import serve_stdio  # the SDK costs a second to import
    from commonplace.server.principal import OWNER
    from commonplace.server.service import Service

    service = Service(settings)
    try:
        serve_stdio(service, name, replace(OWNER, space=context.obj["space"]))
    finally:
        service.close()


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", default=8377, show_default=True, help="The port to listen on.")
@click.option("--proxy-headers", is_flag=True, help="Believe X-Forwarded-For and -Proto of a proxy on this machine.")
@_WRITES
@click.pass_context
def serve(context: click.Context, host: str, port: int, proxy_headers: bool, allow_writes: bool) -> None:
    """Serve MCP at /mcp and /mcp/PROFILE, WebSocket at /ws, and plain calls under /api/v1."""
    settings = _settings(context, allow_writes)
    from commonplace.server.auth import check_binding, make_gate
    from commonplace.server.http import serve_http
    from commonplace.server.principal import OWNER

    check_binding(settings, host)
    gate = make_gate(settings, owner=replace(OWNER, space=context.obj["space"]))
    click.echo(f"Commonplace is at http://{host}:{port}/mcp (Ctrl-C ends it)", err=True)
    serve_http(settings, gate, host, port, proxy_headers=proxy_headers)


def _settings(context: click.Context, allow_writes: bool, profile_name: str = DEFAULT) -> Settings:
    home = context.obj["home"]
    given = {"home": Path(home) if home else None, "allow_writes": True if allow_writes else None}
    if not is_wanted(profile_name, os.environ):
        return Settings.load(**given)
    adopted = aliases(os.environ)
    settings = Settings.load(**{**adopted, **{name: value for name, value in given.items() if value is not None}})
    if not home:
        with Library.open(settings=settings, space=context.obj["space"]) as library:
            adopt_database(library, os.environ)
    return settings


@click.command()
@click.argument("name")
@click.argument("arguments", default="{}")
@click.option("--profile", "profile_name", default="all", help="Call it as this profile has it.")
@_WRITES
@with_library
def call(library: Library, name: str, arguments: str, profile_name: str, allow_writes: bool) -> None:
    """Call a tool as an agent would: its name, its arguments as a JSON object, its answer as JSON."""
    found = profile(profile_name)
    writable = allow_writes or library.settings.allow_writes
    registry = Registry(found, writable=writable, hidden=found.hidden(library.settings))
    tool = registry.find(name)
    if tool is None:
        raise NotFound(registry.unknown(name))
    if not registry.allows(tool):
        raise WritesDisabled(tool.name)
    try:
        given = json.loads(arguments)
    except ValueError as error:
        raise InvalidInput(f'The arguments are not JSON: {error}. Write them as \'{{"query": "tea"}}\'.') from error
    if not isinstance(given, dict):
        raise InvalidInput('The arguments are not an object. Write them as \'{"query": "tea"}\'.')
    answer = tool.call(Call(library), given)
    shown = answer.structured or {"content": answer.content} if isinstance(answer, Reply) else answer
    click.echo(json.dumps(shown, ensure_ascii=False, indent=2))


COMMANDS = {"call": call, "mcp": mcp, "serve": serve}
