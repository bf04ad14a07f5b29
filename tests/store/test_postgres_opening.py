"""What a PostgreSQL server must be to be used, and what is said where it is not.

1. A wrong setting ends with code 78, a server that is not there with 69; a sentence says what to do, and no password.
2. Migrations are whole or not at all, and one at a time. One version ahead is fine, two are not.
3. A full disk, a missing right, a lock and a slow statement are said in words, and nothing is half-written.
"""

from __future__ import annotations

import os
import socket
import threading
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest

from commonplace.errors import Busy, CommonplaceError, InvalidInput, StorageBroken, StorageFull, Unavailable
from commonplace.ingest.prepare import prepare
from commonplace.kinds.documents.document_names import DocumentNames
from commonplace.library import Library
from commonplace.model import Draft
from commonplace.settings import BadSetting
from commonplace.store.items import Items
from commonplace.store.job_queue import JobQueue
from commonplace.store.lasting_names import LastingNames
from commonplace.store.listing import Listing
from commonplace.store.postgres import (
    PostgresAccounts,
    PostgresStore,
    connection,
    has_space,
    migrate,
    open_postgres,
    schema,
)
from commonplace.store.postgres.homes import Homes
from commonplace.store.postgres.problems import explained, refused
from commonplace.store.postgres.urls import shown
from opening import library_settings
from postgres_server import APP, OWNER, Server, postgres


@pytest.fixture
def database() -> Iterator[tuple[Server, str]]:
    """A database of one's own, without a schema."""
    server, name = postgres(), f"t{uuid4().hex[:12]}"
    server.create_database(name)
    yield server, name
    server.execute(f"drop database {name} with (force)")


@pytest.fixture
def store(database: tuple[Server, str]) -> Iterator[PostgresStore]:
    server, name = database
    opened = open_postgres(server.url(APP, name), "s", owner=server.url(OWNER, name))
    yield opened
    opened.close()


def refusal(url: str, owner: str = "") -> CommonplaceError:
    with pytest.raises(CommonplaceError) as caught:
        open_postgres(url, "s", owner=owner)
    said = str(caught.value)
    assert said.endswith(".")
    assert postgres().password not in said
    assert "secret" not in said
    return caught.value


# 1


def test_a_wrong_password_is_a_wrong_setting() -> None:
    error = refusal(postgres().url(APP, password="secret"))
    assert (error.exit_code, "password" in str(error)) == (78, True)


@pytest.mark.parametrize("wrong", ["role", "database", "option"])
def test_what_does_not_exist_is_a_wrong_setting(wrong: str) -> None:
    server = postgres()
    url = {
        "role": server.url("nobody"),
        "database": server.url(APP, "nowhere"),
        "option": server.app + "?nonsense=1",
    }[wrong]
    assert refusal(url).exit_code == 78


SECRET = "s3cretw0rd"
"""No sentence may hold it, nor any part of it that is left when the address is cut in the wrong place."""
_HERE = "127.0.0.1:1/commonplace"
UNCLEAR = {
    "a bare percent sign": f"postgresql://app:%zz{SECRET}@{_HERE}",
    "a bare slash": f"postgresql://app:12/{SECRET}@{_HERE}",
    "a slash at first": f"postgresql://app:/{SECRET}@{_HERE}",
    "a bare at sign": f"postgresql://app:x@{SECRET}@{_HERE}",
    "a name with an at sign": f"postgresql://app@corp:{SECRET}@{_HERE}",
    "a blank": f"postgresql://app:{SECRET} x@{_HERE}",
    "no host": f"postgresql://app:{SECRET}",
    "a port that is none": f"postgresql://app:{SECRET}@127.0.0.1:{SECRET}/commonplace",
    "a port too high": f"postgresql://app:{SECRET}@127.0.0.1:65536/commonplace",
    "an unknown option": f"postgresql://app:{SECRET}@{_HERE}?{SECRET}=1",
    "no option": f"postgresql://app@{_HERE}?{SECRET}",
    "no character": f"postgresql://app:{SECRET}\ud800@{_HERE}",
}


