"""Import entries from elsewhere, with their numbers, their times and everything that hangs on them.

An entry of an mcp-context-server of version 3 has a UUID in place of a number. It is kept beside the imported entry,
which is found by the beginning of it; a text of digits alone is always an entry number of ours.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

from commonplace.errors import InvalidInput, NotFound
from commonplace.ingest.prepare import check
from commonplace.kinds.memories.drawer import EntryRows
from commonplace.kinds.memories.entry import EntryRow, Image, normal_tags
from commonplace.kinds.memories.entry_writes import EntryRules, cut
from commonplace.model import JSON, Draft
from commonplace.store.attachments import Attachments
from commonplace.store.base import Store
from commonplace.store.filters import micros
from commonplace.store.import_sources import ImportSource, ImportSources
from commonplace.store.items import Items
from commonplace.store.sqlite.context_server import ForeignEntry, open_foreign

# ids of theirs


SHORTEST, WHOLE = 8, 32
"""Hexadecimal digits of the beginning of an id, and of all of it."""
_KIND, _PATH = "memory", "context-server"
_DIGITS = re.compile(r"[0-9a-f]+\Z")
_MOST_NAMED = 5


def id_of(text: str) -> str | None:
    """Return the hexadecimal digits of an id or of its beginning; None for what is neither, or a number of ours."""
    trimmed = text.strip().lower()
    digits = trimmed.replace("-", "")
    if trimmed.isdigit() or not SHORTEST <= len(digits) <= WHOLE or not _DIGITS.match(digits):
        return None
    return digits


def keep_id(store: Store, id: str, item_id: int) -> None:
    """Note the id under which an entry was imported. It is removed with the entry."""
    store.drawer(ImportSources).keep(ImportSource(_KIND, _path(id), id, b"", item_id, 1))


def has_id(store: Store, item_id: int) -> bool:
    """Return whether an entry was imported under an id."""
    return any(source.kind == _KIND for source in store.drawer(ImportSources).of(item_id))


def number_of(store: Store, id: str) -> int | None:
    """Return the number here of the entry that was imported under exactly this id, or None."""
    source = store.drawer(ImportSources).find(_KIND, _path(id), id)
    rows = store.drawer(EntryRows).of([source.item_id]) if source else []
    return rows[0].number if rows else None


def number_called(store: Store, beginning: str) -> int:
    """Return the number of the entry whose id begins with `beginning`. Raise NotFound where none or several do."""
    pieces = store.drawer(ImportSources).at(_KIND, _path(beginning))
    sources = [piece for piece in pieces if piece.position.startswith(beginning)]
    rows = {row.item_id: row for row in store.drawer(EntryRows).of([source.item_id for source in sources])}
    matches = [(source.position, rows[source.item_id]) for source in sources if source.item_id in rows]
    if not matches:
        raise NotFound(f"There is no context entry {beginning[:SHORTEST]}….")
    if len({row.number for _, row in matches}) > 1:
        raise NotFound(_several(beginning, matches), code="ambiguous", candidates=[id for id, _ in matches])
    return matches[0][1].number


def _several(beginning: str, known: Sequence[tuple[str, EntryRow]]) -> str:
    listing = ", ".join(f"{id} ({row.number})" for id, row in known[:_MOST_NAMED])
    more = f" and {len(known) - _MOST_NAMED} more" if len(known) > _MOST_NAMED else ""
    return f"Several context entries have ids that begin with {beginning}: {listing}{more}. Give one of them."


def _path(id: str) -> str:
    """Return the path an id is stored under: the part that every accepted prefix of it has."""
    return f"{_PATH}/{id[:SHORTEST]}"


# entries


_BATCH = 200
RAW = "import_raw_metadata"


@dataclass(frozen=True, slots=True)
class IncomingEntry:
    """An entry from elsewhere: it already has a number or an id, times and a version."""

    number: int
    """0 where it has an id instead."""
    thread: str
    source: str
    text: str
    metadata: dict[str, JSON]
    tags: tuple[str, ...]
    images: tuple[Image, ...]
    summary: str | None
    created_at: datetime
    updated_at: datetime
    version: int = 1
    expires_at: int | None = None
    supersedes: tuple[int, ...] = ()
    id: str = ""
    """Its UUID in an mcp-context-server of version 3, "" where it had none."""

    @property
    def name(self) -> int | str:
        """Return its id or number at its origin."""
        return self.id or self.number


@dataclass(slots=True)
class Imported:
    """The result of an import. `numbers` maps the names of entries that got a new number to that number."""

    found: int = 0
    stored: int = 0
    already: int = 0
    images: int = 0
    raw_metadata: list[int | str] = field(default_factory=list)
    numbers: dict[int | str, int] = field(default_factory=dict)
    here: dict[int | str, int] = field(default_factory=dict)
    """The number here of every entry that is stored by now, by its name at its origin."""
    awaited: dict[int, list[int]] = field(default_factory=dict)
    """Entries still to come, by number, with the numbers here of earlier ones that supersede them."""


def import_kept(
    store: Store,
    source: Callable[[], Iterable[IncomingEntry]],
    rules: EntryRules,
    *,
    renumber: bool = False,
    dry_run: bool = False,
) -> Imported:
    """Store entries under their own numbers. Raise InvalidInput before anything is written where one is taken.

    `source` is called twice, to check and to write, so that never more than a batch is in memory.
    """
    report, new_names = Imported(), set[int | str]()
    number_here = _number_lookup(store, renumber=renumber)
    for entry in source():
        report.found += 1
        if entry.name in new_names:
            raise InvalidInput(f"Entry {entry.name} is there twice; nothing was imported.")
        if (number := number_here(entry)) is not None:
            report.already += 1
            report.here[entry.name] = number
            continue
        check(_draft(entry))
        new_names.add(entry.name)
        report.images += len(entry.images)
    report.stored = len(new_names)
    if not dry_run:
        _keep_ids(store, report.here)
        fresh = (entry for entry in source() if entry.name in new_names)
        while batch := list(islice(fresh, _BATCH)):
            _write(store, batch, rules, report, renumber=renumber)
        store.refresh_statistics()
    return report


def _write(
    store: Store, batch: Sequence[IncomingEntry], rules: EntryRules, report: Imported, *, renumber: bool
) -> None:
    """Store a batch in one transaction and note the new numbers in the report."""
    with store.transaction():
        for entry in batch:
            number = store.drawer(EntryRows).next_number() if renumber or entry.id else entry.number
            replaced = [report.here.get(older, 0 if renumber else older) for older in entry.supersedes]
            draft = _draft(replace(entry, number=number, supersedes=tuple(filter(None, replaced))))
            item_id = store.drawer(EntryRows).restore(cut(draft, rules), entry.version)
            if entry.images:
                store.drawer(Attachments).attach(item_id, [image.attachment() for image in entry.images])
            if entry.id:
                keep_id(store, entry.id, item_id)
            report.here[entry.name] = number
            if renumber and number != entry.name:
                report.numbers[entry.name] = number
            for successor in report.awaited.pop(entry.number, ()) if entry.number else ():
                store.drawer(EntryRows).supersede(successor, [number])
            for older in entry.supersedes:
                if older not in report.here:
                    report.awaited.setdefault(older, []).append(number)


def _keep_ids(store: Store, here: Mapping[int | str, int]) -> None:
    """Note the ids of entries that are here already and were recognized by their content."""
    ids = {number: name for name, number in here.items() if isinstance(name, str)}
    with store.transaction():
        for row in store.drawer(EntryRows).get(list(ids)) if ids else []:
            keep_id(store, ids[row.number], row.item_id)


def read_context_server(path: Path, noted: set[int | str]) -> Iterator[IncomingEntry]:
    """Yield the entries of an mcp-context-server's file.

    Add the ids of those whose metadata is no object to `noted`.
    """
    with open_foreign(path) as file:
        for entry in file.entries():
            metadata = _object(entry.metadata)
            if metadata is None:
                noted.add(entry.id)
                metadata = {RAW: entry.metadata}
            yield _incoming(entry, metadata)


def _incoming(entry: ForeignEntry, metadata: dict[str, JSON]) -> IncomingEntry:
    images = tuple(Image(data, kind, _loads(metadata_text)) for data, kind, metadata_text in entry.images)
    number, id = (entry.id, "") if isinstance(entry.id, int) else (0, entry.id)
    return IncomingEntry(
        number, entry.thread.strip(), entry.source, entry.text, metadata, normal_tags(entry.tags), images,
        entry.summary, entry.created_at, entry.updated_at, id=id,
    )  # fmt: skip


def _number_lookup(store: Store, *, renumber: bool) -> Callable[[IncomingEntry], int | None]:
    """Return a function from an entry to its number here, or None where it is not here.

    An entry with an id is looked up by that, else by its content; a number is looked up as such unless renumbering.
    """
    by_number = None if renumber else _lookup_by_number(store)
    by_likeness = cache(lambda: _lookup_by_content(store))  # called once at most: it reads every entry

    def known(entry: IncomingEntry) -> int | None:
        if not entry.id:
            return by_number(entry) if by_number else by_likeness()(entry)
        number = number_of(store, entry.id)
        while number is None and (like_number := by_likeness()(entry)) is not None:
            if not has_id(store, store.drawer(EntryRows).get([like_number])[0].item_id):
                number = like_number
        return number

    return known


def _lookup_by_number(store: Store) -> Callable[[IncomingEntry], int | None]:
    """Return a function from an entry to its own number, where it is here with the same thread, source and time.

    The function raises InvalidInput where another entry has the number.
    """

    def known(entry: IncomingEntry) -> int | None:
        rows = store.drawer(EntryRows).get([entry.number])
        if not rows:
            return None
        identity = (entry.thread, entry.source, micros(entry.created_at))
        if (rows[0].thread, rows[0].source, rows[0].created_at) != identity:
            raise InvalidInput(
                f"Entry {entry.number} is taken by another entry here; nothing was imported. "
                "Use --renumber to give the imported entries new numbers."
            )
        return entry.number

    return known


def _lookup_by_content(store: Store) -> Callable[[IncomingEntry], int | None]:
    """Return a function from an entry to the number of one with the same thread, source, time and text.

    Each number is returned once, so that equal entries are matched in pairs.
    """
    here: dict[tuple[str, str, int, str], list[int]] = defaultdict(list)
    numbers = store.drawer(EntryRows).numbers()
    for start in range(0, len(numbers), _BATCH):
        rows = store.drawer(EntryRows).get(numbers[start : start + _BATCH])
        items = {item.id: item for item in store.drawer(Items).get([row.item_id for row in rows])}
        for row in rows:
            here[row.thread, row.source, row.created_at, items[row.item_id].content_hash].append(row.number)

    def known(entry: IncomingEntry) -> int | None:
        numbers_left = here.get((entry.thread, entry.source, micros(entry.created_at), _hash(entry.text)))
        return numbers_left.pop(0) if numbers_left else None

    return known


def _draft(entry: IncomingEntry) -> Draft:
    fields: dict[str, JSON] = {"source": entry.source}
    if entry.summary:
        fields["summary"] = entry.summary
    if entry.expires_at is not None:
        fields["expires_at"] = entry.expires_at
    if entry.supersedes:
        fields["supersedes"] = list(entry.supersedes)
    return Draft(
        "memory",
        str(entry.number),
        parent=entry.thread,
        body=entry.text,
        fields=fields,
        metadata=entry.metadata,
        tags=entry.tags,
        created_at=entry.created_at,
        updated_at=entry.updated_at,
    )


def _object(text: str | None) -> dict[str, JSON] | None:
    """Return metadata as an object; None where it is something else."""
    if text is None or not str(text).strip():
        return {}
    value = _loads(text)
    if value is None:
        return {} if str(text).strip() == "null" else None
    return value if isinstance(value, dict) else None


def _loads(text: str | None) -> Any:
    try:
        return json.loads(text, parse_constant=_refuse) if text else None
    except (ValueError, RecursionError, TypeError):
        return None


def _refuse(name: str) -> None:
    raise ValueError(name)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
