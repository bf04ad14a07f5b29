"""A home goes over to PostgreSQL and back: real processes, a real server, a database for each test.

1. Everything arrives: every kind of row, the log in its order, vectors, sessions, tables, users, keys. And comes back.
2. A run that was killed goes on where it was; meanwhile nobody can use the space. A changed source: from the start.
3. Nothing that holds something is filled, and nothing of the source changes.
4. What is wrong is one sentence on stderr with its exit code.
"""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from commonplace.ingest.prepare import prepare
from commonplace.kinds.documents.collection_files import CollectionFiles
from commonplace.kinds.documents.document_names import DocumentNames
from commonplace.kinds.memories.drawer import EntryRows
from commonplace.kinds.memories.entry import Past
from commonplace.kinds.tables.data_drawer import DataDrawer
from commonplace.kinds.tables.drawer import InstanceDrawer, TableDrawer
from commonplace.library import Library
from commonplace.model import Condition, Draft, Filter
from commonplace.store import SqliteStore
from commonplace.store.attachments import Attachments
from commonplace.store.chunks import Chunks
from commonplace.store.embeddings import Embeddings
from commonplace.store.import_sources import ImportSource, ImportSources
from commonplace.store.items import Items
from commonplace.store.job_queue import JobQueue
from commonplace.store.lasting_names import LastingNames
from commonplace.store.listing import Listing
from commonplace.store.metadata_index import MetadataIndex
from commonplace.store.outdated import Outdated
from commonplace.store.postgres import PostgresAccounts, PostgresStore
from commonplace.store.rows import Attachment, FileRecord, FolderChange
from commonplace.store.session_marks import Returned, SessionList, SessionMarks
from commonplace.store.sqlite.accounts import Accounts
from commonplace.store.stored_settings import StoredSettings
from kit.forked import forked
from opening import library_settings, space_of
from postgres_server import APP, OWNER, postgres

Run = Callable[..., "subprocess.CompletedProcess[str]"]
MANY = 2500


@pytest.fixture
def database(tmp_path: Path) -> Iterator[tuple[str, str]]:
    """The addresses of a database of the test's own, for the application and for the owner."""
    server, name = postgres(), f"m{space_of(tmp_path)}"
    server.create_database(name)
    yield server.url(APP, name), server.url(OWNER, name)
    server.execute(f"drop database {name} with (force)")


@pytest.fixture
def environment(tmp_path: Path, database: tuple[str, str]) -> dict[str, str]:
    known = {"COMMONPLACE_HOME": str(tmp_path / "home"), "COMMONPLACE_STORE_OWNER": database[1]}
    return {**os.environ, **known, "COMMONPLACE_MODEL": "static"}


@pytest.fixture
def run(environment: dict[str, str]) -> Run:
    def call(*arguments: str, code: int = 0, **more: str) -> subprocess.CompletedProcess[str]:
        command = forked(*arguments)
        done = subprocess.run(
            command, env={**environment, **more}, capture_output=True, text=True, timeout=100, check=False
        )
        assert done.returncode == code, done.stderr
        assert "Traceback" not in done.stderr
        return done

    return call


def fill(home: Path, space: str = "default") -> None:
    """A library with something of every kind."""
    picture = b"picture"
    attachment = Attachment(hashlib.sha256(picture).digest(), "image/png", picture)
    with Library.open(home, space, library_settings(home)) as library:
        store = library.store
        tea = library.put(
            Draft("note", "tea", title="Tea", body="Oolong.\n\nGreen.", tags=("hot",), metadata={"k": 1.0})
        )
        library.put(Draft("note", "gone", body="soon"))
        library.delete("notes://gone")
        for number in (1, 2):
            fields: dict[str, Any] = {"source": "user", **({"supersedes": [1]} if number == 2 else {})}
            draft = Draft("memory", str(number), "t", body=f"said {number}", fields=fields, metadata={"k": [1, 0.1]})
            entry = store.drawer(Items).put([prepare(draft)])[0]
            store.drawer(Attachments).attach(entry.id, [(attachment, {"n": number})])
        store.drawer(EntryRows).keep_past(entry.id, Past(1, 7, "before", {}, (), ()), 9)
        document = prepare(Draft("document", "a.md", parent="c", body="# A\n\ntext", format="markdown"))
        record = FileRecord("a.md", 1, 2, 2**63 - 1, b"\1" * 32, 4, "text-1", "", 0)
        store.drawer(CollectionFiles).change(FolderChange("c", [(document, record)], (), (), ()))
        store.drawer(Items).put([prepare(Draft("message", "m", parent="talk", body="hi", fields={"index": 0}))])
        store.drawer(MetadataIndex).add(("k",))
        store.drawer(SessionMarks).add("s", "tests", now=0, since=0, most=9)
        store.drawer(SessionMarks).mark(
            "s", Returned("q", ["notes://n"], "list", SessionList(("x",), True)), now=0, most_uris=9
        )
        store.drawer(ImportSources).keep(ImportSource("note", "file", "", b"h", tea.id, 1))
        store.drawer(JobQueue).enqueue("k", {"n": 1})
        project = library.tables.catalog.create_project("p")
        data: Any = {"teas": [{"name": "oolong\0", "price": 1.0}, {"na\0me": "sencha"}]}
        table = library.tables.catalog.create_table(project.id, "menu", data=data)
        tool = library.tables.catalog.create_tool(table, "search", "find", {"json_path": "/teas"})
        library.tables.instances.create("shop", tool_ids=[tool.id])
        library.embed()


