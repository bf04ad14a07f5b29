"""Commands that fill a library and look things up in it."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from commonplace.cli.common import counted, download_bar, print_page, progress_bar, with_library
from commonplace.cli.lazy import as_called
from commonplace.errors import CommonplaceError, InvalidInput, NotFound
from commonplace.library import Library
from commonplace.model import SCHEMES, Filter, Item, Mode, Page, number_of
from commonplace.models import STATIC, catalog, find, is_gone
from commonplace.surfaces.addresses import inside
from commonplace.text.lines import split_lines

if TYPE_CHECKING:
    from commonplace.ingest.switching import Switch

_WITH_LINE = re.compile(r"(.+):([0-9]{1,9})", re.DOTALL)
_ON_DISK = ("/", "./", "../", "~/")
YES = click.option("-y", "--yes", is_flag=True, help="Do not ask.")


@click.command()
@click.option("--kind", type=click.Choice(list(SCHEMES)), help="Only items of this kind.")
@click.option("--all", "everything", is_flag=True, help="Items of every kind, which is the default.")
@click.option("--model", help="Switch to this model. The present one serves searches until every vector is computed.")
@YES
@with_library
def embed(library: Library, kind: str | None, everything: bool, model: str | None, yes: bool) -> None:
    """Compute the missing vectors. You may stop it at any time: it continues where it was."""
    if kind and everything:
        raise InvalidInput("Give --kind or --all, not both.")
    if kind and model:
        raise InvalidInput("Give --kind or --model, not both: a model is for all of a library.")
    if model is not None:
        switch_with_progress(library, model, yes=yes)
    else:
        embed_with_progress(library, kind)


def switch_with_progress(library: Library, name: str, *, yes: bool) -> None:
    """Go over to a model: say what it takes, ask, make its vectors while the old ones answer, put them in place."""
    switch = library.switch(name)
    if switch.is_needed:
        _ask(library, switch, yes=yes)
    with progress_bar("Embedding") as progress:
        count = switch.run(progress)
    click.echo(f"Embedded: {counted(count, 'passage')} with {name}, which answers now")


def _ask(library: Library, switch: Switch, *, yes: bool) -> None:
    cost = switch.cost()
    click.echo(
        f"From {library.embedding.chosen} to {switch.name}: {counted(cost.passages, 'passage')} to embed"
        f"{f', {cost.made} are done already' if cost.made else ''}.\n"
        f"Takes about {_megabytes(cost.bytes_new)} on disk beside the {_megabytes(cost.bytes_old)} of the old vectors, "
        f"which answer until it is done and go then; {_megabytes(cost.bytes_free)} are free.",
        err=True,
    )
    cost.require_room()
    if yes:
        return
    if not sys.stdin.isatty():
        raise InvalidInput("Nobody answered, so nothing was changed. Repeat it with --yes.")
    click.confirm("Begin?", abort=True, err=True)


def _megabytes(size: int) -> str:
    from commonplace.ingest.switching import MEGABYTE

    return f"{max(1, round(size / MEGABYTE)):,} MB"


def embed_with_progress(library: Library, kind: str | None = None) -> None:
    """Make the vectors that are missing, and say how many there were."""
    with progress_bar("Embedding") as progress:
        count = library.embed(progress, kind=kind)
    click.echo(f"Embedded: {counted(count, 'passage')} with {library.embedding.chosen}")


def pull_default(library: Library) -> None:
    """Pull the library's model where it is gone, and for a library that has none yet the one that suits it.

    Where that one cannot be pulled, the best that is here serves, and status says so.
    """
    from commonplace.ingest.suited import first_choice, languages, suited

    settings, chosen = library.settings, library.embedding.chosen
    if chosen is not None and chosen in catalog():
        name = chosen
    elif library.embedding.is_settled or chosen not in (None, STATIC):
        return
    else:
        name = suited(languages(library.store))
    if settings.offline or find(name, settings.models):
        return
    from commonplace.models.pull import pull  # the network's libraries, for this once

    try:
        with download_bar(name) as progress:
            pull(name, settings.models, progress=progress)
    except CommonplaceError as error:
        if name == chosen:  # its vectors are those of no other model
            raise
        serving = first_choice(library.store, settings)
        built_in = "built-in " if serving == STATIC else ""
        click.echo(f"{as_called(str(error))} The {built_in}{serving} model is used until then.", err=True)


def _finder(name: str, mode: Mode, help: str) -> click.Command:
    @click.command(name, help=help)
    @click.argument("text")
    @click.option("-n", "--limit", default=10, show_default=True, help="How many results.")
    @click.option("-c", "--collection", "collections", multiple=True, help="Only this collection; may be repeated.")
    @click.option("-t", "--tag", "tags", multiple=True, help="Only items with this tag; may be repeated.")
    @click.option("--path", help="Only documents in this folder, or matching this glob: ops/archive/**, vault/ops.")
    @click.option(
        "--kind", "kinds", type=click.Choice(list(SCHEMES)), multiple=True, help="Only this kind; may be repeated."
    )
    @click.option("--expand", is_flag=True, help="Search once more, with the words that the best results share.")
    @click.option("--rerank", is_flag=True, help="Rank the best results once more; slower.")
    @click.option("--explain", is_flag=True, help="Say what each way of finding thought of each result.")
    @click.option("--json", "as_json", is_flag=True, help="Print JSON.")
    @with_library
    def find_passages(library: Library, text: str, limit: int, as_json: bool, explain: bool, **given: Any) -> None:
        aliases = _aliases(library, given["collections"])
        _check_collections(library, [name for name in given["collections"] if name not in aliases])
        places = (place for name in given["collections"] for place in (name, aliases.get(name, name)))
        filter = Filter(
            kinds=given["kinds"],
            parents=tuple(dict.fromkeys(places)),
            tags=given["tags"],
            paths=(inside(given["path"]),) if given["path"] is not None else (),
        )
        more = {"expand": given["expand"], "rerank": given["rerank"]}
        page = library.search(text, mode=mode, filter=filter, limit=limit, explain=explain, **more)
        page = replace(page, notes=(*page.notes, *_left_out(library, page, mode, expand=given["expand"])))
        print_page(page, as_json=as_json or explain)

    return find_passages


def _left_out(library: Library, page: Page, mode: Mode, *, expand: bool) -> Iterator[str]:
    """What was asked for and not done, and why; and what meaning could not find yet."""
    skipped = {stage.name: stage.reason for stage in page.stages if stage.status == "skipped"}
    if mode != "lexical" and "vector" in skipped:
        yield f"By words only: {skipped['vector']}."
    elif mode != "lexical" and (pending := library.upkeep.pending()):
        yield pending.sentence
    if expand and "expand" in skipped:
        why = "it needs meaning, which `commonplace query` goes by" if mode == "lexical" else skipped["expand"]
        yield f"--expand was left out: {why}."


def _aliases(library: Library, names: Sequence[str]) -> dict[str, str]:
    """What packages go by here, and what they are kept under; empty where every name is a folder's own."""
    if all(library.store.item("collection", "", name, body=False) for name in names):
        return {}
    from commonplace.documents.packages import declared  # reads declarations, which few searches need
    from commonplace.documents.packages.context import find_project

    return {known.alias: known.key for known in declared(library, find_project())}


