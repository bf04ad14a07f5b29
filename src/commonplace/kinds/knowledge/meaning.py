"""Items that say the same in other words, where `knowledge_search` is `hybrid`.

The score of a passage says how much nearer it is than strangers are to the query (`search/scale.py`). An item is near
when one of its passages scores at least `NEAR`. That depends on the item, the query and the library alone, so a filter
or a limit changes no score.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from commonplace.errors import Unavailable
from commonplace.index.scope import Ids
from commonplace.model import CHUNK_BITS
from commonplace.search.engine import SemanticSource, deepen, in_time
from commonplace.search.legs import OTHER_SCRIPT, VectorLeg, trust_for
from commonplace.search.scale import pressed

Floats = NDArray[np.float64]

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
    side = in_time(semantic)
    if isinstance(side, Unavailable):
        return NearItems(reason=side.reason)
    embedder = side.embedder
    if trust_for(text, embedder, language) <= OTHER_SCRIPT:
        return NearItems(reason=f"the model {embedder.name} does not read this script")
    query = in_time(lambda: embedder.embed_queries([text])[0])
    if isinstance(query, Unavailable):
        return NearItems(reason=query.reason)
    leg = VectorLeg(side.index, embedder, query, None, 1.0)
    line = leg.line(alike=False)

    def nearest(depth: int) -> tuple[Ids, Floats, bool]:
        chunks, scaled = leg.candidates(depth)
        scores = HIGHEST * pressed(line.slope * scaled + line.start)
        return chunks, scores, len(chunks) < depth or bool(scores[-1] < NEAR)

    chunks, scores, _ = deepen(_DEPTH, nearest, itemgetter(2))
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
