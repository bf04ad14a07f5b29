"""Items that say the same in other words, where `knowledge_search` is `hybrid`.

The score of a passage is `0.985 · s / (s + ½)`, where s is 0 for a typical unrelated pair of the model and 1 for a
typical true one. An item is near when one of its passages has an s of at least ½. That depends on the item and the
query alone, so a filter, a limit or other items change no score. It rises with s however large that is, so that of two
very near ones the nearer comes first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

import numpy as np
from numpy.typing import NDArray

from commonplace.errors import Unavailable
from commonplace.lazy_dataclass import dataclass
from commonplace.model import CHUNK_BITS
from commonplace.models.hurry import hurried
from commonplace.search.fuse import OTHER_SCRIPT, Floats
from commonplace.search.legs import VectorLeg, trust_for
from commonplace.search.pipeline import EMBED_S, SemanticSource

NEAR = 0.5
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
    depth = _DEPTH
    while True:
        chunks, scaled = leg.candidates(depth)
        if len(chunks) < depth or scaled[-1] < NEAR:
            break
        depth *= 4
    kept = scaled >= NEAR
    items, scores = chunks[kept] >> CHUNK_BITS, _score(scaled[kept])
    best: dict[int, float] = {}
    for item, score in zip(items.tolist(), scores.tolist(), strict=True):
        best[item] = max(score, best.get(item, 0.0))
    return Near(best, ran=True)


def _score(scaled: Floats) -> NDArray[np.float64]:
    nearness = scaled.astype(np.float64)
    return HIGHEST * nearness / (nearness + NEAR)


def both(words: float, meaning: float) -> float:
    """`max + 0.1 · min · (0.985 − max)`, to four places: either is enough, both are a little better."""
    best, other = max(words, meaning), min(words, meaning)
    return round(best + 0.1 * other * (HIGHEST - best), 4)
