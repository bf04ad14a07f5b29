"""Prompts: a name, what it is for, a system and a user part with `{{variables}}`."""

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
    name = needed(record, "name", "prompt")
    fields = {field: string(record, field) for field in FIELDS if field != "name"}
    texts = {"name": name, **fields, "keywords": ", ".join(tags)}
    body, spans = render(Section(field, _HEADINGS[field], texts[field]) for field in SEARCHED if texts[field])
    kept = {field: text for field, text in fields.items() if text}
    return Shaped(Draft("prompt", "0", title=name, body=body, format="markdown", fields=kept, spans=spans))


def record(item: Item) -> dict[str, JSON]:
    return {"name": item.title, **{field: item.fields.get(field, "") for field in FIELDS if field != "name"}}


def content(item: Item) -> dict[str, JSON]:
    """A prompt as a caller reads it whole."""
    return {**record(item), "keywords": list(item.tags), "variables": variables(item)}


def variables(item: Item) -> list[str]:
    """The placeholders of both parts, in the order they come."""
    texts = (item.fields.get("system_prompt", ""), item.fields.get("user_prompt", ""))
    found = (found[1] for text in texts for found in _VARIABLE.finditer(text))
    return list(dict.fromkeys(name for name in found if all(map(_in_name, name))))


def filled(text: str, values: Mapping[str, str]) -> str:
    """The text with its placeholders replaced; one that is not named stays."""
    return _VARIABLE.sub(lambda found: values.get(found[1], found[0]), text)


def _in_name(character: str) -> bool:
    """Letters and digits with the marks that many scripts write them with, and what joins words."""
    return character.isalnum() or character in "_ .-\u200c\u200d" or unicodedata.category(character).startswith("M")
