"""Two legs, one order: how much each leg is believed for this query, and the order that comes of it.

Every candidate of either leg gets its exact score from both, and each score is put on an absolute scale: a lexical
score in units of the query's mass, a cosine between the model's typical unrelated and related pairs. So the fused
score of a passage depends on the query and the library alone, never on a filter, a limit or the other hits. What it
means is told by `scale.py`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from commonplace.lazy_dataclass import dataclass

Floats = NDArray[np.float32]

LEXICAL_SCALE = 0.0294
"""What the square root of a query's mass is worth in cosine: learned on judged sets (docs/benchmarks.md)."""

LEAST_MASS = 12.0
"""A query of one rare word has little mass, but whoever types it wants that word."""

OTHER_LANGUAGE = 0.35
"""Trust in a model for a language it was not trained on but whose letters it knows."""

OTHER_SCRIPT = 0.1
"""Trust in a model for a script it cannot read: enough to order what the words leave equal."""

READABLE = 4.0
"""Model tokens per word up to which a model reads a text as words rather than as letters."""


@dataclass(frozen=True, slots=True)
class Weights:
    """The weights of the legs for one query, which add up to 1 when both run."""

    lexical: float
    vector: float
    evidence: float = 1.0
    """What they added up to before: how much one unit of the fused score says."""


def trust_in_model(language: str, known: frozenset[str], *, latin: bool, fertility: float) -> float:
    """Return the trust in a model, from 0 to 1, by whether it speaks the language of a query and knows its words."""
    if language in known:
        return 1.0 if fertility <= READABLE else READABLE / fertility
    return OTHER_LANGUAGE if latin else OTHER_SCRIPT


def weigh(mass: float, vector: float) -> Weights:
    """Return the weights for the mass of a query's terms and the vector leg's own weight.

    Words count with the root of the evidence that the terms can bring.
    """
    lexical = LEXICAL_SCALE * max(mass, LEAST_MASS) ** 0.5 if mass else 0.0
    total = (lexical + vector) or 1.0
    return Weights(lexical / total, vector / total, total)


def combine(lexical: Floats, vector: Floats, weights: Weights) -> Floats:
    """Return the weighted mean of both scales. A passage without a vector is judged by its words alone."""
    both = weights.lexical * lexical + weights.vector * vector
    return np.where(np.isnan(vector), lexical, both).astype(np.float32, copy=False)


def reciprocal_rank(lists: Sequence[tuple[Sequence[int], float]], k: int = 60) -> dict[int, float]:
    """Return the sum of weight / (k + rank) for each id, ranks from 1: weighted reciprocal rank fusion."""
    scores: dict[int, float] = defaultdict(float)
    for ids, weight in lists:
        for rank, identity in enumerate(ids, start=1):
            scores[identity] += weight / (k + rank)
    return dict(scores)
