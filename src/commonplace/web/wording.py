"""Numbers, times, kinds and scores in the words of the page."""

from __future__ import annotations

from datetime import UTC, datetime

KINDS = {
    "document": ("document", "documents"),
    "note": ("note", "notes"),
    "media": ("recording", "media"),
    "conversation": ("chat", "chats"),
    "message": ("message", "messages"),
    "character": ("character", "characters"),
    "prompt": ("prompt", "prompts"),
    "memory": ("memory", "memories"),
    "table": ("place in tables", "places in tables"),
    "collection": ("collection", "collections"),
}
"""One and several of each kind, as people call them."""
_SCORES = ((0.8, "very likely"), (0.6, "likely"), (0.33, "perhaps"), (0.0, "distant"))
_DAY, _HOUR, _MINUTE = 86_400, 3_600, 60


def several(kind: str) -> str:
    """Return what many items of a kind are called, with a capital: `Documents`."""
    name = KINDS.get(kind, (kind, f"{kind}s"))[1]
    return name[:1].upper() + name[1:]


def counted(count: int, one: str, many: str | None = None) -> str:
    """Return a number with its noun: `1 file`, `4,187 files`."""
    return f"{count:,} {one if count == 1 else many or f'{one}s'}"


def number_of(kind: str, count: int) -> str:
    """Return how many items of a kind there are: `12 memories`."""
    return counted(count, *KINDS.get(kind, (kind, f"{kind}s")))


def likelihood(score: float) -> str:
    """Return a score in words."""
    return next(words for least, words in _SCORES if score >= least)


def size(count: int) -> str:
    """Return a number of bytes for people: `3 B`, `1.2 MB`."""
    amount, unit = float(count), "B"
    for unit in ("B", "kB", "MB", "GB", "TB"):  # noqa: B007 - it is used after the loop
        if amount < 1000:
            break
        amount /= 1000
    return f"{amount:.0f} {unit}" if unit == "B" or amount >= 100 else f"{amount:.1f} {unit}"


def duration(seconds: float) -> str:
    """Return a time span for people: `12 s`, `3 min`, `2 h`."""
    if seconds < 2 * _MINUTE:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / _MINUTE)} min" if seconds < 2 * _HOUR else f"{round(seconds / _HOUR)} h"


def when(moment: datetime | str, now: datetime | None = None) -> str:
    """Return a time as people say it: `2 hours ago`, `yesterday`, `9 November`, `9 November 2024`, `in 5 days`."""
    time = datetime.fromisoformat(moment) if isinstance(moment, str) else moment
    now = now or datetime.now(UTC)
    seconds = (now - time).total_seconds()
    if seconds < 0:
        return _ahead(-seconds, time, now)
    if seconds < _MINUTE:
        return "just now"
    if seconds < _HOUR:
        return f"{counted(int(seconds // _MINUTE), 'minute')} ago"
    days = (now.astimezone().date() - time.astimezone().date()).days
    if days == 0:
        return f"{counted(int(seconds // _HOUR), 'hour')} ago"
    return "yesterday" if days == 1 else f"{days} days ago" if days < 7 else _date(time, now)


def _ahead(seconds: float, time: datetime, now: datetime) -> str:
    if seconds < _DAY:
        return f"in {counted(max(1, int(seconds // _HOUR)), 'hour')}"
    days = int(seconds // _DAY)
    return f"in {counted(days, 'day')}" if days < 15 else _date(time, now)


def _date(time: datetime, now: datetime) -> str:
    local = time.astimezone()
    year = "" if local.year == now.astimezone().year else f" {local.year}"
    return f"{local.day} {local:%B}{year}"
