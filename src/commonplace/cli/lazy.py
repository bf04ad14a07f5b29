"""Parts that command lines share: commands loaded when called, guarded output, and advice as it is typed here."""

from __future__ import annotations

import errno
import importlib
import io
import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar, TextIO

import click
from click.core import ParameterSource

from commonplace.cli.loading import nothing_collected
from commonplace.errors import Command, CommonplaceError, InvalidInput, Sentence

_OBEYED = r"\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"
_PAINTED = rf"(\x1b\[(?:1|2|36|1;31)m[^\r{_OBEYED}]*\x1b\[0m)"
_SAID = re.compile(rf"{_PAINTED}|[{_OBEYED}]|\r(?!\n)")


def harmless(text: str) -> str:
    r"""Return a text with control characters written as in JSON, such as `\u001b`, but for our own colors."""
    return _SAID.sub(lambda found: found[1] or f"\\u{ord(found[0]):04x}", text)


class Terminal(io.TextIOWrapper):
    """A terminal stream that shows control sequences of documents, which could move the cursor or set the title."""

    def write(self, text: str, /) -> int:
        return super().write(harmless(text))


def guarded(stream: TextIO) -> TextIO:
    """Return a terminal's stream as one that shows control sequences; any other stream as it is."""
    if not (isinstance(stream, io.TextIOWrapper) and stream.isatty()):
        return stream
    return Terminal(stream.buffer, encoding=stream.encoding, errors=stream.errors, line_buffering=True)


class ReaderLeft(Exception):
    """The signal that nobody reads the output any more, as with `| head`. click would make an error of it."""


class NotWritten(CommonplaceError):
    """The error that the output cannot be written, such as to a full disk."""

    code, status, exit_code = "not_written", 500, 74


PROGRAM = "commonplace"
_STDOUT, _STDERR = 1, 2
NOT_WRITTEN = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})
"""The system's error numbers for output that cannot be written."""


class SomePath(click.Path):
    """A path that must not be empty: an unset variable of a shell is not the current folder."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "":
            self.fail("it is empty. Name a file or a folder; . is the current one.", param, ctx)
        return super().convert(value, param, ctx)


class LazyGroup(click.Group):
    """A group that knows its commands by name and loads one when it is called, so that `--help` stays quick."""

    package: ClassVar[str]
    table: ClassVar[Mapping[str, tuple[str, str]]]
    """The module of each command, absolute or relative to the package, and its help in one line."""

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
        """Resolve a command as click does, and suggest similar names also among commands that are not loaded."""
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
                error.args = (as_typed(error.sentence),)  # here, where it is known what was called
                raise

    def typed(self, root: click.Context, command: Command) -> str:
        """Return a command as a caller of this program types it, with the options that chose the home and the space."""
        space = root.obj["space"]
        options = {
            "--home": root.obj["home"] if home_was_typed(root) else None,
            "--space": space if space != "default" else None,
        }
        own = "" if command.program == PROGRAM else f"{command.program} "
        return f"{with_options(PROGRAM, options)} {own}{command.arguments}"


@contextmanager
def output_guarded() -> Iterator[None]:
    """Raise our own errors, before click's, where output cannot be written or the current folder is gone."""
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


def as_typed(text: str) -> str:
    """Return a text with the commands in it as they are typed here."""
    return text.typed(typed) if isinstance(text, Sentence) else text


def typed(command: Command) -> str:
    """Return a command as it is typed here: by the program that was called, in the home and space that it was given."""
    context = click.get_current_context(silent=True)
    root = context.find_root() if context else None
    return root.command.typed(root, command) if root and isinstance(root.command, LazyGroup) else str(command)


def ours(arguments: str) -> str:
    """Return a command of `commonplace` as it is typed here."""
    return typed(Command(arguments))


def called(arguments: str) -> str:
    """Return a command of `commonplace` to be pasted: a program that no shell finds by its name goes by its path."""
    line, path = ours(arguments), sys.argv[0]
    places = (os.path.join(folder, PROGRAM) for folder in os.get_exec_path())
    if os.path.basename(path) != PROGRAM or any(os.access(place, os.X_OK) for place in places):
        return line
    from shlex import quote

    return line.replace(PROGRAM, quote(path), 1)


def home_was_typed(root: click.Context) -> bool:
    """Return whether the home was chosen by an option of this call, and not by the environment."""
    return root.get_parameter_source("home") is ParameterSource.COMMANDLINE or bool(root.obj.get("home_by_option"))


def with_options(command: str, options: Mapping[str, str | None]) -> str:
    """Return a command with those options that have a value."""
    from shlex import quote  # for advice alone

    return "".join([command, *(f" {option} {quote(value)}" for option, value in options.items() if value)])


def spare_threads() -> None:
    """Limit numpy's threads before it is loaded: one per core takes as long to start as all the rest."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def hush() -> None:
    """Discard what is left in the buffer when nobody reads on, so that the process ends without a complaint."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def speak_utf8() -> None:
    """Make the output UTF-8 in any locale, with backslashes for names that are not text.

    A closed stream is replaced by the null device, so that no file of ours gets its number.
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
