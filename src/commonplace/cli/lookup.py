"""Commands that look things up: `search`, `query`, `vsearch`, `related`, `get`, `outline`, `browse`; and `embed`."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from commonplace.cli.common import counted, download_bar, painted, progress_bar, with_library
from commonplace.cli.lazy import as_typed, ours
from commonplace.cli.results import print_page, readable
from commonplace.errors import Command, CommonplaceError, InvalidInput, NotFound, Sentence
from commonplace.kinds.documents import locating
from commonplace.kinds.documents.locating import (
    CHUNK,
    Located,
    collection_called,
    headings_of,
    inside,
    no_collection,
    span,
    unknown_path,
    unknown_tags,
)
from commonplace.library import Library
from commonplace.model import SCHEMES, Filter, Item, Mode, Page
from commonplace.models import STATIC, catalog, find
from commonplace.store.chunks import Chunks
from commonplace.store.items import Items
from commonplace.store.listing import Listing
from commonplace.text.text_lines import split_lines

if TYPE_CHECKING:
    from commonplace.ingest.switching import Switch

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
    """Switch to a model: show the cost, ask, compute its vectors while the old ones answer, then use it."""
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
    """Compute the missing vectors and print their number."""
    with progress_bar("Embedding") as progress:
        count = library.embed(progress, kind=kind)
    click.echo(f"Embedded: {counted(count, 'passage')} with {library.embedding.chosen}")


def pull_default(library: Library) -> None:
    """Pull the library's model if it is missing, or the one that suits a library without any.

    If the suited one cannot be pulled, the best installed one serves until then. Raise if it is the library's own.
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
        click.echo(f"{as_typed(error.sentence)} The {built_in}{serving} model is used until then.", err=True)


def _finder(name: str, mode: Mode, help: str) -> click.Command:
    @click.command(name, help=help)
    @click.argument("words", nargs=-1, required=True)
    @click.option("-n", "--limit", default=10, show_default=True, help="How many results.")
    @click.option("-c", "--collection", "collections", multiple=True, help="Only this collection; may be repeated.")
    @click.option("-t", "--tag", "tags", multiple=True, help="Only items with this tag; may be repeated.")
    @click.option("--path", help="Only documents in this folder, or matching this glob: ops/archive/**, vault/ops.")
    @click.option(
        "--kind", "kinds", type=click.Choice(list(SCHEMES)), multiple=True, help="Only this kind; may be repeated."
    )
    @click.option("--expand", is_flag=True, help="Search once more, with the words that the best results share.")
    @click.option("--rerank", is_flag=True, help="Rank the best results once more; slower.")
    @click.option("--explain", is_flag=True, help="Say what each result was found by.")
    @click.option("--json", "as_json", is_flag=True, help="Print JSON.")
    @with_library
    def find_passages(
        library: Library, words: Sequence[str], limit: int, as_json: bool, explain: bool, **given: Any
    ) -> None:
        named = [_in_any_case(library, name) for name in given["collections"]]
        aliases = _aliases(library, named)
        _check_collections(library, [name for name in named if name not in aliases])
        places = (place for name in named for place in (name, aliases.get(name, name)))
        filter = Filter(
            kinds=given["kinds"],
            parents=tuple(dict.fromkeys(places)),
            tags=given["tags"],
            paths=(inside(given["path"]),) if given["path"] is not None else (),
        )
        more = {"expand": given["expand"], "rerank": given["rerank"]}
        began = time.perf_counter()
        page = library.search(" ".join(words), mode=mode, filter=filter, limit=limit, explain=explain, **more)
        ms = (time.perf_counter() - began) * 1000
        left_out = [*_left_out(library, page, mode, expand=given["expand"]), *_unknown(library, page, filter)]
        page = replace(page, notes=(*page.notes, *left_out))
        print_page(library, page, ms=ms, as_json=as_json, explain=explain)

    return find_passages


def _left_out(library: Library, page: Page, mode: Mode, *, expand: bool) -> Iterator[str]:
    """Yield notes on stages that were skipped, and on passages without vectors."""
    skipped = {stage.name: stage.reason for stage in page.stages if stage.status == "skipped"}
    if mode != "lexical" and "vector" in skipped:
        yield Sentence("By words only: ", skipped["vector"], ".")
    elif mode != "lexical" and (pending := library.upkeep.pending()):
        yield pending.sentence
    if expand and "expand" in skipped:
        why = f"it needs meaning, which `{ours('query')}` goes by" if mode == "lexical" else skipped["expand"]
        yield f"--expand was left out: {why}."


def _unknown(library: Library, page: Page, filter: Filter) -> list[str]:
    """Return notes on tags that nothing has and on folders without documents."""
    paths = () if page.found else filter.paths
    return [
        *unknown_tags(library, filter.tags, page.hits),
        *(note for path in paths for note in unknown_path(library, path)),
    ]


def _in_any_case(library: Library, name: str) -> str:
    """Return a collection's own spelling of a name, unless something is stored under this very name."""
    called = collection_called(library, name)
    if called is None or called == name or any(name in library.store.drawer(Listing).parents(kind) for kind in SCHEMES):
        return name
    return called


def _aliases(library: Library, names: Sequence[str]) -> dict[str, str]:
    """Return the keys of packages by alias; empty if every name is a folder's own."""
    if all(library.store.drawer(Items).find("collection", "", name, body=False) for name in names):
        return {}
    from commonplace.kinds.documents.packages.declarations import (
        declared,  # reads declarations, which few searches need
        find_project,
    )

    return {known.alias: known.key for known in declared(library, find_project())}


