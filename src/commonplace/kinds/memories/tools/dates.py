"""Moments as callers write them: ISO 8601, in exactly the forms the contract lists. Without a zone they are UTC."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone

from commonplace.errors import InvalidInput

_DATE = re.compile(
    r"(?P<day>[0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"(?:[T ](?P<minute>[0-9]{2}:[0-9]{2})(?::(?P<second>[0-9]{2})(?:\.(?P<fraction>[0-9]+))?)?"
    r"(?P<zone>Z|[+-][0-9]{2}(?::?[0-9]{2})?)?)?"
)
_DAY = timedelta(days=1)
_INSTANT = timedelta(microseconds=1)
_FIRST, _LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


def parse_date(text: str, name: str, *, end: bool = False) -> datetime:
    """Return the instant of a text, in UTC. A date alone is its first instant, or its last where `end` is true.

    Raise InvalidInput, with the argument's name, for anything else.
    """
    try:
        return _parsed(text, end=end)
    except ValueError:
        raise InvalidInput(
            f'Invalid {name} format: "{text}". Use ISO 8601 format (e.g., "2025-11-29" or "2025-11-29T10:00:00")'
        ) from None


def shown_date(moment: datetime) -> str:
    """Return a moment as every reply writes it: UTC, six decimals, `Z`."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds").removesuffix("+00:00") + "Z"


def _parsed(text: str, *, end: bool) -> datetime:
    match = _DATE.fullmatch(text)
    if match is None:
        raise ValueError(text)
    day = datetime.strptime(match["day"], "%Y-%m-%d").replace(tzinfo=UTC)
    if match["minute"] is None:
        return min(day, _LAST - _DAY + _INSTANT) + (_DAY - _INSTANT if end else timedelta(0))
    clock = datetime.strptime(f"{match['minute']}:{match['second'] or '00'}", "%H:%M:%S").time()
    fraction = match["fraction"] or ""
    micros = int(fraction[:6].ljust(6, "0"))
    exact = datetime.combine(day, clock, _zone(match["zone"]))
    try:
        moment = exact.astimezone(UTC) + timedelta(microseconds=micros)
        # Finer than can be stored: the next stored instant of a range's start, the one before of its end.
        return moment + _INSTANT if not end and fraction[6:].strip("0") else moment
    except OverflowError:
        return _FIRST if day.year == 1 else _LAST


def _zone(text: str | None) -> timezone:
    if text is None or text == "Z":
        return UTC
    hours, minutes = int(text[1:3]), int(text[3:].removeprefix(":") or 0)
    if hours > 23 or minutes > 59:
        raise ValueError(text)
    offset = timedelta(hours=hours, minutes=minutes)
    return timezone(-offset if text[0] == "-" else offset)
