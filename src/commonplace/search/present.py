"""Passages as hits: titles, addresses, true line numbers and a snippet that shows the match."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from commonplace.lazy_dataclass import dataclass
from commonplace.model import Chunk, Hit, Item, item_of
from commonplace.search.ranking import Ranking, as_shown
from commonplace.search.request import Request
from commonplace.store.base import Store
from commonplace.text.matches import Matcher
from commonplace.text.snippet import best_line, snippet

if TYPE_CHECKING:
    from commonplace.search.plan import LexicalPlan


@dataclass(frozen=True, slots=True)
class Answer:
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
    """Reads just what some answers show, in two queries, however many there are and however long their rankings.

    A conversation has no text of its own, and shows how it begins, which takes a third.
    """

    def __init__(self, store: Store, answers: Sequence[Answer]) -> None:
        wanted = list(dict.fromkeys(chunk for answer in answers for chunk in answer.chunks))
        self._chunks = {chunk.id: chunk for chunk in store.chunks(wanted)}
        self._items = {item.id: item for item in store.items(list(dict.fromkeys(map(item_of, wanted))))}
        talks = [item.key for item in self._items.values() if item.kind == "conversation"]
        self._openings = store.openings(talks) if talks else {}

    def hits(self, answer: Answer) -> list[Hit]:
        """The hits of an answer. One whose item was deleted a moment ago is left out."""
        # Function words match everywhere: they would draw the snippet to where nothing is said.
        terms = answer.plan.query.terms
        telling = [term for term in terms if term.weight >= 1 or term.match != "word"] or terms
        matcher = Matcher(telling, answer.plan.languages, answer.plan.query.phrases)
        hits = []
        for row, identity, score in zip(answer.rows, answer.chunks, answer.scores, strict=True):
            chunk, item = self._chunks.get(identity), self._items.get(item_of(identity))
            if chunk is not None and item is not None:
                opening = self._openings.get(item.key, "") if item.kind == "conversation" else ""
                hits.append(_hit(chunk, item, answer, row, score, matcher, opening))
        return hits


def _hit(chunk: Chunk, item: Item, answer: Answer, row: int, score: float, matcher: Matcher, opening: str) -> Hit:
    matches, length = matcher.find(chunk.text), answer.request.snippet_length
    return Hit(
        uri=item.uri,
        kind=item.kind,
        parent=item.parent,
        title=item.title,
        score=score,
        snippet=snippet(chunk.text or opening, matches, length).text if length else "",
        line=chunk.line_start + best_line(chunk.text, matches),
        headings=chunk.headings,
        chunk=chunk,
        item=item,
        explain=_explain(answer.ranking, row) if answer.request.explain else None,
    )


def _explain(ranking: Ranking, row: int) -> dict[str, float | int | None]:
    """What each leg thought, on its own scale, and how much it was believed."""
    vector = float(ranking.vector[row])
    return {
        "rank": row + 1,
        "lexical": float(ranking.lexical[row]),
        "vector": None if vector != vector else vector,
        "lexical_weight": ranking.weights.lexical,
        "vector_weight": ranking.weights.vector,
    }
