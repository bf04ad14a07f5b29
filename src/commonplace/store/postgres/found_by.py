"""The columns that a PostgreSQL server finds items by: no index of it reaches into text, and none has long entries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from commonplace.model import JSON, Draft, fingerprint
from commonplace.store.postgres.filters import compared

_LABELS = {"conversation": "character", "media": "media_type"}


def found_by(draft: Draft, key: str) -> tuple[Any, ...]:
    """Return the columns `address, exact, folded, seat, label` of an item."""
    return (
        fingerprint(draft.kind, draft.parent, key),
        compared(draft.metadata, case_sensitive=True),
        compared(draft.metadata, case_sensitive=False),
        *seat_and_label(draft.kind, draft.fields),
    )


def seat_and_label(kind: str, fields: Mapping[str, JSON]) -> tuple[int | None, str | None]:
    """Return a message's place, and what a conversation or a medium is found by."""
    seat = fields.get("index") if kind == "message" else None
    label = fields.get(_LABELS.get(kind, ""))
    return (seat if isinstance(seat, int) else None), (label if isinstance(label, str) else None)
