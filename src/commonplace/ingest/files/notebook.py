"""A notebook as Markdown: prose as it is, code in fences. Results are left out: running it again changes nothing."""

from __future__ import annotations

import json
import re
from typing import Any

_TICKS = re.compile(r"^[ \t]*(`{3,})", re.MULTILINE)


def notebook_text(source: str) -> str:
    """Return the cells in order, a blank line between. Raise ValueError for what is no notebook."""
    book = json.loads(source)
    if not isinstance(book, dict):
        raise ValueError("a notebook is a JSON object")
    cells = book.get("cells")
    if cells is None:  # the third format kept them on sheets
        cells = [cell for sheet in book.get("worksheets", []) for cell in sheet.get("cells", [])]
    language = _language(book.get("metadata") or {})
    return "\n\n".join(text for cell in cells if (text := _cell(cell, language))) + "\n"


def _language(metadata: dict[str, Any]) -> str:
    for name in ("language_info", "kernelspec"):
        about = metadata.get(name) or {}
        name_of_language = about.get("name") if name == "language_info" else about.get("language")
        if isinstance(name_of_language, str) and name_of_language.strip():
            return name_of_language.split()[0]
    return "python"


def _cell(cell: dict[str, Any], language: str) -> str:
    source = cell.get("source", cell.get("input")) or ""  # null where a program had nothing to write
    text = ("".join(source) if isinstance(source, list) else str(source)).strip("\n")
    kind = cell.get("cell_type")
    if not text.strip():
        return ""
    if kind == "heading":
        return f"{'#' * max(1, min(6, int(cell.get('level', 1))))} {text}"
    if kind == "markdown":
        return text
    longest = max((len(ticks) for ticks in _TICKS.findall(text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language if kind == 'code' else ''}\n{text}\n{fence}"
