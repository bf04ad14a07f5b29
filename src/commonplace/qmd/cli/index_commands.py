"""`update`, `watch`, `embed`, `status`, `cleanup` and `doctor`."""

from __future__ import annotations

import math
import subprocess
from pathlib import Path
from typing import Any

import click

from commonplace.cli.common import progress_bar, with_library
from commonplace.cli.folders import CommandFailed, index_collection, run_update_command, watch
from commonplace.cli.lazy import as_typed
from commonplace.cli.lookup import pull_default
from commonplace.errors import CommonplaceError
from commonplace.ingest.embed_lock import AlreadyEmbedding
from commonplace.ingest.embed_run import EmbedLimits, EmbedOutcome, embed_documents
from commonplace.ingest.upkeep import clean, rubbish
from commonplace.kinds.documents.folders.library_folders import Collection
from commonplace.library import Library
from commonplace.network import require_allowed
from commonplace.qmd.cli.advice import command
from commonplace.qmd.cli.collection_commands import print_indexed, print_needed
from commonplace.qmd.cli.formats import as_json
from commonplace.qmd.tools.index_status import as_text, record, state

_NAMES = click.option("-c", "--collection", "names", multiple=True, help="Only this collection; may be repeated.")
_STDERR = 2
MEGABYTE = 1024 * 1024


@click.command()
@_NAMES
@click.option("--pull", is_flag=True, help="First `git pull --ff-only` in every folder that is in a repository.")
@click.option("--force", is_flag=True, help="Look into every file, whatever its time says.")
@with_library
def update(library: Library, names: tuple[str, ...], pull: bool, force: bool) -> int:
    """Bring collections up to date with their folders. Words only: `qmd embed` makes the vectors."""
    found = [library.folders.get(name) for name in dict.fromkeys(names)] if names else library.folders.all()
    if not found:
        click.echo(f"No collections found. Run '{command('collection add')} .' to create one.", err=True)
        return 0
    failed = 0
    for number, collection in enumerate(found, start=1):
        click.echo(f"[{number}/{len(found)}] {collection.name} ({collection.files})")
        try:
            run_update_command(library, collection)
            if pull:
                require_allowed("", "--pull", offline=library.settings.offline)
                _pull(collection)
            print_indexed(index_collection(library, collection.name, force=force))
        except CommonplaceError as error:
            click.echo(str(error), err=True)
            failed += 1
    if not failed:
        click.echo("✓ All collections updated.")
    print_needed(library)
    return 1 if failed else 0


def _pull(collection: Collection) -> None:
    root = collection.root
    if not any((place / ".git").exists() for place in (root, *root.parents)):
        click.echo(f"{root} is in no git repository: nothing is pulled.", err=True)
        return
    try:
        done = subprocess.run(["git", "pull", "--ff-only"], cwd=root, stdout=_STDERR, check=False)  # noqa: S607 - theirs
    except OSError as error:
        raise CommandFailed(f"git could not be started in {root}: {error.strerror}.") from error
    if done.returncode:
        raise CommandFailed(f"git pull --ff-only failed with status {done.returncode} in {root}.")


