"""`commonplace qmd …`: the whole `qmd` command as a command of `commonplace`."""

from __future__ import annotations

import click
from click.core import ParameterSource

from commonplace.qmd.cli.advice import INSIDE


@click.command(
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False}, add_help_option=False
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def qmd(context: click.Context, arguments: tuple[str, ...]) -> int:
    """Return the exit code of `qmd` run with these arguments on the home and space of `commonplace`."""
    from commonplace.qmd.cli.main import run  # a click group of its own, with its own exit codes

    by_option = context.find_root().get_parameter_source("home") is ParameterSource.COMMANDLINE
    home, space = context.obj["home"], context.obj["space"]
    return run(list(arguments), program=INSIDE, home=home, space=space, home_by_option=by_option)


COMMANDS = {"qmd": qmd}
