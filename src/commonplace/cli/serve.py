"""Commands that serve the library to agents."""

from __future__ import annotations

from dataclasses import replace

import click

from commonplace.cli.common import with_library
from commonplace.library import Library

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
    """Serve MCP over HTTP on this machine, at http://127.0.0.1:PORT/mcp."""
    from commonplace.server.mcp import serve_http

    click.echo(f"Commonplace is at http://127.0.0.1:{port}/mcp (Ctrl-C ends it)", err=True)
    serve_http(_opened(library, allow_writes), "127.0.0.1", port)


def _opened(library: Library, allow_writes: bool) -> Library:
    if allow_writes:
        library.settings = replace(library.settings, allow_writes=True)
    return library


COMMANDS = {"mcp": mcp, "serve": serve}
