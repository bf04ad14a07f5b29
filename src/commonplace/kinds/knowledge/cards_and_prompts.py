"""Characters and prompts: records made of fields, each a section of the body.

Section 6 of the contract lists the fields of a character's card. The parts of a prompt have `{{variables}}`.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from commonplace.errors import InvalidInput
from commonplace.kinds.knowledge.kinds import BodyLines, Shaped, entries, mapping, needed, string, strings
from commonplace.model import JSON, Draft, Item, Span
from commonplace.store.rows import Attachment

# sections


@dataclass(frozen=True, slots=True)
class Section:
    """One field of a record as Markdown: its name for programs, its heading, its text."""

    field: str
    heading: str
    text: str


LONGEST_CHUNK = 4000


def render(sections: Iterable[Section]) -> tuple[str, tuple[Span, ...]]:
    """Return a body of sections, and at least one span for each: of its text, not of its heading."""
    body, places = "", list[tuple[int, int, str]]()
    for section in sections:
        body += ("\n\n" if body else "") + f"## {section.heading}\n\n"
        for start, end in _cut(section.text):
            places.append((len(body) + start, len(body) + end, section.field))
        body += section.text
    lines = BodyLines(body)
    return body, tuple(lines.span(start, end, {"field": field}) for start, end, field in places)


def _cut(text: str) -> Iterable[tuple[int, int]]:
    """Yield the pieces of a long field, cut at the end of a paragraph, line or word."""
    start = 0
    while len(text) - start > LONGEST_CHUNK:
        window = text[start : start + LONGEST_CHUNK]
        cut = max(
            (at + len(sign) for sign in ("\n\n", "\n", " ") if (at := window.rfind(sign)) > LONGEST_CHUNK // 2),
            default=0,
        )
        end = start + (cut or LONGEST_CHUNK)
        yield start, end
        start = end
    yield start, len(text)


# characters


_TEXTS = {
    "nickname": "Nickname",
    "description": "Description",
    "personality": "Personality",
    "scenario": "Scenario",
    "first_message": "First message",
    "message_example": "Message example",
    "system_prompt": "System prompt",
    "post_history_instructions": "Post-history instructions",
    "creator_notes": "Creator notes",
    "creator": "Creator",
    "character_version": "Character version",
    "spec": "Spec",
}
_LISTS = {"alternate_greetings": "Alternate greeting", "group_only_greetings": "Group-only greeting"}
CHARACTER_CONTENT = (
    "name", "nickname", "description", "personality", "scenario", "first_message", "alternate_greetings",
    "group_only_greetings", "message_example", "system_prompt", "post_history_instructions", "creator_notes",
    "creator", "character_version", "tags", "lorebook", "extensions", "spec",
)  # fmt: skip
"""The members of a character as a caller reads it whole, in order."""

CHARACTER_FIELDS = (*(name for name in CHARACTER_CONTENT if name != "tags"), "avatar")
_ENTRY = ("name", "keys", "secondary_keys", "content", "enabled", "insertion_order")


def shape_character(record: Mapping[str, JSON], tags: Sequence[str]) -> Shaped:
    """Return the draft and the avatar that a character's record describes. Raise InvalidInput."""
    name = needed(record, "name", "character")
    fields: dict[str, JSON] = {field: text for field in _TEXTS if (text := string(record, field))}
    fields |= {field: texts for field in _LISTS if (texts := strings(record, field))}
    if lorebook := _lorebook(mapping(record, "lorebook")):
        fields["lorebook"] = lorebook
    if extensions := mapping(record, "extensions"):
        fields["extensions"] = extensions
    avatar = _avatar(record.get("avatar"))
    if avatar:
        fields["avatar"] = {
            "mime_type": avatar.media_type,
            "bytes": len(avatar.data),
            "sha256": avatar.hash.hex(),
        }
    body, spans = render(_sections(name, fields, tags))
    return Shaped(
        Draft("character", "0", title=name, body=body, format="markdown", fields=fields, spans=spans), avatar=avatar
    )


def character_content(item: Item) -> dict[str, JSON]:
    """Return a character as a caller reads it whole."""
    members: dict[str, JSON] = {"name": item.title, "tags": list(item.tags)}
    members |= {field: item.fields.get(field, "") for field in _TEXTS}
    members |= {field: item.fields.get(field, []) for field in _LISTS}
    lorebook = item.fields.get("lorebook", {"name": "", "entries": []})
    members["lorebook"] = {
        "name": lorebook["name"],
        "entries": [{"index": index, **entry} for index, entry in enumerate(lorebook["entries"])],
    }
    members["extensions"] = item.fields.get("extensions", {})
    return {name: members[name] for name in CHARACTER_CONTENT}


