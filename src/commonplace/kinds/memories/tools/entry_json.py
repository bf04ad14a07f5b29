"""An entry as JSON: as every tool shows it, and as a line of an export that is read back.

Moments are ISO 8601, in exactly the forms the contract lists; without a zone they are UTC. Images are blocks of a
reply, not text.
"""

from __future__ import annotations

import base64
import json
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta, timezone
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING, Any

from commonplace.errors import InvalidInput, said_by
from commonplace.ingest.imports.import_file import refuse_others
from commonplace.kinds.memories.entry import MOST_NUMBER, Entry, Image, Past, normal_tags
from commonplace.kinds.memories.entry_imports import Imported, IncomingEntry
from commonplace.kinds.memories.memories import Memories
from commonplace.model import JSON
from commonplace.store.attachments import Attachments
from commonplace.store.filters import micros
from commonplace.store.rows import Attachment
from commonplace.text.token_estimates import safe_cut
from commonplace.tools.tool import Answer, Call, Reply

if TYPE_CHECKING:
    from commonplace.space import Space


# moments


_DATE = re.compile(
    r"(?P<day>[0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"(?:[T ](?P<minute>[0-9]{2}:[0-9]{2})(?::(?P<second>[0-9]{2})(?:\.(?P<fraction>[0-9]+))?)?"
    r"(?P<zone>Z|[+-][0-9]{2}(?::?[0-9]{2})?)?)?"
)
_DAY = timedelta(days=1)
_INSTANT = timedelta(microseconds=1)
_FIRST, _LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


def parse_date(text: str, name: str, *, end: bool = False) -> datetime:
    """Return the instant of a text, in UTC. A date alone is its first instant, or its last where `end` is true.

    Raise InvalidInput, with the argument's name, for anything else.
    """
    try:
        return _parsed(text, end=end)
    except ValueError:
        raise InvalidInput(
            f'Invalid {name} format: "{text}". Use ISO 8601 format (e.g., "2025-11-29" or "2025-11-29T10:00:00")'
        ) from None


def shown_date(moment: datetime) -> str:
    """Return a moment as every reply writes it: UTC, six decimals, `Z`."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds").removesuffix("+00:00") + "Z"


def _parsed(text: str, *, end: bool) -> datetime:
    match = _DATE.fullmatch(text)
    if match is None:
        raise ValueError(text)
    day = datetime.strptime(match["day"], "%Y-%m-%d").replace(tzinfo=UTC)
    if match["minute"] is None:
        return min(day, _LAST - _DAY + _INSTANT) + (_DAY - _INSTANT if end else timedelta(0))
    clock = datetime.strptime(f"{match['minute']}:{match['second'] or '00'}", "%H:%M:%S").time()
    fraction = match["fraction"] or ""
    micros = int(fraction[:6].ljust(6, "0"))
    exact = datetime.combine(day, clock, _zone(match["zone"]))
    try:
        moment = exact.astimezone(UTC) + timedelta(microseconds=micros)
        # Finer than can be stored: the next stored instant of a range's start, the one before of its end.
        return moment + _INSTANT if not end and fraction[6:].strip("0") else moment
    except OverflowError:
        return _FIRST if day.year == 1 else _LAST


def _zone(text: str | None) -> timezone:
    if text is None or text == "Z":
        return UTC
    hours, minutes = int(text[1:3]), int(text[3:].removeprefix(":") or 0)
    if hours > 23 or minutes > 59:
        raise ValueError(text)
    offset = timedelta(hours=hours, minutes=minutes)
    return timezone(-offset if text[0] == "-" else offset)


# an entry shown


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
        record["expires_at"] = shown_micros(row.expires_at)
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
    attachments = call.space.store.drawer(Attachments).of_many(list(illustrated)) if illustrated else {}
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
        "updated_at": shown_micros(past.updated_at),
        "text_content": past.body,
        "metadata": past.metadata,
        "tags": sorted(past.tags),
        "images": [{"sha256": hash, "mime_type": media_type} for hash, media_type in past.images],
    }


def shown_micros(micros: int) -> str:
    """Return microseconds since 1970 as every reply writes a moment."""
    return shown_date(_EPOCH + timedelta(microseconds=micros))


# entries exported and imported


_BATCH = 100
_KINDS = {"id": int, "thread_id": str, "text_content": str, "metadata": dict, "tags": list, "version": int}


def export_lines(space: Space, thread: str | None = None) -> Iterator[str]:
    """Yield one JSON object for each entry, by id, with its whole text and its images."""
    memories = space.part(Memories)
    numbers = memories.find(threads=None if thread is None else [thread])
    for start in range(0, len(numbers), _BATCH):
        for entry in memories.entries(numbers[start : start + _BATCH]):
            images = images_of(Call(space), [entry])[entry.number]
            yield json.dumps(shown(entry, images=images), ensure_ascii=False, separators=(",", ":"))


def import_file(space: Space, file: IO[bytes], *, renumber: bool = False, dry_run: bool = False) -> Imported:
    """Store what `export_lines` wrote and return a report.

    Raise InvalidInput, with the number of the line, where a line is something else; then nothing is stored.
    """
    with _to_read_twice(file) as lines:
        return space.part(Memories).restore(lambda: _entries(lines), renumber=renumber, dry_run=dry_run)


@contextmanager
def _to_read_twice(file: IO[bytes]) -> Iterator[IO[bytes]]:
    """Yield the file itself, or a copy of what comes through a pipe, which would be empty the second time."""
    if file.seekable():
        yield file
        return
    with TemporaryFile() as copy:
        shutil.copyfileobj(file, copy)
        yield copy


def _entries(lines: IO[bytes]) -> Iterator[IncomingEntry]:
    lines.seek(0)
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            entry = _read(line)
        except (ValueError, InvalidInput) as error:
            raise InvalidInput(
                f"Line {number} is no exported entry: ", said_by(error), ". Nothing was imported."
            ) from error
        yield entry


def _read(line: bytes) -> IncomingEntry:
    """Return the entry of a line. Raise ValueError with half a sentence that says why it is none."""
    try:
        record = json.loads(line.decode("utf-8"))
        refuse_others(record, "memory")
        return _incoming(record)
    except UnicodeDecodeError as error:
        raise ValueError("it is not UTF-8") from error
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error
    except KeyError as error:
        raise ValueError(f"it has no {error}") from error
    except (TypeError, AttributeError) as error:
        raise ValueError("a field of it is of another kind") from error


def _incoming(record: dict[str, Any]) -> IncomingEntry:
    expires = record.get("expires_at")
    for name, kind in _KINDS.items():
        if type(record[name]) is not kind:
            raise ValueError(f"its {name} is none")
    if not record["thread_id"].strip() or record["source"] not in ("user", "agent"):
        raise ValueError("its thread_id or its source is none")
    numbers = (record["id"], record["version"], *record.get("supersedes", ()))
    if not all(type(number) is int and 1 <= number <= MOST_NUMBER for number in numbers):
        raise ValueError("its id, its version or what it supersedes is none")
    if not isinstance(record.get("summary"), str | None):
        raise ValueError("its summary is none")
    if not all(isinstance(image["mime_type"], str) for image in record.get("images", ())):
        raise ValueError("a mime_type of its images is none")
    return IncomingEntry(
        number=record["id"],
        thread=record["thread_id"].strip(),
        source=record["source"],
        text=record["text_content"],
        metadata=record["metadata"],
        tags=normal_tags(record["tags"]),
        images=tuple(
            Image(base64.b64decode(image["data"], validate=True), image["mime_type"], image.get("metadata"))
            for image in record.get("images", ())
        ),
        summary=record.get("summary") or None,
        created_at=parse_date(record["created_at"], "created_at"),
        updated_at=parse_date(record["updated_at"], "updated_at"),
        version=record["version"],
        expires_at=micros(parse_date(expires, "expires_at")) if expires else None,
        supersedes=tuple(record.get("supersedes", ())),
    )
