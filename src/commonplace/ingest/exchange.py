"""Everything in a library as JSON Lines, one item a line, out and in again without loss."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

from commonplace.errors import InvalidInput
from commonplace.ingest.prepare import prepare
from commonplace.model import Draft, Filter, Item
from commonplace.store.base import Store
from commonplace.store.rows import Attachment

_NAMES = ("kind", "parent", "key", "title", "format", "body", "fields", "metadata", "tags")
_BATCH = 200


def export_lines(store: Store, filter: Filter) -> Iterator[str]:
    """One JSON object per matching item, in the order they were first stored."""
    after = 0
    while items := store.scan(filter, after=after, limit=_BATCH, body=True):
        after = items[-1].id
        for item in items:
            yield json.dumps(_record(item, store), ensure_ascii=False)


def import_lines(store: Store, lines: Iterable[str]) -> int:
    """Store what `export_lines` wrote. A bad line stops the import and is named; the lines before it are in."""
    done = 0
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
            draft, attachments = _draft(record)
        except (ValueError, TypeError, KeyError) as error:
            raise InvalidInput(
                f"Line {number} is no exported item: {error}. {done} items before it were imported."
            ) from error
        item = store.put([prepare(draft)])[0]
        if attachments:
            store.attach(item.id, attachments)
        done += 1
    return done


def _record(item: Item, store: Store) -> dict[str, Any]:
    record = {name: getattr(item, name) for name in _NAMES}
    record |= {"created_at": item.created_at.isoformat(), "updated_at": item.updated_at.isoformat()}
    attachments = store.attachments_of(item.id)
    if attachments:
        record["attachments"] = [
            {"media_type": file.media_type, "data": base64.b64encode(file.data).decode(), "fields": fields}
            for file, fields in attachments
        ]
    return record


def _draft(record: dict[str, Any]) -> tuple[Draft, list[tuple[Attachment, dict[str, Any]]]]:
    given: dict[str, Any] = {name: record[name] for name in _NAMES if name in record}
    given["tags"] = tuple(given.get("tags", ()))
    given |= {name: datetime.fromisoformat(record[name]) for name in ("created_at", "updated_at") if record.get(name)}
    attachments = []
    for file in record.get("attachments", ()):
        data = base64.b64decode(file["data"], validate=True)
        attachment = Attachment(hashlib.sha256(data).digest(), file["media_type"], data)
        attachments.append((attachment, dict(file.get("fields", {}))))
    return Draft(**given), attachments