@pytest.mark.parametrize("url", UNCLEAR.values(), ids=UNCLEAR.keys())
def test_an_address_that_cannot_be_read_is_a_wrong_setting_and_not_quoted(
    url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    server = postgres()
    said = [str(error := refusal(url)), repr(shown(url))]
    assert error.exit_code == 78
    for attempt in (
        lambda: open_postgres(server.app, "s", owner=url),
        lambda: has_space(url, "s", 2),
        lambda: PostgresStore(url, "s"),
        lambda: PostgresAccounts(url),
        lambda: Homes(tmp_path, server.app, url).spaces_in_database(),
        lambda: Homes(tmp_path, url).open(),
    ):
        with pytest.raises(BadSetting, match=r"COMMONPLACE_STORE\w* is no address that can be read") as caught:
            attempt()
        said.append("".join(traceback.format_exception(caught.value)).replace(repr(url), ""))
    assert SECRET not in "".join([*said, caplog.text])


@pytest.mark.parametrize("url", [f"mysql://app:{SECRET}@h/d", f"app:{SECRET}@h/d", f"host=h password={SECRET}"])
def test_an_owner_at_an_address_of_something_else_is_a_wrong_setting(url: str) -> None:
    with pytest.raises(BadSetting, match=r"COMMONPLACE_STORE_OWNER must be .* postgresql://") as caught:
        open_postgres(postgres().app, "s", owner=url)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "name"),
    [
        (f"postgresql://app:{SECRET}@db.example:5433/notes", "postgresql://app@db.example:5433/notes"),
        (f"postgres://app:12#34{SECRET}@db.example/notes", "postgresql://app@db.example/notes"),
        (f"postgresql://app:12?34{SECRET}@db.example/notes", "postgresql://app@db.example/notes"),
        (f"postgresql://app:a%40{SECRET}@a:1,b:2/notes", "postgresql://app@a:1,b:2/notes"),
        (f"postgresql://app@a,b/notes?password={SECRET}&port=7", "postgresql://app@a:7,b:7/notes"),
        (f"postgresql://:{SECRET}@[::1]:5/notes", "postgresql://[::1]:5/notes"),
        ("postgresql://", "postgresql://localhost"),
        (f"postgresql://app:1/{SECRET}@h", "the PostgreSQL store"),
    ],
)
def test_an_address_is_shown_without_its_password(url: str, name: str) -> None:
    assert shown(url) == name


def test_what_a_server_says_is_shown_without_the_password() -> None:
    error = psycopg.OperationalError(f"it wants {SECRET}")
    said = refused(f"postgresql://app:{SECRET}@{_HERE}", error, "COMMONPLACE_STORE")
    assert (SECRET in str(said), "it wants …" in str(said)) == (False, True)


def test_a_server_that_is_not_there_is_unavailable() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        error = refusal(f"postgresql://{APP}:secret@127.0.0.1:{probe.getsockname()[1]}/commonplace")
    assert isinstance(error, Unavailable)
    assert (error.exit_code, "Check that the server runs" in str(error)) == (69, True)


def test_an_old_server_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema, "LEAST_VERSION", 99)
    error = refusal(postgres().app)
    assert isinstance(error, BadSetting)
    assert "needs 99 or newer" in str(error)


def test_a_server_that_only_reads_is_refused(database: tuple[Server, str]) -> None:
    server, name = database
    migrate(server.url(OWNER, name), server.url(APP, name))
    server.execute(f"alter database {name} set default_transaction_read_only = on")
    error = refusal(server.url(APP, name))
    assert isinstance(error, BadSetting)
    assert "read-only" in str(error)


