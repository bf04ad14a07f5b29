"""What providers answer, checked before anyone believes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from commonplace.models.embedder import Vectors
from commonplace.text.normal import whole_characters

_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


class Nonsense(ValueError):
    """An answer of another form than the provider's own description has."""


def read_vectors(found: Any, count: int) -> Vectors:
    """So many vectors, all of one length and of finite numbers."""
    if not isinstance(found, Sequence) or len(found) != count:
        raise Nonsense(f"{_count(found)} vectors for {count} texts")
    try:
        with np.errstate(over="ignore"):  # what is too large becomes infinite, which is told below
            vectors = np.array(found, dtype=np.float32)
    except (ValueError, TypeError, OverflowError):
        raise Nonsense("vectors of different lengths, or of something else than numbers") from None
    if vectors.ndim != 2 or not vectors.shape[1] or not np.isfinite(vectors).all():
        raise Nonsense("vectors that are empty, or not of finite numbers")
    return vectors


def read_indexed(found: Any, count: int, value: str) -> list[Any]:
    """`[{index, value}…]`, in whatever order, as the values in the order asked for: each once."""
    if not isinstance(found, Sequence) or len(found) != count:
        raise Nonsense(f"{_count(found)} results for {count} texts")
    placed: dict[float, Any] = {}
    for place, one in enumerate(found):
        if not isinstance(one, Mapping) or value not in one:
            raise Nonsense(f"a result without {value}")
        index = one.get("index", place)
        if isinstance(index, int | float):
            placed[index] = one[value]
    if sorted(placed) != list(range(count)):
        raise Nonsense("results that do not say which text they are for")
    return [placed[place] for place in range(count)]


def read_text(found: Any, *path: str | int) -> str:
    """The text at a path of an answer, with U+FFFD for what neither a store nor a door can take.

    Models that stop in the middle of an emoji send half of it.
    """
    for step in path:
        try:
            found = found[step]
        except (KeyError, IndexError, TypeError):
            raise Nonsense("no text") from None
    if not isinstance(found, str):
        raise Nonsense("no text")
    return whole_characters(found).replace("\0", _REPLACEMENT)


def printable(text: str) -> str:
    """A text for a log, a terminal and a door: without what would steer one, or cannot be written to another."""
    return "".join(sign if sign.isprintable() else _REPLACEMENT for sign in text)


def member(found: Any, name: str) -> Any:
    if not isinstance(found, Mapping) or name not in found:
        raise Nonsense(f"no {name}")
    return found[name]


def _count(found: Any) -> int:
    return len(found) if isinstance(found, Sequence) and not isinstance(found, str) else 0
