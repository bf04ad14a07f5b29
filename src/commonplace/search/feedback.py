"""What the best of a first retrieval have in common: the direction of their vectors and the words they share.

Pseudo-relevance feedback. Nobody has judged the best; they are believed as far as their scores are near the first's.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Sequence
from math import log

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

CENTRE_OF = 5
WORDS_OF = 10
MOST_WORDS = 25
_STEEP_CENTRE, _STEEP_WORDS = 8.0, 6.0


def belief(scores: Floats, steep: float) -> Floats:
    """Return `exp(steep · (score − best))`: 1 for the first, falling with the distance from it."""
    return np.exp(steep * (scores - scores[0])).astype(np.float32) if len(scores) else scores


def centre(items: Sequence[int], scores: Floats, mean_of: Callable[[int], Floats | None]) -> Floats | None:
    """Return the direction of the first few items' vectors, weighted by belief; None where none has a vector."""
    total: Floats | None = None
    for item, weight in zip(items[:CENTRE_OF], belief(scores[:CENTRE_OF], _STEEP_CENTRE).tolist(), strict=True):
        mean = mean_of(item)
        if mean is not None:
            total = weight * mean if total is None else total + weight * mean
    if total is None:
        return None
    return np.asarray(total / (np.linalg.norm(total) or 1.0), dtype=np.float32)


def shared_words(counts: Sequence[Counter[str]], scores: Floats, asked: Collection[str]) -> dict[str, float]:
    """Return the stems that set the first few apart from the rest, with their worth; those of the question left out.

    A stem is worth the sum of its share in each of the first, weighted by belief, times its rarity among all.
    """
    worth: dict[str, float] = defaultdict(float)
    for count, weight in zip(counts[:WORDS_OF], belief(scores[:WORDS_OF], _STEEP_WORDS).tolist(), strict=True):
        length = count.total() or 1
        for stem, times in count.items():
            worth[stem] += weight * times / length
    holders = Counter(stem for count in counts for stem in count)
    rare = {
        stem: value * log(1 + (len(counts) - holders[stem] + 0.5) / (holders[stem] + 0.5))
        for stem, value in worth.items()
        if stem not in asked
    }
    best = sorted(rare, key=lambda stem: (-rare[stem], stem))[:MOST_WORDS]
    return {stem: rare[stem] for stem in best}
