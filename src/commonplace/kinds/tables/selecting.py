"""Rows of a list of objects: some fields of each row, or the rows with certain values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from commonplace.errors import InvalidInput
from commonplace.kinds.tables.shapes import kind_of
from commonplace.model import JSON
from commonplace.store.shredding import dumps


def rows_of(value: JSON, tool_type: str) -> list[dict[str, JSON]]:
    """Return the value as a list of objects. Raise InvalidInput where it is none."""
    if not isinstance(value, list):
        raise InvalidInput(
            f"{tool_type} needs a list of objects, and there is {_article(kind_of(value))} {kind_of(value)} at "
            "json_path. Bind the tool to a list.",
            argument="json_path",
        )
    for place, row in enumerate(value):
        if not isinstance(row, dict):
            raise InvalidInput(
                f"{tool_type} needs a list of objects, and element {place} is {_article(kind_of(row))} "
                f"{kind_of(row)}. Use query_data or get_all_data.",
                argument="json_path",
            )
    return value


def _article(kind: str) -> str:
    return "an" if kind[0] in "aio" else "a"


def preview(rows: Sequence[dict[str, JSON]], keys: Sequence[str], limit: int, offset: int) -> dict[str, JSON]:
    """Return the named fields of each row, in the row's order."""
    fields = set(keys)
    shown = [{key: value for key, value in row.items() if key in fields} for row in rows[offset : offset + limit]]
    return _page(shown, range(offset, offset + len(shown)), len(rows), offset)


def select(
    rows: Sequence[dict[str, JSON]], field: str, keys: Sequence[JSON], limit: int, offset: int
) -> dict[str, JSON]:
    """Return whole rows whose field has one of these values, compared by their JSON text: 12 and "12" are the same."""
    texts = {text for key in keys if (text := _text(key)) is not None}
    matching = [place for place, row in enumerate(rows) if field in row and _text(row[field]) in texts]
    page_rows = matching[offset : offset + limit]
    return _page([rows[place] for place in page_rows], page_rows, len(matching), offset)


def _text(value: JSON) -> str | None:
    """Return a scalar as text, None for a container."""
    if isinstance(value, dict | list):
        return None
    return value if isinstance(value, str) else dumps(value)


def _page(rows: Sequence[Any], places: Sequence[int], total: int, offset: int) -> dict[str, JSON]:
    return {
        "rows": list(rows),
        "json_paths": [f"/{place}" for place in places],
        "total": total,
        "has_more": offset + len(rows) < total,
    }
