"""Dates and times as callers of our own tools write them."""

from __future__ import annotations

from datetime import UTC, date, datetime

from commonplace.errors import InvalidInput


def moment(name: str, value: str, *, end: bool = False) -> datetime:
    """A date or a time, in UTC, which it is in unless it says otherwise. The end of a bare date is its last moment.

    What is beyond the years that can be told is their first or last moment.
    """
    try:
        found = datetime.fromisoformat(value)
    except ValueError:
        raise InvalidInput(
            f'{name} "{value}" is not an ISO 8601 date; write 2026-05-01 or 2026-05-01T09:30:00Z.', argument=name
        ) from None
    if end and is_date(value):
        found = found.replace(hour=23, minute=59, second=59, microsecond=999_999)
    try:
        return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
    except OverflowError:
        return (datetime.min if found.year == 1 else datetime.max).replace(tzinfo=UTC)


def is_date(value: str) -> bool:
    """In any of the ways a date can be written: 2026-05-01, 20260501, 2026-W18-5."""
    try:
        date.fromisoformat(value)
    except ValueError:
        return False
    return True