def character_record(item: Item, avatar: Attachment | None) -> dict[str, JSON]:
    """Return the fields of a character's record, its tags apart."""
    members = character_content(item)
    del members["tags"]
    if avatar:
        encoded = base64.b64encode(avatar.data).decode()
        members["avatar"] = {"mime_type": avatar.media_type, "base64": encoded}
    return members


def _sections(name: str, fields: Mapping[str, Any], tags: Sequence[str]) -> Iterator[Section]:
    yield Section("name", "Name", name)
    for field in CHARACTER_CONTENT:
        if field in _TEXTS and field in fields:
            yield Section(field, _TEXTS[field], fields[field])
        elif field in _LISTS:
            for index, text in enumerate(fields.get(field, ())):
                if text:
                    yield Section(f"{field}[{index}]", f"{_LISTS[field]} {index + 1}", text)
        elif field == "tags" and tags:
            yield Section("tags", "Tags", ", ".join(tags))
        elif field == "lorebook" and "lorebook" in fields:
            yield from _lore(fields["lorebook"])
        elif field == "extensions" and "extensions" in fields:
            yield Section("extensions", "Extensions", json.dumps(fields["extensions"], ensure_ascii=False))


def _lore(lorebook: Mapping[str, Any]) -> Iterator[Section]:
    if lorebook["name"]:
        yield Section("lorebook", "Lorebook", lorebook["name"])
    for index, entry in enumerate(lorebook["entries"]):
        keys = ", ".join((*entry["keys"], *entry["secondary_keys"]))
        text = "\n".join(filter(None, (entry["name"], keys, entry["content"])))
        if text:
            yield Section(f"lorebook[{index}]", f"Lorebook entry {index + 1}", text)


def _lorebook(record: Mapping[str, JSON]) -> dict[str, JSON] | None:
    lore_entries = [_entry(entry) for entry in entries(record, "entries")]
    name = string(record, "name")
    return {"name": name, "entries": lore_entries} if lore_entries or name else None


def _entry(record: Mapping[str, JSON]) -> dict[str, JSON]:
    enabled, order = record.get("enabled", True), record.get("insertion_order", 0)
    members: dict[str, JSON] = {
        "name": string(record, "name"),
        "keys": strings(record, "keys"),
        "secondary_keys": strings(record, "secondary_keys"),
        "content": string(record, "content"),
        "enabled": enabled if isinstance(enabled, bool) else True,
        "insertion_order": order if isinstance(order, int | float) else 0,
    }
    return {name: members[name] for name in _ENTRY}


def _avatar(value: JSON) -> Attachment | None:
    """Return the image of a record as an attachment, None where there is none. Raise InvalidInput."""
    if value is None:
        return None
    problem = 'avatar needs "mime_type" and "base64".'
    if not isinstance(value, Mapping) or not isinstance(value.get("base64"), str):
        raise InvalidInput(problem, argument="avatar")
    mime_type = string(value, "mime_type")
    try:
        data = base64.b64decode(value["base64"], validate=True)
    except (binascii.Error, ValueError):
        raise InvalidInput("avatar.base64 is not base64.", argument="avatar.base64") from None
    if not mime_type or not data:
        raise InvalidInput(problem, argument="avatar")
    return Attachment(hashlib.sha256(data).digest(), mime_type, data)


# prompts


PROMPT_FIELDS = ("name", "details", "system_prompt", "user_prompt", "author")
PROMPT_PARTS = ("name", "details", "system_prompt", "user_prompt", "author", "keywords")
_HEADINGS = {
    "name": "Name",
    "details": "Details",
    "system_prompt": "System prompt",
    "user_prompt": "User prompt",
    "author": "Author",
    "keywords": "Keywords",
}
_VARIABLE = re.compile(r"\{\{\s*(\w[^{}\n]{0,63}?)\s*\}\}")


def shape_prompt(record: Mapping[str, JSON], tags: Sequence[str]) -> Shaped:
    """Return the draft that a prompt's record describes. Raise InvalidInput."""
    name = needed(record, "name", "prompt")
    fields = {field: string(record, field) for field in PROMPT_FIELDS if field != "name"}
    texts = {"name": name, **fields, "keywords": ", ".join(tags)}
    body, spans = render(Section(field, _HEADINGS[field], texts[field]) for field in PROMPT_PARTS if texts[field])
    filled_fields = {field: text for field, text in fields.items() if text}
    return Shaped(Draft("prompt", "0", title=name, body=body, format="markdown", fields=filled_fields, spans=spans))


def prompt_record(item: Item) -> dict[str, JSON]:
    """Return the fields of a prompt's record."""
    return {"name": item.title, **{field: item.fields.get(field, "") for field in PROMPT_FIELDS if field != "name"}}


def prompt_content(item: Item) -> dict[str, JSON]:
    """Return a prompt as a caller reads it whole."""
    return {**prompt_record(item), "keywords": list(item.tags), "variables": variables(item)}


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
