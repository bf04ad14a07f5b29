"""The `export` command that wrote a line of JSON, for whoever is given the file of another one."""

from __future__ import annotations

from typing import Literal

from commonplace.errors import Command, InvalidInput
from commonplace.model import JSON

ImportName = Literal["everything", "jsonl", "memory"]
"""The name that `commonplace import` has for the one that stores it."""

_WRITERS = {"everything": "export everything", "jsonl": "export", "memory": "export memory"}
_OF_AN_ITEM = frozenset({"kind", "parent", "key", "body", "fields"})
_OF_AN_ENTRY = frozenset({"thread_id", "text_content"})
_RECORDS = ("note", "media", "conversation", "character", "prompt")


def refuse_others(record: JSON, own: ImportName) -> None:
    """Raise InvalidInput, in half a sentence, where a line is no record, or surely one of another kind."""
    if not isinstance(record, dict):
        raise InvalidInput("it is no JSON object")
    command = _import_name(record)
    if command not in (None, own):
        writer, reader = Command(_WRITERS[command]), Command(f"import {command}")
        raise InvalidInput("`", writer, "` wrote it, and `", reader, "` stores it")


def _import_name(record: dict[str, JSON]) -> ImportName | None:
    if record.keys() >= _OF_AN_ITEM:
        return "everything"
    if record.keys() >= _OF_AN_ENTRY:
        return "memory"
    return "jsonl" if record.get("kind") in _RECORDS and "id" in record and "key" not in record else None
