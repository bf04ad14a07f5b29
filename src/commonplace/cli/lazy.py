"""What both commands have in common: subcommands that are loaded when they are called, and a reader who may leave."""

from __future__ import annotations

import errno
import importlib
import io
import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar

import click
from click.core import ParameterSource

from commonplace.cli.loading import nothing_collected
from commonplace.cli.terminal import guarded
from commonplace.errors import CommonplaceError, InvalidInput


class ReaderLeft(Exception):
    """Nobody reads the output any more, as with `| head`. No error: click makes one of a BrokenPipeError."""


class NotWritten(CommonplaceError):
    """The output goes to a place that takes no more of it, such as a file on a full disk."""

    code, status, exit_code = "not_written", 500, 74


_OF_QMD = re.compile(r"(['`]|: )qmd (collection add|context add|embed|get)\b")
_OURS = re.compile(r"(['`]|: )(qmd|commonplace)(?= [a-z])")
QMD_INSIDE = "commonplace qmd"
"""How the program `qmd` is called where no program of that name is ours."""
_STDOUT, _STDERR = 1, 2
_NAMED_HERE = {"collection add": "add"}
NOT_WRITTEN = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})
"""What a place that takes no more says."""


class SomePath(click.Path):
    """A path that is written out. An empty one, as of a shell's variable that is not set, is not the current folder."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "":
            self.fail("it is empty. Name a file or a folder; . is the current one.", param, ctx)
        return super().convert(value, param, ctx)


class LazyGroup(click.Group):
    """Knows its commands by name; loads one when it is needed, so that `--help` and a search stay quick."""

    package: ClassVar[str]
    table: ClassVar[Mapping[str, tuple[str, str]]]
    """Name -> the module it is in, by its whole name or relative to the package, and what it does in a line."""

    def list_commands(self, context: click.Context) -> list[str]:
        return list(self.table)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in self.table:
            return None
        with nothing_collected():
            module = importlib.import_module(self.table[name][0], self.package)
        command: click.Command = module.COMMANDS[name]
        return command

    def resolve_command(
        self, context: click.Context, arguments: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does it, which offers names like a misspelt one only of commands that are loaded."""
        try:
            return super().resolve_command(context, arguments)
        except click.UsageError as error:
            from difflib import get_close_matches  # for mistakes alone

            near = get_close_matches(arguments[0], self.table, n=1)
            if not near:
                raise
            raise click.UsageError(f"{error.message} Did you mean {near[0]!r}?", context) from error

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, help) for name, (_, help) in self.table.items()])

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        with output_guarded():  # `--help` and `--version` print here
            return super().make_context(*args, **kwargs)

    def invoke(self, context: click.Context) -> Any:
        with output_guarded():
            try:
                return super().invoke(context)
            except CommonplaceError as error:
                error.args = (as_called(str(error)),)  # here, where it is known what was called
                raise


@contextmanager
def output_guarded() -> Iterator[None]:
    """Raise our own errors where output cannot be written or the current folder is gone, before click says its."""
    try:
        yield
    except BrokenPipeError:
        raise ReaderLeft from None
    except FileNotFoundError as error:
        if error.filename is not None or _is_somewhere():
            raise
        raise InvalidInput("The current folder does not exist any more. Go to another one and repeat it.") from error
    except OSError as error:
        if error.filename is not None or error.errno not in NOT_WRITTEN:
            raise
        hush()
        raise NotWritten(f"The output could not be written: {error.strerror}.") from error


def _is_somewhere() -> bool:
    try:
        return bool(os.getcwd())
    except FileNotFoundError:
        return False


def called_qmd() -> bool:
    """Return whether this is `qmd`, as a program or as a command of `commonplace`. Each has commands of the other."""
    context = click.get_current_context(silent=True)
    return context is not None and context.find_root().info_name in ("qmd", QMD_INSIDE)


def as_called(sentence: str) -> str:
    """Return a sentence with the commands it names written as this caller has to type them.

    That is with the program that was called, and with the home and the space that this call chose by options.
    """
    if not called_qmd():
        sentence = _OF_QMD.sub(lambda found: f"{found[1]}commonplace {_NAMED_HERE.get(found[2], found[2])}", sentence)
    return _OURS.sub(lambda found: f"{found[1]}{_typed(found[2])}", sentence)


def called() -> str:
    """Return how `commonplace` is called from here, for a command that is printed to be pasted.

    A program that a shell would not find by its name goes by its path.
    """
    name, path = "commonplace", sys.argv[0]
    places = (os.path.join(folder, name) for folder in os.get_exec_path())
    if os.path.basename(path) != name or any(os.access(place, os.X_OK) for place in places):
        return _typed(name)
    from shlex import quote

    return _typed(name).replace(name, quote(path), 1)


def _typed(program: str) -> str:
    """Return how `program` is called from here, with the options that chose another home or space than the usual."""
    context = click.get_current_context(silent=True)
    if context is None:
        return program
    root = context.find_root()
    by_option = root.get_parameter_source("home") is ParameterSource.COMMANDLINE or root.obj.get("home_by_option")
    home = {"--home": root.obj["home"]} if by_option else {}
    space = root.obj["space"] if root.obj["space"] != "default" else None
    if program == "commonplace":
        return _with_options(program, {**home, **({"--space": space} if space else {})})
    inside = program if root.info_name == "qmd" else _with_options("commonplace", home) + " qmd"
    return _with_options(inside, {"--index": space} if space else {})


def _with_options(command: str, options: Mapping[str, str]) -> str:
    from shlex import quote  # for advice alone

    return "".join([command, *(f" {option} {quote(value)}" for option, value in options.items())])


def spare_threads() -> None:
    """Before numpy is loaded: its linear algebra starts a thread per core, which takes as long as all the rest."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def hush() -> None:
    """Nobody reads on: what is left in the buffer goes nowhere, without a complaint when the process ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def speak_utf8() -> None:
    """Results are UTF-8 whatever the locale; a name that is no text is shown as well as can be.

    Where a stream is closed, what goes there goes nowhere: no file of ours may get its number instead.
    """
    while (spare := os.open(os.devnull, os.O_RDWR)) <= _STDERR:
        pass
    os.close(spare)
    sys.stdout = sys.stdout or open(_STDOUT, "w")  # noqa: SIM115 - as long as the process
    sys.stderr = sys.stderr or open(_STDERR, "w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    sys.stdout, sys.stderr = guarded(sys.stdout), guarded(sys.stderr)
