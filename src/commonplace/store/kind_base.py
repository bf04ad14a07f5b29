"""The parts of a store's interface that one kind of items needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from commonplace.model import Item
from commonplace.store.rows import (
    DocumentRow,
    Ending,
    EntryRow,
    FileRecord,
    FolderChange,
    FolderResult,
    Moment,
    Name,
    Past,
    Said,
    Tally,
    ThreadRow,
    Write,
)

if TYPE_CHECKING:
    from commonplace.text.outline import Outline


class EntryStore(Protocol):
    """Memory entries: items of kind `memory` whose key is a number and whose fields name a source."""

    def next_entry(self) -> int:
        """Return the number of the entry that this transaction stores next. Numbers rise and are never reused."""
        ...

    def entries(self, numbers: Sequence[int]) -> list[EntryRow]:
        """Return the entries of these numbers that exist, in the order of the numbers."""
        ...

    def entries_of(self, item_ids: Sequence[int]) -> list[EntryRow]:
        """Return the entries that these items are, in the order of the ids."""
        ...

    def latest_entries(self, threads: Sequence[str], limit: int) -> Mapping[str, list[Said]]:
        """Return the newest entries of each of these threads, newest first. A thread without any is left out."""
        ...

    def add_entries(self, writes: Sequence[Write]) -> list[tuple[int, int]]:
        """Store new entries, each under the next number, which is its key whatever its draft says.

        Return (number, item id) of each. Where this raises, the transaction it is a part of has to fail too.
        """
        ...

    def entry_numbers(
        self,
        *,
        numbers: Sequence[int] | None = None,
        threads: Sequence[str] | None = None,
        source: str | None = None,
        before: int | None = None,
    ) -> list[int]:
        """Return the entries that satisfy every condition, ascending. `before` is a creation time in microseconds."""
        ...

    def expired(self, now: int) -> list[int]:
        """Return the item ids of entries that expire at or before `now`, in microseconds."""
        ...

    def restore_entry(self, write: Write, version: int) -> int:
        """Store an entry that is not here yet, at the version it had when exported, and return its item's id."""
        ...

    def supersede(self, newer: int, older: Sequence[int]) -> None:
        """Note that an entry replaces older ones; those that are not here are left out."""
        ...

    def superseded_items(self) -> list[int]:
        """Return the item ids of entries that newer ones have replaced, ascending."""
        ...

    def entry_times(self, item_ids: Sequence[int] | None = None) -> list[Moment]:
        """Return the memory entries among these items, or all there are, in the order of their item ids."""
        ...

    def threads(self, *, limit: int, offset: int) -> tuple[list[ThreadRow], int]:
        """Return threads of memory entries, the one with the latest entry first, and how many there are in all."""
        ...

    def tally(self) -> Tally:
        """Return the counts of memory entries, all of one moment."""
        ...

    def embedded_entries(self, model_id: int) -> tuple[int, int, int]:
        """Return of a model: entries with vectors, their vectors, and entries that still lack some."""
        ...

    def keep_past(self, item_id: int, past: Past, most: int) -> None:
        """Store a former state of an entry, and remove all but the newest `most`."""
        ...

    def past(self, item_ids: Sequence[int]) -> dict[int, list[Past]]:
        """Return the former states of entries by item id, newest first."""
        ...

    def set_summary(self, item_id: int, body: str, summary: str) -> bool:
        """Store the summary of an entry if this is still its text, and return whether it was stored.

        It makes no version and no change: nobody who follows the log has a use for it.
        """
        ...

    def indexed_fields(self) -> list[tuple[str, ...]]:
        """Return the metadata paths by which entries are found without reading them all."""
        ...

    def index_field(self, path: tuple[str, ...]) -> None:
        """Index a metadata path, so that filters on it are fast. What they answer stays the same."""
        ...

    def drop_field(self, path: tuple[str, ...]) -> None:
        """Remove the index of a metadata path."""
        ...

    def refresh_statistics(self) -> None:
        """Tell the query planner how much there is, at the end of a bulk write."""
        ...


