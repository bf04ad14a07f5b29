"""Items that say the same in other words, where `knowledge_search` is `hybrid`.

The score of a passage says how much nearer it is than strangers are to the query (`search/scale.py`). An item is near
when one of its passages scores at least `NEAR`. That depends on the item, the query and the library alone, so a filter
or a limit changes no score.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from commonplace.errors import Unavailable
from commonplace.model import CHUNK_BITS
from commonplace.models.hurry import hurried
from commonplace.search.fuse import OTHER_SCRIPT
from commonplace.search.legs import VectorLeg, trust_for
from commonplace.search.pipeline import EMBED_S, SemanticSource
from commonplace.search.scale import pressed_nearness

NEAR = 0.35
HIGHEST = 0.985
"""Upper bound of scores by words or by meaning."""
_DEPTH = 256


@dataclass(frozen=True, slots=True)
class NearItems:
    """Scores of near items by item id, from 0 to 1; and why there are none, where there could be."""

    scores: Mapping[int, float] = field(default_factory=dict)
    reason: str = ""
    ran: bool = False


def near(semantic: SemanticSource, text: str, language: str) -> NearItems:
    """Return every item near to a text, with its score; none, with the reason, where no vector can be had in time."""
    try:
        with hurried(EMBED_S):  # the first contact with a provider
            semantic_side = semantic()
    except Unavailable as error:
        return NearItems(reason=error.reason)
    embedder = semantic_side.embedder
    if trust_for(text, embedder, language) <= OTHER_SCRIPT:
        return NearItems(reason=f"the model {embedder.name} does not read this script")
    try:
        with hurried(EMBED_S):
            query = embedder.embed_queries([text])[0]
    except Unavailable as error:
        return NearItems(reason=error.reason)
    leg = VectorLeg(semantic_side.index, embedder, query, None, 1.0)
    line, depth = leg.line(alike=False), _DEPTH
    while True:
        chunks, scaled = leg.candidates(depth)
        scores = HIGHEST * pressed_nearness(line.slope * scaled + line.start)
        if len(chunks) < depth or scores[-1] < NEAR:
            break
        depth *= 4
    is_near = scores >= NEAR
    items, scores = chunks[is_near] >> CHUNK_BITS, scores[is_near]
    best: dict[int, float] = {}
    for item, score in zip(items.tolist(), scores.tolist(), strict=True):
        best[item] = max(score, best.get(item, 0.0))
    return NearItems(best, ran=True)


def both(words: float, meaning: float) -> float:
    """Return the score of an item with both scores: `max + 0.1 · min · (0.985 − max)`, to four places.

    Either leg is enough, both are a little better.
    """
    best, other = max(words, meaning), min(words, meaning)
    return round(best + 0.1 * other * (HIGHEST - best), 4)
