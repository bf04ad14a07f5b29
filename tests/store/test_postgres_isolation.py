"""Spaces of one database, kept apart by the database itself.

1. Every table has a space and a policy; the application's role can change neither.
2. Raw SQL as that role, in another space or in none, sees nothing, changes nothing and adds nothing.
3. A connection that goes back to the pool keeps nothing of whom it served.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import errors, sql

from commonplace.ingest.prepare import prepare
from commonplace.kinds.documents.collection_files import CollectionFiles
from commonplace.kinds.knowledge.drawer import Cue, KeptAnswer, KeptAnswers, Records
from commonplace.kinds.memories.drawer import EntryRows
from commonplace.kinds.memories.entry import Past
from commonplace.model import Draft, Filter
from commonplace.store.attachments import Attachments
from commonplace.store.chunks import Chunks
from commonplace.store.embeddings import Embeddings
from commonplace.store.import_sources import ImportSource, ImportSources
from commonplace.store.items import Items
from commonplace.store.job_queue import JobQueue
from commonplace.store.lasting_names import LastingNames
from commonplace.store.listing import Listing
from commonplace.store.metadata_index import MetadataIndex
from commonplace.store.postgres import PostgresStore
from commonplace.store.rows import Attachment, FileRecord, FolderChange
from commonplace.store.session_marks import Returned, SessionList, SessionMarks
from commonplace.store.stored_settings import StoredSettings
from opening import open_store, space_of
from postgres_server import postgres
from table_parts import fill_tables

SHARED = {"schema_versions"}
ACCOUNTS = {"users", "keys", "logins"}
"""What is in no user's space; tests/store/test_accounts.py fills those."""


@pytest.fixture
def filled(tmp_path: Path) -> Iterator[PostgresStore]:
    """A space with something in every table."""
    store = open_store("postgres", tmp_path)
    note, talk = store.drawer(Items).put(
        [
            prepare(Draft("note", "n", title="Tea", body="Oolong.", tags=("hot",))),
            prepare(Draft("media", "m", body="x")),
        ]
    )
    data = b"picture"
    store.drawer(Attachments).attach(note.id, [(Attachment(hashlib.sha256(data).digest(), "image/png", data), {})])
    store.drawer(Records).set_cues(talk.id, [Cue(0, 1, 0, 1)])
    store.drawer(MetadataIndex).add(("k",))
    for number in (1, 2):
        fields: dict[str, Any] = {"source": "user", "supersedes": [1]} if number == 2 else {"source": "user"}
        entry = prepare(Draft("memory", str(number), "t", body="said", fields=fields, metadata={"k": "v"}))
        store.drawer(EntryRows).keep_past(store.drawer(Items).put([entry])[0].id, Past(1, 1, "was", {}, (), ()), 5)
    model = store.drawer(Embeddings).add_model("f", "m", 1)
    store.drawer(Embeddings).add(model, [(store.drawer(Chunks).of(note.id)[0].vector_key, b"\0\0")])
    document = prepare(Draft("document", "a.md", parent="c", body="# A\n\ntext", format="markdown"))
    record = FileRecord("a.md", 1, 2, 3, b"\1" * 32, 4, "text-1", "", 0)
    store.drawer(CollectionFiles).change(FolderChange("c", [(document, record)], (), (), ()))
    store.drawer(JobQueue).enqueue("k", {})
    store.drawer(StoredSettings).set("s", 1)
    store.drawer(SessionMarks).add("s", "tests", now=0, since=0, most=9)
    store.drawer(SessionMarks).mark("s", Returned("q", ["notes://n"], "list", SessionList(())), now=0, most_uris=9)
    store.drawer(LastingNames).next_number("note")
    store.drawer(ImportSources).keep(ImportSource("note", "file", "", b"h", note.id, 1))
    store.drawer(KeptAnswers).keep("o", "t", "k", KeptAnswer(b"a", {}), now=1, since=0)
    fill_tables(store, note.id)
    yield store
    store.close()


def tables() -> set[str]:
    with psycopg.connect(postgres().admin) as connection:
        rows = connection.execute("select tablename from pg_tables where schemaname = 'commonplace'").fetchall()
    return {name for (name,) in rows}


def as_application(space: str | None) -> psycopg.Connection[Any]:
    connection = psycopg.connect(postgres().app)
    connection.execute("set search_path = commonplace")
    if space is not None:
        connection.execute("select set_config('commonplace.space', %s, true)", (space,))
    return connection


