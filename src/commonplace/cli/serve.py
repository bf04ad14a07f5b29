"""Commands that serve the library to agents."""

from __future__ import annotations

import json
from dataclasses import replace

import click

from commonplace.cli.common import with_library
from commonplace.errors import InvalidInput, NotFound
from commonplace.library import Library
from commonplace.surfaces.commonplace import TOOLS
from commonplace.surfaces.tool import Registry

_WRITES = click.option("--allow-writes", is_flag=True, help="Let agents remember, revise and forget.")


@click.command()
@_WRITES
@with_library
def mcp(library: Library, allow_writes: bool) -> None:
    """Serve one MCP client on standard input and output."""
    from commonplace.server.mcp import serve_stdio  # the SDK costs a second to import

    serve_stdio(_opened(library, allow_writes))


@click.command()
@click.option("--port", default=8377, show_default=True, help="The port on 127.0.0.1.")
@_WRITES
@with_library
def serve(library: Library, port: int, allow_writes: bool) -> None:
    """Serve MCP at http://127.0.0.1:PORT/mcp and plain calls under /api/v1, on this machine."""
    from commonplace.server.http import serve_http

    click.echo(f"Commonplace is at http://127.0.0.1:{port}/mcp (Ctrl-C ends it)", err=True)
    serve_http(_opened(library, allow_writes), port)


def _opened(library: Library, allow_writes: bool) -> Library:
    if allow_writes:
        library.settings = replace(library.settings, allow_writes=True)
    return library


@click.command()
@click.argument("name")
@click.argument("arguments", default="{}")
@_WRITES
@with_library
def call(library: Library, name: str, arguments: str, allow_writes: bool) -> None:
    """Call a tool as an agent would: its name, its arguments as a JSON object, its answer as JSON."""
    registry = Registry(TOOLS, writable=_opened(library, allow_writes).settings.allow_writes)
    tool = registry.find(name)
    if tool is None:
        raise NotFound(f"There is no tool {name!r}. The tools are {registry.names()}.")
    try:
        given = json.loads(arguments)
    except ValueError as error:
        raise InvalidInput(f'The arguments are not JSON: {error}. Write them as \'{{"query": "tea"}}\'.') from error
    if not isinstance(given, dict):
        raise InvalidInput('The arguments are not an object. Write them as \'{"query": "tea"}\'.')
    click.echo(json.dumps(tool.call(library, given), ensure_ascii=False, indent=2))


COMMANDS = {"call": call, "mcp": mcp, "serve": serve}
