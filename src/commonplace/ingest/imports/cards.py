"""Character cards: in images, in `.charx` archives, as JSON of any version, and in Markdown."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from typing import Any

from commonplace.ingest.files.zipped import BadZip, entry_bytes, opened
from commonplace.ingest.imports.card_fields import card_record, is_card
from commonplace.ingest.imports.card_images import PNG, is_webp, png_texts, webp_texts
from commonplace.ingest.imports.front import part
from commonplace.ingest.imports.json_stream import parsed, whole
from commonplace.ingest.imports.sections import read_sections
from commonplace.ingest.imports.source import ImportFile, Piece, Record, Remarks, Unknown, Unreadable

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
