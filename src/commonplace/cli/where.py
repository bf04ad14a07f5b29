"""`commonplace where`: every path in use, with its size."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from commonplace.cli.clients import CLIENTS
from commonplace.cli.places import configured_clients, places, size_of
from commonplace.settings import Settings


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def where(context: click.Context, as_json: bool) -> None:
    """Print every path in use, with its size; `–` is one where nothing is yet.

    The folders that collections read are listed by `commonplace collections list`.
    """
    settings = Settings.load(home=context.obj["home"])
    rows: list[dict[str, Any]] = [
        {"what": "home", "path": str(settings.home.expanduser().absolute()), "kind": "data"},
        *({"what": place.what, "path": str(place.path), "kind": place.kind} for place in places(settings)),
        *(
            {"what": f"{CLIENTS[client.name].title}'s entry", "path": str(client.path), "kind": "entry"}
            | {"names": list(client.names)}
            for client in configured_clients()
        ),
    ]
    for row in rows:
        row["bytes"] = size_of(Path(row["path"]))
    if settings.store:
        rows.insert(1, {"what": "store", "path": "PostgreSQL", "kind": "data", "bytes": None})
    if as_json:
        click.echo(json.dumps(rows, ensure_ascii=False, indent=2))
        return
    shown = [row for row in rows if row["bytes"] or row["kind"] != "derived"]  # locks are files of nothing
    width = max(len(row["what"]) for row in shown)
    for row in shown:
        click.echo(f"{row['what']:<{width}}  {shown_size(row['bytes']):>9}  {row['path']}")


def shown_size(size: int | None) -> str:
    """Return a size for people: `–` where nothing is there."""
    if not size:
        return "–"
    if size < 1000:
        return f"{size} B"
    value = float(size)
    for unit in ("kB", "MB", "GB"):
        value /= 1000
        if value < 999.5 or unit == "GB":
            break
    return f"{value:.0f} {unit}" if value >= 10 else f"{value:.1f} {unit}"


COMMANDS = {"where": where}
