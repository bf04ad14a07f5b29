"""The engine that folders and packages share: what it reads, keeps, refuses and counts, whatever the origin."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from commonplace.errors import NotFound
from commonplace.ingest.prepare import prepare
from commonplace.kinds.documents.collection_files import CollectionFiles
from commonplace.kinds.documents.sync import (
    FAILED,
    Answer,
    Converted,
    FileRead,
    LastSync,
    OriginListing,
    Refusal,
    Refused,
    SyncOutcome,
    sync_collection,
)
from commonplace.model import Draft
from commonplace.store.base import Store
from commonplace.store.items import Items
from commonplace.store.listing import Listing
from commonplace.store.rows import FileRecord, FolderChange
from opening import open_store

Text = str | Refusal


@dataclass
class Shelf:
    """Documents in memory, as an origin. A text of "?" makes no document, and one of "!" is gone when it is read."""

    store: Store
    texts: dict[str, Text]
    unlisted: tuple[str, ...] = ()
    is_same: bool = False
    is_trusted: bool = False
    read_ids: list[str] = field(default_factory=list)

    def listing(self) -> OriginListing[Text] | None:
        refused = [(id, text) for id, text in self.texts.items() if isinstance(text, Refusal)]
        documents = {id: text for id, text in self.texts.items() if isinstance(text, str)}
        return None if self.is_same else OriginListing(documents, refused, self.unlisted)

    def is_settled(self, document: Text, record: FileRecord) -> bool:
        return self.is_trusted

    def is_current(self, document: Text, record: FileRecord) -> bool:
        return not record.skipped.startswith(FAILED) and record.reader == "reader 1"

    def read(self, documents: Mapping[str, Text]) -> Iterator[tuple[str, Answer]]:
        for id, text in documents.items():
            self.read_ids.append(id)
            data = str(text).encode()
            record = FileRecord(id, 0, len(data), 0, hashlib.sha256(data).digest(), 5_000_000_000, "", "", 0)
            yield id, "gone" if text == "!" else FileRead(record, data)

    def convert(self, document: Text, read: FileRead) -> Converted:
        if document == "?":
            raise Refused(Refusal("no text"))
        return Converted(prepare(Draft("document", read.record.path, parent="shelf", body=read.data.decode())))

    def refusal(self, reason: str) -> Refusal:
        return Refusal(reason)

    def stamped(self, record: FileRecord) -> FileRecord:
        return record._replace(reader="reader 1")

    def record_of(self, id: str, refusal: Refusal, record: FileRecord | None) -> FileRecord | None:
        known = record or self.store.drawer(CollectionFiles).records("shelf").get(id)
        old = known or FileRecord(id, 0, 0, 0, b"", 0, "reader 1", "", 0)
        return self.stamped(old._replace(skipped=f"{FAILED if refusal.failed else ''}{refusal.reason}"))

    def write(self, change: FolderChange | None, outcome: SyncOutcome) -> None:
        if change is not None:
            self.store.drawer(CollectionFiles).change(change)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = open_store("sqlite", tmp_path / "store")
    yield store
    store.close()


def synced(shelf: Shelf, tmp_path: Path, *, dry: bool = False) -> SyncOutcome:
    outcome = SyncOutcome()
    sync_collection(LastSync.of(shelf.store, "shelf"), shelf, outcome, folder=tmp_path, dry=dry)
    return outcome


def counts(outcome: SyncOutcome) -> tuple[int, int, int, int, int]:
    return outcome.added, outcome.updated, outcome.removed, outcome.unchanged, outcome.total


def bodies(store: Store) -> dict[str, str | None]:
    ids = store.drawer(Listing).ids_of([("document", "shelf", key) for key in "abc"])
    return {item.key: item.body for item in store.drawer(Items).get([id for id in ids if id is not None], body=True)}


def test_only_what_differs_is_read_and_written(store: Store, tmp_path: Path) -> None:
    shelf = Shelf(store, {"a": "one", "b": "two", "c": "three"})
    assert counts(synced(shelf, tmp_path)) == (3, 0, 0, 0, 3)
    change = store.last_change()
    assert counts(synced(shelf, tmp_path)) == (0, 0, 0, 3, 3)
    assert store.last_change() == change
    shelf.texts = {"a": "one", "b": "second"}
    assert counts(synced(shelf, tmp_path)) == (0, 1, 1, 1, 2)
    assert bodies(store) == {"a": "one", "b": "second"}
    shelf.is_trusted, shelf.read_ids = True, []
    assert counts(synced(shelf, tmp_path)) == (0, 0, 0, 2, 2)
    assert shelf.read_ids == []


def test_a_dry_sync_counts_the_same_and_writes_nothing(store: Store, tmp_path: Path) -> None:
    shelf = Shelf(store, {"a": "one", "b": "two"})
    synced(shelf, tmp_path)
    change, shelf.texts = store.last_change(), {"a": "first", "c": "three"}
    dry = synced(shelf, tmp_path, dry=True)
    assert store.last_change() == change
    assert dry == synced(shelf, tmp_path)
    assert counts(dry) == (1, 1, 1, 0, 2)


def test_a_document_that_fails_keeps_its_last_good_version_and_is_taken_again_when_it_is_well(
    store: Store, tmp_path: Path
) -> None:
    shelf = Shelf(store, {"a": "one", "b": "two"})
    synced(shelf, tmp_path)
    shelf.texts["a"] = Refusal("out of reach", stays=True, failed=True)
    failing = synced(shelf, tmp_path)
    assert (failing.failed, counts(failing)) == ([("a", "out of reach")], (0, 0, 0, 1, 2))
    assert bodies(store) == {"a": "one", "b": "two"}
    shelf.texts["a"] = "one"
    assert counts(synced(shelf, tmp_path)) == (0, 0, 0, 2, 2)
    assert not any(record.skipped for record in store.drawer(CollectionFiles).records("shelf").values())


def test_a_file_that_is_no_document_any_more_goes_and_is_not_converted_again(store: Store, tmp_path: Path) -> None:
    shelf = Shelf(store, {"a": "one", "b": "two", "c": "three"})
    synced(shelf, tmp_path)
    shelf.texts |= {"a": "?", "b": Refusal("a folder"), "c": "!"}
    first = synced(shelf, tmp_path)
    assert (first.removed, first.total, sorted(first.skipped)) == (3, 0, [("a", "no text"), ("b", "a folder")])
    assert bodies(store) == {}
    records = store.drawer(CollectionFiles).records("shelf")
    assert {path: record.skipped for path, record in records.items()} == {"a": "no text", "b": "a folder"}
    shelf.is_trusted, shelf.read_ids = True, []
    assert synced(shelf, tmp_path).skipped == [("b", "a folder"), ("a", "no text")]
    assert shelf.read_ids == ["c"]


def test_what_is_below_a_folder_that_cannot_be_listed_stays(store: Store, tmp_path: Path) -> None:
    shelf = Shelf(store, {"a": "one", "b/c": "two"})
    synced(shelf, tmp_path)
    shelf.texts, shelf.unlisted = {}, ("b/",)
    outcome = synced(shelf, tmp_path)
    assert (outcome.removed, outcome.total) == (1, 1)
    assert set(store.drawer(CollectionFiles).records("shelf")) == {"b/c"}


def test_an_origin_that_is_as_it_was_is_counted_without_being_read(store: Store, tmp_path: Path) -> None:
    shelf = Shelf(store, {"a": "one", "b": "?"})
    synced(shelf, tmp_path)
    shelf.is_same, shelf.read_ids = True, []
    same = synced(shelf, tmp_path)
    assert (counts(same), same.skipped, shelf.read_ids) == ((0, 0, 0, 1, 1), [("b", "no text")], [])


def test_an_origin_that_breaks_off_changes_nothing(store: Store, tmp_path: Path) -> None:
    shelf = Shelf(store, {"a": "one"})
    synced(shelf, tmp_path)

    class Torn(Shelf):
        def read(self, documents: Mapping[str, Text]) -> Iterator[tuple[str, Answer]]:
            yield from super().read(documents)
            raise NotFound("The disk has gone.")

    with pytest.raises(NotFound, match="gone"):
        synced(Torn(store, {"b": "two"}), tmp_path)
    assert bodies(store) == {"a": "one"}