def _check_collections(library: Library, names: Sequence[str]) -> None:
    """Raise NotFound for a name that is no collection and that nothing is stored under."""
    unknown = [name for name in names if library.store.drawer(Items).find("collection", "", name, body=False) is None]
    there = set().union(*map(library.store.drawer(Listing).parents, SCHEMES)) if unknown else ()
    for name in unknown:
        if not name or name not in there:
            raise no_collection(library, name, "`", Command("collections list"), "` names them.")


def _located(library: Library, given: str) -> Located:
    """Return the item a text leads to: by an address, a path or the end of one, or a path on disk. Raise NotFound.

    A text that begins like a path on disk is only that; any other is one if it leads to nothing else.
    """
    on_disk = given.startswith(_ON_DISK)
    if not on_disk and (located := locating.find(library, given)):
        return located
    paths = [] if "://" in given else _in_collections(library, given)
    for path in paths:
        if located := locating.find(library, path, to_the_letter=True):
            return located
    if on_disk and not paths:
        raise NotFound(f"{given} is in no collection. Give a path inside one, or its address, docs://…")
    raise locating.missing(library, paths[0] if on_disk else given)


def _in_collections(library: Library, path: str) -> list[str]:
    """Return the names of a path on disk in the collections that have its folder; the file itself may be a link."""
    folder, name = os.path.split(path)
    return ["/".join(filter(None, (one.name, inside, name))) for one, inside in library.folders.locate(folder or ".")]


@click.command()
@click.argument("uri")
@click.option("-n", "--limit", default=10, show_default=True, help="How many results.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@with_library
def related(library: Library, uri: str, limit: int, as_json: bool) -> None:
    """Find items that are similar to one."""
    address = _located(library, uri).item.uri
    began = time.perf_counter()
    page = library.related(address, limit=limit)
    print_page(library, page, ms=(time.perf_counter() - began) * 1000, as_json=as_json)


@click.command()
@click.argument("uri")
@click.option("--section", help="Only the section under this heading.")
@click.option("--from", "first", default=1, show_default=True, help="The first line to print.")
@click.option("-l", "--lines", type=click.IntRange(min=1), help="How many lines to print.")
@with_library
def get(library: Library, uri: str, section: str | None, first: int, lines: int | None) -> None:
    """Print an item, or part of it: an address, or a path such as notes/tea.md, of which the end is enough: tea.

    A path on disk, such as ./tea.md, stands for what was read from there.
    #heading at its end means that section, :12 from that line on, as a search prints it, :12:3 three lines.
    """
    located = _located(library, uri)
    item, body = located.item, _text(located.item, library)
    if section or located.part:
        body = _part(library, item, section or located.part)
    elif located.lines:
        first, last = span(located.lines)
        lines = lines or (last - first + 1 if last else None)
    chosen = split_lines(body)[max(first, 1) - 1 :]
    if not chosen:
        raise NotFound(f"{item.uri} has no line {first}.")
    click.echo("\n".join(chosen[:lines]), color=True)  # or click would drop escape sequences from what is piped


def _part(library: Library, item: Item, name: str) -> str:
    """Return the text of a section, or of a passage by its number. Raise NotFound."""
    if chunk := CHUNK.match(name):
        chunks = library.store.drawer(Chunks).of(item.id)
        if int(chunk[1]) < len(chunks):
            return chunks[int(chunk[1])].text
    return library.section(item.uri, name)


def _text(item: Item, library: Library) -> str:
    if item.kind != "conversation":
        return item.body or ""
    from commonplace.kinds.knowledge.item_reading import rendered  # a room of its own, that only conversations need

    return rendered(library.store, item)


@click.command()
@click.argument("uri")
@with_library
def outline(library: Library, uri: str) -> None:
    """Print the headings of an item, or the definitions of code, with their lines; behind #heading, those below it."""
    for heading in headings_of(library, _located(library, uri)._replace(lines=None)):
        click.echo(f"{heading.line:6}  {'  ' * (heading.level - 1)}{heading.title}")


def how_to_use(library: Library, model: str) -> str:
    """Return the commands that make a library use a model."""
    pulled = find(model, library.settings.models) is not None
    use = f"`{ours(f'models use {model}')}`"
    return use if pulled else f"`{ours(f'models pull {model}')}`, then {use}"


@click.command()
@click.argument("at", default="")
@click.option("-n", "--limit", type=click.IntRange(1, 500), default=50, show_default=True, help="Most lines.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@with_library
def browse(library: Library, at: str, limit: int, as_json: bool) -> None:
    """List what is there, level by level: kinds and tags; document/vault/ops; tags/work; the headings of an item.

    What a line begins with is what the next `browse` takes, and what `get` takes of an item.
    """
    from commonplace.profiles.commonplace.browsing import BROWSE  # the profile, of which a search needs nothing
    from commonplace.tools.tool import Call

    call = Call(library)
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


COMMANDS = {
    "embed": embed,
    "search": _finder("search", "lexical", "Find passages by their words. Instant: no model is loaded."),
    "query": _finder("query", "auto", "Find passages by words and meaning together."),
    "vsearch": _finder("vsearch", "semantic", "Find passages by meaning alone."),
    "related": related,
    "get": get,
    "outline": outline,
    "browse": browse,
}