class DocumentStore(Protocol):
    """Documents: their names, their outlines, and the collections of files they come from.

    Each finder by name returns the first few by name and how many there are.
    """

    # names

    def documents_by_docid(self, prefix: str, limit: int) -> tuple[list[Name], int]:
        """Return documents whose `collection/path` has a SHA-256 that begins with this."""
        ...

    def documents_by_hash(self, prefix: str, limit: int) -> tuple[list[Name], int]:
        """Return documents whose body has a SHA-256 that begins with this."""
        ...

    def documents_by_end(self, path: str, ending: Ending, limit: int) -> tuple[list[Name], int]:
        """Return documents whose name ends with these whole components, compared in NFC."""
        ...

    def documents_in_any_case(self, path: str, limit: int, *, with_ending: bool) -> tuple[list[Name], int]:
        """Return documents that end with these components in any case, shortest first; `with_ending` or with any."""
        ...

    def docids(self, item_ids: Sequence[int]) -> dict[int, str]:
        """Return the short ids of documents: six hexadecimal digits, or the fewest that no other document shares."""
        ...

    def document_files(self) -> tuple[list[int], list[str]]:
        """Return the id and `collection/path` of every document, by collection, then path. Reads an index, no text."""
        ...

    def files_of(self, item_ids: Sequence[int]) -> dict[int, str]:
        """Return the `collection/path` of documents by id."""
        ...

    def body_sizes(self, item_ids: Sequence[int]) -> dict[int, int]:
        """Return the bytes that bodies take in UTF-8, by item id, without reading them."""
        ...

    def unembedded_documents(self, model_id: int | None, parents: Sequence[str] = ()) -> int:
        """Return how many documents, of these parents if any, have a chunk without a vector of the model."""
        ...

    # outlines

    def document_page(self, parent: str, *, limit: int, offset: int) -> tuple[list[DocumentRow], int]:
        """Return documents of a parent in the code-point order of their keys, and how many there are. Reads no body."""
        ...

    def document_counts(self, parents: Sequence[str]) -> dict[str, int]:
        """Return the number of documents that each of these parents holds; one without any is left out."""
        ...

    def document_rows(self, item_ids: Sequence[int]) -> dict[int, DocumentRow]:
        """Return the documents among these items by id."""
        ...

    def outline(self, item_id: int) -> Outline | None:
        """Return the stored outline of a document, or None."""
        ...

    def headings_at(self, places: Sequence[tuple[int, int]]) -> list[tuple[str, ...]]:
        """Return for each (item, line) the last heading up to that line, below those above it; () before the first."""
        ...

    def body_part(self, item_id: int, start: int, end: int) -> str:
        """Return the characters of a body from `start` to before `end`; '' where the item is gone."""
        ...

    def keep_outlines(self, outlines: Sequence[tuple[int, int, Outline]]) -> None:
        """Store outlines as (item id, version, outline), but none of an item that has another version by now."""
        ...

    # collections of files

    def collections(self) -> list[Item]:
        """Return the items that are collections, by name."""
        ...

    def file_records(self, collection: str) -> dict[str, FileRecord]:
        """Return the records of a collection's files by path."""
        ...

    def document_versions(self, collection: str) -> dict[str, int]:
        """Return the version of every document of a collection, by path."""
        ...

    def collection_changed_at(self, collection: str) -> int | None:
        """Return when an update last added, changed or removed one of its documents, in microseconds, or None."""
        ...

    def change_folder(self, change: FolderChange) -> FolderResult:
        """Change a collection in one transaction and count that. Documents that move within it keep their vectors."""
        ...

    def drop_collection(self, collection: str) -> int:
        """Remove a collection, its documents and its records, and return how many documents there were."""
        ...

    def rename_collection(self, old: str, new: str) -> None:
        """Rename a collection, and let its documents and records follow. Raise NotFound where there is none."""
        ...
