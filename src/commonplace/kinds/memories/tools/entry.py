"""An entry as every tool of this profile shows it, and replies with images as blocks, not as text."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

from commonplace.kinds.memories import Entry, Image
from commonplace.kinds.memories.tools.dates import shown_date
from commonplace.model import JSON
from commonplace.store.rows import Attachment, Past
from commonplace.text.token_estimates import safe_cut
from commonplace.tools.tool import Answer, Call, Reply

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_KEPT_SHARE = 0.7
"""A cut goes back to the last white space only where that lies beyond this share of the length."""


def shown(
    entry: Entry,
    *,
    truncation: int | None = None,
    images: Sequence[Image] | None = None,
    history: bool = False,
    **more: JSON,
) -> dict[str, JSON]:
    """Return an entry as a record: whole, or as a search shows it where `truncation` is given.

    `truncation` is in characters; `more` are `scores` and `highlighted`.
    """
    row, item = entry.row, entry.item
    text = item.body or ""
    record: dict[str, JSON] = {
        "id": row.number,
        "uri": item.uri,
        "thread_id": row.thread,
        "source": row.source,
        "content_type": "multimodal" if row.images else "text",
        "text_content": text if truncation is None else truncated(text, truncation),
    }
    if truncation is not None:
        record["is_text_content_truncated"] = len(text) > truncation
    record |= {
        "summary": entry.summary if truncation is None else entry.summary or "",
        "metadata": dict(item.metadata),
        "tags": sorted(item.tags),
        "created_at": shown_date(item.created_at),
        "updated_at": shown_date(item.updated_at),
        "version": item.version,
    }
    if row.images:
        record["image_count"] = row.images
    if row.expires_at is not None:
        record["expires_at"] = _moment(row.expires_at)
    if row.supersedes:
        record["supersedes"] = list(row.supersedes)
    if row.superseded_by is not None:
        record["superseded_by"] = row.superseded_by
    if images is not None:
        record["images"] = [_image(image) for image in images]
    if history:
        record["history"] = [_was(past) for past in entry.past]
    return {**record, **more}


def images_of(call: Call, entries: Sequence[Entry]) -> dict[int, list[Image]]:
    """Return the images of entries by entry number, in stored order."""
    illustrated = {entry.row.item_id: entry.number for entry in entries if entry.row.images}
    attachments = call.library.store.attachments_of_many(list(illustrated)) if illustrated else {}
    return {
        entry.number: [image_of(*attached) for attached in attachments.get(entry.row.item_id, ())] for entry in entries
    }


def image_of(attachment: Attachment, fields: Mapping[str, JSON]) -> Image:
    """Return a stored attachment as an image."""
    return Image(attachment.data, attachment.media_type, fields.get("metadata"))


def truncated(text: str, length: int) -> str:
    """Return the beginning of a text, cut after a word where one ends late enough, never inside a grapheme."""
    if len(text) <= length:
        return text
    head = text[: safe_cut(text, length)]
    word = next((place for place in range(len(head) - 1, 0, -1) if head[place].isspace()), 0)
    return (head[:word] if word > _KEPT_SHARE * length else head).rstrip() + "..."


def answer(reply: dict[str, JSON]) -> Answer:
    """Return a reply as it is; where it has images, with their bytes as blocks of their own and not in the text."""
    records = [record for name in ("results", "result") for record in reply.get(name, ()) if record.get("images")]
    if not records:
        return reply
    text_reply = {**reply}
    for name in ("results", "result"):
        if name in reply:
            text_reply[name] = [_without_data(record) for record in reply[name]]
    text = json.dumps(text_reply, ensure_ascii=False, separators=(",", ":"))
    blocks = [
        {"type": "image", "data": image["data"], "mimeType": image["mime_type"]}
        for record in records
        for image in record["images"]
        if image["mime_type"].lower().startswith("image/")
    ]
    return Reply([{"type": "text", "text": text}, *blocks], reply)


def _image(image: Image) -> dict[str, JSON]:
    record: dict[str, JSON] = {"data": base64.b64encode(image.data).decode(), "mime_type": image.media_type}
    return record if image.metadata is None else {**record, "metadata": image.metadata}


def _without_data(record: dict[str, JSON]) -> dict[str, JSON]:
    if not record.get("images"):
        return record
    images = [{**image, "data": f"(base64, {_size(image['data'])} bytes)"} for image in record["images"]]
    return {**record, "images": images}


def _size(data: str) -> int:
    return len(data) // 4 * 3 - data[-2:].count("=")


def _was(past: Past) -> dict[str, JSON]:
    return {
        "version": past.version,
        "updated_at": _moment(past.updated_at),
        "text_content": past.body,
        "metadata": past.metadata,
        "tags": sorted(past.tags),
        "images": [{"sha256": hash, "mime_type": media_type} for hash, media_type in past.images],
    }


def _moment(micros: int) -> str:
    return shown_date(_EPOCH + timedelta(microseconds=micros))
