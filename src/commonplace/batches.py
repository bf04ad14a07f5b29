"""Work on many things, a bounded part at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


def batches(things: Iterable[T], size: Callable[[T], int], *, most: int, most_size: int) -> Iterator[list[T]]:
    """Yield lists of at most `most` things and `most_size` in all, in their order. One that is larger is alone."""
    batch, together = list[T](), 0
    for thing in things:
        more = size(thing)
        if batch and (len(batch) >= most or together + more > most_size):
            yield batch
            batch, together = [], 0
        batch.append(thing)
        together += more
    if batch:
        yield batch
