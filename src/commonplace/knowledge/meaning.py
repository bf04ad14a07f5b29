"""Items that say the same in other words, where `knowledge_search` is `hybrid`.

The score of a passage is `0.25 + 0.5 · s`, where s is 0 for a typical unrelated pair of the model and 1 for a typical
true one. An item is near when one of its passages has an s of at least ½. That depends on the item and the query alone,
so a filter, a limit or other items change no score.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

import numpy as np

from commonplace.errors import Unavailable
from commonplace.lazy_dataclass import dataclass
from commonplace.model import CHUNK_BITS
from commonplace.models.hurry import hurried
from commonplace.search.fuse import OTHER_SCRIPT
from commonplace.search.legs import VectorLeg, trust_for
from commonplace.search.pipeline import EMBED_S, SemanticSource

NEAR = 0.5
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
        return Near(reason=str(error))
    embedder = found.embedder
    if trust_for(text, embedder, language) <= OTHER_SCRIPT:
        return Near(reason=f"the model {embedder.name} does not read this script")
    try:
        with hurried(EMBED_S):
            query = embedder.embed_queries([text])[0]
    except Unavailable as error:
        return Near(reason=str(error))
    leg = VectorLeg(found.index, embedder, query, None, 1.0)
    depth = _DEPTH
    while True:
        chunks, scaled = leg.candidates(depth)
        if len(chunks) < depth or scaled[-1] < NEAR:
            break
        depth *= 4
    kept = scaled >= NEAR
    items, scores = chunks[kept] >> CHUNK_BITS, np.clip(0.25 + 0.5 * scaled[kept].astype(np.float64), 0.0, 1.0)
    best: dict[int, float] = {}
    for item, score in zip(items.tolist(), scores.tolist(), strict=True):
        best[item] = max(score, best.get(item, 0.0))
    return Near(best, ran=True)


def both(words: float, meaning: float) -> float:
    """`max + 0.1 · min`, at most 1, to four places: either is enough, both are a little better."""
    return round(min(1.0, max(words, meaning) + 0.1 * min(words, meaning)), 4)
