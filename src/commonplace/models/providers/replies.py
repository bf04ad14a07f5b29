"""The answers of providers, checked before anyone believes them, and the ways in which asking fails.

They are apart from the line itself, so that knowing a failure takes no HTTP client.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from commonplace.errors import Unavailable
from commonplace.models.roles import Vectors
from commonplace.text.normal import whole_characters

_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


class Nonsense(ValueError):
    """An answer of another form than the provider's own description has."""


def read_vectors(answer: Any, count: int) -> Vectors:
    """Return `count` vectors, all of one length and of finite numbers. Raise Nonsense for anything else."""
    if not isinstance(answer, Sequence) or len(answer) != count:
        raise Nonsense(f"{_count(answer)} vectors for {count} texts")
    try:
        with np.errstate(over="ignore"):  # what is too large becomes infinite, which is told below
            vectors = np.array(answer, dtype=np.float32)
    except (ValueError, TypeError, OverflowError):
        raise Nonsense("vectors of different lengths, or of something else than numbers") from None
    if vectors.ndim != 2 or not vectors.shape[1] or not np.isfinite(vectors).all():
        raise Nonsense("vectors that are empty, or not of finite numbers")
    return vectors


def read_indexed(answer: Any, count: int, value: str) -> list[Any]:
    """Return the values of `[{index, value}…]`, which come in any order, in the order asked for: each once."""
    if not isinstance(answer, Sequence) or len(answer) != count:
        raise Nonsense(f"{_count(answer)} results for {count} texts")
    placed: dict[float, Any] = {}
    for place, one in enumerate(answer):
        if not isinstance(one, Mapping) or value not in one:
            raise Nonsense(f"a result without {value}")
        index = one.get("index", place)
        if isinstance(index, int | float):
            placed[index] = one[value]
    if sorted(placed) != list(range(count)):
        raise Nonsense("results that do not say which text they are for")
    return [placed[place] for place in range(count)]


def read_text(answer: Any, *path: str | int) -> str:
    """Return the text at a path of an answer, with U+FFFD for what neither a store nor a door can take.

    Models that stop in the middle of an emoji send half of it.
    """
    for step in path:
        try:
            answer = answer[step]
        except (KeyError, IndexError, TypeError):
            raise Nonsense("no text") from None
    if not isinstance(answer, str):
        raise Nonsense("no text")
    return whole_characters(answer).replace("\0", _REPLACEMENT)


def printable(text: str) -> str:
    """Return a text for a log, a terminal and a door, without what would steer one or cannot be written to another."""
    return "".join(sign if sign.isprintable() else _REPLACEMENT for sign in text)


def member(answer: Any, name: str) -> Any:
    if not isinstance(answer, Mapping) or name not in answer:
        raise Nonsense(f"no {name}")
    return answer[name]


def _count(answer: Any) -> int:
    return len(answer) if isinstance(answer, Sequence) and not isinstance(answer, str) else 0


class ProviderFailed(Unavailable):
    """A provider that did not give what it was asked for. The sentence never has the key in it."""


class RequestRefused(ProviderFailed):
    """A request that the provider understood and does not want, now or later."""

    def __init__(self, sentence: str, status: int) -> None:
        super().__init__(sentence)
        self.answered = status


class TooLong(ProviderFailed):
    """A text that is longer than the model reads at once."""
