"""Memories as a list: filtered, paged by number, exported, and deleted one by one or many at once, with undo."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commonplace.errors import InvalidInput
from commonplace.exchange import lines_of
from commonplace.kinds.memories.drawer import EntryRows
from commonplace.kinds.memories.entry import Entry
from commonplace.library import Library
from commonplace.model import JSON, Entries, Filter
from commonplace.store.items import Items
from commonplace.store.listing import Listing
from commonplace.store.outdated import Outdated
from commonplace.text.token_estimates import safe_cut
from commonplace.tools.arguments import moment
from commonplace.web.deletions import Deletions
from commonplace.web.frame import Answer, Download, Redirect, Sheet
from commonplace.web.paths import with_query
from commonplace.web.visits import Visit
from commonplace.web.wording import counted

ROWS = 50
SOON = timedelta(days=14)
"""Memories that end within this time expire soon."""
_LONGEST_SHOWN = 600
_MOST_THREADS = 20
_BATCH = 500
_STATES = {"": "Current", "expiring": "Expire soon", "replaced": "Replaced", "all": "All"}
_SOURCES = {"agent": "Agents", "user": "You"}
_NAMES = ("thread", "source", "tag", "from", "to", "state")
DONE = {
    "stored": "Stored.",
    "corrected": "Corrected. Agents see it at once.",
    "replaced": "Replaced. The one before is kept under “Replaced”.",
    "restored": "Back again.",
    "deleted": "Deleted.",
}
"""What is said after a form was carried out."""

Ids = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class MemoryFilter:
    """The memories that the address of a list asks for."""

    values: dict[str, str]

    @classmethod
    def of(cls, get: Callable[[str], str | None]) -> MemoryFilter:
        """Return the filter of an address or of a form."""
        return cls({name: value for name in _NAMES if (value := (get(name) or "").strip())})

    def path(self, **changes: str | int | None) -> str:
        """Return the address of this list with changes, from its first page."""
        return with_query("/memories", **{**self.values, **changes})

    def select(self, library: Library) -> Ids:
        """Return the ids of the items, ascending."""
        get, state = self.values.get, self.values.get("state", "")
        if state not in _STATES:
            raise InvalidInput(f"state is one of {', '.join(name for name in _STATES if name)}, not {state!r}.")
        source = get("source")
        if source not in (None, *_SOURCES):
            raise InvalidInput(f"source is one of {', '.join(_SOURCES)}, not {source!r}.")
        library.sweep()
        filter = Filter(
            kinds=("memory",),
            parents=(get("thread", ""),) if get("thread") else (),
            tags=(get("tag", ""),) if get("tag") else (),
            created_from=moment("from", get("from", "")) if get("from") else None,
            created_to=moment("to", get("to", ""), end=True) if get("to") else None,
            entries=Entries(source=source, superseded=state in ("replaced", "all")),
        )
        ids = library.store.drawer(Listing).select(filter)
        if state == "expiring":
            soon = int((datetime.now(UTC) + SOON).timestamp() * 1_000_000)
            return np.intersect1d(ids, np.array(library.store.drawer(Outdated).expired(soon), np.int64))
        if state == "replaced":
            return np.intersect1d(ids, np.array(library.store.drawer(Outdated).superseded(), np.int64))
        return ids


def memories(library: Library, visit: Visit) -> Sheet:
    """Return a page of the memories that a filter lets through, newest first."""
    wanted, before = MemoryFilter.of(visit.query.get), visit.query.get("before", "")
    if before and not (before.isascii() and before.isdigit() and len(before) < 19):
        raise InvalidInput("This page of the list cannot be found. Begin with the first.")
    ids = wanted.select(library)
    older = ids[ids < int(before)] if before else ids
    shown = older[-ROWS:][::-1]
    entries = library.memories.entries_of(shown.tolist())
    more = len(older) > len(shown)
    record: dict[str, JSON] = {
        "total": len(ids),
        "kept": library.store.drawer(Listing).counts().get("memory", 0),
        "filter": wanted.values,
        "memories": [row_of(entry) for entry in entries],
        "facets": _facets(library, wanted, entries),
        "filters": _active(wanted),
        "next": wanted.path(before=int(shown[-1])) if more else None,
        "first": not before,
        **said_done(library, visit),
    }
    export = with_query("/memories/export", **wanted.values)
    return Sheet("memories.html", "Memories", record, "memories", beside={"export": export, "problem": "", "typed": {}})


def said_done(library: Library, visit: Visit) -> dict[str, JSON]:
    """Return what the form before did, as the address says, and how to undo it."""
    what, count, undo = (visit.query.get(name, "") for name in ("done", "n", "undo"))
    sentence = DONE.get(what, "")
    if what == "deleted" and count.isdigit():
        sentence = f"Deleted {counted(int(count[:9]), 'memory', 'memories')}."
    can_undo = visit.may_write and undo in library.part(Deletions)
    if what == "deleted" and undo and not can_undo:
        sentence += " This can no longer be undone."
    return {"done": sentence, "undo": undo if can_undo else ""}


def row_of(entry: Entry) -> dict[str, JSON]:
    """Return what a list says of a memory."""
    text = entry.item.body or ""
    cut = safe_cut(text, _LONGEST_SHOWN) if len(text) > _LONGEST_SHOWN else len(text)
    ends = entry.row.expires_at
    return {
        "number": entry.number,
        "uri": entry.item.uri,
        "path": f"/memories/{entry.number}",
        "text": text[:cut],
        "is_cut": cut < len(text),
        "thread": entry.row.thread,
        "source": entry.row.source,
        "tags": list(entry.item.tags),
        "version": entry.item.version,
        "created_at": entry.item.created_at.isoformat(),
        "updated_at": entry.item.updated_at.isoformat(),
        "expires_at": None if ends is None else datetime.fromtimestamp(ends / 1_000_000, UTC).isoformat(),
        "superseded_by": entry.row.superseded_by,
    }


def export(library: Library, visit: Visit) -> Answer:
    """Return what the filter lets through as JSON Lines, which `commonplace import` reads."""
    ids = MemoryFilter.of(visit.query.get).select(library).tolist()
    return Download("memories.jsonl", "".join(f"{line}\n" for line in _lines(library, ids)))


def _lines(library: Library, ids: Sequence[int]) -> Iterator[str]:
    for start in range(0, len(ids), _BATCH):
        yield from lines_of(library.store, library.store.drawer(Items).get(ids[start : start + _BATCH], body=True))


# deleting


def delete(library: Library, visit: Visit) -> Answer:
    """Delete one memory at once, or many after their number was read and confirmed."""
    if only := visit.field("only"):
        return _gone(library, [_number(only)], visit)
    wanted = MemoryFilter.of(visit.field)
    if visit.field("every"):
        numbers = [row.number for row in library.store.drawer(EntryRows).of(wanted.select(library).tolist())]
    else:
        chosen = [_number(text) for text in visit.form.get("number", [])]
        numbers = [row.number for row in library.store.drawer(EntryRows).get(list(dict.fromkeys(chosen)))]
    if not numbers:
        raise InvalidInput("Nothing is selected. Go back, check the boxes of some memories, and delete them then.")
    if visit.field("confirmed") == str(len(numbers)):
        return _gone(library, numbers, visit)
    record: dict[str, JSON] = {
        "count": len(numbers),
        "numbers": [] if visit.field("every") else numbers,
        "filter": wanted.values,
        "filters": _active(wanted),
        "sample": [row_of(entry) for entry in library.memories.entries(numbers[:5])],
    }
    title = f"Delete {counted(len(numbers), 'memory', 'memories')}?"
    return Sheet("delete.html", title, record, "memories", beside={"back": wanted.path()})


def _gone(library: Library, numbers: Sequence[int], visit: Visit) -> Redirect:
    undo, count = library.part(Deletions).delete(library.memories, numbers)
    if not count:
        raise InvalidInput("These memories are gone already.")
    return Redirect(MemoryFilter.of(visit.field).path(done="deleted", n=count, undo=undo))


def undo(library: Library, visit: Visit) -> Answer:
    """Bring back what a deletion took."""
    if not library.part(Deletions).undo(visit.field("undo")):
        raise InvalidInput("This deletion can no longer be undone: the server was restarted, or many came after it.")
    return Redirect(MemoryFilter.of(visit.field).path(done="restored"))


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise InvalidInput(f"{text!r} is no number of a memory.")
    return int(text)


# narrowing


def _active(wanted: MemoryFilter) -> list[dict[str, str]]:
    labels = {"from": "since {}", "to": "until {}"}
    active = []
    for name, value in wanted.values.items():
        label = {"state": _STATES, "source": _SOURCES}.get(name, {}).get(value, labels.get(name, "{}").format(value))
        active.append({"name": name, "value": value, "label": label, "without": wanted.path(**{name: None})})
    return active


def _facets(library: Library, wanted: MemoryFilter, entries: Sequence[Entry]) -> list[dict[str, JSON]]:
    tally, given = library.store.drawer(EntryRows).tally(), wanted.values
    threads, _ = library.store.drawer(EntryRows).threads(limit=_MOST_THREADS, offset=0)
    tags = Counter(tag for entry in entries for tag in entry.item.tags)

    def facet(title: str, name: str, rows: Sequence[tuple[str, str, int | None]]) -> dict[str, Any]:
        on = given.get(name, "")
        listed = [
            {"label": label, "count": count, "path": wanted.path(**{name: value or None}), "on": on == value}
            for value, label, count in rows
        ]
        return {"title": title, "entries": listed}

    states = {"": None, "expiring": tally.expiring, "replaced": tally.superseded, "all": tally.entries}
    facets = [
        facet("Thread", "thread", [("", "All", None), *((row.thread, row.thread, row.entries) for row in threads)]),
        facet(
            "Said by",
            "source",
            [
                ("", "Anyone", None),
                ("agent", "Agents", tally.entries - tally.from_user),
                ("user", "You", tally.from_user),
            ],
        ),
        facet("Tags", "tag", [(tag, tag, None) for tag, _ in tags.most_common(8)]),
        facet("State", "state", [(state, _STATES[state], states[state]) for state in _STATES]),
    ]
    return [one for one in facets if one["entries"]]
