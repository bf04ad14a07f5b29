"""The parts of a store's interface that one kind of items needs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from commonplace.model import Item
from commonplace.store.rows import (
    DocumentRow,
    Ending,
    FileRecord,
    FolderChange,
    FolderResult,
    Name,
)

if TYPE_CHECKING:
    from commonplace.text.outline import Outline


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
