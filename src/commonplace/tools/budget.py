"""Answers that fit: records are kept in order while their tokens last, and what was left out is counted."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

from commonplace.errors import InvalidInput
from commonplace.model import JSON, fingerprint
from commonplace.text.tokens import estimate, reach, safe_cut

FRAME = 60
"""Tokens kept back for what surrounds the records."""
MOST_NAMED = 100
"""Items that a cursor names."""
_CURSOR = re.compile(
    rf"(?P<offset>[0-9]{{1,18}})\.(?P<called>[0-9a-f]{{12}})(?P<steps>(?:\.[1-9a-f][0-9a-f]{{0,15}}){{0,{MOST_NAMED}}})"
)


def fit(records: Iterable[dict[str, JSON]], max_tokens: int, trimmed: str) -> tuple[list[dict[str, JSON]], int, int]:
    """The records that fit, their tokens, and how many were left out.

    The first is trimmed rather than lost, else nobody would ever come past it: an address is all that is never cut.
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
    """The record with as much cut off these, one after the other, as there is no room for."""
    for name in names:
        while (excess := tokens_of(record) - room) > 0 and record.get(name) not in (None, "", "…", []):
            record = {**record, name: []} if isinstance(record[name], list) else _trim(record, name, excess)
    return record


def _trim(record: dict[str, JSON], name: str, excess: int) -> dict[str, JSON]:
    body = str(record.get(name, ""))
    keep = max(0, estimate(body) - excess - 2)
    return {**record, name: body[: safe_cut(body, reach(body, 0, 4 * keep))] + "…"}


class Passed(NamedTuple):
    """What of a list came before: its first `offset`, and the items that were `shown` since."""

    offset: int = 0
    shown: frozenset[int] = frozenset()

    @property
    def before(self) -> int:
        """How many came before."""
        return self.offset + len(self.shown)

    def and_then(self, items: Sequence[int]) -> Passed:
        """These items, too. All of them are named while they are few: the list may change from page to page."""
        if len(self.shown) + len(items) <= MOST_NAMED:
            return Passed(self.offset, self.shown.union(items))
        named = items[-MOST_NAMED:]
        return Passed(self.before + len(items) - len(named), frozenset(named))


def make_cursor(passed: Passed, arguments: Mapping[str, JSON]) -> str:
    """Where the next page of this very call begins: an offset, what was called, and the items shown, as steps between.

    An agent has to write it down, so it is short.
    """
    steps = [high - low for low, high in pairwise([0, *sorted(passed.shown)])]
    return ".".join([f"{passed.offset}", digest(arguments), *(f"{step:x}" for step in steps)])


def read_cursor(arguments: Mapping[str, JSON]) -> Passed:
    """Where a call is to go on. A cursor of another call is refused."""
    if "cursor" not in arguments:
        return Passed()
    found = _CURSOR.fullmatch(arguments["cursor"])
    if found is None or found["called"] != digest(arguments):
        raise InvalidInput("cursor does not belong to this call; repeat it without cursor.")
    steps = (int(step, 16) for step in found["steps"].split(".")[1:])
    return Passed(int(found["offset"]), frozenset(accumulate(steps)))


def digest(arguments: Mapping[str, Any]) -> str:
    """Of what decides the order: page parameters may change from page to page."""
    pages = ("cursor", "limit", "max_tokens", "detail", "explain", "session")
    kept = {name: value for name, value in arguments.items() if name not in pages}
    return fingerprint(json.dumps(kept, sort_keys=True), size=6).hex()