def test_a_database_in_another_encoding_is_refused() -> None:
    server, name = postgres(), f"t{uuid4().hex[:12]}"
    server.execute(f"create database {name} owner {OWNER} encoding 'SQL_ASCII' template template0 locale 'C'")
    assert "UTF8" in str(refusal(server.url(APP, name), server.url(OWNER, name)))
    server.execute(f"drop database {name} with (force)")


@pytest.mark.parametrize(("role", "why"), [("postgres", "superuser"), (OWNER, "owner"), ("bypasser", "free of")])
def test_a_role_that_no_policy_binds_is_refused(role: str, why: str) -> None:
    server = postgres()
    if role == "bypasser":
        server.execute(
            f"drop role if exists bypasser; create role bypasser login bypassrls password '{server.password}'"
        )
    error = refusal(server.url(role))
    assert (error.exit_code, why in str(error)) == (78, True)


def test_one_role_for_both_is_refused(database: tuple[Server, str]) -> None:
    server, name = database
    assert "two roles" in str(refusal(server.url(OWNER, name), server.url(OWNER, name)))


@pytest.mark.parametrize("address", ["mysql://x", "library.db", "postgresql"])
def test_an_address_of_something_else_is_a_wrong_setting(tmp_path: Path, address: str) -> None:
    with pytest.raises(BadSetting, match="postgresql://"):
        Library.open(tmp_path, settings=library_settings(tmp_path, store=address))


def test_a_library_opens_on_it_and_closes_it(tmp_path: Path) -> None:
    settings = library_settings(tmp_path, store=postgres().app, store_owner=postgres().owner)
    with Library.open(tmp_path, f"l{uuid4().hex[:12]}", settings) as library:
        library.put(Draft("note", "tea", body="Oolong wants water."))
        assert [hit.uri for hit in library.search("oolong").hits] == ["notes://tea"]
    with pytest.raises(StorageBroken, match=r"is closed\. Open the library again"):
        library.store.drawer(Listing).counts()


@pytest.mark.parametrize(
    "set_for_the_role",
    [
        "client_encoding = 'LATIN1'",
        "row_security = off",
        "bytea_output = 'escape'",
        "standard_conforming_strings = off",
        "search_path = pg_catalog",
        "lock_timeout = '1ms'",
    ],
)
def test_what_is_set_for_a_role_changes_nothing(database: tuple[Server, str], set_for_the_role: str) -> None:
    server, name = database
    server.execute(f"alter role {APP} in database {name} set {set_for_the_role}")
    with closing(open_postgres(server.url(APP, name), "s", owner=server.url(OWNER, name))) as store:
        draft = Draft("note", "茶 \\'", body="Thé 茶 \\ ' off the boil.", tags=("漢",), metadata={"é": "茶\\"})
        assert [store.drawer(Items).put([prepare(draft)])[0].version for _ in range(2)] == [1, 1]
        [kept] = store.drawer(Items).get(store.drawer(Listing).ids_of([("note", "", draft.key)]), body=True)
        assert (kept.key, kept.body, kept.tags, kept.metadata) == (draft.key, draft.body, draft.tags, draft.metadata)
        assert store.check() == []


def test_a_library_is_opened_and_searched_while_another_writes_to_it(tmp_path: Path) -> None:
    settings, space = library_settings(tmp_path, store=postgres().app), f"l{uuid4().hex[:12]}"
    with Library.open(tmp_path, space, settings) as writer, ThreadPoolExecutor(1) as thread:
        writer.put(Draft("note", "tea", body="Oolong wants water."))

        def look() -> list[str]:
            with Library.open(tmp_path, space, settings) as reader:
                return [hit.uri for hit in reader.search("oolong").hits]

        with writer.store.transaction():
            writer.put(Draft("note", "bread", body="Sourdough needs oolong."))
            assert thread.submit(look).result(timeout=20) == ["notes://tea"]


