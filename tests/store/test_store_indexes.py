"""The store on SQLite: what its indexes hold, and what they spare.

1. A file of the ninth schema opens with everything in it, its vectors go with their last passage, and it checks out.
2. Chunks are found by the keys of their vectors from the first vector on, and cost nothing for it before.
3. What is asked for by its parent is found by an index, whatever its kind.
4. Many items go, or get another collection, with as many statements as few.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import pytest

from commonplace.ingest.prepare import prepare
from commonplace.kinds.documents.collection_files import CollectionFiles
from commonplace.kinds.documents.document_names import DocumentNames
from commonplace.model import Draft, Filter
from commonplace.store import SqliteStore
from commonplace.store.embeddings import Embeddings
from commonplace.store.items import Items
from commonplace.store.listing import Listing
from commonplace.store.metadata_index import MetadataIndex
from commonplace.store.sqlite import connection
from opening import open_store

ONE = np.array([1, 0], np.float16).tobytes()
SAID = Draft("memory", "1", parent="thread", body="Oolong.", fields={"source": "user"}, metadata={"status": "open"})
DRAFTS = (SAID, Draft("document", "a.md", parent="docs", body="Oolong."), Draft("note", "n", body="Green."))


@pytest.fixture
def sqlite(tmp_path: Path) -> Iterator[SqliteStore]:
    store = open_store("sqlite", tmp_path / "store")
    yield store
    store.close()


def indexes(store: SqliteStore) -> dict[str, str]:
    with apsw.Connection(str(store.path)) as db:
        rows = db.execute("select name, sql from sqlite_master where type = 'index' and sql is not null").fetchall()
    db.close()
    return {str(name): str(sql) for name, sql in rows}


def embed(store: SqliteStore) -> int:
    """A vector for every chunk, and how many there are then."""
    model = store.drawer(Embeddings).add_model("f", "m", 2)
    store.drawer(Embeddings).add(
        model, [(chunk.vector_key, ONE) for chunk in store.drawer(Embeddings).unembedded(model, 0, 99)[0]]
    )
    return store.drawer(Embeddings).total(model.id)


def vectors(store: SqliteStore) -> int:
    with apsw.Connection(str(store.path)) as db:
        found = int(next(db.execute("select count(*) from embeddings"))[0])
    db.close()
    return found


def test_a_file_of_the_ninth_schema_opens_and_its_vectors_go_with_their_last_passage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    former = connection.load_migrations()[:9]
    monkeypatch.setattr(connection, "load_migrations", lambda _: former)
    old = SqliteStore(tmp_path / "library.db")
    said, document, note = old.drawer(Items).put([prepare(draft) for draft in DRAFTS])
    assert embed(old) == 3
    before = old.drawer(Listing).scan(Filter(), body=True)
    assert "where" not in indexes(old)["items_by_parent"]
    old.close()
    monkeypatch.undo()

    store = SqliteStore(tmp_path / "library.db")
    assert store.drawer(Listing).scan(Filter(), body=True) == before
    assert "chunks_by_vector" not in indexes(store)
    assert store.check() == []
    assert vectors(store) == 2, "two passages say the same"
    store.drawer(Items).delete([said.id])
    assert vectors(store) == 2, "a document still says it"
    store.drawer(Items).delete([document.id])
    assert vectors(store) == 1
    store.drawer(Items).put([prepare(replace(DRAFTS[2], body="Black."))])
    assert vectors(store) == 0
    assert [item.id for item in store.drawer(Listing).scan(Filter())] == [note.id]
    assert store.check() == []
    store.close()


def test_chunks_are_found_by_their_vectors_from_the_first_vector_on(sqlite: SqliteStore) -> None:
    items = sqlite.drawer(Items).put([prepare(draft) for draft in DRAFTS])
    sqlite.drawer(Items).put([prepare(replace(DRAFTS[2], body="Black."))])
    sqlite.drawer(Items).delete([items[1].id])
    assert "chunks_by_vector" not in indexes(sqlite)
    assert embed(sqlite) == 2
    assert "chunks_by_vector" in indexes(sqlite)
    assert embed(sqlite) == 2, "it is made once"
    assert sqlite.check() == []


@pytest.mark.parametrize("kinds", [("document",), ("document", "note"), ("memory",), ("memory", "document"), ()])
def test_what_is_asked_for_by_its_parent_is_found_by_an_index(sqlite: SqliteStore, kinds: tuple[str, ...]) -> None:
    items = sqlite.drawer(Items).put([prepare(draft) for draft in DRAFTS])
    for parent in ("thread", "docs", "elsewhere"):
        wanted = Filter(kinds=kinds, parents=(parent,))
        expected = [item.id for item in items if item.parent == parent and (not kinds or item.kind in kinds)]
        assert sqlite.drawer(Listing).select(wanted).tolist() == expected
        assert [item.id for item in sqlite.drawer(Listing).scan(wanted)] == expected
        plan = sqlite.drawer(Listing).plan(wanted)
        assert "parent=?" in plan
        assert "SCAN items" not in plan


def changing(store: SqliteStore, work: Callable[[], Any]) -> list[str]:
    """The statements that remove or change rows while something is done."""
    ran: list[str] = []

    def note(_: Any, statement: str, bindings: Any) -> bool:
        ran.append(statement)
        return True

    with store.transaction(), store._database.writing() as db:
        db.exec_trace = note
        work()
        db.exec_trace = None
    return [statement for statement in ran if statement.split()[0] in ("delete", "update")]


@pytest.mark.parametrize("kind", ["memory", "document", "note", "message"])
def test_many_items_go_with_as_many_statements_as_few(sqlite: SqliteStore, kind: str) -> None:
    sqlite.drawer(MetadataIndex).add(("status",))
    more: dict[str, Any] = {"fields": {"source": "user"}, "metadata": {"status": "open"}, "tags": ("tea",)}
    made = sqlite.drawer(Items).put(
        [prepare(Draft(kind, str(n), parent="p", body=f"# Head {n}\n\nWords.", **more)) for n in range(1, 41)]
    )
    ids = [item.id for item in made]
    few = changing(sqlite, lambda: sqlite.drawer(Items).delete(ids[:2]))
    many = changing(sqlite, lambda: sqlite.drawer(Items).delete([*ids[:39], ids[20], 99]))
    assert many == few
    assert [change.item_id for change in sqlite.changes(40, 99)] == ids[:39]
    assert [item.id for item in sqlite.drawer(Listing).scan(Filter())] == ids[39:]
    assert sqlite.check() == []
    sqlite.drawer(Items).delete(ids)
    assert sqlite.drawer(Listing).counts() == {}
    assert sqlite.check() == []


def test_many_documents_get_another_collection_with_as_many_statements_as_few(sqlite: SqliteStore) -> None:
    def collection(name: str, documents: int) -> None:
        sqlite.drawer(Items).put([prepare(Draft("collection", name, title=name))])
        sqlite.drawer(Items).put(
            [prepare(Draft("document", str(n), parent=name, body="Words.")) for n in range(documents)]
        )

    collection("few", 2)
    collection("many", 40)
    few = changing(sqlite, lambda: sqlite.drawer(CollectionFiles).rename("few", "a few"))
    before = sqlite.last_change()
    assert changing(sqlite, lambda: sqlite.drawer(CollectionFiles).rename("many", "very many")) == few
    renamed = sqlite.drawer(Listing).scan(Filter(parents=("very many",)))
    assert [(item.version, item.id) for item in renamed] == [
        (change.version, change.item_id) for change in sqlite.changes(before, 99)[1:]
    ]
    assert {item.version for item in renamed} == {2}
    few = changing(sqlite, lambda: sqlite.drawer(CollectionFiles).drop("a few"))
    assert changing(sqlite, lambda: sqlite.drawer(CollectionFiles).drop("very many")) == few
    assert sqlite.drawer(Listing).counts() == {}
    assert sqlite.check() == []


def test_documents_of_before_are_found_in_any_case_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        former = connection.load_migrations()[:10]
        patched.setattr(connection, "load_migrations", lambda *_: former)
        store = SqliteStore(tmp_path / "library.db")
        store.drawer(Items).put([prepare(Draft("document", "Areas/Über Vim.md", parent="Vault", body="x"))])
        store.close()
    store = SqliteStore(tmp_path / "library.db")
    try:
        names, total = store.drawer(DocumentNames).in_any_case("areas/über vim", 9, with_ending=False)
        assert ([name.file for name in names], total) == (["Vault/Areas/Über Vim.md"], 1)
        assert store.check() == []
    finally:
        store.close()
