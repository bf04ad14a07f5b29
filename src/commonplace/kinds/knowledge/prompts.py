"""Prompts: a name, details, and a system and a user part with `{{variables}}`."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence

from commonplace.kinds.knowledge.shape import Section, Shaped, needed, render, string
from commonplace.model import JSON, Draft, Item

FIELDS = ("name", "details", "system_prompt", "user_prompt", "author")
SEARCHED = ("name", "details", "system_prompt", "user_prompt", "author", "keywords")
_HEADINGS = {
    "name": "Name",
    "details": "Details",
    "system_prompt": "System prompt",
    "user_prompt": "User prompt",
    "author": "Author",
    "keywords": "Keywords",
}
_VARIABLE = re.compile(r"\{\{\s*(\w[^{}\n]{0,63}?)\s*\}\}")


def shape(record: Mapping[str, JSON], tags: Sequence[str]) -> Shaped:
    """Return the draft that a prompt's record describes. Raise InvalidInput."""
    name = needed(record, "name", "prompt")
    fields = {field: string(record, field) for field in FIELDS if field != "name"}
    texts = {"name": name, **fields, "keywords": ", ".join(tags)}
    body, spans = render(Section(field, _HEADINGS[field], texts[field]) for field in SEARCHED if texts[field])
    filled_fields = {field: text for field, text in fields.items() if text}
    return Shaped(Draft("prompt", "0", title=name, body=body, format="markdown", fields=filled_fields, spans=spans))


def record(item: Item) -> dict[str, JSON]:
    """Return the fields of a prompt's record."""
    return {"name": item.title, **{field: item.fields.get(field, "") for field in FIELDS if field != "name"}}


def content(item: Item) -> dict[str, JSON]:
    """Return a prompt as a caller reads it whole."""
    return {**record(item), "keywords": list(item.tags), "variables": variables(item)}


def variables(item: Item) -> list[str]:
    """Return the placeholders of both parts, each once, in order."""
    texts = (item.fields.get("system_prompt", ""), item.fields.get("user_prompt", ""))
    names = (match[1] for text in texts for match in _VARIABLE.finditer(text))
    return list(dict.fromkeys(name for name in names if all(map(_in_name, name))))


def filled(text: str, values: Mapping[str, str]) -> str:
    """Return a text with its placeholders replaced; one without a value stays."""
    return _VARIABLE.sub(lambda match: values.get(match[1], match[0]), text)


def _in_name(character: str) -> bool:
    """Return whether a character may be in a variable's name: a letter, digit, combining mark or joiner."""
    return character.isalnum() or character in "_ .-\u200c\u200d" or unicodedata.category(character).startswith("M")
