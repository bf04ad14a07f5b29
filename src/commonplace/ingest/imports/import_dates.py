"""Moments as other programs write them: ISO 8601, Unix seconds or milliseconds, and what SillyTavern has used."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta
from math import isfinite
from typing import Any

_MS_FROM = 100_000_000_000
"""As seconds this is the year 5138; a larger number counts milliseconds."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NUMBER = re.compile(r"-?\d{9,19}(?:\.\d{1,9})?")
_STAMP = re.compile(
    r"(\d{4})-(\d{1,2})-(\d{1,2})\s*@?\s*(?:(\d{1,2})\s?h\s?(\d{1,2})\s?m(?:\s?(\d{1,2})\s?s)?(?:\s?(\d{1,3})\s?ms)?)?"
)
_WORDS = re.compile(
    r"([A-Za-z]{3,9})\.? (\d{1,2}),? (\d{4}),?(?: (?:at )?(\d{1,2}):(\d{2})(?::(\d{2}))?\s?([AaPp][Mm])?)?"
)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


def moment(value: Any) -> str | None:
    """Return the moment as ISO 8601 in UTC with a `Z`, or None when the value is none. Naive means UTC."""
    try:
        when = _moment(value)
        return when.astimezone(UTC).isoformat().replace("+00:00", "Z") if when else None
    except (ValueError, OverflowError):  # a 13th month, the year 0, a zone that leaves the calendar
        return None


def _moment(value: Any) -> datetime | None:
    if isinstance(value, datetime):
        return value if value.tzinfo else value.replace(tzinfo=UTC)
    if isinstance(value, date):
        return datetime.combine(value, time(), UTC)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _unix(value)
    if not isinstance(value, str):
        return None
    text = value.strip()
    if _NUMBER.fullmatch(text):
        return _unix(float(text))
    try:
        return _moment(datetime.fromisoformat(text))
    except ValueError:
        return _stamped(text) or _worded(text)


def _unix(value: float) -> datetime | None:
    if not isfinite(value):
        return None
    return _EPOCH + timedelta(seconds=value / 1000 if abs(value) >= _MS_FROM else value)


def _stamped(text: str) -> datetime | None:
    """Return the moment of `2023-6-12 @19h 28m 3s 456ms`, with or without the clock; None for any other text."""
    match = _STAMP.fullmatch(text)
    if match is None:
        return None
    year, month, day, hour, minute, second, ms = (int(part or 0) for part in match.groups())
    return datetime(year, month, day, hour, minute, second, ms * 1000, UTC)


def _worded(text: str) -> datetime | None:
    """Return the moment of `June 12, 2023 7:28pm`, the clock of 12 or of 24 hours; None for any other text."""
    match = _WORDS.fullmatch(" ".join(text.split()))
    month = match[1][:3].lower() if match else ""
    if match is None or month not in _MONTHS:
        return None
    hour = int(match[4] or 0)
    if match[7]:
        hour = hour % 12 + (12 if match[7].lower() == "pm" else 0)
    parts = int(match[3]), _MONTHS.index(month) + 1, int(match[2]), hour, int(match[5] or 0), int(match[6] or 0)
    return datetime(*parts, tzinfo=UTC)
