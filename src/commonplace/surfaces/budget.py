"""Answers that fit: records are kept in order while their tokens last, and what was left out is counted."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping
from typing import Any

from commonplace.errors import InvalidInput
from commonplace.model import JSON, fingerprint
from commonplace.text.tokens import estimate, reach, safe_cut

FRAME = 60
"""Tokens kept back for what surrounds the records."""


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


def make_cursor(offset: int, arguments: Mapping[str, JSON]) -> str:
    """Where the next page of this very search begins."""
    return base64.urlsafe_b64encode(json.dumps([offset, digest(arguments)]).encode()).decode()


def read_cursor(cursor: str, arguments: Mapping[str, JSON]) -> int:
    """The offset a cursor stands for. One of another search is refused."""
    try:
        offset, kept = json.loads(base64.urlsafe_b64decode(cursor.encode()))
        if kept == digest(arguments) and isinstance(offset, int) and offset >= 0:
            return offset
    except (ValueError, TypeError):
        pass
    raise InvalidInput("cursor does not belong to this call; repeat it without cursor.")


def digest(arguments: Mapping[str, Any]) -> str:
    """Of what decides the order: page parameters may change from page to page."""
    pages = ("cursor", "limit", "max_tokens", "detail", "explain", "session")
    kept = {name: value for name, value in arguments.items() if name not in pages}
    return fingerprint(json.dumps(kept, sort_keys=True), size=6).hex()