def content(store: Any) -> Any:
    items = store.drawer(Listing).scan(Filter(), body=True)
    ids = [item.id for item in items]
    marks, names, sources = store.drawer(SessionMarks), store.drawer(LastingNames), store.drawer(ImportSources)
    rows, instances = store.drawer(TableDrawer), store.drawer(InstanceDrawer)
    entries = store.drawer(EntryRows)
    chunks, embeddings, listing = store.drawer(Chunks), store.drawer(Embeddings), store.drawer(Listing)
    keys, vectors = embeddings.vectors_of(embeddings.models()[0].id, ids)
    return (
        items, [chunks.of(item) for item in ids], store.changes(0, 9999), keys.tolist(), vectors.tolist(),
        [store.drawer(Attachments).of(item) for item in ids], entries.of(ids), entries.past(ids),
        entries.threads(limit=9, offset=0), store.drawer(Outdated).superseded(), embeddings.models(), names.uids(ids),
        store.drawer(DocumentNames).docids(ids), store.drawer(CollectionFiles).records("c"),
        marks.find("s"), marks.seen("s"), marks.kept_list("s", "list"),
        sources.find("note", "file", ""), list(store.drawer(MetadataIndex).fields()), store.drawer(Items).last(),
        entries.next_number(),
        store.drawer(JobQueue).total(), store.drawer(StoredSettings).get("model"), rows.tables(), rows.tools(),
        instances.instances(),
        instances.bindings(), [store.drawer(DataDrawer).value(table.number) for table in rows.tables()],
        listing.select(Filter(kinds=("memory",), where=(Condition(("k",), "array_contains", 0.1),))).tolist(),
    )  # fmt: skip


def file_of(home: Path, space: str = "default") -> Path:
    return home / "spaces" / space / "library.db"


def content_of_file(home: Path, space: str = "default") -> Any:
    with closing(SqliteStore(file_of(home, space))) as store:
        assert store.check() == []
        return content(store)


def content_of_database(url: str, space: str = "default") -> Any:
    with closing(PostgresStore(url, space, 3)) as store:
        assert store.check() == []
        return content(store)


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


# 1


@pytest.mark.timeout(110)
def test_a_home_goes_to_a_database_and_back_whole(run: Run, tmp_path: Path, database: tuple[str, str]) -> None:
    home, (url, _) = tmp_path / "home", database
    fill(home)
    fill(home, "ann")
    with closing(Accounts(home / "accounts.db")) as accounts:
        accounts.add_user("ann")
        key = accounts.create_key("ann", ("read", "write"), collections=("c",))
        accounts.revoke(accounts.create_key("ann").split("_")[1])
    before, files = content_of_file(home), [digest(file_of(home)), digest(home / "accounts.db")]

    done = run("migrate", "sqlite-to-postgres", url)
    assert [line.split(":")[0] for line in done.stdout.splitlines()[:2]] == ["ann", "default"]
    assert done.stdout.count("compared and alike") == 2
    assert "1 user, with their keys" in done.stdout
    assert "copying: " in done.stderr
    assert url.split(":")[2].split("@")[0] not in done.stdout + done.stderr  # the password
    assert content_of_database(url) == before
    assert content_of_file(home) == before
    assert [digest(file_of(home)), digest(home / "accounts.db")] == files
    with closing(PostgresAccounts(url)) as accounts:
        assert accounts.verify(key) == ("ann", "ann", {"read", "write"}, ("c",))
        assert sorted(known.state for known in accounts.keys("ann")) == ["active", "revoked"]
    assert run("migrate", "sqlite-to-postgres", url).stdout.count("there before") == 2

    found = run("query", "oolong", "--json", COMMONPLACE_STORE=url)
    assert "notes://tea" in found.stdout
    back = run("migrate", "postgres-to-sqlite", COMMONPLACE_STORE=url, COMMONPLACE_HOME=str(tmp_path / "back"))
    assert back.stdout.count("compared and alike") == 2
    assert content_of_file(tmp_path / "back") == content_of_database(url)
    with closing(Accounts(tmp_path / "back" / "accounts.db")) as accounts:
        assert accounts.verify(key) is not None
    assert not list((tmp_path / "back").rglob("*.migrating*"))
    again = run("migrate", "postgres-to-sqlite", url, COMMONPLACE_HOME=str(tmp_path / "back"))
    assert again.stdout.count("there before") == 2


