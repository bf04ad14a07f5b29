"""Commands that serve the library to agents."""

from __future__ import annotations

import click

from commonplace.cli.common import with_library
from commonplace.library import Library


@click.command()
@with_library
def mcp(library: Library) -> None:
    """Serve one MCP client on standard input and output."""
    from commonplace.server.mcp import serve_stdio  # the SDK costs a second to import

    serve_stdio(library)


@click.command()
@click.option("--port", default=8377, show_default=True, help="The port on 127.0.0.1.")
@with_library
def serve(library: Library, port: int) -> None:
    """Serve MCP over HTTP on this machine, at http://127.0.0.1:PORT/mcp."""
    from commonplace.server.mcp import serve_http

    click.echo(f"Commonplace is at http://127.0.0.1:{port}/mcp (Ctrl-C ends it)", err=True)
    serve_http(library, "127.0.0.1", port)


COMMANDS = {"mcp": mcp, "serve": serve}
