"""Items, chunks and headings as rows, and rows as what they stand for: the same for every database."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from commonplace.errors import NotFound, VersionConflict
from commonplace.model import CHUNK_BITS, Chunk, Draft, Item, uri_of
from commonplace.store.dialect import Tuned
from commonplace.store.filters import micros
from commonplace.store.rows import Passage

if TYPE_CHECKING:
    from commonplace.text.outline import Heading

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ITEM_COLUMNS = (
    "id, kind, parent, key, title, format, fields, metadata, created_at, updated_at, version, content_hash, chunk_count"
)
PASSAGE_COLUMNS = "text, char_start, char_end, line_start, line_end, headings, anchor, vector_key"
CHUNK_COLUMNS = f"id, {PASSAGE_COLUMNS}"
CHUNK = Tuned(sqlite=f"chunks.{CHUNK_COLUMNS}", postgres=f"item_id << {CHUNK_BITS} | ordinal, {PASSAGE_COLUMNS}")
IN_PARTS = frozenset({"character", "prompt"})  # kinds whose chunks are one field each
WHOLE_KINDS = ("note", "media", "conversation", "message", "character", "prompt", "document")
WHOLE_BODY = 0  # where the number of its characters that are read can be given


def is_number(key: str) -> bool:
    """Return whether a key is a number as counting writes it: digits without a leading zero, at most 18."""
    return key.isascii() and key.isdigit() and len(key) <= 18 and (key == "0" or key[0] != "0")


def check_version(draft: Draft, expected: int | None, actual: int) -> None:
    """Raise VersionConflict where an item has another version than expected, NotFound where it is expected and new."""
    if expected is None or expected == actual:
        return
    uri = uri_of(draft.kind, draft.parent, draft.key)
    if actual == 0:
        raise NotFound(f"There is no {uri} to replace. Leave the expected version out to create it.")
    raise VersionConflict(uri, expected, actual)


def says_the_same(old: Item, draft: Draft, content_hash: str) -> bool:
    """Return whether a draft would change nothing of an item but its chunks."""
    return (
        old.content_hash == content_hash
        and old.title == draft.title
        and old.format == draft.format
        and old.tags == draft.tags
        and json_text(old.fields, sort=True)
        == json_text(draft.fields, sort=True)  # as JSON: in Python 1, 1.0 and True are equal
        and json_text(old.metadata, sort=True) == json_text(draft.metadata, sort=True)
        and (draft.created_at is None or old.created_at == moment(micros(draft.created_at)))
        and (draft.updated_at is None or old.updated_at == moment(micros(draft.updated_at)))
    )


def passage_row(passage: Passage) -> tuple[Any, ...]:
    """Return the columns of a chunk but its id, in the order of `PASSAGE_COLUMNS`."""
    span = passage.span
    anchor = json_text(passage.anchor) if passage.anchor is not None else None
    place = (span.char_start, span.char_end, span.line_start, span.line_end)
    return (span.text, *place, "\n".join(span.headings), anchor, passage.vector_key)


_encoders = [
    json.JSONEncoder(
        ensure_ascii=False, separators=(",", ":"), allow_nan=False, sort_keys=sort, default=dict, check_circular=False
    ).encode
    for sort in (False, True)
]  # `default`: a Mapping that is no dict; circular: what is stored was checked for how deep it is


def json_text(value: Any, *, sort: bool = False) -> str:
    """Return a value as JSON without blanks, with sorted names where `sort`."""
    return "{}" if value == {} else _encoders[sort](value)


def json_value(text: str) -> Any:
    """Return the value of JSON text."""
    return {} if text == "{}" else json.loads(text)  # most items have none


def moment(value: int) -> datetime:
    """Return the time, in UTC, of some microseconds since 1970."""
    return EPOCH + timedelta(microseconds=value)


def now_micros() -> int:
    """Return the time of this machine's clock in microseconds since 1970."""
    return time.time_ns() // 1000


def item_from(row: Sequence[Any], tags: tuple[str, ...], body: str | None) -> Item:
    """Return the item of a row with `ITEM_COLUMNS`."""
    item_id, kind, parent, key, title, format, fields, metadata, created, updated, version, content_hash, chunks = row
    return Item(
        item_id, kind, parent, key, title, format, json_value(fields), json_value(metadata), tags,
        moment(created), moment(updated), version, content_hash, chunks, body,
    )  # fmt: skip


def chunk_from(row: tuple[Any, ...]) -> Chunk:
    """Return the chunk of a row with `CHUNK_COLUMNS`."""
    identity, text, char_start, char_end, line_start, line_end, headings, anchor, vector_key = row
    return Chunk(
        identity, text, char_start, char_end, line_start, line_end,
        tuple(headings.split("\n")) if headings else (), json.loads(anchor) if anchor else None, vector_key,
    )  # fmt: skip


def heading_row(heading: Heading) -> tuple[Any, ...]:
    """Return the columns of a heading in the order of `HEADING_COLUMNS`."""
    place = (heading.line, heading.line_end, heading.char_start, heading.char_end)
    own = (heading.own_line_end, heading.own_char_end)
    return (heading.level, heading.title, "\n".join(heading.path), *place, *own, heading.slug, heading.occurrence)


def heading_from(row: tuple[Any, ...]) -> Heading:
    """Return the heading of a row with `HEADING_COLUMNS`."""
    from commonplace.text.outline import Heading

    level, title, path, line, line_end, start, end, own_line_end, own_end, slug, occurrence = row
    return Heading(
        level, title, tuple(path.split("\n")), line, line_end, start, end, own_line_end, own_end, slug, occurrence
    )


def ids_from(joined: str | None) -> NDArray[np.int64]:
    """Return the integers of a text that has commas between them; an empty array for None."""
    return np.fromstring(joined, dtype=np.int64, sep=",") if joined else np.empty(0, dtype=np.int64)
