"""The memories of a space: entries in threads, written whole or not at all, and gone when their time is over."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TypeGuard, TypeVar

from commonplace.errors import CommonplaceError
from commonplace.ingest.embedding import Embedding
from commonplace.kinds.memories.entry import BatchFailed, Entry, New, Revised, Revision, Stored
from commonplace.kinds.memories.fields import sync_fields
from commonplace.kinds.memories.generation import Generation
from commonplace.kinds.memories.importing import Imported, Kept, import_kept, read_context_server
from commonplace.kinds.memories.storing import Storing
from commonplace.kinds.memories.writing import Rules, cut, draft_of, revise_entry
from commonplace.model import Draft
from commonplace.settings import BadSetting, Settings
from commonplace.store.base import Store
from commonplace.store.rows import EntryRow
from commonplace.text.chunk import ChunkRules
from commonplace.text.languages import UNKNOWN, code_of

T = TypeVar("T")
U = TypeVar("U")
BULK = 50
"""Writes of this many entries and more are followed by fresh planner statistics."""

_QUARTERS = 4  # characters to a token, as `text.tokens` counts Latin ones
_UNSTEMMED = ("simple", "nepali", "yiddish")  # which mcp-context-server knows too, and which have no stems here


class Memories:
    """Made once per library. Every call first removes what has expired, so that nothing after it can see it."""

    def __init__(self, store: Store, embedding: Embedding, settings: Settings) -> None:
        self._store = store
        self._rules = Rules(_chunk_rules(settings), settings.memory_history, _language(settings))
        self.generation = Generation(store, embedding, settings)
        self.summaries = self.generation.summaries
        sync_fields(store, settings)

    # reading

    def entries(self, numbers: Sequence[int], *, history: bool = False) -> list[Entry]:
        """The entries of these numbers that are there, each once, in the order asked for, with their text."""
        self.sweep()
        return self._whole(self._store.entries(list(dict.fromkeys(numbers))), history=history)

    def entries_of(self, item_ids: Sequence[int]) -> list[Entry]:
        """The entries that these items are, in the order asked for, with their text."""
        return self._whole(self._store.entries_of(item_ids))

    def _whole(self, rows: Sequence[EntryRow], *, history: bool = False) -> list[Entry]:
        ids = [row.item_id for row in rows]
        items = {item.id: item for item in self._store.items(ids, body=True)}
        past = self._store.past(ids) if history else {}
        return [
            Entry(row, items[row.item_id], tuple(past.get(row.item_id, ()))) for row in rows if row.item_id in items
        ]

    # writing

    def store(self, new: Sequence[New], *, atomic: bool = True, batch: bool = False) -> list[Stored | CommonplaceError]:
        """Store entries in order, in one transaction. Atomic: the first that fails is raised, and nothing is stored.

        In a batch it is raised as a `BatchFailed`, which knows its place.
        """
        drafts = _each(new, lambda entry: draft_of(entry, self._rules), atomic=atomic, batch=batch)
        good = [draft for draft in drafts if not isinstance(draft, CommonplaceError)]
        ahead = self.generation.before(good, batch=batch)
        entries = [entry for entry, draft in zip(new, drafts, strict=True) if not isinstance(draft, CommonplaceError)]
        given = list(zip(entries, ahead.summarised(good), strict=True))
        self.sweep()
        with self._store.transaction():
            made = iter(Storing(self._store, self._rules, given, atomic=atomic, batch=batch).results())
            results = [draft if isinstance(draft, CommonplaceError) else next(made) for draft in drafts]
            ahead.keep()
            pairs = zip(new, results, strict=True)
            stored = [(made.item_id, entry.text) for entry, made in pairs if _is_fresh(made)]
            self.generation.later(dict(stored))
        fresh = [item_id for item_id, _ in stored]
        done = self.generation.after(list(dict.fromkeys(fresh)))
        self._settle(len(new))
        return [self._told(made, done) if isinstance(made, Stored) else made for made in results]

    def revise(
        self, revisions: Sequence[Revision], *, atomic: bool = True, batch: bool = False
    ) -> list[Revised | CommonplaceError]:
        """Change entries in order, in one transaction. Atomic: the first that fails is raised, and nothing changes."""
        texts = {n: revision.text for n, revision in enumerate(revisions) if revision.text is not None}
        prepared = {n: cut(Draft("memory", "0", body=text), self._rules) for n, text in texts.items()}
        ahead = self.generation.before(list(prepared.values()), batch=batch)
        prepared = dict(zip(prepared, ahead.summarised(list(prepared.values())), strict=True))
        self.sweep()
        with self._store.transaction():
            results = self._written(
                list(enumerate(revisions)),
                lambda pair: revise_entry(self._store, pair[1], self._rules, prepared.get(pair[0])),
                atomic=atomic,
                batch=batch,
            )
            ahead.keep()
            pairs = zip(revisions, results, strict=True)
            texts = {
                made.item_id: revision.text or ""
                for revision, made in pairs
                if isinstance(made, Revised) and made.other_text
            }
            self.generation.later(texts)
        changed = list(texts)
        done = self.generation.after(changed)
        self._settle(len(revisions))
        return [self._embedded(made, done) if isinstance(made, Revised) else made for made in results]

    def _written(
        self, given: Sequence[T], write: Callable[[T], U], *, atomic: bool, batch: bool
    ) -> list[U | CommonplaceError]:
        def alone(one: T) -> U:
            with self._store.transaction():
                return write(one)

        return _each(given, write if atomic else alone, atomic=atomic, batch=batch)

    def find(
        self,
        *,
        numbers: Sequence[int] | None = None,
        threads: Sequence[str] | None = None,
        source: str | None = None,
        before: int | None = None,
    ) -> list[int]:
        """The numbers of entries that satisfy everything that is given. `before` is a time of creation in micros."""
        self.sweep()
        return self._store.entry_numbers(numbers=numbers, threads=threads, source=source, before=before)

    def delete(self, numbers: Sequence[int]) -> int:
        """Remove entries with everything that hangs on them; returns how many were there."""
        with self._store.transaction():
            gone = self._store.delete([row.item_id for row in self._store.entries(numbers)])
        self._settle(gone)
        return gone

    def restore(
        self, source: Callable[[], Iterable[Kept]], *, renumber: bool = False, dry_run: bool = False
    ) -> Imported:
        """Store entries that were kept elsewhere, under their own numbers."""
        self.sweep()
        return import_kept(self._store, source, self._rules, renumber=renumber, dry_run=dry_run)

    def import_context_server(self, path: Path, *, renumber: bool = False, dry_run: bool = False) -> Imported:
        """Store what an mcp-context-server has kept in its file. Done again, it adds only what is new."""
        noted: set[int | str] = set()
        done = self.restore(lambda: read_context_server(path, noted), renumber=renumber, dry_run=dry_run)
        done.raw_metadata = sorted(noted, key=lambda id: (str(id), 0) if isinstance(id, str) else ("", id))
        return done

    def sweep(self) -> int:
        """Remove what has expired. Costs a look at an index where nothing has."""
        expired = self._store.expired(time.time_ns() // 1000)
        return self._store.delete(expired) if expired else 0

    def _settle(self, written: int) -> None:
        if written >= BULK:
            with suppress(CommonplaceError):  # what was written is durable; slower plans are no reason to say otherwise
                self._store.refresh_statistics()

    def _told(self, made: Stored, done: set[int]) -> Stored:
        if made.deduplicated or not self.generation.enabled:
            return made
        return replace(made, embedding="generated" if made.item_id in done else "pending")

    def _embedded(self, made: Revised, done: set[int]) -> Revised:
        if not made.other_text or made.item_id not in done or "embedding" in made.changed:
            return made
        return replace(made, changed=(*made.changed, "embedding"))


def _each(given: Sequence[T], work: Callable[[T], U], *, atomic: bool, batch: bool) -> list[U | CommonplaceError]:
    """Do it to each. What goes wrong is raised, in a batch with its place, or stands where the result would be."""
    results: list[U | CommonplaceError] = []
    for place, one in enumerate(given):
        try:
            results.append(work(one))
        except CommonplaceError as error:
            if atomic:
                raise BatchFailed(place, error) if batch else error from error
            results.append(error)
    return results


def _is_fresh(made: Stored | CommonplaceError) -> TypeGuard[Stored]:
    return isinstance(made, Stored) and not made.deduplicated


def _language(settings: Settings) -> str:
    """What a text is taken for that does not tell. The library's own language goes without saying."""
    name = settings.memory_language
    code = code_of(name)
    if code == UNKNOWN and name.strip().lower() not in _UNSTEMMED:
        raise BadSetting(f"memory_language must be a language such as english or en, or simple, not {name!r}.")
    return UNKNOWN if code == settings.language else code


def _chunk_rules(settings: Settings) -> ChunkRules:
    """The settings count characters, the rules tokens."""
    target = max(settings.memory_chunk_size // _QUARTERS, 1) if settings.memory_chunking else 1 << 30
    overlap = min(settings.memory_chunk_overlap // _QUARTERS, target - 1)
    return ChunkRules(target=target, overlap=overlap, window=max(1, target // 5), in_lines=True)
