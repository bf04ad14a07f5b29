"""A collection as a person declared it: its alias and names, and the key of its documents in the store."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Declared:
    """One alias of one collection. Several may stand for the same collection, and then share its id and key."""

    alias: str
    collection_id: str
    """The canonical id: `pkg:` and an absolute, normalised URL."""
    key: str
    """The parent of its documents in the store."""
    scope: Literal["project", "global"]
    name: str
    """What its manifest calls it."""
    version: str
    description: str
