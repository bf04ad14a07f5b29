"""How near to a query those passages are that have nothing to do with it, told from a sample of the library's own."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from commonplace.models.roles import Embedder
from commonplace.search.scale import Strangers

Floats = NDArray[np.float32]

USUAL_MEDIAN, USUAL_SCATTER = 4, 32
"""How many passages what is usual for the model counts as: the median differs more from library to library."""


def strangers(sample: Floats, query: Floats, embedder: Embedder) -> Strangers:
    """Return the median cosine of the sample, and how far the lower sixth is from it: related passages reach neither.

    So the scale knows how long the texts of a library are, how much they have in common, and the query's own habits.
    """
    usual, count = _usual(embedder), len(sample)
    if not count:
        return usual
    cosines = sample @ (query / (np.float32(np.linalg.norm(query)) or np.float32(1.0)))
    middle, low = (count - 1) // 2, count // 6
    ordered = np.partition(cosines, (low, middle))
    median, scatter = float(ordered[middle]), float(ordered[middle] - ordered[low])
    return Strangers(
        (count * median + USUAL_MEDIAN * usual.cosine) / (count + USUAL_MEDIAN),
        max((count * scatter + USUAL_SCATTER * usual.scatter) / (count + USUAL_SCATTER), usual.scatter / 5),
    )


def _usual(embedder: Embedder) -> Strangers:
    """Return what the constants of a model say of random pairs, of which 95 % stay under `unrelated`."""
    scatter = 0.14 * (1.0 - embedder.unrelated)
    return Strangers(embedder.unrelated - 2.1 * scatter, scatter)
