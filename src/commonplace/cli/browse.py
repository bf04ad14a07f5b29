"""The command that lists what is there, as agents browse it."""

from __future__ import annotations

import json
from typing import Any

import click

from commonplace.cli.common import counted, painted, with_library
from commonplace.cli.results import readable
from commonplace.kinds.documents.packages.declarations import find_project
from commonplace.library import Library
from commonplace.profiles.commonplace.browsing import BROWSE
from commonplace.tools.tool import Call
from commonplace.tools.view import View


@click.command()
@click.argument("at", default="")
@click.option("-n", "--limit", type=click.IntRange(1, 500), default=50, show_default=True, help="Most lines.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@with_library
def browse(library: Library, at: str, limit: int, as_json: bool) -> None:
    """List what is there, level by level: kinds and tags; document/vault/ops; tags/work; the headings of an item.

    What a line begins with is what the next `browse` takes, and what `get` takes of an item.
    """
    call = Call(library, view=View(find_project(), space=library.folder.name))
    page: Any = BROWSE.call(call, {"at": at, "limit": limit})
    entries = page["entries"]
    if as_json:
        click.echo(json.dumps(entries, ensure_ascii=False, indent=2))
        return
    places = [readable(entry["at"]) for entry in entries]
    width = max(map(len, places), default=0)
    for place, entry in zip(places, entries, strict=True):
        click.echo(f"{painted(place.ljust(width), fg='cyan')}  {_said(entry)}".rstrip())
    if page["next_cursor"]:
        click.echo(f"The first {counted(limit, 'line')}; --limit prints more.", err=True)


def _said(entry: dict[str, Any]) -> str:
    """Return how much there is in an entry, or what it is called."""
    return f"{entry['count']:,}" if "count" in entry else str(entry["name"])


COMMANDS = {"browse": browse}