def test_a_server_without_another_connection_is_not_looked_for_elsewhere(
    store: PostgresStore, database: tuple[Server, str]
) -> None:
    server, name = database
    store.drawer(Listing).counts()
    server.execute(f"alter database {name} connection limit 1")
    with pytest.raises(Unavailable, match=r"too many connections.*Try again when fewer use it") as caught:
        migrate(server.url(OWNER, name), server.url(APP, name))
    assert "COMMONPLACE_STORE" not in str(caught.value)


def test_another_space_is_opened_with_the_connections_there_are(
    store: PostgresStore, database: tuple[Server, str]
) -> None:
    server, name = database
    store.drawer(Listing).counts()
    server.execute(f"alter database {name} connection limit 1")
    with closing(open_postgres(server.url(APP, name), "another")) as other:
        assert other.drawer(Items).put([prepare(Draft("note", "tea", body="Oolong wants water."))])[0].id == 1
    assert store.drawer(Listing).counts() == {}


# 2


def test_without_a_schema_the_owner_is_asked_for(database: tuple[Server, str]) -> None:
    server, name = database
    assert "COMMONPLACE_STORE_OWNER" in str(refusal(server.url(APP, name)))
    open_postgres(server.url(APP, name), "s", owner=server.url(OWNER, name)).close()
    open_postgres(server.url(APP, name), "s").close()


@pytest.mark.parametrize(("ahead", "fine"), [(1, True), (2, False)])
def test_a_schema_may_be_one_version_ahead(database: tuple[Server, str], ahead: int, fine: bool) -> None:
    server, name = database
    last = migrate(server.url(OWNER, name), server.url(APP, name))
    for number in range(last + 1, last + ahead + 1):
        server.execute(f"insert into commonplace.schema_versions values ({number})", server.url(OWNER, name))
    if fine:
        open_postgres(server.url(APP, name), "s", owner=server.url(OWNER, name)).close()
    else:
        error = refusal(server.url(APP, name))
        assert (error.exit_code, "Upgrade Commonplace" in str(error)) == (78, True)