def count(connection: psycopg.Connection[Any], table: str) -> int:
    row = connection.execute(sql.SQL("select count(*) from {}").format(sql.Identifier(table))).fetchone()
    return int(row[0])  # type: ignore[index]


# 1


def test_every_table_has_a_space_and_a_policy_that_its_user_cannot_change() -> None:
    with psycopg.connect(postgres().admin) as connection:
        guarded = connection.execute(
            """select relname from pg_class join pg_namespace on relnamespace = pg_namespace.oid
               where nspname = 'commonplace' and relkind = 'r' and relrowsecurity
               and exists (select 1 from pg_policy where polrelid = pg_class.oid)
               and exists (select 1 from pg_attribute
                           where attrelid = pg_class.oid and attname = 'space' and attnotnull)
               and pg_get_userbyid(relowner) = 'commonplace_owner'"""
        ).fetchall()
    assert {name for (name,) in guarded} == tables() - SHARED
    for attempt in (
        "alter table items disable row level security",
        "drop policy own_space on items",
        "set role commonplace_owner",
        "create table more (x int)",
        "insert into schema_versions (number) values (99)",
        "truncate items",
    ):
        with as_application("x") as connection, pytest.raises(errors.InsufficientPrivilege):
            connection.execute(attempt)


# 2


@pytest.mark.parametrize("space", ["another", "", None])
def test_raw_sql_in_the_wrong_space_sees_and_changes_nothing(filled: PostgresStore, space: str | None) -> None:
    with as_application(filled._database.space) as connection:
        there = {table: count(connection, table) for table in tables() - SHARED - ACCOUNTS}
    empty = {name for name, rows in there.items() if rows == 0}
    assert empty <= {"outlines", "headings"}, "something is in every table, or the test shows nothing"
    with as_application(space) as connection:
        for table in there:
            assert count(connection, table) == 0, table
            for statement in ("update {} set space = space", "delete from {}"):
                done = connection.execute(sql.SQL(statement).format(sql.Identifier(table)))
                assert done.rowcount == 0, table
    with as_application(filled._database.space) as connection:
        assert {table: count(connection, table) for table in there} == there


def test_nothing_can_be_put_or_moved_into_another_space(filled: PostgresStore) -> None:
    here = filled._database.space
    for statement in (
        "insert into settings (space, name, value) values ('another', 'x', '1')",
        "update settings set space = 'another'",
    ):
        with (
            as_application(here) as connection,
            pytest.raises(errors.InsufficientPrivilege, match="row-level security"),
        ):
            connection.execute(statement)


def test_two_spaces_have_the_same_names_and_nothing_else_in_common(tmp_path: Path) -> None:
    stores = [open_store("postgres", tmp_path / name) for name in "ab"]
    for store, body in zip(stores, ("one", "two"), strict=True):
        assert store.drawer(Items).put([prepare(Draft("note", "n", body=body))])[0].id == 1

    def work(number: int) -> None:
        store, body = stores[number % 2], ("one", "two")[number % 2]
        assert [item.body for item in store.drawer(Listing).scan(Filter(), body=True) if item.key == "n"] == [body]
        store.drawer(Items).put([prepare(Draft("note", f"{number}", body=body))])

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(40)))
    for store, body in zip(stores, ("one", "two"), strict=True):
        assert {item.body for item in store.drawer(Listing).scan(Filter(), body=True)} == {body}
        assert [change.seq for change in store.changes(0, 100)] == list(range(1, 22))
        assert store.check() == []
        store.close()


# 3


def test_a_connection_goes_back_without_a_trace(filled: PostgresStore) -> None:
    with filled._database._pools.pool.connection() as connection:
        for query, left in (
            ("select coalesce(current_setting('commonplace.space', true), '')", ""),
            ("select count(*) from pg_prepared_statements", 0),
            ("select count(*) from pg_locks where pid = pg_backend_pid() and locktype = 'advisory'", 0),
            ("show search_path", '"$user", public'),
        ):
            assert connection.execute(query).fetchone() == (left,), query


@pytest.mark.parametrize("space", ["", "A", "x'; drop table items; --", "a b", "x" * 65])
def test_a_space_s_name_never_becomes_sql(space: str) -> None:
    from commonplace.errors import InvalidInput

    with pytest.raises(InvalidInput, match="space is named"):
        PostgresStore(postgres().app, space)


def test_a_space_is_named_by_its_folder(tmp_path: Path) -> None:
    assert space_of(tmp_path) != space_of(tmp_path / "x")