def _check_collections(library: Library, names: Sequence[str]) -> None:
    """Collections, or whatever items of other kinds are kept in."""
    unknown = [name for name in names if library.store.item("collection", "", name, body=False) is None]
    there = set().union(*map(library.store.parents, SCHEMES)) if unknown else ()
    for name in unknown:
        if not name or name not in there:
            raise NotFound(f'There is no collection called "{name}". `commonplace collections list` names them.')


def _place(library: Library, uri: str) -> tuple[str, int]:
    """The address that is meant, and the line, or 0: a search prints both, with a colon between.

    A path stands for the document there. One that ends like a line is taken for what it says first.
    """
    named = _WITH_LINE.fullmatch(uri)
    for text, line in ((uri, 0), (named[1], int(named[2]))) if named else ((uri, 0),):
        for address in _addresses(library, text):
            with suppress(NotFound):
                library.get(address, body=False)
                return address, line
    return _addresses(library, uri)[0], 0


def _addresses(library: Library, text: str) -> list[str]:
    """What a text may be the address of, the likeliest first.

    A percent sign encodes something in an address and nothing in a path, unless there is only what the other way of
    reading it names. A path on disk is that of a document in each collection it is inside of.
    """
    if "://" in text:
        return [text, text.replace("%", "%25")]
    if not text.startswith(_ON_DISK):
        return [_of_path(text), f"qmd://{text}"]
    folder, name = os.path.split(text)
    found = library.folders.locate(folder)  # of its folder: the file itself may be a link that leads elsewhere
    if not found:
        raise NotFound(f"{text} is in no collection. Give a path inside one, or its qmd:// address.")
    return [_of_path("/".join(filter(None, (one.name, inside, name)))) for one, inside in found]


def _of_path(path: str) -> str:
    """The address of a collection and a path in it, whose percent signs encode nothing."""
    return f"qmd://{path.replace('%', '%25')}"


