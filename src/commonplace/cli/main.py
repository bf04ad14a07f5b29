"""The `commonplace` command. Each command's module is imported when it is called, so `--help` stays quick."""

from __future__ import annotations

import sys
from typing import NoReturn

import click

from commonplace import __version__
from commonplace.cli.lazy import LazyGroup, ReaderLeft, SomePath, hush, spare_threads, speak_utf8
from commonplace.errors import CommonplaceError

_COMMANDS = {
    "add": (".folders", "Add a folder to the library, so that it can be searched."),
    "update": (".folders", "Bring collections up to date with their folders."),
    "watch": (".folders", "Keep collections up to date while their files change."),
    "collections": (".collections", "List, rename and remove collections; add and sync packages of documents."),
    "context": (
        "commonplace.qmd.cli.collection_commands",
        "Describe the library, a collection, a folder or a file to those who search.",
    ),
    "search": (".lookup", "Find passages by their words. Instant: no model is loaded."),
    "query": (".lookup", "Find passages by words and meaning together."),
    "vsearch": (".lookup", "Find passages by meaning alone."),
    "ls": ("commonplace.qmd.cli.read_commands", "List collections, or the documents of one."),
    "get": (".lookup", "Print an item, or part of it."),
    "browse": (".lookup", "List kinds, tags, collections and folders, level by level."),
    "multi-get": ("commonplace.qmd.cli.read_commands", "Print many documents, by a glob or a list."),
    "related": (".lookup", "Find items that are similar to one."),
    "outline": (".lookup", "Print the headings of an item."),
    "remember": (".remember", "Keep a text as a note or a memory, found at once."),
    "revise": (".remember", "Change a note or a memory."),
    "forget": (".remember", "Delete notes and memories for good."),
    "status": (".status", "Show what is in the library and how ready it is."),
    "embed": (".lookup", "Compute the vectors that search by meaning needs."),
    "tables": (".table_commands", "Keep JSON tables, and serve tools that each read or change a part of one."),
    "models": (".models", "List, download and choose models for search by meaning."),
    "call": (".serve", "Call a tool as an agent would, with JSON in and JSON out."),
    "mcp": (".serve", "Serve one MCP client on standard input and output."),
    "serve": (".serve", "Serve MCP, WebSocket and REST over HTTP on this machine."),
    "users": (".users", "Add, list and remove the users of a shared server."),
    "keys": (".users", "Create, list and revoke the keys that users call with."),
    "install": (".install", "Tell an MCP client about this library, in its own configuration file."),
    "uninstall": (".uninstall", "Take the library out of MCP clients, or everything from this machine."),
    "where": (".where", "Print every path in use, with its size."),
    "doctor": (".status", "Check everything and say what is wrong."),
    "cleanup": ("commonplace.qmd.cli.index_commands", "Delete what is no longer needed, then compact the library."),
    "backup": (".status", "Copy the library into one file."),
    "restore": (".status", "Replace the library with a backup."),
    "migrate": (".migrate", "Move a home from files to a PostgreSQL database, or back."),
    "export": (".imports", "Write notes, media, chats, characters and prompts as lines of JSON."),
    "import": (".imports", "Bring in notes, media, chats, characters and prompts."),
    "qmd": ("commonplace.qmd.cli.program", "The commands of qmd, as a drop-in: `commonplace qmd search tea`."),
    "eval": (".evaluate", "Measure search quality on judged collections."),
}


class _Commands(LazyGroup):
    package, table = "commonplace.cli", _COMMANDS


_EPILOG = """\b
First steps:
  commonplace add ~/notes
  commonplace query "why is my bread gummy"
  commonplace install claude-code
"""


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]}, epilog=_EPILOG)
@click.version_option(__version__)
@click.option("--home", envvar="COMMONPLACE_HOME", help="The folder that the library is kept in.", type=SomePath())
@click.option(
    "--space", default="default", show_default=True, help="Which space of the home; each is a library of its own."
)
@click.pass_context
def cli(context: click.Context, home: str | None, space: str) -> None:
    """A library of notes, documents, code, chats, memories and data, for you and your AI agents to search.

    Agents reach it over the Model Context Protocol.
    """
    context.obj = {"home": home, "space": space}


def main() -> NoReturn:
    """Run the command line."""
    carry_out(cli)


def carry_out(command: click.Command) -> NoReturn:
    """Run a program. An error a caller can see is one sentence on stderr and its own exit code."""
    spare_threads()
    speak_utf8()
    try:
        status = command(standalone_mode=False)
    except CommonplaceError as error:
        click.echo(str(error), err=True)
        sys.exit(error.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        click.echo("Stopped. What was done so far is kept.", err=True)
        sys.exit(130)
    except (ReaderLeft, BrokenPipeError):
        hush()
        sys.exit(0)
    sys.exit(status if isinstance(status, int) else 0)
