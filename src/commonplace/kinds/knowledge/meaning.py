"""Items that say the same in other words, where `knowledge_search` is `hybrid`.

The score of a passage says how much nearer it is than strangers are to the query (`search/scale.py`). An item is near
when one of its passages scores at least `NEAR`. That depends on the item, the query and the library alone, so a filter
or a limit changes no score.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from commonplace.errors import Unavailable
from commonplace.lazy_dataclass import dataclass
from commonplace.model import CHUNK_BITS
from commonplace.models.hurry import hurried
from commonplace.search.fuse import OTHER_SCRIPT
from commonplace.search.legs import VectorLeg, trust_for
from commonplace.search.pipeline import EMBED_S, SemanticSource
from commonplace.search.scale import pressed

NEAR = 0.35
HIGHEST = 0.985
"""What neither words nor meaning reach."""
_DEPTH = 256


@dataclass(frozen=True, slots=True)
class Near:
    """Scores of near items by their ids, from 0 to 1; and why there are none, where there could be."""

    scores: Mapping[int, float] = field(default_factory=dict)
    reason: str = ""
    ran: bool = False


def near(semantic: SemanticSource, text: str, language: str) -> Near:
    """Every item near to a text."""
    try:
        with hurried(EMBED_S):  # the first contact with a provider
            found = semantic()
    except Unavailable as error:
        return Near(reason=error.reason)
    embedder = found.embedder
    if trust_for(text, embedder, language) <= OTHER_SCRIPT:
        return Near(reason=f"the model {embedder.name} does not read this script")
    try:
        with hurried(EMBED_S):
            query = embedder.embed_queries([text])[0]
    except Unavailable as error:
        return Near(reason=error.reason)
    leg = VectorLeg(found.index, embedder, query, None, 1.0)
    line, depth = leg.line(alike=False), _DEPTH
    while True:
        chunks, scaled = leg.candidates(depth)
        scores = HIGHEST * pressed(line.slope * scaled + line.start)
        if len(chunks) < depth or scores[-1] < NEAR:
            break
        depth *= 4
    kept = scores >= NEAR
    items, scores = chunks[kept] >> CHUNK_BITS, scores[kept]
    best: dict[int, float] = {}
    for item, score in zip(items.tolist(), scores.tolist(), strict=True):
        best[item] = max(score, best.get(item, 0.0))
    return Near(best, ran=True)


def both(words: float, meaning: float) -> float:
    """`max + 0.1 · min · (0.985 − max)`, to four places: either is enough, both are a little better."""
    best, other = max(words, meaning), min(words, meaning)
    return round(best + 0.1 * other * (HIGHEST - best), 4)
