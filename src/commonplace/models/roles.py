"""The three roles of models: turning text into vectors, writing text, and judging passages a second time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from commonplace.model import fingerprint
from commonplace.models.catalog import Card, Progress

Vectors = NDArray[np.float32]

_RULES = "1"
"""The version of how long texts are cut and pooled. Raise it when vectors change: stored ones are then made anew."""


class Embedder(Protocol):
    """A model that makes vectors of unit length from texts. A text of which it knows nothing may be the zero vector.

    A text's vector never depends on the texts it came with, and no text is cut off, however long. Safe to call from
    several threads. Opening one is cheap: the weights are loaded by the first call that needs them, or by `warm`.
    """

    @property
    def name(self) -> str: ...
    @property
    def dims(self) -> int: ...
    @property
    def fingerprint(self) -> str: ...  # the same only where the vectors are
    @property
    def related(self) -> float: ...  # the median cosine of a question and its answer
    @property
    def unrelated(self) -> float: ...  # what 95 % of questions and random passages stay under
    @property
    def evidence(self) -> float: ...  # what its cosine is worth beside words, 1 being the default model's
    @property
    def widens(self) -> bool: ...  # whether questions gain by what the best have in common
    @property
    def languages(self) -> frozenset[str]: ...  # ISO 639-1 codes it was trained for; empty where nobody has said

    def warm(self) -> None: ...  # load now what the first call would wait for
    def embed_queries(self, texts: Sequence[str]) -> Vectors: ...
    def embed_passages(self, texts: Sequence[str], progress: Progress | None = None) -> Vectors: ...
    def fertility(self, text: str) -> float: ...  # model tokens per word: about 1 for words it knows, many otherwise


class Carded:
    """The part of an embedder that its card tells."""

    def __init__(self, card: Card, identity: str) -> None:
        self._card = card
        self.fingerprint = fingerprint_of(card, identity)

    @property
    def name(self) -> str:
        return self._card.name

    @property
    def related(self) -> float:
        return self._card.related

    @property
    def unrelated(self) -> float:
        return self._card.unrelated

    @property
    def evidence(self) -> float:
        return self._card.evidence

    @property
    def widens(self) -> bool:
        return self._card.widens

    @property
    def languages(self) -> frozenset[str]:
        return self._card.languages


def fingerprint_of(card: Card, identity: str) -> str:
    """Return a hash of everything that decides a model's vectors, in 16 hex digits."""
    parts = (card.kind, card.pooling, card.query_prefix, card.passage_prefix, str(card.max_tokens))
    return fingerprint(_RULES, identity, *parts, size=8).hex()


def unit(vector: Vectors) -> Vectors:
    """Return the vector at length one. The zero vector stays what it is."""
    length = float(np.linalg.norm(vector))
    return vector / np.float32(length) if length > 0 else vector


class Generator(Protocol):
    """A model that writes a text when told what about.

    Safe to call from several threads; opening one contacts nobody.
    """

    @property
    def name(self) -> str: ...  # the provider and the model, so that what one wrote is never taken for another's

    def generate(self, prompt: str, *, system: str = "", max_tokens: int = 1000, timeout: float | None = None) -> str:
        """Return what it wrote, without the thinking.

        Raise Unavailable where it cannot, or not within `timeout` seconds.
        """
        ...


class Reranker(Protocol):
    """A model that judges passages one by one. Without one the stage is skipped."""

    @property
    def name(self) -> str: ...

    def score(self, query: str, passages: Sequence[str]) -> Sequence[float]:
        """Return a score from 0 to 1 for each passage, in the order given."""
        ...
