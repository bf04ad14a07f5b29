"""The fields of a character card, whatever version of the specification, or program, it is from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from commonplace.ingest.imports.dates import moment
from commonplace.ingest.imports.source import (
    Record,
    Remarks,
    Unreadable,
    first_of,
    tags_of,
    text_or_none,
    without_empty,
)

_TEXTS = {
    "name": ("name", "char_name"),
    "nickname": ("nickname",),
    "description": ("description", "char_persona"),
    "personality": ("personality",),
    "scenario": ("scenario", "world_scenario"),
    "first_message": ("first_message", "first_mes", "char_greeting"),
    "message_example": ("message_example", "mes_example", "example_dialogue"),
    "system_prompt": ("system_prompt",),
    "post_history_instructions": ("post_history_instructions",),
    "creator_notes": ("creator_notes", "creatorcomment"),
    "creator": ("creator",),
    "character_version": ("character_version",),
}
_LISTS = ("alternate_greetings", "group_only_greetings")
_BOOKS = ("lorebook", "character_book")
_TIMES = {
    "created_at": ("created_at", "creation_date", "create_date"),
    "updated_at": ("updated_at", "modification_date"),
}
_KNOWN = {"tags", "extensions", "spec", "spec_version", "data", "kind", "avatar"}
_NAMES = frozenset(name for names in (*_TEXTS.values(), _LISTS, _BOOKS, *_TIMES.values(), _KNOWN) for name in names)
_DISTINCT = frozenset(name for names in _TEXTS.values() for name in names) - {"name", "description", "creator"}


def is_card(card: Mapping[str, Any]) -> bool:
    """Return whether an object is a card: it says so, has a field that only cards have, or nothing but a card's."""
    data = card.get("data")
    names = set(card) | (set(data) if isinstance(data, Mapping) else set())
    return (
        str(card.get("spec", "")).startswith("chara_card")
        or bool(names & _DISTINCT)
        or {"name", "description"} <= names
        or ("name" in names and names <= _NAMES)
    )


def card_record(card: Mapping[str, Any], remarks: Remarks) -> Record:
    """Return a card as a record. Only a missing name is an error; what cannot be used is left out with a warning."""
    data = card.get("data")
    fields = (
        {**card, **{name: value for name, value in data.items() if value is not None}}
        if isinstance(data, Mapping)
        else dict(card)
    )
    rest = {name: value for name, value in fields.items() if name not in _KNOWN}
    record: Record = {"kind": "character"}
    for field, names in _TEXTS.items():
        record[field] = _text(rest, names, remarks)
    if not record["name"].strip():
        raise Unreadable("this card has no name")
    record["name"] = " ".join(record["name"].split())
    for field in _LISTS:
        record[field] = _texts(rest.pop(field, None), field, remarks)
    record["tags"] = tags_of(fields.get("tags"), remarks)
    book = first_of(rest, _BOOKS)
    record["lorebook"] = lorebook(book, remarks)
    for name in _BOOKS:
        rest.pop(name, None)
    for field, names in _TIMES.items():
        given_as = next((name for name in names if moment(rest.get(name))), None)
        if given_as:
            record[field] = moment(rest.pop(given_as))
    record["extensions"] = _extensions(card, fields, rest)
    record["spec"] = text_or_none(card.get("spec")) or "chara_card_v1"
    return without_empty(record)


def _text(rest: dict[str, Any], names: tuple[str, ...], remarks: Remarks) -> str:
    text = ""
    for name in names:
        value = rest.get(name)
        if isinstance(value, str) or value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
            rest.pop(name, None)
            text = text or ("" if value is None else str(value))
        else:
            remarks.warn(f'"{name}" is no text; it was kept in extensions')
    return text


def _texts(value: Any, field: str, remarks: Remarks) -> list[str]:
    values = value if isinstance(value, list) else [value] if isinstance(value, str) else []
    texts = [one for one in values if isinstance(one, str) and one.strip()]
    if len(texts) < len([one for one in values if one != ""]) or (value and not values):
        remarks.warn(f'"{field}" holds something that is no text; it was left out')
    return texts


def _extensions(card: Mapping[str, Any], fields: Mapping[str, Any], rest: Mapping[str, Any]) -> Record:
    """Return the card's own extensions, and every field that nobody knows."""
    extensions: Record = {name: value for name, value in rest.items() if value not in (None, "", [], {})}
    for one in (card.get("extensions"), fields.get("extensions")):
        if isinstance(one, Mapping):
            extensions |= one
    return extensions


def lorebook(book: Any, remarks: Remarks) -> Record:
    """Return a lorebook with its entries in one shape. One that is broken is left out with a warning."""
    if book is None:
        return {}
    if not isinstance(book, Mapping):
        book = {"entries": book}
    entries: list[Record] = []
    for number, entry in enumerate(_entries(book.get("entries"), remarks)):
        try:
            entries.append({"index": len(entries), **_entry(entry)})
        except ValueError as error:
            remarks.warn(f"lorebook entry {number} was left out: {error}")
    name = text_or_none(book.get("name")) or ""
    return {"name": name, "entries": entries} if entries or name else {}


def _entries(entries: Any, remarks: Remarks) -> Iterator[Any]:
    if isinstance(entries, Mapping):
        yield from entries.values()
    elif isinstance(entries, list):
        yield from entries
    elif entries is not None:
        remarks.warn("the lorebook's entries are neither a list nor an object and were left out")


def _entry(entry: Any) -> Record:
    if not isinstance(entry, Mapping):
        raise ValueError("it is no object")
    content = entry.get("content")
    if not isinstance(content, str):
        raise ValueError("its content is no text")
    enabled = entry.get("enabled")
    order = first_of(entry, ("insertion_order", "order"))
    return {
        "name": text_or_none(first_of(entry, ("name", "comment"))) or "",
        "keys": _keys(first_of(entry, ("keys", "key"))),
        "secondary_keys": _keys(first_of(entry, ("secondary_keys", "keysecondary"))),
        "content": content,
        "enabled": enabled if isinstance(enabled, bool) else entry.get("disable") is not True,
        "insertion_order": order if isinstance(order, int) and not isinstance(order, bool) else 0,
    }


def _keys(value: Any) -> list[str]:
    if value is None:
        return []
    keys = value.split(",") if isinstance(value, str) else value
    if not isinstance(keys, list) or not all(isinstance(key, str | int | float) for key in keys):
        raise ValueError("its keys are no list of texts")
    return [text for key in keys if (text := str(key).strip())]
