"""Records of files, and changes of whole collections: all or nothing, with true change numbers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from commonplace.errors import NotFound
from commonplace.ingest.prepare import prepare
from commonplace.kinds.documents.collection_files import CollectionFiles
from commonplace.model import Draft
from commonplace.store.base import Store
from commonplace.store.embeddings import Embeddings
from commonplace.store.items import Items
from commonplace.store.listing import Listing
from commonplace.store.rows import FileRecord, FolderChange, FolderResult, Write


def record(path: str, **more: object) -> FileRecord:
    return FileRecord(path, 1, 2, 3, b"\1" * 32, 4, "text-1", "", 0)._replace(**more)  # type: ignore[arg-type]


def write(path: str, body: str = "words", parent: str = "notes", title: str = "") -> tuple[Write, FileRecord]:
    return prepare(Draft("document", path, parent=parent, title=title or path, body=body)), record(path)


def change(writes: list[tuple[Write, FileRecord]], **more: object) -> FolderChange:
    return FolderChange("notes", writes, **{"records": (), "gone": (), "forgotten": (), **more})  # type: ignore[arg-type]


def test_documents_and_records_come_and_go_together(store: Store) -> None:
    assert store.drawer(CollectionFiles).change(change([write("a"), write("b")])) == FolderResult(added=2)
    assert store.drawer(CollectionFiles).versions("notes") == {"a": 1, "b": 1}
    assert store.drawer(CollectionFiles).records("notes")["a"] == record("a", version=1)
    first = store.drawer(CollectionFiles).changed_at("notes")
    again = change([write("a", "other"), write("b")], records=[record("skip", skipped="BINARY")])
    assert store.drawer(CollectionFiles).change(again) == FolderResult(updated=1, unchanged=1)
    assert store.drawer(CollectionFiles).records("notes")["a"].version == 2
    assert store.drawer(CollectionFiles).records("notes")["skip"].skipped == "BINARY"
    assert store.drawer(CollectionFiles).change(
        change([], gone=["a", "never there"], forgotten=["a", "skip"])
    ) == FolderResult(removed=1)
    assert (
        set(store.drawer(CollectionFiles).records("notes"))
        == set(store.drawer(CollectionFiles).versions("notes"))
        == {"b"}
    )
    assert [entry.op for entry in store.changes(0, 10)] == ["put", "put", "put", "delete"]
    assert first is not None
    assert (store.drawer(CollectionFiles).changed_at("notes") or 0) > first
    assert store.check() == []


def test_records_alone_are_no_change(store: Store) -> None:
    store.drawer(CollectionFiles).change(change([], records=[record("a")]))
    assert store.last_change() == 0
    assert store.drawer(CollectionFiles).changed_at("notes") is None
    assert store.drawer(CollectionFiles).records("notes") == {"a": record("a")}
    assert store.drawer(CollectionFiles).records("other") == {}


def test_an_error_on_the_way_leaves_everything_as_it_was(store: Store) -> None:
    store.drawer(CollectionFiles).change(change([write("a")]))
    before = (
        store.last_change(),
        store.drawer(CollectionFiles).records("notes"),
        store.drawer(CollectionFiles).versions("notes"),
    )

    def failing() -> Iterator[tuple[Write, FileRecord]]:
        yield write("b")
        raise RuntimeError("the disk went away")

    with pytest.raises(RuntimeError):
        store.drawer(CollectionFiles).change(FolderChange("notes", failing(), (), ["a"], ["a"]))
    assert (
        store.last_change(),
        store.drawer(CollectionFiles).records("notes"),
        store.drawer(CollectionFiles).versions("notes"),
    ) == before


def test_times_sizes_and_inodes_of_any_size_are_kept(store: Store) -> None:
    extreme = record("a", mtime_ns=-(1 << 62), size=1 << 40, inode=(1 << 63) - 1)
    store.drawer(CollectionFiles).change(change([], records=[extreme]))
    assert store.drawer(CollectionFiles).records("notes") == {"a": extreme}


def test_a_collection_is_renamed_with_all_that_hangs_on_it(store: Store) -> None:
    store.drawer(Items).put([prepare(Draft("collection", "notes", title="notes", fields={"root": "/x"}))])
    store.drawer(Items).put([prepare(Draft("note", "n", parent="notes", body="a note in a notebook of that name"))])
    store.drawer(CollectionFiles).change(change([write("a"), write("b", parent="notes")]))
    before = store.last_change()
    store.drawer(CollectionFiles).rename("notes", "papers")
    assert store.drawer(CollectionFiles).versions("papers") == {"a": 2, "b": 2}
    assert store.drawer(CollectionFiles).versions("notes") == {}
    assert {path: entry.version for path, entry in store.drawer(CollectionFiles).records("papers").items()} == {
        "a": 2,
        "b": 2,
    }
    assert store.last_change() - before == 3
    assert store.drawer(Items).find("note", "notes", "n") is not None
    assert [item.key for item in store.drawer(Items).collections()] == ["papers"]
    assert store.check() == []
    with pytest.raises(NotFound, match="Collection not found: notes"):
        store.drawer(CollectionFiles).rename("notes", "else")


def test_a_collection_is_dropped_with_all_that_hangs_on_it(store: Store) -> None:
    store.drawer(Items).put([prepare(Draft("collection", "notes", title="notes", fields={"root": "/x"}))])
    store.drawer(CollectionFiles).change(change([write("a"), write("b")]))
    store.drawer(Items).put([prepare(Draft("document", "c", parent="other", body="stays"))])
    assert store.drawer(CollectionFiles).drop("notes") == 2
    assert store.drawer(Listing).counts() == {"document": 1}
    assert store.drawer(CollectionFiles).records("notes") == {}
    assert store.drawer(CollectionFiles).changed_at("notes") is None
    assert store.check() == []


def test_a_moved_passage_keeps_its_vector_under_its_new_name(store: Store) -> None:
    store.drawer(CollectionFiles).change(change([write("old name", "the words")]))
    model = store.drawer(Embeddings).add_model("f", "m", 2)
    (chunk,), reached = store.drawer(Embeddings).unembedded(model, 0, 10)
    store.drawer(Embeddings).add(model, [(chunk.vector_key, b"\0\0\0\0")])
    store.drawer(CollectionFiles).change(
        change([write("new name", "the words")], gone=["old name"], forgotten=["old name"])
    )
    assert store.drawer(Embeddings).total(model.id) == 1
    assert store.drawer(Embeddings).unembedded(model, reached, 10)[0] == []
    assert store.check() == []


def test_files_that_take_each_others_places_keep_their_vectors_and_leave_none_behind(store: Store) -> None:
    store.drawer(CollectionFiles).change(
        change([write(str(place), text, title=text) for place, text in enumerate(["one", "two"])])
    )
    model = store.drawer(Embeddings).add_model("f", "m", 2)
    chunks, reached = store.drawer(Embeddings).unembedded(model, 0, 10)
    store.drawer(Embeddings).add(model, [(chunk.vector_key, b"\0\0\0\0") for chunk in chunks])
    moved = [("0", "two"), ("1", "one"), ("2", "three")]
    store.drawer(CollectionFiles).change(change([write(path, text, title=text) for path, text in moved]))
    assert [chunk.text for chunk in store.drawer(Embeddings).unembedded(model, reached, 10)[0]] == ["three"]
    assert store.drawer(Embeddings).total(model.id) == 2
    store.drawer(CollectionFiles).change(change([write("0", "four")]))
    assert store.drawer(Embeddings).total(model.id) == 1
    assert store.check() == []


def test_a_change_of_many_files_is_counted_file_by_file(store: Store) -> None:
    many = [f"file {number:03}" for number in range(250)]
    assert store.drawer(CollectionFiles).change(change([write(path) for path in many])) == FolderResult(added=250)
    model = store.drawer(Embeddings).add_model("f", "m", 2)
    chunks, reached = store.drawer(Embeddings).unembedded(model, 0, 1000)
    store.drawer(Embeddings).add(model, [(chunk.vector_key, b"\0\0\0\0") for chunk in chunks])
    changed = [write(path, "other" if number % 3 == 0 else "words") for number, path in enumerate(many[:240])]
    moved = [write(f"moved {path}") for path in many[240:]]
    again = change([*changed, *moved], gone=many[240:], forgotten=many[240:])
    assert store.drawer(CollectionFiles).change(again) == FolderResult(added=10, updated=80, unchanged=160, removed=10)
    versions = {path: 2 if number % 3 == 0 else 1 for number, path in enumerate(many[:240])}
    assert store.drawer(CollectionFiles).versions("notes") == versions | {f"moved {path}": 1 for path in many[240:]}
    assert {
        path: known.version for path, known in store.drawer(CollectionFiles).records("notes").items()
    } == store.drawer(CollectionFiles).versions("notes")
    assert len(store.drawer(Embeddings).unembedded(model, reached, 1000)[0]) == 80  # what moved has its vectors
    assert store.check() == []