def test_what_is_stored_after_it_goes_on_with_the_next_numbers(
    run: Run, tmp_path: Path, database: tuple[str, str]
) -> None:
    home, (url, _) = tmp_path / "home", database
    fill(home)
    run("--space", "default", "migrate", "sqlite-to-postgres", url)
    with closing(PostgresStore(url, "default", 3)) as store, closing(SqliteStore(file_of(home))) as file:
        stores: tuple[Any, Any] = (store, file)
        assert len({each.drawer(StoredSettings).get("identity") for each in stores}) == 2
        first, second = (each.drawer(Items).put([prepare(Draft("note", "new", body="new"))])[0] for each in stores)
        assert first.id == second.id
        assert store.last_change() == file.last_change()
        assert store.drawer(EntryRows).next_number() == file.drawer(EntryRows).next_number()
        assert store.check() == []


# 2


def many(home: Path) -> None:
    with closing(SqliteStore(file_of(home))) as store:
        store.drawer(Items).put([prepare(Draft("note", str(number), body=f"about {number}")) for number in range(MANY)])


def killed(environment: dict[str, str], *arguments: str) -> None:
    """Run it until it has copied something, and no longer."""
    command = forked(*arguments)
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr
        for line in process.stderr:
            if "copying: " in line:
                break
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL


def steps(done: subprocess.CompletedProcess[str]) -> int:
    """How much was there when it had copied its first batch."""
    line = next(line for line in done.stderr.splitlines() if "copying: " in line)
    return int(line.split("copying: ")[1].split(" of ")[0])


@pytest.mark.timeout(110)
def test_a_run_that_was_killed_goes_on_where_it_was(
    run: Run, tmp_path: Path, database: tuple[str, str], environment: dict[str, str]
) -> None:
    home, (url, _) = tmp_path / "home", database
    many(home)
    killed(environment, "migrate", "sqlite-to-postgres", url)
    refused = run("status", code=69, COMMONPLACE_STORE=url)
    assert "is being filled" in refused.stderr
    with closing(PostgresStore(url, "default", 3)) as store:
        mark: Any = store.drawer(StoredSettings).get("migration")
    done = run("migrate", "sqlite-to-postgres", url)
    assert steps(done) > mark["done"] >= 1000
    assert f"{MANY} items" in done.stdout
    with closing(PostgresStore(url, "default", 3)) as store:
        assert store.drawer(Listing).counts() == {"note": MANY}
        assert [change.seq for change in store.changes(0, 2 * MANY)] == list(range(1, MANY + 1))
        assert store.check() == []

    back = {**environment, "COMMONPLACE_HOME": str(tmp_path / "back")}
    killed(back, "migrate", "postgres-to-sqlite", url)
    assert not file_of(tmp_path / "back").exists()
    done = run("migrate", "postgres-to-sqlite", url, COMMONPLACE_HOME=str(tmp_path / "back"))
    assert steps(done) > 1000
    with closing(SqliteStore(file_of(tmp_path / "back"))) as copy:
        assert copy.drawer(Listing).counts() == {"note": MANY}
        assert copy.check() == []


@pytest.mark.timeout(110)
def test_a_run_that_loses_its_connection_says_that_it_goes_on_where_it_was(
    run: Run, tmp_path: Path, database: tuple[str, str], environment: dict[str, str]
) -> None:
    home, (url, _) = tmp_path / "home", database
    many(home)
    command = forked("migrate", "sqlite-to-postgres", url)
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert any("copying: " in line for line in process.stderr)
        while process.poll() is None:  # between two transactions it would go on over another connection
            postgres().execute(
                f"select pg_terminate_backend(pid) from pg_stat_activity where datname = 'm{space_of(tmp_path)}'"
            )
        said = process.stderr.read().splitlines()[-1]
    assert process.returncode == 69
    assert "was lost" in said
    assert "othing" not in said
    assert said.endswith("What was copied stays: run this again, and it goes on where it was.")
    done = run("migrate", "sqlite-to-postgres", url)
    assert steps(done) > 1000
    assert f"{MANY} items" in done.stdout


