"""What PostgreSQL could make different, and must not.

1. A check finds every kind of damage that can be planted.
2. Names, titles, tags and values of any length are kept and found, though an index holds only so much.
3. A backup of one kind of store is taken up by the other, whole.
"""

from __future__ import annotations

import hashlib
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

from commonplace.errors import InvalidInput, NotFound, StorageBroken
from commonplace.ingest.prepare import prepare
from commonplace.kinds.documents.collection_files import CollectionFiles
from commonplace.kinds.documents.document_names import DocumentNames
from commonplace.kinds.memories.drawer import EntryRows
from commonplace.kinds.tables.data_drawer import DataDrawer
from commonplace.kinds.tables.drawer import TableDrawer
from commonplace.model import Condition, Draft, Filter
from commonplace.store.attachments import Attachments
from commonplace.store.base import Store
from commonplace.store.chunks import Chunks
from commonplace.store.embeddings import Embeddings
from commonplace.store.import_sources import ImportSource, ImportSources
from commonplace.store.items import Items
from commonplace.store.job_queue import JobQueue
from commonplace.store.lasting_names import LastingNames
from commonplace.store.listing import Listing
from commonplace.store.messages import Messages
from commonplace.store.metadata_index import MetadataIndex
from commonplace.store.outdated import Outdated
from commonplace.store.rows import Attachment, FileRecord, FolderChange
from commonplace.store.session_marks import Returned, SessionList, SessionMarks
from commonplace.store.stored_settings import StoredSettings
from opening import BACKENDS, open_store, space_of
from postgres_server import postgres
from table_parts import fill_tables, tables_told

TEA = Draft("note", "tea", title="Tea", body="Oolong.\n\nGreen.", tags=("hot",), metadata={"k": 1})


def fill(store: Store) -> None:
    items = store.drawer(Items).put(
        [prepare(TEA), prepare(Draft("note", "b", body="Second.")), prepare(Draft("note", "c", body="3"))]
    )
    model = store.drawer(Embeddings).add_model("f", "m", 1)
    store.drawer(Embeddings).add(
        model, [(chunk.vector_key, b"\0\0") for chunk in store.drawer(Embeddings).unembedded(model, 0, 9)[0]]
    )
    data = b"picture"
    store.drawer(Attachments).attach(items[0].id, [(Attachment(hashlib.sha256(data).digest(), "image/png", data), {})])
    store.drawer(MetadataIndex).add(("k",))
    for number in (1, 2):
        fields: dict[str, Any] = {"source": "user", **({"supersedes": [1]} if number == 2 else {})}
        entry = store.drawer(Items).put(
            [prepare(Draft("memory", str(number), "t", body="s", fields=fields, metadata={"k": [1, 0.1]}))]
        )
        store.drawer(Attachments).attach(
            entry[0].id, [(Attachment(hashlib.sha256(data).digest(), "image/png", data), {"n": 1})]
        )
    document = prepare(Draft("document", "a.md", parent="c", body="# A\n\ntext", format="markdown"))
    record = FileRecord("a.md", 1, 2, 3, b"\1" * 32, 4, "text-1", "", 0)
    store.drawer(CollectionFiles).change(FolderChange("c", [(document, record)], (), (), ()))
    store.drawer(Items).put([prepare(Draft("message", "m", parent="talk", body="hi", fields={"index": 0}))])
    store.drawer(StoredSettings).set("s", 1)
    store.drawer(SessionMarks).add("s", "tests", now=0, since=0, most=9)
    store.drawer(SessionMarks).mark(
        "s", Returned("q", ["notes://n"], "list", SessionList(("x",), True)), now=0, most_uris=9
    )
    store.drawer(ImportSources).keep(ImportSource("note", "file", "", b"h", items[0].id, 1))
    store.drawer(JobQueue).enqueue("k", {"n": 1})
    store.drawer(Items).delete([items[2].id])
    fill_tables(store, items[0].id)