def test_a_migration_that_fails_leaves_the_schema_as_it_was(
    database: tuple[Server, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    server, name = database
    migrations = schema.load_migrations()
    broken = [*migrations, "create table extra (x int); select nonsense"]
    monkeypatch.setattr(schema, "load_migrations", lambda: broken)
    with pytest.raises(psycopg.Error, match="nonsense"):
        migrate(server.url(OWNER, name), server.url(APP, name))
    monkeypatch.undo()
    assert migrate(server.url(OWNER, name), server.url(APP, name)) == len(migrations)
    with psycopg.connect(server.url(OWNER, name)) as opened:
        assert opened.execute("select to_regclass('commonplace.extra')").fetchone() == (None,)


def test_documents_of_before_are_found_in_any_case_too(database: tuple[Server, str]) -> None:
    server, name = database
    owner, app = server.url(OWNER, name), server.url(APP, name)
    for space in ("ann", "ben"):
        with closing(open_postgres(app, space, owner=owner)) as store:
            store.drawer(Items).put([prepare(Draft("document", "Areas/Über Vim.md", parent=space, body="x"))])
    columns = ("stem_head", "stem", "ending")
    server.execute(
        f"alter table commonplace.document_names {', '.join(f'drop column {one}' for one in columns)}", owner
    )
    server.execute("drop table commonplace.logins", owner)
    server.execute("delete from commonplace.schema_versions where number >= 4", owner)
    migrate(owner, app)
    for space in ("ann", "ben"):
        with closing(open_postgres(app, space, owner=owner)) as store:
            names, total = store.drawer(DocumentNames).in_any_case("areas/ÜBER vim", 9, with_ending=False)
            assert ([one.file for one in names], total) == ([f"{space}/Areas/Über Vim.md"], 1)
            assert store.check() == []


def test_many_migrate_at_once_and_it_is_done_once(database: tuple[Server, str]) -> None:
    server, name = database
    with ThreadPoolExecutor(6) as pool:
        numbers = list(pool.map(lambda _: migrate(server.url(OWNER, name), server.url(APP, name)), range(6)))
    assert set(numbers) == {len(schema.load_migrations())}


# 3


def test_a_full_disk_is_said_and_nothing_is_stored(store: PostgresStore, database: tuple[Server, str]) -> None:
    server, name = database
    server.execute(
        """create function commonplace.full() returns trigger language plpgsql as
           $$ begin raise exception 'could not extend file: No space left on device' using errcode = '53100'; end $$;
           create trigger full_disk before insert on commonplace.changes for each row
           execute function commonplace.full()""",
        server.url(OWNER, name),
    )
    with pytest.raises(StorageFull, match="has no room") as caught:
        store.drawer(Items).put([prepare(Draft("note", "x", body="x"))])
    assert caught.value.exit_code == 69
    server.execute("drop trigger full_disk on commonplace.changes", server.url(OWNER, name))
    assert (store.drawer(Listing).counts(), store.last_change()) == ({}, 0)
    assert store.drawer(Items).put([prepare(Draft("note", "x", body="x"))])[0].id == 1
    assert store.check() == []


def test_a_missing_right_names_what_is_missing(store: PostgresStore, database: tuple[Server, str]) -> None:
    server, name = database
    server.execute(f"revoke insert on commonplace.bodies from {APP}", server.url(OWNER, name))
    with pytest.raises(BadSetting, match=r"permission denied for table bodies.*STORE_OWNER"):
        store.drawer(Items).put([prepare(Draft("note", "x", body="x"))])
    assert store.drawer(Listing).counts() == {}
    open_postgres(server.url(APP, name), "s", owner=server.url(OWNER, name)).close()  # which grants it again
    assert store.drawer(Items).put([prepare(Draft("note", "x", body="x"))])[0].version == 1


def test_who_waits_too_long_for_another_writer_is_told(
    store: PostgresStore, database: tuple[Server, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    server, name = database
    monkeypatch.setattr(connection, "LOCK_S", 1)
    other = PostgresStore(server.url(APP, name), "s")
    inside, done = threading.Event(), threading.Event()

    def hold() -> None:
        with store.transaction():
            store.drawer(Items).put([prepare(Draft("note", "held", body="x"))])
            inside.set()
            done.wait(30)

    holder = threading.Thread(target=hold)
    holder.start()
    try:
        assert inside.wait(30)
        assert other.drawer(Listing).counts() == {}, "readers wait for nobody"
        with pytest.raises(Busy, match="busy"):
            other.drawer(Items).put([prepare(Draft("note", "late", body="x"))])
    finally:
        done.set()
        holder.join(30)
    assert other.drawer(Listing).counts() == {"note": 1}
    other.close()


def test_a_statement_that_takes_too_long_is_given_up(store: PostgresStore) -> None:
    def wait() -> None:
        store._run("set local statement_timeout = '50ms'")
        store._one("select pg_sleep(20)")

    with pytest.raises(Busy, match="longer than"), explained(store.name):
        store._database.read(wait)
    assert store.drawer(Listing).counts() == {}


def test_a_backup_and_its_return_may_take_longer_than_a_statement(
    store: PostgresStore, database: tuple[Server, str], tmp_path: Path
) -> None:
    server, name = database
    store.drawer(Items).put([prepare(Draft("note", "x", body="x"))])
    server.execute(
        """create policy slow_read on commonplace.items as restrictive for select using (pg_sleep(0.4) is not null);
           create policy slow_write on commonplace.items as restrictive for insert
             with check (pg_sleep(0.4) is not null)""",
        server.url(OWNER, name),
    )
    store._database._settings = store._database._settings.replace("60s", "200ms")
    with pytest.raises(Busy, match="longer than"):
        store.drawer(Items).find("note", "", "x")
    store.backup(tmp_path / "backup.db")
    store.restore(tmp_path / "backup.db")
    server.execute("drop policy slow_read on commonplace.items", server.url(OWNER, name))
    assert store.drawer(Listing).counts() == {"note": 1}


def test_what_a_job_failed_with_is_kept_whatever_it_quotes(store: PostgresStore) -> None:
    store.drawer(JobQueue).enqueue("k", {})
    job = store.drawer(JobQueue).claim("k", 60)
    assert job
    store.drawer(JobQueue).fail(job, "a\0b \ud800", 0)
    assert store._database.read(lambda: store._one("select error from jobs")) == "a\ufffdb ?"
    assert store.drawer(JobQueue).claim("k", 60)


def test_a_store_that_cannot_be_read_is_closed_again(store: PostgresStore, database: tuple[Server, str]) -> None:
    server, name = database
    server.execute(f"revoke select on commonplace.settings from {APP}", server.url(OWNER, name))
    users = connection._Shared._open[server.url(APP, name), 20, os.getpid()][1]
    with pytest.raises(BadSetting, match="permission denied for table settings"):
        open_postgres(server.url(APP, name), "s")
    assert connection._Shared._open[server.url(APP, name), 20, os.getpid()][1] == users


def test_a_store_whose_space_cannot_be_made_keeps_no_connections(database: tuple[Server, str]) -> None:
    server, name = database
    url = server.url(APP, name)
    migrate(server.url(OWNER, name), url)
    server.execute(f"revoke insert on commonplace.spaces from {APP}", server.url(OWNER, name))
    with pytest.raises(BadSetting, match="permission denied for table spaces"):
        open_postgres(url, "s")
    assert (url, 20, os.getpid()) not in connection._Shared._open


@pytest.mark.parametrize("text", ["a\0b", "\ud800"])
def test_what_is_no_text_is_refused_in_words(store: PostgresStore, text: str) -> None:
    with pytest.raises(InvalidInput, match="Remove it"):
        store.drawer(LastingNames).named("note", text)
    with pytest.raises(InvalidInput, match="Remove it"):
        store.drawer(LastingNames).set_uid(1, text)
    assert store.drawer(Listing).counts() == {}


def test_an_owner_who_may_create_nothing_is_told(database: tuple[Server, str]) -> None:
    server, name = database
    server.execute(f"drop role if exists stranger; create role stranger login password '{server.password}'")
    error = refusal(server.url(APP, name), server.url("stranger", name))
    assert error.exit_code == 78
    assert "permission denied for database" in str(error)
    assert str(error).endswith(
        "COMMONPLACE_STORE_OWNER must name a role that may make and change the schema commonplace."
    )


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (
            "create schema commonplace",
            "has a schema commonplace of another role. COMMONPLACE_STORE_OWNER must name a role",
        ),
        (
            "create schema commonplace; grant usage on schema commonplace to commonplace_owner",
            "permission denied for schema commonplace",
        ),
        (
            "set role commonplace_owner; create schema commonplace; create table commonplace.items (x integer)",
            'has a schema commonplace of something else: relation "items" already exists',
        ),
    ],
)
def test_a_schema_of_that_name_that_is_not_ours_is_refused(database: tuple[Server, str], made: str, said: str) -> None:
    server, name = database
    server.execute(made, server.url("postgres", name))
    error = refusal(server.url(APP, name), server.url(OWNER, name))
    assert isinstance(error, BadSetting)
    assert said in str(error)


def test_a_migration_may_take_longer_than_its_owner_s_statements(
    database: tuple[Server, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    server, name = database
    server.execute(f"alter role {OWNER} in database {name} set statement_timeout = '1s'")
    slow = [*schema.load_migrations(), "select pg_sleep(1.3)"]
    monkeypatch.setattr(schema, "load_migrations", lambda: slow)
    assert migrate(server.url(OWNER, name), server.url(APP, name)) == len(slow)
