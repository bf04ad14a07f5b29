"""Passages as hits: titles, addresses, true line numbers, headings, and the lines that show the match."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from commonplace.lazy_dataclass import dataclass
from commonplace.model import JSON, Chunk, Hit, Item, item_of
from commonplace.search.ranking import Ranking, as_shown
from commonplace.search.request import Request
from commonplace.store.base import Store
from commonplace.store.chunks import Chunks
from commonplace.store.hanging import headings_at
from commonplace.store.items import Items
from commonplace.store.messages import Messages
from commonplace.text.matches import Matcher
from commonplace.text.quote import Quote, headings_over, quote

if TYPE_CHECKING:
    from commonplace.search.plan import LexicalPlan

_OUTLINED = frozenset({"markdown", "rst", "org"})
"""Formats of files whose headings are kept."""


@dataclass(frozen=True, slots=True)
class RankedRows:
    """The rows of a ranking that answer a request, and what was looked for."""

    request: Request
    ranking: Ranking
    rows: Sequence[int]
    plan: LexicalPlan

    @property
    def chunks(self) -> list[int]:
        shown: list[int] = self.ranking.chunks[list(self.rows)].tolist()
        return shown

    @property
    def scores(self) -> list[float]:
        shown: list[float] = as_shown(self.ranking.scores[list(self.rows)]).tolist()
        return shown


class Presenter:
    """A reader of just what some answers show, in a few queries, however many and however long their rankings are.

    A conversation has no text of its own, and shows how it begins, which takes one more.
    """

    def __init__(self, store: Store, answers: Sequence[RankedRows]) -> None:
        self._store = store
        wanted = list(dict.fromkeys(chunk for answer in answers for chunk in answer.chunks))
        self._chunks = {chunk.id: chunk for chunk in store.drawer(Chunks).get(wanted)}
        self._items = {item.id: item for item in store.drawer(Items).get(list(dict.fromkeys(map(item_of, wanted))))}
        talks = [item.key for item in self._items.values() if item.kind == "conversation"]
        self._openings = store.drawer(Messages).openings(talks) if talks else {}

    def hits(self, answer: RankedRows) -> list[Hit]:
        """Return the hits of an answer. One whose item was deleted a moment ago is left out."""
        # Function words match everywhere: they would draw the snippet to where nothing is said.
        terms = answer.plan.query.terms
        telling = [term for term in terms if term.weight >= 1 or term.match != "word"] or terms
        matcher = Matcher(telling, answer.plan.languages, answer.plan.query.phrases)
        shown = [
            self._shown(row, identity, score, matcher, answer.request.snippet_length)
            for row, identity, score in zip(answer.rows, answer.chunks, answer.scores, strict=True)
            if identity in self._chunks and item_of(identity) in self._items
        ]
        headings = self._headings(shown) if answer.request.snippet_length else [one.chunk.headings for one in shown]
        explained = partial(_explain, answer.ranking, matcher) if answer.request.explain else None
        return [_hit(one, path, explained) for one, path in zip(shown, headings, strict=True)]

    def _shown(self, row: int, identity: int, score: float, matcher: Matcher, length: int) -> _Shown:
        chunk, item = self._chunks[identity], self._items[item_of(identity)]
        opening = self._openings.get(item.key, "") if item.kind == "conversation" else ""
        matches = matcher.find(chunk.text)
        shown = quote(chunk.text or opening, matches, length, sections=item.format == "markdown")
        return _Shown(row, score, chunk, item, shown)

    def _headings(self, shown: Sequence[_Shown]) -> list[tuple[str, ...]]:
        """Return the headings over the line of each: of files with headings as stored, of others by the passage."""
        kept = [one.item.kind == "document" and one.item.format in _OUTLINED for one in shown]
        places = [(one.item.id, one.line) for one, is_kept in zip(shown, kept, strict=True) if is_kept]
        paths = iter(headings_at(self._store, places) if places else ())
        return [
            tuple(filter(None, next(paths)))
            if is_kept
            else headings_over(one.chunk.text, one.quote.line, one.item.format, one.chunk.headings)
            for one, is_kept in zip(shown, kept, strict=True)
        ]


@dataclass(frozen=True, slots=True)
class _Shown:
    """A row of an answer with what is shown of it."""

    row: int
    score: float
    chunk: Chunk
    item: Item
    quote: Quote

    @property
    def line(self) -> int:
        return self.chunk.line_start + self.quote.line


def _hit(shown: _Shown, headings: tuple[str, ...], explained: Callable[[_Shown], dict[str, JSON]] | None) -> Hit:
    chunk, item = shown.chunk, shown.item
    return Hit(
        uri=item.uri,
        kind=item.kind,
        parent=item.parent,
        title=item.title,
        score=shown.score,
        snippet=shown.quote.text,
        line=shown.line,
        headings=headings,
        chunk=chunk,
        item=item,
        explain=explained(shown) if explained else None,
        marks=shown.quote.marks,
    )


def _explain(ranking: Ranking, matcher: Matcher, shown: _Shown) -> dict[str, JSON]:
    """Return each leg's score on its own scale, its weight, and the words that were found."""
    vector = float(ranking.vector[shown.row])
    text = "\n".join((shown.item.title, *shown.chunk.headings, shown.chunk.text))
    words: dict[int, str] = {}
    for start, end, term in matcher.find(text):
        words.setdefault(term, text[start:end])
    return {
        "rank": shown.row + 1,
        "lexical": float(ranking.lexical[shown.row]),
        "vector": None if vector != vector else vector,
        "lexical_weight": ranking.weights.lexical,
        "vector_weight": ranking.weights.vector,
        "words": list(dict.fromkeys(word for _, word in sorted(words.items()))),
    }
