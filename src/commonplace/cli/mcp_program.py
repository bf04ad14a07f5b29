"""The program `commonplace-mcp`: `commonplace mcp` for the client that starts it, help for a person who types it."""

from __future__ import annotations

import sys
from typing import Any, NoReturn

import click

from commonplace import __version__
from commonplace.cli.lazy import output_guarded
from commonplace.cli.main import carry_out, cli
from commonplace.cli.serve import mcp

_EPILOG = """\b
An MCP client starts this program and speaks to it on standard input and output:
  claude mcp add commonplace -- commonplace-mcp
`commonplace` is the command line of the same library:
  commonplace add ~/notes
  commonplace install claude-code
With uv and nothing installed: uvx --from commonplace-mcp commonplace add ~/notes
"""


_HOME_AND_SPACE = [parameter for parameter in cli.params if parameter.name in ("home", "space")]


class _Program(click.Command):
    """`commonplace mcp`, with the options that otherwise stand before the command's name."""

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(context, ["--help"] if sys.stdin is not None and sys.stdin.isatty() else args)

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        with output_guarded():
            return super().make_context(*args, **kwargs)

    def invoke(self, context: click.Context) -> Any:
        context.obj = {str(each.name): context.params.pop(str(each.name)) for each in _HOME_AND_SPACE}
        with output_guarded():
            return super().invoke(context)


program = click.version_option(__version__)(
    _Program(
        "commonplace-mcp",
        callback=mcp.callback,
        params=[*_HOME_AND_SPACE, *mcp.params],
        help="Serve this machine's library to one MCP client on standard input and output.",
        epilog=_EPILOG,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
)


def main() -> NoReturn:
    """Run the program."""
    carry_out(program)
