"""Commands that help, as this caller types them: `qmd` and `commonplace` share commands under different names."""

from __future__ import annotations

from urllib.parse import unquote

import click

from commonplace.cli.lazy import typed
from commonplace.errors import Command
from commonplace.model import SCHEMES
from commonplace.qmd.tools.file_names import SCHEME

PROGRAM = "qmd"
INSIDE = "commonplace qmd"
"""The way to call it where no program of that name is ours."""
_NAMES_IN_COMMONPLACE = {"collection add": "add"}


def address(collection: str, path: str = "") -> str:
    """Return the address of a document, folder or collection, not encoded, in the scheme of the called program.

    `commonplace` decodes every address it is given, so percent signs are encoded for it, and nothing else.
    """
    if called_qmd():
        return f"{SCHEME}://{collection}/{path}"
    return f"{SCHEMES['document']}://{collection}/{path.replace('%', '%25')}"


def decoded(path: str) -> str:
    """Return the path of an address that `address` wrote for the called program."""
    return path if called_qmd() else unquote(path)


def command(name: str) -> str:
    """Return a command of qmd as it is typed from here, with the options that chose the home and the space.

    Where `commonplace` was called, it is that program's command for the same thing.
    """
    return typed(Command(name, PROGRAM) if called_qmd() else Command(_NAMES_IN_COMMONPLACE.get(name, name)))


def called_qmd() -> bool:
    """Return whether this process runs as `qmd`, the program or the command. Each has commands of the other."""
    context = click.get_current_context(silent=True)
    return context is not None and context.find_root().info_name in (PROGRAM, INSIDE)
