"""Which collections of documents a caller is shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from commonplace.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class View:
    """What a server was started to show, and what has been narrowed since. Narrowing again never widens."""

    project: Path | None = None
    with_global: bool = True
    space: str = "default"
    """The server's own: in the space of anybody else, its files declare only what is there already."""
    narrowed: tuple[tuple[str, ...], ...] = ()

    def only(self, names: Sequence[str]) -> View:
        """Nothing but these collections; no names leave it as it is."""
        return replace(self, narrowed=(*self.narrowed, tuple(names))) if names else self
