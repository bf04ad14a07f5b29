"""The memories of a space: entries in threads, written whole or not at all, and removed when they expire."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TypeGuard, TypeVar

from commonplace.errors import CommonplaceError
from commonplace.kinds.memories.drawer import EntryRows
from commonplace.kinds.memories.entry import BatchFailed, Entry, EntryRow, New, Revised, Revision, Stored
from commonplace.kinds.memories.entry_imports import Imported, IncomingEntry, import_kept, read_context_server
from commonplace.kinds.memories.entry_writes import EntryRules, Storing, cut, draft_of, revise_entry
from commonplace.kinds.memories.generation import Generation
from commonplace.kinds.memories.metadata import sync_fields
from commonplace.model import Draft
from commonplace.settings import BadSetting, Settings
from commonplace.space import Space
from commonplace.store.items import Items
from commonplace.store.metadata_index import MetadataIndex
from commonplace.store.outdated import Outdated
from commonplace.text.chunk import ChunkRules
from commonplace.text.languages import UNKNOWN, code_of

T = TypeVar("T")
U = TypeVar("U")
BULK = 50
"""Entries in one write from which on the planner's statistics are refreshed afterwards."""

_QUARTERS = 4  # characters to a token, as `text.tokens` counts Latin ones
_UNSTEMMED = ("simple", "nepali", "yiddish")  # which mcp-context-server knows too, and which have no stems here


