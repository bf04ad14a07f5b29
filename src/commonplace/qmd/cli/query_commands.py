"""The commands `search`, `vsearch` and `query`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import click

from commonplace.cli.common import with_library
from commonplace.cli.lazy import as_typed
from commonplace.errors import CommonplaceError, InvalidInput
from commonplace.library import Library
from commonplace.model import chunk_id
from commonplace.qmd.cli.advice import address
from commonplace.qmd.cli.formats import FORMATS, PrintedHit, format_options, hits, print_as_it_is
from commonplace.qmd.tools.document_texts import shown
from commonplace.qmd.tools.searches import LONGEST_QUERY, QmdHit, QmdResults, explained, find
from commonplace.search.question import QueryDocument, Search, read_document, untyped_line
from commonplace.store.chunks import Chunks
from commonplace.store.items import Items
from commonplace.store.listing import Listing
from commonplace.text.snippet import around

FEW, MANY = 5, 20
"""The number of hits for people, and for programs that read JSON or lists of files."""
SNIPPET, SNIPPET_JSON = 500, 300


class MixedQuery(CommonplaceError):
    """The error that a query document has a line without a type."""

    code, status, exit_code = "invalid_argument", 400, 1


def _options(least_score: float, *, hybrid: bool) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    options: list[Callable[[Callable[..., Any]], Callable[..., Any]]] = [
        click.argument("words", nargs=-1, required=True, metavar="TEXT"),
        click.option("-n", "limit", type=click.IntRange(min=1), help=f"How many. [{FEW}; {MANY} for json and files]"),
        click.option("--all", "everything", is_flag=True, help="All results."),
        click.option(
            "--min-score", type=click.FloatRange(0, 1), default=least_score, show_default=True, help="From 0 to 1."
        ),
        click.option("-c", "--collection", "collections", multiple=True, help="Only this collection; may be repeated."),
        click.option("--full", is_flag=True, help="The whole documents instead of snippets."),
        click.option("--line-numbers", is_flag=True, help="Put its number before every line."),
        click.option("--intent", default="", help="What it is about, to tell meanings apart; it is not searched for."),
        click.option("--explain", is_flag=True, help="Add what went into each score."),
        click.option("--full-path", is_flag=True, help="Paths on disk instead of qmd:// ones."),
    ]  # fmt: skip
    if hybrid:
        options += [
            click.option("--no-rerank", is_flag=True, help="Do not take a second look at the best."),
            click.option(
                "-C", "--candidate-limit", type=click.IntRange(1, 100), default=30, show_default=True,
                help="How many of the best are reranked.",
            ),
        ]  # fmt: skip
    options.append(format_options(*FORMATS))

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return add


@click.command("search")
@_options(0.0, hybrid=False)
@with_library
def search(library: Library, words: Sequence[str], **given: Any) -> None:
    """Find documents by their words. Instant: no model is loaded.

    "a phrase" is required, -word excludes (after --), pre* is a beginning.
    """
    _answer(library, QueryDocument((Search("lex", _text(words)),)), given, plain=True)


@click.command("vsearch")
@_options(0.3, hybrid=False)
@with_library
def vsearch(library: Library, words: Sequence[str], **given: Any) -> None:
    """Find documents by meaning alone. Needs vectors, which `embed` makes."""
    _answer(library, QueryDocument((Search("vec", _text(words)),)), given, plain=True)


@click.command("query")
@_options(0.0, hybrid=True)
@with_library
def query(library: Library, words: Sequence[str], no_rerank: bool, candidate_limit: int, **given: Any) -> None:
    """Find documents by words and meaning together: the best results.

    TEXT is plain, or a query document: lines that begin with lex:, vec: or hyde:, and one intent: at most.
    """
    text = _text(words)
    asked = _document(text)
    both = QueryDocument((Search("lex", text), Search("vec", text)))
    _answer(
        library, asked or both, given, plain=asked is None, rerank=not no_rerank, candidates=candidate_limit
    )  # fmt: skip


def _text(words: Sequence[str]) -> str:
    """Return the typed text; bytes that are not UTF-8, which arrive as lone surrogates, become U+FFFD."""
    text = " ".join(words).encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    if not text.strip():
        raise InvalidInput("query must not be empty")
    if len(text) > LONGEST_QUERY:
        raise InvalidInput(f"A query has at most {LONGEST_QUERY:,} characters.")
    return text


def _document(text: str) -> QueryDocument | None:
    mixed = untyped_line(text)
    if mixed is not None:
        line = text.split("\n")[mixed - 1].strip()
        raise MixedQuery(
            f"Line {mixed} of the query has no type: {line[:80]!r}. In a query document every line begins with lex:, "
            "vec:, hyde: or intent: and has text after it."
        )
    return read_document(text)


def _answer(library: Library, asked: QueryDocument, given: dict[str, Any], *, plain: bool, **more: Any) -> None:
    format, least = given["format"] or "cli", given["min_score"]
    if not math.isfinite(least):
        raise InvalidInput("--min-score is a number from 0 to 1.")

    def ask(limit: int, min_score: float) -> QmdResults:
        return find(
            library, asked.searches, collections=given["collections"], plain=plain, limit=limit, min_score=min_score,
            intent=asked.intent or given["intent"], **more,
        )  # fmt: skip

    there, wanted = _everything(library), given["limit"] or _usual(format)
    found = ask(there if given["everything"] else min(wanted, there), least)
    for note in found.notes:
        click.echo(f"Note: {as_typed(note)}", err=True)
    presented = _Presentation(library, found, format, given).hits()
    above = not presented and least > 0 and bool(ask(1, 0.0).results)
    print_as_it_is(hits(presented, format, above=above))


def _usual(format: str) -> int:
    return MANY if format in ("json", "files") else FEW


def _everything(library: Library) -> int:
    return max(1, library.store.drawer(Listing).counts().get("document", 0))


class _Presentation:
    """The hits of a search, ready for the formats. Bodies are read only if they are shown."""

    def __init__(self, library: Library, found: QmdResults, format: str, given: dict[str, Any]) -> None:
        self._found, self._given = found, given
        self._limit = SNIPPET_JSON if format == "json" else SNIPPET
        ids = [result.item.id for result in found.results]
        self._bodies = (
            {item.id: item.body or "" for item in library.store.drawer(Items).get(ids, body=True)}
            if given["full"]
            else {}
        )
        last = [chunk_id(result.item.id, result.item.chunk_count - 1) for result in found.results]
        self._lines = {chunk.item_id: chunk.line_end for chunk in library.store.drawer(Chunks).get(last)}
        self._roots = {one.name: str(one.root) for one in library.folders.all()} if given["full_path"] else {}

    def hits(self) -> list[PrintedHit]:
        return [self._hit(result) for result in self._found.results]

    def _hit(self, result: QmdHit) -> PrintedHit:
        hit = PrintedHit(
            docid=result.docid,
            score=result.score,
            file=place_of(result.name.collection, result.name.path, self._roots),
            line=result.line,
            title=result.item.title,
            context=result.context,
            text=self._snippet(result),
            explain=explained(self._found, result.placed) if self._given["explain"] else None,
        )
        if not self._given["full"]:
            return hit
        body = shown(self._bodies.get(result.item.id, ""), numbered=self._given["line_numbers"]).text
        return hit._replace(text=body, full=True)

    def _snippet(self, result: QmdHit) -> str:
        first = result.chunk.line_start
        lines = [(first + n, line) for n, line in around(result.chunk.text, result.best, self._limit, result.matches)]
        start, count = lines[0][0], len(lines)
        after = max(0, self._lines.get(result.item.id, start + count - 1) - (start + count - 1))
        header = f"@@ -{start},{count} @@ ({start - 1} before, {after} after)"
        numbers = self._given["line_numbers"]
        return "\n".join([header, *(f"{number}: {line}" if numbers else line for number, line in lines)])


def place_of(collection: str, path: str, roots: dict[str, str]) -> str:
    """Return the address of a document, not encoded, or the path on disk if the collection's root is given."""
    root = roots.get(collection)
    return f"{root.rstrip('/')}/{path}" if root else address(collection, path)


COMMANDS = {"search": search, "vsearch": vsearch, "query": query}
