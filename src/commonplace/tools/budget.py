"""Answers that fit: records are kept in order while their tokens last, and what was left out is counted."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

from commonplace.errors import InvalidInput
from commonplace.model import JSON, fingerprint
from commonplace.text.token_estimates import estimate, reach, safe_cut

FRAME = 60
"""Tokens kept back for what surrounds the records."""
MOST_NAMED = 100
"""Items that a cursor names."""
_CURSOR = re.compile(
    rf"(?P<offset>[0-9]{{1,18}})\.(?P<called>[0-9a-f]{{12}})(?P<steps>(?:\.[1-9a-f][0-9a-f]{{0,15}}){{0,{MOST_NAMED}}})"
)


def fit(records: Iterable[dict[str, JSON]], max_tokens: int, trimmed: str) -> tuple[list[dict[str, JSON]], int, int]:
    """Return the records that fit in `max_tokens`, their tokens, and how many records were left out.

    The first is cut (`trimmed`, headings, title) rather than left out, or paging could never pass it.
    """
    kept: list[dict[str, JSON]] = []
    used, left_out, room = 0, 0, max(1, max_tokens - FRAME)
    for record in records:
        size = tokens_of(record)
        if not kept and size > room:
            record = cut_down(record, (trimmed, "headings", "title"), room)
            size = tokens_of(record)
        if left_out or (kept and used + size > room):
            left_out += 1
            continue
        kept.append(record)
        used += size
    return kept, used, left_out


def tokens_of(value: JSON) -> int:
    return estimate(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def cut_down(record: dict[str, JSON], names: Iterable[str], room: int) -> dict[str, JSON]:
    """Return the record with the fields `names` cut, one after the other, until it has at most `room` tokens."""
    for name in names:
        while (excess := tokens_of(record) - room) > 0 and record.get(name) not in (None, "", "…", []):
            record = {**record, name: []} if isinstance(record[name], list) else _trim(record, name, excess)
    return record


def _trim(record: dict[str, JSON], name: str, excess: int) -> dict[str, JSON]:
    body = str(record.get(name, ""))
    keep = max(0, estimate(body) - excess - 2)
    return {**record, name: body[: safe_cut(body, reach(body, 0, 4 * keep))] + "…"}


class Passed(NamedTuple):
    """The part of a list that earlier pages returned: its first `offset`, and the items `shown` since."""

    offset: int = 0
    shown: frozenset[int] = frozenset()

    @property
    def before(self) -> int:
        """The number of items on earlier pages."""
        return self.offset + len(self.shown)

    def and_then(self, items: Sequence[int]) -> Passed:
        """Return this with more items. Few enough are all named, because the list may change from page to page."""
        if len(self.shown) + len(items) <= MOST_NAMED:
            return Passed(self.offset, self.shown.union(items))
        named = items[-MOST_NAMED:]
        return Passed(self.before + len(items) - len(named), frozenset(named))


def make_cursor(passed: Passed, arguments: Mapping[str, JSON]) -> str:
    """Return the cursor of the next page: the offset, a digest of the call, and the shown items as hexadecimal steps.

    It is short because an agent has to repeat it.
    """
    steps = [high - low for low, high in pairwise([0, *sorted(passed.shown)])]
    return ".".join([f"{passed.offset}", digest(arguments), *(f"{step:x}" for step in steps)])


def read_cursor(arguments: Mapping[str, JSON]) -> Passed:
    """Return what earlier pages returned, by the call's cursor. Raise InvalidInput for the cursor of another call."""
    if "cursor" not in arguments:
        return Passed()
    cursor = _CURSOR.fullmatch(arguments["cursor"])
    if cursor is None or cursor["called"] != digest(arguments):
        raise InvalidInput("cursor does not belong to this call; repeat it without cursor.")
    steps = (int(step, 16) for step in cursor["steps"].split(".")[1:])
    return Passed(int(cursor["offset"]), frozenset(accumulate(steps)))


def digest(arguments: Mapping[str, Any]) -> str:
    """Return a digest of the arguments that decide the order; page parameters may change from page to page."""
    pages = ("cursor", "limit", "max_tokens", "detail", "explain", "session")
    ordering = {name: value for name, value in arguments.items() if name not in pages}
    return fingerprint(json.dumps(ordering, sort_keys=True), size=6).hex()
