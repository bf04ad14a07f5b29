"""Commands for collections of documents: declared in context.json, brought level by `sync`, packed for others."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from commonplace.cli.collections_list import print_list
from commonplace.cli.common import counted, progress_bar
from commonplace.cli.folders import MOST_NAMED, OF_COLLECTIONS
from commonplace.cli.lazy import SomePath, ours
from commonplace.cli.lookup import pull_default
from commonplace.cli.workplace import Workplace, with_workplace
from commonplace.errors import AlreadyExists, Command, InvalidInput, NotFound
from commonplace.kinds.documents.folders.locks import collection_lock
from commonplace.kinds.documents.locating import no_collection
from commonplace.kinds.documents.packages.declarations import (
    FILE,
    Declaration,
    Holding,
    Scope,
    alias_exists,
    check_alias,
    declarations,
    declare,
    holding_of,
    holdings,
    undeclared,
    unique,
    withdraw,
    write_json,
)
from commonplace.kinds.documents.packages.pack import pack as pack_folder
from commonplace.kinds.documents.packages.pack import save
from commonplace.kinds.documents.packages.package_paths import IMPLIED, MANIFEST, check_globs
from commonplace.kinds.documents.packages.package_sync import SyncOptions, SyncReport, SyncTarget, drop, sync_holding
from commonplace.kinds.documents.packages.source import read_source, without_credentials
from commonplace.kinds.documents.visible import Visible
from commonplace.library import Library
from commonplace.store.chunks import Chunks
from commonplace.store.items import Items
from commonplace.store.listing import Listing

_FORCE = click.option("--force", is_flag=True, help="Replace what is there.")
_NO_EMBED = click.option(
    "--no-embed", is_flag=True, help="Compute no vectors: the files are found by their words only."
)


@click.group("collections")
def collections() -> None:
    """List, rename and remove collections; add and sync packages of documents."""


@collections.command()
@click.argument("folder", required=False, metavar="[DIR]", type=SomePath(path_type=Path))
@click.option("--manifest", is_flag=True, help=f"Write a {MANIFEST}, for a package, instead of a {FILE}.")
@click.option("--name", help="The package's name; the folder's if left out.")
@click.option("--version", help="The package's version.  [default: 0.1.0]")
@click.option("--description", help="What is in it.")
@_FORCE
@with_workplace
def init(workplace: Workplace, folder: Path | None, manifest: bool, force: bool, **said: str | None) -> None:
    """Write an empty context.json, or a manifest.json."""
    if not manifest and any(said.values()):
        raise InvalidInput("--name, --version and --description describe a package: they go with --manifest.")
    target = Path(os.path.realpath(folder or workplace.here))
    file = target / (MANIFEST if manifest else FILE)
    content: dict[str, Any] = {"collections": {}}
    if manifest:
        content = {"name": said["name"] or target.name, "version": said["version"] or "0.1.0"}
        content |= {"description": said["description"]} if said["description"] else {}
        content["sources"] = {"glob": list(IMPLIED)}
    if file.exists() and not force:
        raise AlreadyExists(f"{file} is there already. Use --force to write over it.")
    if not workplace.dry:
        write_json(file, content)
    workplace.say({"dryRun": workplace.dry, "file": str(file)}, f"Wrote {file}")


@collections.command()
@click.argument("alias")
@click.argument("source")
@click.option(
    "--global", "everywhere", is_flag=True, help="For every project: in your own context.json, not the project's."
)
@click.option("--glob", multiple=True, help="Which files, for a source without a manifest; may be repeated.")
@click.option("--exclude", multiple=True, help="Leave these out; may be repeated.")
@click.option("--no-sync", is_flag=True, help="Only declare it: fetch nothing yet.")
@_NO_EMBED
@_FORCE
@with_workplace
def add(
    workplace: Workplace, alias: str, source: str, everywhere: bool, no_sync: bool, no_embed: bool, **more: Any
) -> int:
    """Declare a collection under an alias, and sync it."""
    folder = workplace.file_of(everywhere)
    check_alias(alias, "ALIAS")
    if not more["force"] and any(each.alias == alias for each in declarations(folder, "project")):
        raise alias_exists(alias, folder / FILE)
    typed = _declaration(workplace, alias, source, folder, more)
    outcomes: list[SyncReport] = []
    with workplace.library() as library:
        if not no_sync:
            outcomes = [
                _sync_one(library, holding_of(library, typed), SyncOptions(dry=workplace.dry, note_error=False))
            ]
        written = not (outcomes and outcomes[0].error is not None)
        if written and not workplace.dry:
            with collection_lock(library.folder, str(folder / FILE)):
                declare(folder, _as_written(typed, folder), force=more["force"])
        record = {"dryRun": workplace.dry, "file": str(folder / FILE), "scope": typed.scope}
        _report(workplace, outcomes, record | {"collections": [each.record() for each in outcomes]})
        if not written:
            return 1
        if not workplace.as_json:
            click.echo(f"Added {alias} to {folder / FILE}{' (dry run)' if workplace.dry else ''}")
        if not (no_sync or no_embed or workplace.dry):
            _embed(library)
    return 0


def _declaration(workplace: Workplace, alias: str, source: str, folder: Path, more: Mapping[str, Any]) -> Declaration:
    for option in ("glob", "exclude"):
        check_globs(more[option], f"--{option}")
    scope: Scope = "global" if folder == workplace.settings.home else "project"
    return Declaration(alias, source, more["glob"], more["exclude"], scope, Path.cwd())


def _as_written(typed: Declaration, folder: Path) -> Declaration:
    """Return the declaration to write: without credentials, and with a path inside the project relative to it."""
    source = read_source(typed.url, typed.folder)
    url = source.shown
    if source.path is not None and source.kind != "repository" and typed.scope == "project":
        inside = source.path.is_relative_to(folder)
        url = f"./{source.path.relative_to(folder).as_posix()}".removesuffix("/.") if inside else url
    if source.path is None and source.url != without_credentials(source.url):
        click.echo("The password is not written down. Keep it in ~/.netrc for the next sync.", err=True)
    return Declaration(typed.alias, url, typed.glob, typed.exclude, typed.scope, folder)


@collections.command()
@click.argument("alias")
@click.option("--global", "everywhere", is_flag=True, help="From your own context.json, not the project's.")
@click.option("--drop", "and_drop", is_flag=True, help="Delete the documents too.")
@click.option("--force", is_flag=True, hidden=True, expose_value=False)  # as all that write do; it refuses nothing
@with_workplace
def remove(workplace: Workplace, alias: str, everywhere: bool, and_drop: bool) -> None:
    """Remove a collection's declaration; with --drop its documents, too.

    A folder that was added with `commonplace add` has no declaration, only documents: it needs --drop.
    """
    folder = workplace.file_of(everywhere)
    with workplace.library() as library:
        found = next((each for each in declarations(folder, "project") if each.alias == alias), None)
        if found is None and (left := undeclared(library, holdings(library, workplace.project)).get(alias)):
            _drop_left(workplace, library, alias, left.key, and_drop)
            return
        if found is None:
            _remove_folder(workplace, library, alias, folder, and_drop)
            return
        holding = holding_of(library, found)
        if and_drop and holding.folder:
            raise InvalidInput(
                f"The documents of {alias} are those of the folder {holding.folder}. Remove that instead."
            )
        count = library.store.drawer(Listing).parents("document").get(holding.declared.key, 0) if and_drop else 0
        if not workplace.dry:
            with collection_lock(library.folder, str(folder / FILE)):
                withdraw(folder, alias)
            if and_drop:
                drop(_keeping(library), holding.declared.key)
    record = {"dryRun": workplace.dry, "file": str(folder / FILE), "dropped": count}
    workplace.say(
        record, f"Removed {alias} from {folder / FILE}" + (f", and {counted(count, 'document')}" if and_drop else "")
    )


def _drop_left(workplace: Workplace, library: Library, id: str, key: str, and_drop: bool) -> None:
    """Delete the documents of a package that nothing declares here; they go by its id."""
    if not and_drop:
        raise InvalidInput(
            f"{id} is not declared here any more, but its documents are still there. Repeat with --drop to delete them."
        )
    count = library.store.drawer(Listing).parents("document").get(key, 0)
    if not workplace.dry:
        drop(_keeping(library), key)
    workplace.say(
        {"dryRun": workplace.dry, "file": None, "dropped": count}, f"Removed {id}: {counted(count, 'document')}"
    )


def _remove_folder(workplace: Workplace, library: Library, alias: str, folder: Path, and_drop: bool) -> None:
    """Remove a folder that was added with `commonplace add`: no file declares it, so its documents go."""
    inside = folder != workplace.settings.home
    if inside and any(each.alias == alias for each in declarations(workplace.settings.home, "global")):
        raise NotFound(f"{folder / FILE} has no {alias}, but your own declarations have. Repeat with --global.")
    if (
        library.store.drawer(Items).find("collection", "", alias, body=False) is None
    ):  # what is removed is named to the letter
        raise no_collection(library, alias, "`", Command("collections list"), "` names them.")
    library.folders.get(alias)
    what = f"{alias} is a folder that was added with `{ours('add')}`."
    if inside:
        raise NotFound(f"{folder / FILE} has no {alias}. {what} Repeat with --global --drop to remove it.")
    if not and_drop:
        raise InvalidInput(
            f"{what} Removing it deletes its documents from the library; the files in the folder stay. "
            "Repeat with --drop to do so."
        )
    count = library.store.drawer(Listing).parents("document").get(alias, 0)
    if not workplace.dry:
        library.folders.remove(alias)
    workplace.say(
        {"dryRun": workplace.dry, "file": None, "dropped": count}, f"Removed {alias}: {counted(count, 'document')}"
    )


@collections.command("list")
@click.option("--no-global", is_flag=True, help="Only the project's own.")
@with_workplace
def list_collections(workplace: Workplace, no_global: bool) -> None:
    """List the collections, where they come from and whether they are up to date."""
    with replace(workplace, dry=True).library() as library:
        found = holdings(library, workplace.project, not no_global)
        print_list(library, found, {} if no_global else undeclared(library, found), as_json=workplace.as_json)


@collections.command()
@click.argument("aliases", nargs=-1, metavar="[ALIAS]...")
@click.option(
    "--global/--no-global", "everywhere", default=None, help="Only your own declarations; or only the project's."
)
@click.option("--strict", is_flag=True, help="End with status 1 also when a single file failed.")
@click.option("--force", is_flag=True, help="Read and chunk everything again.")
@_NO_EMBED
@with_workplace
def sync(
    workplace: Workplace, aliases: tuple[str, ...], everywhere: bool | None, strict: bool, force: bool, no_embed: bool
) -> int:
    """Bring collections up to date with their sources: those named, or all."""
    with workplace.library() as library:
        project = None if everywhere else workplace.project
        found = _chosen(holdings(library, project, everywhere is not False), aliases)
        options = SyncOptions(force=force, dry=workplace.dry)
        outcomes = [_sync_one(library, holding, options, _clash(holding, found)) for holding in unique(found)]
        if not workplace.dry:
            with progress_bar("Indexing") as progress:
                library.lexical.catch_up(progress)
        _report(workplace, outcomes, {"dryRun": workplace.dry, "collections": [each.record() for each in outcomes]})
        if not (no_embed or workplace.dry) and library.store.drawer(Chunks).total():
            _embed(library)
    return int(any(each.error is not None or (strict and each.failed) for each in outcomes))


def _chosen(found: list[Holding], names: tuple[str, ...]) -> list[Holding]:
    if not names:
        return found
    visible = Visible.of([each.declared for each in found])
    keys = set()
    for name in names:
        shown = visible.get(name)
        if shown is None:
            there = ", ".join(each.label for each in visible.collections) or "none"
            raise InvalidInput(f'Collection "{name}" not found. There are: {there}.')
        keys.add(shown.key)
    return [each for each in found if each.declared.key in keys]


def _clash(holding: Holding, found: list[Holding]) -> str | None:
    """Return why a collection cannot be synced: another alias wants different files of the same source; else None."""
    for other in found:
        mine, theirs = holding.declaration, other.declaration
        if holding.declared.key != other.declared.key or holding.folder or not (mine and theirs):
            continue
        if (mine.glob, mine.exclude) != (theirs.glob, theirs.exclude):
            return f"{mine.alias} and {theirs.alias} take different files of the same source. Give both one glob."
    return None


def _sync_one(library: Library, holding: Holding, options: SyncOptions, clash: str | None = None) -> SyncReport:
    known = holding.declared
    if clash is not None:
        return SyncReport(known.alias, known.collection_id, error=clash)
    with progress_bar(f"Reading {known.alias}") as progress:
        return sync_holding(_keeping(library), library.folders, holding, options, progress)


def _keeping(library: Library) -> SyncTarget:
    return SyncTarget(library.store, library.folder, library.settings)


def _report(workplace: Workplace, outcomes: list[SyncReport], record: Mapping[str, Any]) -> None:
    if workplace.as_json:
        click.echo(json.dumps(record, ensure_ascii=False, indent=2))
        return
    for outcome in outcomes:
        click.echo(f"{outcome.line()}{' (dry run)' if workplace.dry else ''}", err=outcome.error is not None)
        for kind, files in (("skipped", outcome.skipped), ("warning", outcome.warnings), ("failed", outcome.failed)):
            for name, reason in files[:MOST_NAMED]:
                click.echo(f"  {kind} {name}: {reason}", err=True)
            if len(files) > MOST_NAMED:
                click.echo(f"  and {len(files) - MOST_NAMED} more {kind}", err=True)


def _embed(library: Library) -> None:
    pull_default(library)
    with progress_bar("Embedding") as progress:
        count = library.embed(progress)
    click.echo(f"Embedded: {counted(count, 'passage')} with {library.embedding.chosen}", err=True)


@collections.command()
@click.argument("folder", required=False, metavar="[DIR]", type=SomePath(path_type=Path))
@click.option("--output", type=click.Path(path_type=Path, dir_okay=False), help="Where to; NAME-VERSION.tar.gz here.")
@_FORCE
@with_workplace
def pack(workplace: Workplace, folder: Path | None, output: Path | None, force: bool) -> None:
    """Write a package as one archive, the same bytes for the same files."""
    packed = pack_folder(folder or workplace.here, output, workplace.settings)
    if not workplace.dry:
        save(packed, force=force)
    for name, reason in packed.skipped:
        click.echo(f"  skipped {name}: {reason}", err=True)
    record = {
        "dryRun": workplace.dry,
        "file": str(packed.file),
        "files": list(packed.names),
        "bytes": len(packed.data),
        "sha256": packed.sha256,
    }
    workplace.say(record, f"Packed {counted(len(packed.names), 'file')} into {packed.file} ({len(packed.data)} bytes)")


for _command in OF_COLLECTIONS:
    collections.add_command(_command)

COMMANDS = {"collections": collections}