@pytest.mark.timeout(110)
def test_it_starts_over_where_the_source_has_changed_and_can_be_given_up(
    run: Run, tmp_path: Path, database: tuple[str, str], environment: dict[str, str]
) -> None:
    home, (url, _) = tmp_path / "home", database
    many(home)
    killed(environment, "migrate", "sqlite-to-postgres", url)
    assert run("migrate", "sqlite-to-postgres", "--abandon", url).stdout == "default: removed\n"
    assert "unfinished" in run("migrate", "sqlite-to-postgres", "--abandon", url).stdout
    run("status", COMMONPLACE_STORE=url)
    killed(environment, "migrate", "sqlite-to-postgres", url)
    with closing(SqliteStore(file_of(home))) as store:
        store.drawer(Items).delete([1])
        store.drawer(Items).put([prepare(Draft("note", "5", body="changed"))])
    done = run("migrate", "sqlite-to-postgres", url)
    assert steps(done) <= 1000
    with closing(PostgresStore(url, "default", 3)) as served, closing(SqliteStore(file_of(home))) as store:
        for each in (served, store):
            assert each.drawer(Listing).counts() == {"note": MANY - 1}
            assert each.check() == []
        assert served.changes(MANY, 9) == store.changes(MANY, 9)
        assert served.drawer(Items).get([6], body=True) == store.drawer(Items).get([6], body=True)


# 3


def test_what_holds_something_is_not_filled(run: Run, tmp_path: Path, database: tuple[str, str]) -> None:
    home, (url, _) = tmp_path / "home", database
    fill(home)
    run("status", COMMONPLACE_STORE=url)  # makes the schema, and a space without content
    with closing(PostgresStore(url, "default", 3)) as store:
        store.drawer(Items).put([prepare(Draft("note", "mine", body="mine"))])
        assert "holds something already" in run("migrate", "sqlite-to-postgres", url, code=1).stderr
        assert store.drawer(Listing).counts() == {"note": 1}
        assert "holds something already" in run("migrate", "postgres-to-sqlite", url, code=1).stderr
        store.drawer(Items).delete([1])
    assert content_of_file(home)
    with closing(PostgresAccounts(url)) as accounts:
        accounts.add_user("bob")
    with closing(Accounts(home / "accounts.db")) as others:
        others.add_user("ann")
    other = tmp_path / "other"
    fill(other, "ann")
    (other / "accounts.db").write_bytes((home / "accounts.db").read_bytes())
    refused = run("migrate", "sqlite-to-postgres", url, code=1, COMMONPLACE_HOME=str(other))
    assert "has users or keys already" in refused.stderr


def test_a_space_that_was_filled_is_not_filled_again_with_something_else(
    run: Run, tmp_path: Path, database: tuple[str, str]
) -> None:
    home, (url, _) = tmp_path / "home", database
    fill(home)
    run("migrate", "sqlite-to-postgres", url)
    with closing(SqliteStore(file_of(home))) as store:
        store.drawer(Items).put([prepare(Draft("note", "later", body="later"))])
    assert "has changed since" in run("migrate", "sqlite-to-postgres", url, code=1).stderr


# 4


def test_what_is_wrong_is_one_sentence(run: Run, tmp_path: Path, database: tuple[str, str]) -> None:
    home, (url, _) = tmp_path / "home", database
    assert "Name the database" in run("migrate", "sqlite-to-postgres", code=2).stderr
    assert "begins with postgresql://" in run("migrate", "sqlite-to-postgres", "mysql://x", code=78).stderr
    assert "There are no libraries in" in run("migrate", "sqlite-to-postgres", url, code=1).stderr
    missing = run("--space", "nobody", "migrate", "sqlite-to-postgres", url, code=1)
    assert "There is no library at" in missing.stderr
    missing = run("--space", "nobody", "migrate", "postgres-to-sqlite", url, code=1)
    assert "has no space nobody" in missing.stderr
    assert not (home / "spaces" / "nobody").exists()
    unknown = run("migrate", "postgres-to-sqlite", url, code=2, COMMONPLACE_STORE_OWNER="")
    assert "Set COMMONPLACE_STORE_OWNER" in unknown.stderr
    wrong = run("migrate", "sqlite-to-postgres", url.replace("@", "x@"), code=78)
    assert "Check the user and the password" in wrong.stderr
    unclear = run("migrate", "sqlite-to-postgres", url.replace(APP, f"{APP}@corp"), code=78)
    assert "is no address that can be read" in unclear.stderr
    assert postgres().password not in wrong.stderr + unclear.stderr


def test_text_that_postgres_cannot_hold_is_named(run: Run, tmp_path: Path, database: tuple[str, str]) -> None:
    home, (url, _) = tmp_path / "home", database
    with closing(SqliteStore(file_of(home))) as store:
        store.drawer(SessionMarks).add("s", "a client\0", now=0, since=0, most=9)
    refused = run("migrate", "sqlite-to-postgres", url, code=2)
    assert "U+0000" in refused.stderr
    assert "A row of sessions" in refused.stderr
