"""The store's contract: backups, checks, migrations, and what happens when things go wrong.

1. A backup is complete and consistent; restoring it leaves it untouched, and everything as it was then.
2. A check finds every kind of damage that can be planted.
3. A file of the first schema opens; one of a newer schema, or no database at all, is refused with a sentence.
4. What cannot be stored is refused with a sentence, and nothing of it is stored.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import apsw
import pytest

from commonplace.errors import Busy, CommonplaceError, InvalidInput, NotFound, StorageBroken, StorageFull
from commonplace.ingest.prepare import prepare
from commonplace.model import Draft, Filter, Span
from commonplace.store import SqliteStore
from commonplace.store.attachments import Attachments
from commonplace.store.chunks import Chunks
from commonplace.store.embeddings import Embeddings
from commonplace.store.items import Items
from commonplace.store.listing import Listing
from commonplace.store.opening import restore_store
from commonplace.store.rows import Attachment
from commonplace.store.sqlite.care import INVARIANTS
from commonplace.store.sqlite.connection import explained
from commonplace.store.stored_settings import StoredSettings
from few_files import few_files
from opening import BACKENDS, library_settings, open_store

TEA = Draft("note", "tea", title="Tea", body="Oolong.\n\nGreen.", tags=("hot",), metadata={"k": 1})


@pytest.fixture
def sqlite(tmp_path: Path) -> SqliteStore:
    return open_store("sqlite", tmp_path / "store")


def fill(store: SqliteStore) -> None:
    items = store.drawer(Items).put(
        [prepare(TEA), prepare(replace(TEA, key="b")), prepare(replace(TEA, key="c", body="Third."))]
    )
    model = store.drawer(Embeddings).add_model("f", "m", 1)
    store.drawer(Embeddings).add(
        model,
        [(chunk.vector_key, b"\0\0") for chunk in store.drawer(Embeddings).unembedded(model, model.position, 9)[0]],
    )
    data = b"picture"
    store.drawer(Attachments).attach(items[0].id, [(Attachment(hashlib.sha256(data).digest(), "image/png", data), {})])
    store.drawer(StoredSettings).set("s", 1)


def content(store: SqliteStore) -> Any:
    items = store.drawer(Listing).scan(Filter(), body=True)
    return (
        items,
        store.changes(0, 99),
        [store.drawer(Attachments).of(item.id) for item in items],
        store.drawer(StoredSettings).get("s"),
    )


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_backup_brings_everything_back(sqlite: SqliteStore, tmp_path: Path) -> None:
    fill(sqlite)
    before = content(sqlite)
    backup = tmp_path / "backups" / "one.db"
    backup.parent.mkdir()
    sqlite.backup(backup)
    saved = files(backup.parent)
    sqlite.drawer(Items).put([prepare(replace(TEA, body="changed")), prepare(replace(TEA, key="new"))])
    sqlite.drawer(StoredSettings).set("s", 2)
    sqlite.restore(backup)
    assert content(sqlite) == before
    assert sqlite.check() == []
    assert files(backup.parent) == saved, "a restore reads its backup and leaves it alone"
    assert sqlite.drawer(Items).put([prepare(replace(TEA, key="next"))])[0].id == 4


def test_a_backup_replaces_an_older_one_whole(sqlite: SqliteStore, tmp_path: Path) -> None:
    fill(sqlite)
    target = tmp_path / "backup.db"
    target.write_bytes(b"an older one")
    sqlite.backup(target)
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["backup.db"]
    copy = SqliteStore(target)
    assert content(copy) == content(sqlite)
    copy.close()


def test_a_backup_that_cannot_be_written_names_its_target(sqlite: SqliteStore, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"nowhere/backup\.db cannot be written: there is no folder"):
        sqlite.backup(tmp_path / "nowhere" / "backup.db")


def test_backups_made_at_once_are_whole_each_and_what_was_abandoned_goes(sqlite: SqliteStore, tmp_path: Path) -> None:
    fill(sqlite)
    sqlite.drawer(Items).put([prepare(Draft("note", f"n{number}", body="water " * 2000)) for number in range(200)])
    folder = tmp_path / "backups"
    folder.mkdir()
    for name, age in (("one.db.1-1.partial", 7200), ("one.db.2-2.partial", 60)):
        (folder / name).write_bytes(b"half")
        os.utime(folder / name, (time.time() - age,) * 2)
    with ThreadPoolExecutor(4) as pool:
        for made in [pool.submit(sqlite.backup, folder / "one.db") for _ in range(12)]:
            made.result(timeout=60)
    assert sorted(path.name for path in folder.iterdir()) == ["one.db", "one.db.2-2.partial"]
    with closing(SqliteStore(folder / "one.db")) as copy:
        assert content(copy) == content(sqlite)


@pytest.mark.parametrize("end", ["", "-wal", "-shm"])
def test_a_backup_takes_no_place_of_a_library_in_use(sqlite: SqliteStore, end: str) -> None:
    fill(sqlite)
    place = sqlite.path.with_name(sqlite.path.name + end)
    before = place.stat().st_ino
    with pytest.raises(InvalidInput, match="is a library in use"):
        sqlite.backup(place)
    assert place.stat().st_ino == before


@pytest.mark.parametrize("damage", ["missing", "text", "cut", "hollow", "empty", "another program's"])
def test_what_is_no_sound_backup_changes_nothing(sqlite: SqliteStore, tmp_path: Path, damage: str) -> None:
    fill(sqlite)
    source = tmp_path / "backup.db"
    if damage in ("text", "cut", "hollow"):
        sqlite.backup(source)
    if damage == "text":
        source.write_text("this is no database " * 1000, encoding="utf-8")
    elif damage == "cut":
        source.write_bytes(source.read_bytes()[:-5000])
    elif damage == "hollow":
        with apsw.Connection(str(source)) as connection:
            connection.execute("delete from bodies")
    elif damage == "empty":
        source.touch()
    elif damage == "another program's":
        with apsw.Connection(str(source)) as connection:
            connection.execute("create table items (id integer primary key); insert into items values (1)")
    before = content(sqlite)
    with pytest.raises((NotFound, StorageBroken, InvalidInput), match=r"backup\.db (?!is damaged)|backup\.db\.$"):
        sqlite.restore(source)
    assert content(sqlite) == before


@pytest.mark.parametrize(
    "sql",
    [
        "update bodies set body = cast(x'ff41' as text)",
        "update items set format = cast(x'ff41' as text)",
        "update settings set value = '{'",
        """pragma writable_schema = on;
        update sqlite_schema set sql = replace(sql, 'replayed', cast(x'ff41' as text)) where name = 'session_lists'""",
    ],
)
def test_damage_that_shows_in_the_copy_is_told_of_the_backup(sqlite: SqliteStore, tmp_path: Path, sql: str) -> None:
    fill(sqlite)
    source = tmp_path / "backup.db"
    sqlite.backup(source)
    with apsw.Connection(str(source)) as connection:
        connection.execute(sql)
    with pytest.raises(StorageBroken, match=r"backup\.db is no sound backup: .+\. Nothing was changed\.$"):
        restore_store(library_settings(tmp_path), sqlite.path.parent, source)


FOREIGN = {
    "a column": "alter table settings add column more text default 'x'",
    "a column that is no name": """alter table settings add column "x) select 1 --" text""",
    "a column under another name": "alter table settings rename column value to worth",
    "a table": "create table more (x)",
    "a view": "create view more as select 1",
    "a view in a table's place": "drop table tags; create view tags as select 1 as item_id, 'x' as tag",
    "a trigger": "create trigger more after insert on items begin delete from bodies; end",
    "a table that is gone": "drop table tags",
    "no version": "pragma user_version = 0",
    "an old version": "pragma user_version = 3",
    "a version below all": "pragma user_version = -1",
    "a newer version": "pragma user_version = 99",
    "fields that are no object": "update items set fields = '[1]'",
    "metadata that are no JSON": "update items set metadata = '{'",
    "a kind that nobody knows": "update items set kind = '../x'",
    "a vector cut short": "update embeddings set vector = x'00'",
}
"""What a backup of ours never has, whoever made it: each would be in the library afterwards, or break it."""


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("sql", FOREIGN.values(), ids=FOREIGN)
def test_a_backup_with_what_is_not_ours_is_refused_whole(tmp_path: Path, backend: str, sql: str) -> None:
    store, source = open_store(backend, tmp_path / "store"), tmp_path / "backup.db"
    with closing(open_store("sqlite", tmp_path / "other")) as other:
        fill(other)
        other.backup(source)
    with apsw.Connection(str(source)) as connection:
        connection.create_scalar_function("fold", str, 1, deterministic=True)  # type: ignore[arg-type]
        connection.execute(sql)
    with closing(store):
        store.drawer(Items).put([prepare(replace(TEA, key="here"))])
        before = content(store)
        with pytest.raises((StorageBroken, InvalidInput), match=r"backup\.db [^\n]*\.$"):
            store.restore(source)
        assert content(store) == before
        assert store.check() == []


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_restore_makes_another_store_of_it_at_once(tmp_path: Path, backend: str) -> None:
    """An index of the log before must never be taken for one of this log, not even by who comes after a crash."""
    with closing(open_store(backend, tmp_path / "store")) as store:
        store.drawer(StoredSettings).settle("identity", "before")
        store.backup(tmp_path / "backup.db")
        store.restore(tmp_path / "backup.db")
        assert store.drawer(StoredSettings).get("identity") not in (None, "before")


def test_what_a_killed_restore_has_left_goes_with_the_next_one(sqlite: SqliteStore, tmp_path: Path) -> None:
    fill(sqlite)
    sqlite.backup(tmp_path / "backup.db")
    for name, age in (("old", 7200), ("young", 60)):
        folder = sqlite.path.parent / f"commonplace-restore-{name}"
        folder.mkdir()
        (folder / "copy.db").write_bytes(b"half")
        os.utime(folder, (time.time() - age,) * 2)
    sqlite.restore(tmp_path / "backup.db")
    left = [path.name for path in sqlite.path.parent.iterdir() if path.is_dir()]
    assert left == ["commonplace-restore-young"]


def damaged(good: bytes) -> dict[str, bytes]:
    return {
        "no header": b"\xff" * 100 + good[100:],
        "no first page": good[:100] + b"\xff" * 3996 + good[4096:],
        "half of it": good[: len(good) // 2],
        "another file": b"hello " * 1000,
        "another page size": good[:16] + b"\x20\x00" + good[18:],
        "pages overwritten": good[: 3 * 4096] + b"\xff" * (len(good) - 3 * 4096),
    }


@pytest.mark.parametrize("how", damaged(b""))
def test_a_library_too_damaged_to_be_opened_is_restored_all_the_same(tmp_path: Path, how: str) -> None:
    folder, settings = tmp_path / "store", library_settings(tmp_path)
    with closing(open_store("sqlite", folder)) as store:
        fill(store)
        store.backup(tmp_path / "backup.db")
        before = content(store)
        store.drawer(Items).put([prepare(replace(TEA, key="later"))])
    path = folder / "library.db"
    path.write_bytes(broken := damaged(path.read_bytes())[how])
    path.with_name("library.db-wal").write_bytes(b"left over")
    restore_store(settings, folder, tmp_path / "backup.db")
    with closing(open_store("sqlite", folder)) as store:
        assert content(store) == before
        assert store.check() == []
        assert store.drawer(StoredSettings).get("identity")
    assert path.with_name("library.db.damaged").read_bytes() == broken
    assert not list(folder.glob("commonplace-restore-*"))


def test_a_damaged_library_stays_as_it_is_when_the_backup_is_unsound(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    with closing(open_store("sqlite", folder)) as store:
        fill(store)
        store.backup(tmp_path / "backup.db")
    backup, path = tmp_path / "backup.db", folder / "library.db"
    backup.write_bytes(backup.read_bytes()[:-5000])
    path.write_bytes(b"hello " * 1000)
    with pytest.raises(StorageBroken, match=r"backup\.db is no sound backup"):
        restore_store(library_settings(tmp_path), folder, backup)
    assert path.read_bytes() == b"hello " * 1000


def test_a_backup_of_a_damaged_library_names_the_library(sqlite: SqliteStore, tmp_path: Path) -> None:
    sqlite.drawer(Items).put([prepare(replace(TEA, key=str(n), body=f"{n} " * 3000)) for n in range(20)])
    sqlite.close()
    with sqlite.path.open("r+b") as file:
        file.seek(-4096 * 20, 2)
        file.write(b"\xff" * 4096 * 10)
    with closing(SqliteStore(sqlite.path)) as broken, pytest.raises(StorageBroken, match=r"library\.db is damaged"):
        broken.backup(tmp_path / "backup.db")


DAMAGE = {
    "gaps in the change log": "delete from changes where seq = 2",
    "items without a body": "delete from bodies where item_id = 1",
    "bodies without an item": "insert into bodies values (99, 'x')",
    "tags without an item": "insert into tags values ('x', 99, 0, 'x')",
    "chunks without an item": "insert into chunks values (99 << 20, 'x', 0, 1, 1, 1, '', null, x'00')",
    "items whose chunks do not count up": "delete from chunks where id = 1 << 20",
    "chunks that do not quote their body": "update chunks set char_start = char_start + 1 where id = 1 << 20",
    "bodies that are not what was written": "update bodies set body = body || ' ' where item_id = 1",
    "items whose version is not their last logged one": "update items set version = 7 where id = 1",
    "vectors without a chunk": "insert into embeddings values (1, x'ffff', x'0000')",
    "vectors of no model": "update embeddings set model = 9",
    "vectors of another length": "update embeddings set vector = x'00'",
    "items whose fields or metadata are no objects": "update items set fields = '[1]' where id = 1",
    "attachments without an item": "insert into attachments values (x'00', x'00')",
    "items whose attachment is gone": "delete from attachments",
    "attachments that are not what was written": "update attachments set data = x'00'",
    "passages, attachments, cues or histories with what is no JSON": "insert into cues values (1, '[')",
    "data of tables that is no JSON": """insert into fragments (tbl, parent, position, count, shape, size, text)
        values (1, -1, 0, 2, 'run', 3, '1-2')""",
}


@pytest.mark.parametrize(("sentence", "sql"), DAMAGE.items())
def test_a_check_finds_planted_damage(sqlite: SqliteStore, tmp_path: Path, sentence: str, sql: str) -> None:
    fill(sqlite)
    assert sqlite.check() == []
    with apsw.Connection(str(sqlite.path)) as connection:
        connection.execute(sql)
    assert any(problem.startswith(sentence) for problem in sqlite.check())


def test_a_check_reads_a_long_body_once_and_not_for_each_of_its_chunks(sqlite: SqliteStore) -> None:
    sqlite.drawer(Items).put([prepare(replace(TEA, body="Words and more of them. \n\n" * 2000))])
    asked: list[str] = []

    def note(_: object, statement: str, bindings: object) -> bool:
        asked.append(statement)
        return True

    db = sqlite._database.reading()
    db.exec_trace = note
    assert sqlite.check() == []
    db.exec_trace = None
    assert [statement for statement in asked if "body" in statement and "chunks" in statement] == []
    sqlite.close()
    with apsw.Connection(str(sqlite.path)) as connection:
        connection.execute("update chunks set text = text || '.' where id & 1")
        changed = connection.changes()
    with closing(SqliteStore(sqlite.path)) as broken:
        assert broken.check() == [f"chunks that do not quote their body: {changed}"]
    assert changed > 1


def test_a_check_finds_a_page_that_was_overwritten(sqlite: SqliteStore) -> None:
    sqlite.drawer(Items).put([prepare(replace(TEA, key=str(n), body=f"{n} " * 3000)) for n in range(20)])
    sqlite.close()
    with sqlite.path.open("r+b") as file:
        file.seek(-4096 * 20, 2)
        file.write(b"\xff" * 4096 * 10)
    broken = SqliteStore(sqlite.path)
    try:
        assert broken.check()
    except StorageBroken as error:
        assert "damaged" in str(error)  # noqa: PT017  # either way it is said
    finally:
        broken.close()


@pytest.mark.parametrize(
    "sql",
    [
        "update bodies set body = cast(x'ff41' as text)",
        "update chunks set text = cast(x'ff41' as text)",
        "update items set format = cast(x'ff41' as text)",
        "update items set metadata = '{'",
        "update chunks set anchor = '{'",
        "update item_attachments set fields = '{'",
        "update settings set value = '{'",
    ],
)
def test_a_row_that_is_no_text_or_no_json_any_more_is_a_damaged_file(sqlite: SqliteStore, sql: str) -> None:
    """A flipped bit in a text is no damage to SQLite. Whoever comes across it is told what to do."""
    fill(sqlite)
    with apsw.Connection(str(sqlite.path)) as connection:
        connection.create_scalar_function("fold", str, 1, deterministic=True)  # type: ignore[arg-type]
        connection.execute(sql)

    def read() -> None:
        content(sqlite)
        sqlite.indexed([1, 2, 3])
        sqlite.drawer(Chunks).of(1)

    with pytest.raises(StorageBroken, match=r"library\.db holds a damaged row: [^\n]*Restore it with"):
        read()
    try:
        assert sqlite.check()
    except StorageBroken as error:
        assert "damaged row" in str(error)  # noqa: PT017  # either way it is said


# migrations


def test_a_file_of_the_first_schema_opens_with_everything_in_it(tmp_path: Path) -> None:
    path = tmp_path / "library.db"
    first = (
        resources.files("commonplace.store.sqlite").joinpath("migrations", "0001_first.sql").read_text(encoding="utf-8")
    )
    with apsw.Connection(str(path)) as connection:
        connection.execute(first)
        connection.execute(
            """insert into items
                 values (1, 'note', '', 'old', 'Old', 'text', 'en', '{}', '{"k": 1}', 0, 1000000, 1, 'h', 1);
               insert into bodies values (1, 'body');
               insert into chunks values (1 << 20, 'body', 0, 4, 1, 1, '', null, x'01');
               insert into changes values (1, 'put', 1, 1);
               pragma user_version = 1"""
        )
    store = SqliteStore(path)
    item = store.drawer(Items).find("note", "", "old")
    assert item is not None
    assert (item.body, item.metadata, item.created_at) == ("body", {"k": 1}, datetime(1970, 1, 1, tzinfo=UTC))
    assert store.drawer(Items).put([prepare(Draft("note", "old", body="new"))])[0].version == 2
    assert store.check() == []
    store.close()


def test_a_newer_schema_is_refused_with_what_to_do(sqlite: SqliteStore) -> None:
    sqlite.close()
    with apsw.Connection(str(sqlite.path)) as connection:
        connection.execute("pragma user_version = 999")
    with pytest.raises(StorageBroken, match=r"newer Commonplace \(schema 999.*Upgrade"):
        SqliteStore(sqlite.path)


def test_a_migration_that_fails_leaves_the_file_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from commonplace.store.sqlite import connection as room

    migrations = room.load_migrations()
    monkeypatch.setattr(room, "load_migrations", lambda _: [*migrations, "create table extra (x); select nonsense"])
    with pytest.raises(apsw.SQLError):
        SqliteStore(tmp_path / "library.db")
    monkeypatch.undo()
    store = SqliteStore(tmp_path / "library.db")
    assert store.drawer(Listing).counts() == {}
    store.close()


@pytest.mark.parametrize("make", [lambda p: p.write_text("no database " * 500, encoding="utf-8"), lambda p: p.mkdir()])
def test_what_is_no_database_is_refused_by_name(tmp_path: Path, make: Callable[[Path], Any]) -> None:
    make(tmp_path / "library.db")
    with pytest.raises(StorageBroken, match=r"library\.db"):
        SqliteStore(tmp_path / "library.db")


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(StorageBroken, match="file"):
        SqliteStore(tmp_path / "file" / "library.db")


@pytest.mark.parametrize("left", [0, 1])
def test_a_process_that_may_open_no_more_files_is_told_so(sqlite: SqliteStore, left: int) -> None:
    fill(sqlite)
    with ThreadPoolExecutor(1) as pool:  # its thread has no connection yet
        with few_files(left), pytest.raises(Busy, match="as many files open as it may"):
            pool.submit(sqlite.drawer(Listing).counts).result(timeout=60)
        assert pool.submit(sqlite.drawer(Listing).counts).result(timeout=60) == {"note": 3}


@pytest.mark.parametrize(
    ("code", "flags", "kind", "sentence"),
    [
        (apsw.SQLITE_IOERR_CORRUPTFS, 0, StorageBroken, r"cannot be read.*Check that disk"),
        (apsw.SQLITE_IOERR_WRITE, os.ST_RDONLY, StorageBroken, r"its disk is read-only\. Check that disk"),
        (apsw.SQLITE_CANTOPEN, os.ST_RDONLY, StorageBroken, r"its disk is read-only\. Copy the home"),
        (apsw.SQLITE_IOERR_WRITE, 0, StorageFull, r"Free some disk space, or check that disk"),
        (apsw.SQLITE_IOERR_SHMSIZE, 0, StorageFull, r"Free some disk space, or check that disk"),
    ],
)
def test_a_disk_that_fails_or_is_read_only_is_not_told_as_a_full_one(
    monkeypatch: pytest.MonkeyPatch, code: int, flags: int, kind: type[CommonplaceError], sentence: str
) -> None:
    """A system that notices makes it read-only; SQLite has the same words for both."""
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_flag=flags, f_files=0))
    with pytest.raises(kind, match=sentence), explained(Path("library.db")):
        raise apsw.exception_for(code)


def test_a_closed_store_says_so(sqlite: SqliteStore) -> None:
    sqlite.close()
    with pytest.raises(StorageBroken, match=r"is closed\. Open the library again"):
        sqlite.drawer(Listing).counts()
    sqlite.close()


def test_vacuum_keeps_everything(sqlite: SqliteStore) -> None:
    fill(sqlite)
    before = content(sqlite)
    sqlite.vacuum()
    assert content(sqlite) == before


# what cannot be stored

DEEP: Any = None
for _ in range(150):
    DEEP = [DEEP]

UNSTORABLE = [
    (replace(TEA, body="a\0b"), "U\\+0000"),
    (replace(TEA, title="\ud800"), "surrogate"),
    (replace(TEA, key="\udfff"), "surrogate"),
    (replace(TEA, parent="\0"), "U\\+0000"),
    (replace(TEA, tags=("fine", "\ud800")), "surrogate"),
    (replace(TEA, metadata={"k": "\0"}), "U\\+0000"),
    (replace(TEA, metadata={"\ud800": 1}), "surrogate"),
    (replace(TEA, metadata={"k": float("nan")}), "number that JSON cannot"),
    (replace(TEA, fields={"k": [float("-inf")]}), "number that JSON cannot"),
    (replace(TEA, metadata={"k": DEEP}), "nested more than 100"),
    (replace(TEA, metadata={"k": b"bytes"}), "bytes, which JSON cannot"),
    (replace(TEA, metadata={"k": {1, 2}}), "set, which JSON cannot"),
    (replace(TEA, metadata={"k": range(3)}), "range, which JSON cannot"),
    (replace(TEA, metadata={"k": 10**5000}), "digits"),
    (replace(TEA, metadata={1: 2}), "names are strings"),  # type: ignore[dict-item]
    (replace(TEA, key=""), "needs a key"),
    (replace(TEA, kind="nothing"), "no kind"),
    (replace(TEA, format="\0"), "U\\+0000"),
    (replace(TEA, spans=(Span("other", 0, 5, 1, 1),)), "does not quote"),
    (replace(TEA, spans=(Span("Oolong", 0, 6, 1, 1, ("\ud800",)),)), "surrogate"),
    (replace(TEA, spans=(Span("Oolong", 0, 6, 1, 1, ("a\nb",)),)), "line"),
]


@pytest.mark.parametrize(("draft", "sentence"), UNSTORABLE, ids=range(len(UNSTORABLE)))
def test_what_cannot_be_stored_is_refused_in_words(draft: Draft, sentence: str) -> None:
    with pytest.raises(InvalidInput, match=sentence) as refusal:
        prepare(draft)
    assert str(refusal.value)[0].isupper()
    assert str(refusal.value).endswith(".")


def test_no_check_reads_a_whole_table_for_each_row_of_another(sqlite: SqliteStore) -> None:
    """With 20,000 items that took 15 seconds, and four times as long with twice as many."""
    db = sqlite._database.reading()
    for sentence, query in INVARIANTS.items():
        plan = [str(detail) for *_, detail in db.execute(f"explain query plan {query}")]
        inner = next((place for place, detail in enumerate(plan) if detail.startswith("CORRELATED")), len(plan))
        assert not any(detail.startswith("SCAN") for detail in plan[inner:]), sentence