class Memories:
    """The memories of one library. Every call first removes what has expired, so that no caller sees it."""

    def __init__(self, space: Space) -> None:
        store, settings = space.store, space.settings
        self._store = store
        self._rules = EntryRules(_chunk_rules(settings), settings.memory_history, _language(settings))
        self.generation = Generation(store, space.embedding, settings)
        self.summaries = self.generation.summaries
        sync_fields(store.drawer(MetadataIndex), settings)

    # reading

    def entries(self, numbers: Sequence[int], *, history: bool = False) -> list[Entry]:
        """Return the entries with these numbers, each once, in the order given, with their text.

        Unknown ones are left out.
        """
        self.sweep()
        return self._whole(self._store.drawer(EntryRows).get(list(dict.fromkeys(numbers))), history=history)

    def entries_of(self, item_ids: Sequence[int]) -> list[Entry]:
        """Return the entries that these items are, in the order given, with their text."""
        return self._whole(self._store.drawer(EntryRows).of(item_ids))

    def _whole(self, rows: Sequence[EntryRow], *, history: bool = False) -> list[Entry]:
        ids = [row.item_id for row in rows]
        items = {item.id: item for item in self._store.drawer(Items).get(ids, body=True)}
        past = self._store.drawer(EntryRows).past(ids) if history else {}
        return [
            Entry(row, items[row.item_id], tuple(past.get(row.item_id, ()))) for row in rows if row.item_id in items
        ]

    # writing

    def store(self, new: Sequence[New], *, atomic: bool = True, batch: bool = False) -> list[Stored | CommonplaceError]:
        """Store entries in order, in one transaction, and return one result for each.

        `atomic`: the first error is raised, in a batch as a `BatchFailed` with its place, and nothing is stored;
        otherwise the error stands where its result would.
        """
        drafts = _each(new, lambda entry: draft_of(entry, self._rules), atomic=atomic, batch=batch)
        valid_drafts = [draft for draft in drafts if not isinstance(draft, CommonplaceError)]
        ahead = self.generation.before(valid_drafts, batch=batch)
        entries = [entry for entry, draft in zip(new, drafts, strict=True) if not isinstance(draft, CommonplaceError)]
        pairs_to_store = list(zip(entries, ahead.summarized(valid_drafts), strict=True))
        self.sweep()
        with self._store.transaction():
            storing = Storing(self._store, self._rules, pairs_to_store, atomic=atomic, batch=batch)
            stored_results = iter(storing.results())
            results = [draft if isinstance(draft, CommonplaceError) else next(stored_results) for draft in drafts]
            ahead.keep()
            pairs = zip(new, results, strict=True)
            stored = [(result.item_id, entry.text) for entry, result in pairs if _is_fresh(result)]
            self.generation.later(dict(stored))
        fresh = [item_id for item_id, _ in stored]
        embedded_items = self.generation.after(list(dict.fromkeys(fresh)))
        self._settle(len(new))
        return [self._told(result, embedded_items) if isinstance(result, Stored) else result for result in results]

    def revise(
        self, revisions: Sequence[Revision], *, atomic: bool = True, batch: bool = False
    ) -> list[Revised | CommonplaceError]:
        """Change entries in order, in one transaction, and return one result for each.

        `atomic`: the first error is raised, in a batch as a `BatchFailed`, and nothing changes; otherwise the error
        stands where its result would.
        """
        texts = {n: revision.text for n, revision in enumerate(revisions) if revision.text is not None}
        prepared = {n: cut(Draft("memory", "0", body=text), self._rules) for n, text in texts.items()}
        ahead = self.generation.before(list(prepared.values()), batch=batch)
        prepared = dict(zip(prepared, ahead.summarized(list(prepared.values())), strict=True))
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
                result.item_id: revision.text or ""
                for revision, result in pairs
                if isinstance(result, Revised) and result.other_text
            }
            self.generation.later(texts)
        changed = list(texts)
        embedded_items = self.generation.after(changed)
        self._settle(len(revisions))
        return [self._embedded(result, embedded_items) if isinstance(result, Revised) else result for result in results]

    def _written(
        self, inputs: Sequence[T], write: Callable[[T], U], *, atomic: bool, batch: bool
    ) -> list[U | CommonplaceError]:
        def alone(one: T) -> U:
            with self._store.transaction():
                return write(one)

        return _each(inputs, write if atomic else alone, atomic=atomic, batch=batch)

    def find(
        self,
        *,
        numbers: Sequence[int] | None = None,
        threads: Sequence[str] | None = None,
        source: str | None = None,
        before: int | None = None,
    ) -> list[int]:
        """Return the numbers of the entries that satisfy everything given.

        `before`: created earlier, in microseconds.
        """
        self.sweep()
        return self._store.drawer(EntryRows).numbers(numbers=numbers, threads=threads, source=source, before=before)

    def delete(self, numbers: Sequence[int]) -> int:
        """Remove entries with everything that hangs on them, and return how many there were."""
        with self._store.transaction():
            count = self._store.drawer(Items).delete(
                [row.item_id for row in self._store.drawer(EntryRows).get(numbers)]
            )
        self._settle(count)
        return count

    def restore(
        self, source: Callable[[], Iterable[IncomingEntry]], *, renumber: bool = False, dry_run: bool = False
    ) -> Imported:
        """Store entries from elsewhere under their own numbers, and return a report. `source` is called twice."""
        self.sweep()
        return import_kept(self._store, source, self._rules, renumber=renumber, dry_run=dry_run)

    def import_context_server(self, path: Path, *, renumber: bool = False, dry_run: bool = False) -> Imported:
        """Store the entries of an mcp-context-server's file, and return a report.

        A second run adds only what is new.
        """
        noted: set[int | str] = set()
        report = self.restore(lambda: read_context_server(path, noted), renumber=renumber, dry_run=dry_run)
        report.raw_metadata = sorted(noted, key=lambda id: (str(id), 0) if isinstance(id, str) else ("", id))
        return report

    def sweep(self) -> int:
        """Remove entries that have expired and return how many. Where none has, it costs one look at an index."""
        expired = self._store.drawer(Outdated).expired(time.time_ns() // 1000)
        return self._store.drawer(Items).delete(expired) if expired else 0

    def _settle(self, written: int) -> None:
        if written >= BULK:
            with suppress(CommonplaceError):  # the write is durable; slower plans are no reason to report it as failed
                self._store.refresh_statistics()

    def _told(self, result: Stored, embedded_items: set[int]) -> Stored:
        """Return the result of a store with the state of its embedding."""
        if result.deduplicated or not self.generation.enabled:
            return result
        return replace(result, embedding="generated" if result.item_id in embedded_items else "pending")

    def _embedded(self, result: Revised, embedded_items: set[int]) -> Revised:
        """Return the result of an update, with `embedding` among its changes where vectors were made."""
        if not result.other_text or result.item_id not in embedded_items or "embedding" in result.changed:
            return result
        return replace(result, changed=(*result.changed, "embedding"))


def _each(inputs: Sequence[T], work: Callable[[T], U], *, atomic: bool, batch: bool) -> list[U | CommonplaceError]:
    """Return the result of `work` for each.

    An error is raised where atomic, in a batch as a `BatchFailed`; else it is a result.
    """
    results: list[U | CommonplaceError] = []
    for place, one in enumerate(inputs):
        try:
            results.append(work(one))
        except CommonplaceError as error:
            if atomic:
                raise BatchFailed(place, error) if batch else error from error
            results.append(error)
    return results


def _is_fresh(result: Stored | CommonplaceError) -> TypeGuard[Stored]:
    return isinstance(result, Stored) and not result.deduplicated


def _language(settings: Settings) -> str:
    """Return the language of texts that show none, UNKNOWN where it is the library's own. Raise BadSetting."""
    name = settings.memory_language
    code = code_of(name)
    if code == UNKNOWN and name.strip().lower() not in _UNSTEMMED:
        raise BadSetting(f"memory_language must be a language such as english or en, or simple, not {name!r}.")
    return UNKNOWN if code == settings.language else code


def _chunk_rules(settings: Settings) -> ChunkRules:
    """Return the rules for cutting entries. The settings count characters, the rules tokens."""
    target = max(settings.memory_chunk_size // _QUARTERS, 1) if settings.memory_chunking else 1 << 30
    overlap = min(settings.memory_chunk_overlap // _QUARTERS, target - 1)
    return ChunkRules(target=target, overlap=overlap, window=max(1, target // 5), in_lines=True)
