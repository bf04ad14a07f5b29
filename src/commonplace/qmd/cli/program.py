"""The `qmd` command. Each command's module is imported when it is called, so that a search stays quick."""

from __future__ import annotations

import copy
import sys
from typing import NoReturn

import click
from click.core import ParameterSource

from commonplace import __version__
from commonplace.cli.lazy import (
    LazyGroup,
    ReaderLeft,
    home_was_typed,
    hush,
    spare_threads,
    speak_utf8,
    with_options,
)
from commonplace.errors import Command, CommonplaceError, InvalidInput
from commonplace.qmd.cli.advice import INSIDE, PROGRAM

_COMMANDS = {
    "collection": (".collection_commands", "Add, list, rename, remove and set up collections."),
    "context": (".collection_commands", "Describe the library, a collection, a folder or a file to those who search."),
    "update": (".index_commands", "Bring collections up to date with their folders."),
    "watch": (".index_commands", "Keep collections up to date while their files change."),
    "embed": (".index_commands", "Compute the vectors that search by meaning needs."),
    "search": (".query_commands", "Find documents by their words. Instant: no model is loaded."),
    "vsearch": (".query_commands", "Find documents by meaning alone."),
    "query": (".query_commands", "Find documents by words and meaning together: the best results."),
    "ls": (".read_commands", "List collections, or the documents of one."),
    "get": (".read_commands", "Print a document, or some lines of it."),
    "multi-get": (".read_commands", "Print many documents, by a glob or a list."),
    "status": (".index_commands", "Show what is in the collections and how ready it is."),
    "cleanup": (".index_commands", "Delete what is no longer needed, then compact the library."),
    "doctor": (".index_commands", "Check everything and say what is wrong."),
    "server": (".serving", "Serve MCP and HTTP."),
    "mcp": (".serving", "Serve MCP on standard input and output, or on HTTP; `stop` and `status` of a daemon."),
    "import": (".importing", "Take over the collections of another qmd, from its index.yml."),
}
_SAME = {"embed": "embed", "collections list": "collection list", "status": "status"}
"""Commands of `commonplace` that this program has too, under its own name."""
_ALIASES = {"index": "update", "vector-search": "vsearch", "deep-search": "query"}


class _Commands(LazyGroup):
    package, table = "commonplace.qmd.cli", _COMMANDS

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        found = super().get_command(context, _ALIASES.get(name, name))
        return found and _with_index(found)

    def typed(self, root: click.Context, command: Command) -> str:
        """Return a command as a caller of this program types it: by its own name for what it does, too."""
        own = command.arguments if command.program == PROGRAM else _SAME.get(command.arguments)
        if own is None:
            return super().typed(root, command)
        home = {"--home": root.obj["home"] if home_was_typed(root) else None}
        inside = PROGRAM if root.info_name == PROGRAM else f"{with_options('commonplace', home)} {PROGRAM}"
        space = root.obj["space"]
        return f"{with_options(inside, {'--index': space if space != 'default' else None})} {own}"


def _with_index(command: click.Command) -> click.Command:
    """Return the command with `--index`, which may stand before its name and after it."""
    indexed = copy.copy(command)
    indexed.params = [*command.params, _index()]
    if isinstance(indexed, click.Group) and isinstance(command, click.Group):
        indexed.commands = {name: _with_index(each) for name, each in command.commands.items()}
    return indexed


def _choose(context: click.Context, parameter: click.Parameter, value: str | None) -> None:
    if value is not None:
        context.find_root().obj["space"] = value


def _index() -> click.Option:
    help = "Use another index of this machine."
    return click.Option(
        ["--index"], metavar="NAME", expose_value=False, callback=_choose, is_eager=True, help=help
    )  # fmt: skip


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__)
@click.pass_context
def cli(context: click.Context) -> None:
    """Folders of Markdown and other text, searched and read."""


cli.params.append(_index())


def run(
    arguments: list[str] | None = None,
    *,
    program: str = "qmd",
    home: str | None = None,
    space: str = "default",
    home_by_option: bool = False,
) -> int:
    """Run a command line and return its exit code: 0, 1 for a failure, 2 for invalid input.

    `program` is what the caller typed before the arguments; `home_by_option` says that they named the home there.
    """
    chosen = {"home": home, "space": space, "home_by_option": home_by_option}
    try:
        status = cli(arguments, prog_name=program, standalone_mode=False, obj=chosen)
    except CommonplaceError as error:
        click.echo(str(error), err=True)
        return 2 if isinstance(error, InvalidInput) else 1
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("Stopped. What was done so far is kept.", err=True)
        return 130
    return status if isinstance(status, int) else 0


def main() -> NoReturn:
    """Run the program."""
    spare_threads()
    speak_utf8()
    try:
        status = run()
        sys.stdout.flush()
    except (ReaderLeft, BrokenPipeError):
        hush()
        status = 0
    sys.exit(status)


@click.command(
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False}, add_help_option=False
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def qmd(context: click.Context, arguments: tuple[str, ...]) -> int:
    """Return the exit code of `qmd` run with these arguments on the home and space of `commonplace`."""

    by_option = context.find_root().get_parameter_source("home") is ParameterSource.COMMANDLINE
    home, space = context.obj["home"], context.obj["space"]
    return run(list(arguments), program=INSIDE, home=home, space=space, home_by_option=by_option)


COMMANDS = {"qmd": qmd}