@click.command()
@click.argument("uri")
@click.option("-n", "--limit", default=10, show_default=True, help="How many results.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@with_library
def related(library: Library, uri: str, limit: int, as_json: bool) -> None:
    """Find items that are similar to one."""
    print_page(library.related(_place(library, uri)[0], limit=limit), as_json=as_json)


@click.command()
@click.argument("uri")
@click.option("--section", help="Only the section under this heading.")
@click.option("--from", "first", default=1, show_default=True, help="The first line to print.")
@click.option("-l", "--lines", type=click.IntRange(min=1), help="How many lines to print.")
@with_library
def get(library: Library, uri: str, section: str | None, first: int, lines: int | None) -> None:
    """Print an item, or part of it: a path such as notes/tea.md, which stands for qmd://notes/tea.md, or an address.

    A path on disk, such as ./tea.md, stands for what was read from there.
    With :12 at its end, as a search prints it, from that line on.
    """
    address, line = _place(library, uri)
    text = library.section(address, section) if section else _text(library.get(address), library)
    first = first if section else line or first
    chosen = split_lines(text)[max(first, 1) - 1 :]
    if not chosen:
        raise NotFound(f"{address} has no line {first}.")
    click.echo("\n".join(chosen[:lines]), color=True)  # or click would drop escape sequences from what is piped


def _text(item: Item, library: Library) -> str:
    if item.kind != "conversation":
        return item.body or ""
    from commonplace.knowledge.reading import rendered  # a room of its own, that only conversations need

    return rendered(library.store, item)


@click.command()
@click.argument("uri")
@with_library
def outline(library: Library, uri: str) -> None:
    """Print the headings of an item, or the definitions of code, with their lines."""
    for heading in library.outline(_place(library, uri)[0]):
        click.echo(f"{heading.line:6}  {'  ' * (heading.level - 1)}{heading.title}")


@click.command()
@with_library
def status(library: Library) -> None:
    """Show what is in the library and how ready it is."""
    state = library.status()
    coverage = state.coverage
    click.echo(f"Library: {library.folder}")
    for kind, count in state.items.items():
        click.echo(f"  {number_of(kind, count)}")
    from commonplace.ingest.files.collections import packages  # walking and reading files, which a search does not

    packaged = packages(library.store)
    for name, count in state.collections.items():
        kind = "package" if name in packaged else "collection"
        click.echo(f"  {kind} {packaged.get(name, name)}: {counted(count, 'document')}")
    waiting = state.changes - state.indexed
    ready = f"{counted(waiting, 'change')} still to be indexed, by the next search" if waiting > 0 else "all indexed"
    click.echo(f"  {counted(state.chunks, 'passage')}, {ready}")
    if state.index_trouble:
        click.echo(f"  {state.index_trouble}")
    if coverage.model is None:
        click.echo(as_called("  no vectors yet: run `commonplace embed` to search by meaning"))
    else:
        done = f"{coverage.embedded} of {counted(coverage.total, 'passage')}"
        click.echo(f"  {done} embedded with {coverage.model}{_reads(coverage.model)}")
        if state.pending:
            click.echo(as_called(f"  {state.pending.sentence}"))
        if is_gone(coverage.model, library.settings.models):
            pull = f"`commonplace models pull {coverage.model}`"
            click.echo(as_called(f"  {coverage.model} is not here any more, so searches go by words only: {pull}"))
    if moving := state.switching:
        further = as_called(f"`commonplace embed --model {moving.model}`")
        done = f"{moving.embedded} of {counted(moving.total, 'passage')}"
        click.echo(f"  on the way to {moving.model}: {done}; {further} goes on")
    if (better := state.better_model) and not moving:
        click.echo(f"  {better} would find more: {how_to_use(library, better)}")


def _reads(model: str) -> str:
    """Return what languages a model of ours reads, as the end of a sentence; nothing of another's."""
    languages = catalog()[model].card.languages if model in catalog() else frozenset({"en"} if model == STATIC else ())
    if not languages:
        return ""
    return ", which reads English" if languages == {"en"} else f", which reads {len(languages)} languages"


def how_to_use(library: Library, model: str) -> str:
    """The commands that make a library use a model."""
    pulled = find(model, library.settings.models) is not None
    use = f"`commonplace models use {model}`"
    return as_called(use if pulled else f"`commonplace models pull {model}`, then {use}")


COMMANDS = {
    "embed": embed,
    "search": _finder("search", "lexical", "Find passages by their words. Instant: no model is loaded."),
    "query": _finder("query", "auto", "Find passages by words and meaning together."),
    "related": related,
    "get": get,
    "outline": outline,
    "status": status,
}