def content(store: Store) -> Any:
    items = store.drawer(Listing).scan(Filter(), body=True)
    ids = [item.id for item in items]
    chunks, embeddings, listing = store.drawer(Chunks), store.drawer(Embeddings), store.drawer(Listing)
    marks, names, sources = store.drawer(SessionMarks), store.drawer(LastingNames), store.drawer(ImportSources)
    entries = store.drawer(EntryRows)
    return (
        items, [chunks.of(item) for item in ids], store.changes(0, 99),
        [store.drawer(Attachments).of(item) for item in ids],
        entries.of(ids), entries.threads(limit=9, offset=0), entries.tally().common,
        store.drawer(Outdated).superseded(),
        store.drawer(StoredSettings).get("s"), embeddings.models(), embeddings.total(embeddings.models()[0].id),
        names.uids(ids),
        store.drawer(DocumentNames).docids(ids), store.drawer(DocumentNames).by_end("a.md", "end", 9),
        store.drawer(CollectionFiles).records("c"),
        store.drawer(Messages).openings(["talk"]),
        marks.find("s"), marks.seen("s"), marks.kept_list("s", "list"), sources.find("note", "file", ""),
        list(store.drawer(MetadataIndex).fields()), store.drawer(Items).last(), entries.next_number(),
        store.drawer(JobQueue).total(), store.indexed(ids),
        listing.select(Filter(kinds=("memory",), where=(Condition(("k",), "array_contains", 0.1),))).tolist(),
        tables_told(store),
    )  # fmt: skip


# 1

DAMAGE = {
    "gaps in the change log": "delete from changes where seq = 2",
    "numbers that would be given out twice": "update spaces set item = 1",
    "items without a body": "delete from bodies where item_id = 1",
    "bodies without an item": "insert into bodies (item_id, body) values (99, 'x')",
    "tags without an item": "insert into tags (folded, item_id, position, tag) values ('x', 99, 0, 'x')",
    "chunks without an item": "update chunks set item_id = 99 where item_id = 1",
    "items whose chunks do not count up": "delete from chunks where item_id = 1",
    "chunks that do not quote their body": "update chunks set char_start = char_start + 1 where item_id = 1",
    "bodies that are not what was written": "update bodies set body = body || ' ' where item_id = 1",
    "items whose version is not their last logged one": "update items set version = 7 where id = 1",
    "vectors without a chunk": r"insert into embeddings (model, key, vector) values (1, '\xffff', '\x0000')",
    "vectors of no model": "update embeddings set model = 9",
    "attachments without an item": r"insert into attachments (hash, data) values ('\x00', '\x00')",
    "items whose attachment is gone": "delete from attachments",
    "attachments that are not what was written": r"update attachments set data = '\x00'",
    "documents that are not found by name": "update document_names set docid = 'x'",
    "items that no record names": "delete from records",
    "threads whose entries do not count up": "update memory_threads set entries = 7",
    "memory entries whose images do not count up": "update memories set images = 7",
    "memories of a session that is gone": "delete from sessions",
    "data, tools or work of no table": "delete from tables",
    "tables whose size is not that of their data": "update tables set size = 7",
    "indexed places of no item": "insert into node_places (place, item_id) values (1, 99)",
}


@pytest.mark.parametrize(("sentence", "sql"), DAMAGE.items())
def test_a_check_of_postgres_finds_planted_damage(tmp_path: Path, sentence: str, sql: str) -> None:
    store = open_store("postgres", tmp_path)
    fill(store)
    assert store.check() == []
    with psycopg.connect(postgres().app) as connection:
        connection.execute("set local search_path = commonplace")
        connection.execute("select set_config('commonplace.space', %s, true)", (space_of(tmp_path),))
        connection.execute(sql)
    assert any(problem.startswith(sentence) for problem in store.check()), store.check()
    store.close()


# 2