class _Amount(click.FloatRange):
    """A number that is neither `nan`, which no range check refuses, nor `inf`."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        amount = super().convert(value, param, ctx)
        if not math.isfinite(amount):
            self.fail(f"{value} is no number to limit anything by.", param, ctx)
        return amount


@click.command()
@click.option("-f", "--force", is_flag=True, help="Make all vectors anew.")
@_NAMES
@click.option(
    "--timeout", type=_Amount(min=0), default=30, show_default=True, help="Minutes; 0 is no limit.",
)  # fmt: skip
@click.option("--max-docs-per-batch", type=click.IntRange(min=1), default=64, show_default=True)
@click.option("--max-batch-mb", type=_Amount(min=0, min_open=True), default=64, show_default=True)
@with_library
def embed(
    library: Library,
    force: bool,
    names: tuple[str, ...],
    timeout: float,
    max_docs_per_batch: int,
    max_batch_mb: float,
) -> int:
    """Compute the missing vectors. You may stop it at any time: it continues where it was."""
    for name in names:
        library.folders.get(name)
    limits = EmbedLimits(
        documents=max_docs_per_batch, bytes=int(max_batch_mb * MEGABYTE), seconds=timeout * 60 if timeout else None
    )
    pull_default(library)
    try:
        with progress_bar("Embedding documents") as progress:
            outcome = embed_documents(
                library.store, library.embedding, limits, collections=names, anew=force, progress=progress
            )
    except AlreadyEmbedding:
        click.echo("Another embed process is already running. Skipping.", err=True)
        return 0
    return _say(library, outcome, timeout)


def _say(library: Library, outcome: EmbedOutcome, minutes: float) -> int:
    if outcome.passages:
        said = f"{outcome.passages} passages of {outcome.documents} documents"
        click.echo(f"✓ Embedded {said} with {library.embedding.chosen}")
    elif outcome.complete:
        click.echo("✓ All documents have vectors.")
    for reason in outcome.reasons:
        click.echo(reason, err=True)
    if outcome.late:
        again = f"Run '{command('embed')}' again to go on where it was."
        click.echo(f"Stopped after {minutes:g} minutes. {again}", err=True)
    if outcome.hopeless:
        click.echo("Stopped: more than 80% of the passages could not be embedded.", err=True)
    if outcome.failed:
        again = f"Run '{command('embed')}' again to retry them."
        click.echo(f"{outcome.failed} passages could not be embedded. {again}", err=True)
    return 1 if outcome.failed else 0


@click.command()
@click.option("--json", "json_wanted", is_flag=True, help="Print JSON.")
@with_library
def status(library: Library, json_wanted: bool) -> None:
    """Show what is in the collections and how ready it is."""
    found = state(library)
    click.echo(as_json(record(found)) if json_wanted else f"{as_text(found)}\n", nl=False)


@click.command()
@click.option("--dry-run", is_flag=True, help="Only say what would go.")
@with_library
def cleanup(library: Library, dry_run: bool) -> None:
    """Delete caches, vectors of no passage, records of files in no collection and old answers, then compact."""
    before = _database_bytes(library)
    found = (rubbish if dry_run else clean)(library.store, library.folder, library.embedding)
    would = "Would drop" if dry_run else "Dropped"
    click.echo(f"{would} {len(found.caches)} caches ({found.cache_bytes} bytes)")
    for name, count in found.rows.items():
        click.echo(f"{would} {count} {_LEFT[name]}")
    if not dry_run:
        click.echo(f"✓ Compacted: {before} bytes before, {_database_bytes(library)} after")


_LEFT = {
    "vectors": "orphan vectors",
    "tombstones": "records of files of no collection",
    "answers": "old answers to repeated calls",
}


def _database_bytes(library: Library) -> int:
    return sum(file.stat().st_size for file in library.folder.glob("library.db*"))


@click.command()
@with_library
def doctor(library: Library) -> int:
    """Check everything, reading every byte, and say what is wrong. The exit code is 1 if anything is."""
    problems = library.doctor()
    problems += [
        f"The folder of collection {one.name} is not there: {one.root}. Its documents stay as they were."
        for one in library.folders.all()
        if not Path(one.root).is_dir()
    ]
    for problem in problems:
        click.echo(f"✗ {as_typed(problem)}")
    found = state(library)
    coverage = library.embedding.coverage()
    click.echo(f"Index: {library.folder}")
    click.echo(f"Documents: {found.documents} in {len(found.folders)} collections")
    click.echo(f"Model: {coverage.model or 'none yet'}; {coverage.embedded} of {coverage.total} passages have vectors")
    if found.needs_embedding:
        click.echo(f"Run '{command('embed')}' to update embeddings ({found.needs_embedding} documents need vectors)")
    click.echo(f"✗ {len(problems)} problems." if problems else "✓ Everything is in order.")
    return 1 if problems else 0


COMMANDS: dict[str, Any] = {
    "update": update,
    "watch": watch,
    "embed": embed,
    "status": status,
    "cleanup": cleanup,
    "doctor": doctor,
}
