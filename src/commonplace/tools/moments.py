"""Dates and times as callers of our tools write them."""

from __future__ import annotations

from datetime import UTC, date, datetime

from commonplace.errors import InvalidInput


def moment(name: str, value: str, *, end: bool = False) -> datetime:
    """Return a date or time in UTC, also the default time zone. With `end`, a bare date means its last moment.

    Years out of range become the first or last moment. Raise InvalidInput, naming the argument, for anything else.
    """
    try:
        time = datetime.fromisoformat(value)
    except ValueError:
        raise InvalidInput(
            f'{name} "{value}" is not an ISO 8601 date; write 2026-05-01 or 2026-05-01T09:30:00Z.', argument=name
        ) from None
    if end and is_date(value):
        time = time.replace(hour=23, minute=59, second=59, microsecond=999_999)
    try:
        return time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)
    except OverflowError:
        return (datetime.min if time.year == 1 else datetime.max).replace(tzinfo=UTC)


def is_date(value: str) -> bool:
    """Return whether a text is a date without a time, in any ISO form: 2026-05-01, 20260501, 2026-W18-5."""
    try:
        date.fromisoformat(value)
    except ValueError:
        return False
    return True
