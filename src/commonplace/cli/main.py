"""The `commonplace` command. Each command's module is imported when it is called, so `--help` stays quick."""

from __future__ import annotations

import sys
from typing import NoReturn

import click

from commonplace import __version__
from commonplace.cli.lazy import LazyGroup, ReaderLeft, SomePath, hush, spare_threads, speak_utf8
from commonplace.errors import CommonplaceError

_COMMANDS = {
    "add": ("folders", "Make a folder a collection: indexed, embedded, searchable."),
    "update": ("folders", "Bring collections up to date with their folders."),
    "watch": ("folders", "Keep collections up to date while their files change."),
    "collections": ("collections", "Declare, sync, list, pack and remove collections of documents."),
    "context": ("qmd.contexts", "Describe everything, a collection, a folder in it, or a file."),
    "search": ("library", "Find passages by their words. Instant: no model is loaded."),
    "query": ("library", "Find passages by words and meaning together."),
    "vsearch": ("qmd.finding", "Find documents by what they mean."),
    "ls": ("qmd.reading", "List collections, or the documents of one."),
    "get": ("library", "Print an item, or part of it."),
    "browse": ("browse", "List kinds, tags, collections and folders, level by level."),
    "multi-get": ("qmd.reading", "Print many documents, by a glob or a list."),
    "related": ("library", "Find items like one."),
    "outline": ("library", "Print the headings of an item."),
    "remember": ("remember", "Keep a text as a note or a memory, found at once."),
    "revise": ("remember", "Change a note or a memory."),
    "forget": ("remember", "Delete notes and memories for good."),
    "status": ("library", "Say what is in the library and how ready it is."),
    "embed": ("library", "Make the vectors that are missing."),
    "tables": ("tables", "Keep JSON tables, bind tools to places in them, and serve those."),
    "models": ("models", "List, pull and choose the models that understand meaning."),
    "call": ("serve", "Call a tool as an agent would, with JSON in and JSON out."),
    "mcp": ("serve", "Serve one MCP client on standard input and output."),
    "serve": ("serve", "Serve MCP over HTTP on this machine."),
    "users": ("users", "Add, list and remove the users of a shared server."),
    "keys": ("users", "Make, list and revoke the keys that users call with."),
    "install": ("install", "Tell an MCP client about this library, in its own configuration file."),
    "uninstall": ("uninstall", "Take entries back out of MCP clients, or everything from this machine."),
    "where": ("where", "Print every path in use, with its size."),
    "doctor": ("care", "Look everything over and say what is wrong."),
    "cleanup": ("qmd.care", "Drop what is left over, then compact."),
    "backup": ("care", "Copy the library into one file."),
    "restore": ("care", "Put a backup in the library's place."),
    "migrate": ("migrate", "Move a home from files to a PostgreSQL database, or back."),
    "export": ("imports", "Write notes, media, chats, characters and prompts as lines of JSON."),
    "import": ("imports", "Bring in notes, media, chats, characters and prompts."),
    "qmd": ("qmd.command", "The commands of qmd, as a drop-in: `commonplace qmd search tea`."),
    "eval": ("evaluate", "Measure search quality on judged collections."),
}


class _Commands(LazyGroup):
    package, table = "commonplace.cli", _COMMANDS


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__)
@click.option("--home", envvar="COMMONPLACE_HOME", help="Where the library lives.", type=SomePath())
@click.option("--space", default="default", show_default=True, help="Which of the home's spaces.")
@click.pass_context
def cli(context: click.Context, home: str | None, space: str) -> None:
    """Keep what an agent may need to look up, and serve it over the Model Context Protocol."""
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