def test_texts_of_any_length_are_kept_and_found(store: Store) -> None:
    noise = random.Random(1)
    long = [f"{'x' * 100}{''.join(chr(noise.randrange(0x4E00, 0x9FFF)) for _ in range(4000))}{n}" for n in range(2)]
    one, two = long
    items = store.drawer(Items).put(
        [
            prepare(Draft("document", key, parent=one, title=key, body="x", tags=(key,), metadata={"k": key}))
            for key in long
        ]
    )
    note = store.drawer(Items).put([prepare(Draft("note", two, title=two, body="x"))])[0]
    store.drawer(MetadataIndex).add(("k",))
    with store.transaction():
        entry = prepare(Draft("memory", "1", one, body="s", fields={"source": "user"}, metadata={"k": [one], "q": one}))
        said = store.drawer(Items).put([entry])[0]
    found = store.drawer(Items).find("document", one, two)
    assert found is not None
    assert found.id == items[1].id
    assert store.drawer(Items).find("note", None, two) is not None
    assert store.drawer(Listing).ids_of([("document", one, one), ("note", None, two)]) == [items[0].id, note.id]
    assert store.drawer(Listing).select(Filter(parents=(one,))).tolist() == [items[0].id, items[1].id, said.id]
    assert store.drawer(Listing).select(Filter(tags=(two,))).tolist() == [items[1].id]
    assert store.drawer(LastingNames).named("note", two) == [note.id]
    assert [name.item_id for name in store.drawer(DocumentNames).by_end(two, "path", 9)[0]] == [items[1].id]
    where = (Condition(("k",), "array_contains", one), Condition(("q",), "starts_with", "X" * 100))
    assert store.drawer(Listing).select(Filter(kinds=("memory",), where=where)).tolist() == [said.id]
    assert store.drawer(EntryRows).latest([one], 5)[one][0].item_id == said.id
    assert store.drawer(EntryRows).threads(limit=5, offset=0)[0][0].thread == one
    store.drawer(ImportSources).keep(ImportSource("note", two, one, b"h", note.id, 1))
    assert store.drawer(ImportSources).find("note", two, one) is not None
    store.drawer(SessionMarks).add("s", "tests", now=0, since=0, most=9)
    assert (
        store.drawer(SessionMarks).mark("s", Returned("q", [one, two], "l", SessionList(())), now=0, most_uris=9) == 2
    )
    assert store.drawer(SessionMarks).seen("s") == [one, two]
    assert store.check() == []


# 3


@pytest.mark.parametrize("source", BACKENDS)
@pytest.mark.parametrize("target", BACKENDS)
def test_a_backup_of_one_kind_of_store_is_taken_up_by_the_other(tmp_path: Path, source: str, target: str) -> None:
    one, other = open_store(source, tmp_path / "a"), open_store(target, tmp_path / "b")
    fill(one)
    other.drawer(Items).put([prepare(Draft("note", "old", body="to be replaced"))])
    before = content(one)
    one.backup(tmp_path / "backup.db")
    assert sorted(path.name for path in tmp_path.glob("backup*")) == ["backup.db"]
    one.drawer(Items).put([prepare(Draft("note", "later", body="later"))])
    other.restore(tmp_path / "backup.db")
    assert content(other) == before
    assert other.check() == []
    assert other.drawer(Items).put([prepare(Draft("note", "next", body="n"))])[0].id == before[21] + 1
    rows = other.drawer(TableDrawer)
    number = rows.tables()[0].number
    other.drawer(DataDrawer).put(number, ("c",), {"more": ["x" * 5000] * 3})
    assert rows.table_written(number).version == 2
    assert rows.add_table(replace(rows.tables()[0], id="u", name="u")).number > number
    rows.drop_table(number)
    for store in (one, other):
        store.close()


def test_what_is_no_sound_backup_changes_nothing_here(tmp_path: Path) -> None:
    store, source = open_store("postgres", tmp_path), tmp_path / "backup.db"
    fill(store)
    before = content(store)
    with pytest.raises(NotFound, match=r"backup\.db"):
        store.restore(source)
    store.backup(source)
    source.write_bytes(source.read_bytes()[:-5000])
    with pytest.raises(StorageBroken, match=r"backup\.db"):
        store.restore(source)
    source.write_bytes(b"")  # to SQLite a database without a table
    with pytest.raises(InvalidInput, match=r"backup\.db is no backup of a library"):
        store.restore(source)
    assert content(store) == before
    store.close()
