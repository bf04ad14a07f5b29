"""Character cards: in images, in `.charx` archives, as JSON of any version, and in Markdown."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from typing import Any

from commonplace.ingest.files.zipped import BadZip, entry_bytes, opened
from commonplace.ingest.imports.card_images import PNG, is_webp, png_texts, webp_texts
from commonplace.ingest.imports.import_file import (
    ImportFile,
    Piece,
    Record,
    Remarks,
    Unknown,
    Unreadable,
    first_of,
    moment,
    tags_of,
    text_or_none,
    without_empty,
)
from commonplace.ingest.imports.json_stream import parsed, whole
from commonplace.ingest.imports.markdown_fields import part, read_sections

LARGEST_CARD = 64 * 1024 * 1024
_FENCE = re.compile(r"^(`{3,}|~{3,})[ \t]*(?:json[c5]?)?[ \t]*\r?\n(.*?)^\1[ \t]*\r?$", re.MULTILINE | re.DOTALL)
_BYTES = re.compile(r"\d{1,3}(?:,\d{1,3})+")
_IMAGES = {"png": "image/png", "webp": "image/webp", "jpg": "image/jpeg", "jpeg": "image/jpeg", "gif": "image/gif"}
_IMAGES |= {"avif": "image/avif", "apng": "image/png"}
_SECTIONS = {
    "description": "description", "personality": "personality", "scenario": "scenario",
    "first message": "first_message", "greeting": "first_message", "example messages": "message_example",
    "message example": "message_example", "example dialogue": "message_example", "system prompt": "system_prompt",
    "post history instructions": "post_history_instructions", "creator notes": "creator_notes",
}  # fmt: skip
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


def read_card(source: ImportFile, remarks: Remarks) -> Iterator[Piece]:
    """Yield a card, in whatever it comes: told by its first bytes, then by its name."""
    head = source.head(64)
    if head.startswith(PNG):
        yield Piece(_from_image(source, remarks, "image/png"))
    elif is_webp(head):
        yield Piece(_from_image(source, remarks, "image/webp"))
    elif head.startswith(b"PK") or source.ending == ".charx":
        yield Piece(_from_charx(source, remarks))
    elif source.ending in (".md", ".markdown"):
        yield Piece(_from_markdown(source, remarks))
    elif head.lstrip(b"\xef\xbb\xbf\xff\xfe \t\r\n\0").startswith(b"{"):
        yield Piece(_from_json(whole(source, remarks), remarks))
    else:
        raise Unknown


def _from_image(source: ImportFile, remarks: Remarks, mime_type: str) -> Record:
    data = source.read()
    texts = png_texts(data, remarks) if mime_type == "image/png" else webp_texts(data)
    if mime_type == "image/png":
        texts.sort(key=lambda text: text[0] != "ccv3")
    for name, text in texts:
        card = _card_in(text)
        if card is not None:
            return card_record(card, remarks) | {"avatar": _avatar(data, mime_type)}
        if mime_type == "image/png":
            remarks.warn(f'the PNG chunk "{name}" holds no card')
    raise Unreadable("this image carries no character card; export the character as a card and import that")


def _card_in(text: str) -> Any | None:
    """Return the JSON in a text: plain, as base64, or as the numbers of its bytes."""
    text = text.strip()
    try:
        if _BYTES.fullmatch(text):
            text = bytes(map(int, text.split(","))).decode("utf-8")
        elif not text.startswith("{"):
            text = base64.b64decode(text, validate=False).decode("utf-8-sig")
        card = parsed(text)
    except (ValueError, binascii.Error, Unreadable):
        return None
    return card if isinstance(card, Mapping) else None


def _from_json(card: Any, remarks: Remarks) -> Record:
    if not isinstance(card, Mapping) or not is_card(card):
        raise Unknown
    return card_record(card, remarks)


def _from_charx(source: ImportFile, remarks: Remarks) -> Record:
    try:
        with source.open() as stream, opened(stream) as archive:
            try:
                card = parsed(entry_bytes(archive, "card.json", LARGEST_CARD).decode("utf-8-sig"))
            except KeyError:
                raise Unreadable("it is no .charx: card.json is missing") from None
            except UnicodeDecodeError:
                raise Unreadable("its card.json is not UTF-8") from None
            if not isinstance(card, Mapping):
                raise Unknown
            record = card_record(card, remarks)
            place = _icon(card)
            if place in archive.namelist():
                mime_type = _IMAGES.get(place.rpartition(".")[2].lower(), "application/octet-stream")
                record["avatar"] = _avatar(entry_bytes(archive, place, LARGEST_CARD), mime_type)
            return record
    except BadZip as error:
        raise Unreadable(str(error)) from None


def _icon(card: Mapping[str, Any]) -> str:
    """Return the path of the character's picture in the archive.

    The scheme is spelled with one d in the specification.
    """
    data = card.get("data")
    assets = data.get("assets") if isinstance(data, Mapping) else None
    icons = [one for one in assets if isinstance(one, Mapping) and one.get("type") == "icon"] if assets else []
    icons.sort(key=lambda one: one.get("name") != "main")
    places = [re.match(r"embedd?ed://(.+)", str(one.get("uri", ""))) for one in icons]
    return next((place[1] for place in places if place), "")


def _from_markdown(source: ImportFile, remarks: Remarks) -> Record:
    """Return a card from JSON in a fence, or from front matter with what the sections say."""
    text = source.text(remarks)
    for fence in _FENCE.finditer(text):
        card = _card_in(fence[2]) if fence[2].lstrip().startswith("{") else None
        if card is not None and is_card(card):
            return card_record(card, remarks)
    parted = part(text, remarks)
    card = dict(parted.fields)
    title = card.pop("title", None)
    read = read_sections(parted.body, _SECTIONS, card.get("name") or title, ended_by_equals=True)
    sections = {name: words for name, words in read.fields.items() if words}
    rest = read.rest if sections else parted.body.strip()
    if not parted.fields and not rest and not sections:
        raise Unknown
    card.setdefault("name", title or read.heading)
    for name, words in sections.items():
        if card.setdefault(name, words) != words:
            remarks.warn(f'the front matter has "{name}" too, so what the section says was left out')
    if rest:
        card.setdefault("text" if "description" in card else "description", rest)
    return card_record(card, remarks)


def _avatar(data: bytes, mime_type: str) -> Record:
    return {"mime_type": mime_type, "base64": base64.b64encode(data).decode("ascii")}


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
