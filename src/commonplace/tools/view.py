"""The collections of documents that a caller is shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path


@dataclass(frozen=True, slots=True)
class View:
    """The part of the documents a server was started to show, and how it was narrowed. Narrowing never widens."""

    project: Path | None = None
    with_global: bool = True
    space: str = "default"
    """The server's own space: in any other, its project files declare only collections that exist already."""
    narrowed: tuple[tuple[str, ...], ...] = ()

    def only(self, names: Sequence[str]) -> View:
        """Return the view narrowed to these collections; no names leave it as it is."""
        return replace(self, narrowed=(*self.narrowed, tuple(names))) if names else self
