"""Everything in a library as JSON Lines, one item a line, out and in again without loss.

Of JSON tables only the nodes are items, and those are made from their data, which `kinds/tables/table_lines.py` writes
and reads.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from commonplace.errors import AlreadyExists, InvalidInput, NotFound, TooLarge, said_by
from commonplace.ingest.imports.import_file import refuse_others
from commonplace.ingest.prepare import LAST_LINE, prepare, whole
from commonplace.kinds.documents.folders.folder_collections import global_context, set_context
from commonplace.kinds.knowledge.drawer import Cue, Records
from commonplace.kinds.memories.drawer import EntryRows
from commonplace.kinds.memories.entry import Past
from commonplace.model import LAST_MOMENT, Chunk, Draft, Filter, Item, Span
from commonplace.store.attachments import Attachments
from commonplace.store.base import Store
from commonplace.store.chunks import Chunks
from commonplace.store.filters import micros
from commonplace.store.items import Items
from commonplace.store.lasting_names import LastingNames
from commonplace.store.listing import Listing
from commonplace.store.rows import Attachment
from commonplace.store.shaping import is_number

_TEXTS = ("kind", "parent", "key", "title", "format", "body")
_OBJECTS = ("fields", "metadata")
_NUMBERED = frozenset({"media", "character", "prompt"})
"""Kinds whose items are counted from 1 in every library: the same number may be something else elsewhere."""
_OF_TABLES = ("project", "table", "instance")
_CONTEXT = "context"
_BATCH = 200
_LARGEST = 10**18
"""The largest number that every store keeps."""


@dataclass(frozen=True, slots=True)
class _Line:
    """An item as a line has it, with what hangs on it."""

    draft: Draft
    version: int
    uid: str | None
    attachments: list[tuple[Attachment, dict[str, Any]]]
    cues: list[Cue]
    past: list[Past]


def export_lines(store: Store, filter: Filter) -> Iterator[str]:
    """Yield one JSON object per matching item, in the order they were first stored; then the context of them all."""
    after = 0
    while items := store.drawer(Listing).scan(filter, after=after, limit=_BATCH, body=True):
        after = items[-1].id
        yield from lines_of(store, items)
    if not filter and (context := global_context(store)):
        yield json.dumps({"kind": _CONTEXT, "text": context}, ensure_ascii=False)


def lines_of(store: Store, items: Sequence[Item]) -> Iterator[str]:
    """Yield one JSON object for each of these items, which have their bodies, with what hangs on it."""
    uids = store.drawer(LastingNames).uids([item.id for item in items])
    for item in items:
        if item.kind != "table" and (record := _settled(item, uids.get(item.id), store)):
            yield json.dumps(record, ensure_ascii=False)


def _settled(item: Item, uid: str | None, store: Store) -> dict[str, Any] | None:
    """Return all of an item at one version, whoever changes it meanwhile; None where it is gone by now."""
    while True:
        record = _record(item, uid, store)
        now = store.drawer(Items).get([item.id])
        if not now or now[0].version == item.version:
            return record if now else None
        if not (now := store.drawer(Items).get([item.id], body=True)):
            return None
        item = now[0]


def import_lines(store: Store, lines: Iterable[str], keep_table: Callable[[str], None]) -> int:
    """Store what `export_lines` wrote and return how many lines that were. `keep_table` stores a line of tables.

    Raise InvalidInput, which names the line, for a bad one. The lines before it are in.
    """
    imported, successions = 0, list[tuple[int, list[int]]]()
    for number, text in enumerate(lines, start=1):
        if not text.strip():
            continue
        try:
            record = json.loads(text)
            refuse_others(record, "everything")
            if record["kind"] == "table" and "data" not in record:  # a node, as they once were written
                continue
            if record["kind"] in _OF_TABLES:
                keep_table(text)
                imported += 1
                continue
            if record["kind"] == _CONTEXT:
                set_context(store, None, "", record["text"])
                imported += 1
                continue
            line = _read(record)
            _keep(store, line)
        except (
            ValueError,
            TypeError,
            KeyError,
            AttributeError,
            ArithmeticError,
            RecursionError,
            InvalidInput,
            AlreadyExists,
            NotFound,
            TooLarge,
        ) as error:
            why = f"it has no {error}" if isinstance(error, KeyError) else said_by(error)
            raise InvalidInput(
                f"Line {number} is no exported item: ", why, f". {imported} items before it were imported."
            ) from error
        if line.draft.kind == "memory" and line.draft.fields.get("supersedes"):
            successions.append((int(line.draft.key), line.draft.fields["supersedes"]))
        imported += 1
    for newer, older in successions:  # once more: some of the older may have come after it
        store.drawer(EntryRows).supersede(newer, older)
    return imported


def _keep(store: Store, line: _Line) -> None:
    """Store an item with what hangs on it, whole or not at all."""
    draft, write = line.draft, prepare(line.draft)
    with store.transaction():
        here = store.drawer(Items).find(draft.kind, draft.parent, draft.key, body=False)
        _check_same(store, line, here)
        item = store.drawer(Items).put([write])[0]
        if line.attachments or here:
            store.drawer(Attachments).attach(item.id, line.attachments)
        if line.cues or here:
            store.drawer(Records).set_cues(item.id, line.cues)
        if here is None:
            _settle(store, line, item)


def _settle(store: Store, line: _Line, item: Item) -> None:
    """Give a new item what only it takes over: its version, its past, its lasting name, its number."""
    if line.version > item.version:
        store.drawer(Records).set_version(item.id, line.version)
    for past in line.past:
        store.drawer(EntryRows).keep_past(item.id, past, len(line.past))
    if line.uid and store.drawer(LastingNames).item_of_uid(item.kind, line.uid) is None:
        store.drawer(LastingNames).set_uid(item.id, line.uid)
    if item.kind in _NUMBERED and is_number(item.key):
        store.drawer(LastingNames).take_number(item.kind, int(item.key))


def _check_same(store: Store, line: _Line, here: Item | None) -> None:
    """Raise InvalidInput where something else has the same number here: it is not written over."""
    draft, other = line.draft, False
    if draft.kind == "memory":
        rows = store.drawer(EntryRows).get([int(draft.key)]) if draft.fields.get("source") else []
        same = (draft.parent, draft.fields.get("source"), micros(draft.created_at) if draft.created_at else None)
        other = bool(rows) and (rows[0].thread, rows[0].source, rows[0].created_at) != same
    elif draft.kind in _NUMBERED and here is not None and line.uid:
        other = store.drawer(LastingNames).uids([here.id])[here.id] != line.uid
    if other:
        raise InvalidInput(
            f"{draft.kind} {draft.key} has other content here; import into a library that does not have it"
        )


def _record(item: Item, uid: str | None, store: Store) -> dict[str, Any]:
    record: dict[str, Any] = {name: getattr(item, name) for name in (*_TEXTS, *_OBJECTS, "tags", "version")}
    record |= {"created_at": item.created_at.isoformat(), "updated_at": item.updated_at.isoformat()}
    for entry in store.drawer(EntryRows).of([item.id]) if item.kind == "memory" else ():
        # Not as its fields have it: elsewhere, the number of one that is gone may be another's.
        if entry.supersedes or item.fields.get("supersedes"):
            record["fields"] = {**item.fields, "supersedes": list(entry.supersedes)}
    if uid:
        record["uid"] = uid
    chunks = store.drawer(Chunks).of(item.id)
    if list(map(_place, chunks)) != list(map(_place, whole(_draft(record)))):
        record["passages"] = list(map(_place, chunks))
    if attachments := store.drawer(Attachments).of(item.id):
        record["attachments"] = [
            {"media_type": file.media_type, "data": base64.b64encode(file.data).decode(), "fields": fields}
            for file, fields in attachments
        ]
    if item.kind == "media" and (cues := store.drawer(Records).cues(item.id)):
        record["cues"] = [list(cue) for cue in cues]
    if item.kind == "memory" and (past := store.drawer(EntryRows).past([item.id]).get(item.id)):
        record["past"] = [
            [one.version, one.updated_at, one.body, one.metadata, list(one.tags), [list(image) for image in one.images]]
            for one in past
        ]
    return record


def _place(span: Span | Chunk) -> list[Any]:
    anchor = None if span.anchor is None else dict(span.anchor)
    return [span.char_start, span.char_end, span.line_start, span.line_end, list(span.headings), anchor]


def _read(record: dict[str, Any]) -> _Line:
    attachments = []
    for file in record.get("attachments", ()):
        data = base64.b64decode(file["data"], validate=True)
        if "\0" in (media_type := str(file["media_type"])):
            raise ValueError("a media type contains U+0000")
        attachment = Attachment(hashlib.sha256(data).digest(), media_type, data)
        attachments.append((attachment, dict(file.get("fields", {}))))
    draft, uid = _draft(record), record.get("uid")
    return _Line(
        draft,
        _number(record.get("version", 1)),
        None if uid is None else str(uid),
        attachments,
        [_cue(*cue) for cue in record.get("cues", ())],
        [_past(*past) for past in record.get("past", ())],
    )


def _cue(start_ms: int, end_ms: int, start: int, end: int, speaker: str | None = None) -> Cue:
    times = _number(start_ms), _number(end_ms)
    return Cue(*times, _number(start), _number(end), None if speaker is None else str(speaker))


def _past(version: int, updated_at: int, body: str, metadata: Any, tags: Any, images: Any) -> Past:
    typed_images = tuple((str(hash), str(media_type)) for hash, media_type in images)
    return Past(
        _number(version),
        _number(updated_at, LAST_MOMENT),
        str(body),
        dict(metadata),
        tuple(map(str, tags)),
        typed_images,
    )


def _draft(record: dict[str, Any]) -> Draft:
    values: dict[str, Any] = {name: record[name] for name in (*_TEXTS, *_OBJECTS) if name in record}
    for name, value in values.items():
        if not isinstance(value, str if name in _TEXTS else dict):
            raise ValueError(f"its {name} is no {'text' if name in _TEXTS else 'object'}")
    tags = record.get("tags", [])
    if not isinstance(tags, list | tuple) or not all(isinstance(tag, str) for tag in tags):
        raise ValueError("its tags are no list of texts")
    values |= {name: datetime.fromisoformat(record[name]) for name in ("created_at", "updated_at") if record.get(name)}
    if "passages" in record:
        values["spans"] = tuple(_span(values["body"], *place) for place in record["passages"])
    return Draft(values.pop("kind"), values.pop("key"), **values, tags=tuple(tags))


def _span(body: str, start: int, end: int, first: int, last: int, headings: list[str], anchor: Any) -> Span:
    if not (type(start) is type(end) is int and 0 <= start <= end <= len(body)):
        raise ValueError("a passage is outside of its body")
    lines = _number(first, LAST_LINE), _number(last, LAST_LINE)
    return Span(body[start:end], start, end, *lines, tuple(headings), anchor)


def _number(value: Any, most: int = _LARGEST) -> int:
    if abs(number := int(value)) > most:
        raise ValueError("a number in it is too large")
    return number
