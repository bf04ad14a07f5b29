"""Shared parts of commands: opening the library, progress, colors, questions."""

from __future__ import annotations

import functools
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import click

from commonplace.cli.lazy import NOT_WRITTEN, NotWritten, harmless
from commonplace.errors import CommonplaceError, InvalidInput
from commonplace.library import Library
from commonplace.store.backups import check_target, partial_of

Progress = Callable[[int, int], None]
BAR_EVERY_S = 0.1
ERASE_LINE_ABOVE = "\x1b[A\x1b[2K"


def with_library(command: Callable[..., Any]) -> Callable[..., Any]:
    """Return a command that gets the open library of the command line, closed afterwards in any case."""

    @click.pass_context
    @functools.wraps(command)
    def run(context: click.Context, /, *args: Any, **kwargs: Any) -> Any:
        with Library.open(context.obj["home"], context.obj["space"]) as library:
            return command(library, *args, **kwargs)

    return run


OUTPUT = click.option("-o", "--output", "target", type=click.Path(), default="-", help="A file instead of stdout.")


@contextmanager
def written(target: str) -> Iterator[IO[str]]:
    """Yield a file that replaces the target when all is written, else leaves it; `-` is standard output."""
    if target == "-":
        with click.open_file("-", "w", encoding="utf-8") as output:
            yield output
        return
    path = Path(target)
    try:
        if path.exists() and not path.is_file():  # a device or a pipe is written as it comes
            with path.open("w", encoding="utf-8") as output:
                yield output
        else:
            with _in_its_place(path.resolve()) as output:
                yield output
    except OSError as error:
        said = f"{target} cannot be written: {error.strerror or error}."
        raise NotWritten(said) if error.errno in NOT_WRITTEN else InvalidInput(said) from error


@contextmanager
def _in_its_place(path: Path) -> Iterator[IO[str]]:
    check_target(path)
    partial = partial_of(path)
    try:
        with partial.open("x", encoding="utf-8") as output:
            yield output
            output.flush()
            os.fsync(output.fileno())
        if path.exists():
            partial.chmod(path.stat().st_mode & 0o777)
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


class WordOrFile(click.Group):
    """A group with a default command: a word that is no command's name is an argument of the default."""

    def __init__(self, name: str, plain: click.Command, others: Sequence[click.Command], *, help: str) -> None:
        super().__init__(name, commands={str(each.name): each for each in (plain, *others)}, help=help)
        self._plain = plain
        self.no_args_is_help = False

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args or (args[0] not in self.commands and args[0] not in ctx.help_option_names):
            args = [str(self._plain.name), *args]
        return super().parse_args(ctx, args)


@contextmanager
def progress_bar(label: str) -> Iterator[Progress]:
    """Yield a function that is told (done, total) and shows a bar with counts, rate and time left on a terminal.

    Elsewhere it prints a plain line now and then. Always on stderr; the bar goes when the work is done.
    """
    if not sys.stderr.isatty():
        yield _plain_progress(label)
        return
    stderr = sys.__stderr__  # sys.stderr shows the sequences a bar is drawn with and does not obey them
    drawn_at = -BAR_EVERY_S

    def rate(_: object) -> str | None:
        return f"{1 / bar.time_per_iteration:,.0f}/s" if bar.time_per_iteration else None

    def report(done: int, total: int) -> None:
        nonlocal drawn_at
        if (now := time.monotonic()) - drawn_at >= BAR_EVERY_S or done >= total:
            drawn_at = now
            bar.length, bar.show_pos = total, True
            bar.update(done - bar.pos)

    bar = click.progressbar(length=0, label=harmless(label), file=stderr, show_percent=False, item_show_func=rate)
    try:
        with bar:
            yield report
    finally:
        if stderr is not None:
            stderr.write(ERASE_LINE_ABOVE)
            stderr.flush()


@contextmanager
def download_bar(name: str) -> Iterator[Progress]:
    """Yield a function that is told the bytes that are here and those there are, and shows megabytes."""
    with progress_bar(f"Pulling {name}, MB") as progress:
        yield lambda done, total: progress(done // 1_000_000, total // 1_000_000)


def _plain_progress(label: str) -> Progress:
    """Return a function that prints a line at each tenth of the work, with the rate and the time left."""
    printed, started = -1, time.monotonic()

    def report(done: int, total: int) -> None:
        nonlocal printed
        tenth = 10 * done // total if total else 10
        if tenth > printed:
            printed = tenth
            spent = time.monotonic() - started
            pace = f", {done / spent:,.0f}/s, {(total - done) * spent / done:.0f} s left" if spent >= 1 and done else ""
            click.echo(f"{label}: {done} of {total}{pace}", err=True)

    return report


def painted(text: str, **style: Any) -> str:
    """Return a text in this style on a terminal with colors, else as it is."""
    return click.style(harmless(text), **style) if _wants_color() else text


def marked(text: str) -> str:
    """Return a match in bold red on a terminal with colors, else as it is."""
    return f"\x1b[1;31m{harmless(text)}\x1b[0m" if _wants_color() else text


def _wants_color() -> bool:
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


class Declined(CommonplaceError):
    """The error that the user was asked and said no."""

    code, status, exit_code = "declined", 500, 130


def ask(question: str) -> None:
    """Return if the user says yes. Raise Declined if they say no, and InvalidInput where nobody answers."""
    try:
        agreed = click.confirm(question, err=True)
    except click.Abort:
        if sys.stdin.isatty():
            raise
        click.echo(err=True)  # the question's line has no end yet
        raise InvalidInput("Nobody answered, so nothing was changed. Repeat it with --yes.") from None
    if not agreed:
        raise Declined("Nothing was changed.")


_MANY = {"entry": "entries"}


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: `1 passage`, `2 passages`."""
    return f"{number} {noun if number == 1 else _MANY.get(noun, f'{noun}s')}"


def split_names(given: Iterable[str]) -> tuple[str, ...]:
    """Return the names in an option that may be repeated and may have commas."""
    return tuple(name.strip() for names in given for name in names.split(",") if name.strip())
