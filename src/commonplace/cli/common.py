"""What several commands share: opening the library, showing progress, printing hits."""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click

from commonplace.library import Library
from commonplace.model import Page

Progress = Callable[[int, int], None]


def with_library(command: Callable[..., Any]) -> Callable[..., Any]:
    """Open the library that the command line names, and close it whatever happens."""

    @click.pass_context
    @functools.wraps(command)
    def run(context: click.Context, /, *args: Any, **kwargs: Any) -> Any:
        with Library.open(context.obj["home"], context.obj["space"]) as library:
            return command(library, *args, **kwargs)

    return run


@contextmanager
def progress_bar(label: str) -> Iterator[Progress]:
    """Counts, rate and time left on a terminal; a plain line now and then elsewhere. Always on stderr."""
    if not sys.stderr.isatty():
        yield _plain_progress(label)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(label, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _plain_progress(label: str) -> Progress:
    said = -1

    def report(done: int, total: int) -> None:
        nonlocal said
        tenth = 10 * done // total if total else 10
        if tenth > said:
            said = tenth
            click.echo(f"{label}: {done} of {total}", err=True)

    return report


def print_page(page: Page, *, as_json: bool) -> None:
    """Hits as text for people, or as the JSON that programs read."""
    if as_json:
        click.echo(json.dumps([hit.record() for hit in page.hits], ensure_ascii=False, indent=2))
        return
    for note in page.notes:
        click.echo(note, err=True)
    if not page.hits:
        click.echo("No results found.")
    for hit in page.hits:
        title = " › ".join(dict.fromkeys((hit.title, *hit.headings)))
        click.echo(f"{click.style(f'{hit.uri}:{hit.line}', fg='cyan')}  {round(hit.score * 100)}%  {title}")
        click.echo(f"    {hit.snippet}\n")
