"""Passages as hits: titles, addresses, true line numbers and a snippet that shows the match."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from commonplace.model import Chunk, Hit, Item, item_of
from commonplace.search.request import Request
from commonplace.store.base import Store
from commonplace.text.matches import Matcher
from commonplace.text.snippet import best_line, snippet
from commonplace.text.terms import Term

if TYPE_CHECKING:
    from commonplace.search.ranking import Ranking


MOST_MATCHES = 100
"""Places that decide where a snippet is; a passage with more says the same thing everywhere."""


class Presenter:
    """Reads just what a page shows, in two queries, whatever the ranking's length."""

    def __init__(self, store: Store, terms: Sequence[Term], languages: Sequence[str], request: Request) -> None:
        self._store = store
        # Function words match everywhere: they would draw the snippet to where nothing is said.
        self._matcher = Matcher([term for term in terms if term.weight >= 1] or terms, languages)
        self._request = request

    def hits(self, ranking: Ranking, rows: Sequence[int]) -> list[Hit]:
        """The hits of these rows. One whose item was deleted a moment ago is left out."""
        wanted = [int(ranking.chunks[row]) for row in rows]
        chunks = {chunk.id: chunk for chunk in self._store.chunks(wanted)}
        items = {item.id: item for item in self._store.items([item_of(chunk) for chunk in wanted])}
        hits = []
        for row, identity in zip(rows, wanted, strict=True):
            chunk, item = chunks.get(identity), items.get(item_of(identity))
            if chunk is not None and item is not None:
                hits.append(self._hit(chunk, item, ranking, int(row)))
        return hits

    def _hit(self, chunk: Chunk, item: Item, ranking: Ranking, row: int) -> Hit:
        matches, length = self._matcher.find(chunk.text)[:MOST_MATCHES], self._request.snippet_length
        return Hit(
            uri=item.uri,
            kind=item.kind,
            parent=item.parent,
            title=item.title,
            score=round(float(ranking.scores[row]), 4),
            snippet=snippet(chunk.text, matches, length).text if length else "",
            line=chunk.line_start + best_line(chunk.text, matches),
            headings=chunk.headings,
            chunk=chunk,
            item=item,
            explain=_explain(ranking, row) if self._request.explain else None,
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
