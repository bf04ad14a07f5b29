"""The store on SQLite: collections of files. A reader sees each change of one in full or not at all."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

import apsw

from commonplace.batches import batches
from commonplace.errors import NotFound
from commonplace.model import Item, chunk_id
from commonplace.store.change_log import ChangeLog
from commonplace.store.embeddings import Embeddings
from commonplace.store.items import Items, hash_of
from commonplace.store.rows import FILE_COLUMNS, UPDATE_COMMAND, FileRecord, FolderChange, FolderResult, Write
from commonplace.store.shaping import now_micros
from commonplace.store.sqlite.items import SqliteItems, guarded

_MOST_FILES, _MOST_CHARS = 100, 4_000_000  # of files that the same few statements write


class SqliteFiles(SqliteItems):
    """Collections of files: their records, and changes of whole collections."""

    @guarded
    def collections(self) -> list[Item]:
        db = self._database.reading()
        ids = [item_id for (item_id,) in db.execute("select id from items where kind = 'collection' order by key")]
        return self.drawer(Items).get(ids)

    @guarded
    def file_records(self, collection: str) -> dict[str, FileRecord]:
        rows = self._database.reading().execute(f"select {FILE_COLUMNS} from files where collection = ?", (collection,))
        return {record.path: record for record in map(FileRecord._make, rows)}

    @guarded
    def document_versions(self, collection: str) -> dict[str, int]:
        query = "select key, version from items where kind = 'document' and parent = ?"
        return dict(self._database.reading().execute(query, (collection,)))

    @guarded
    def collection_changed_at(self, collection: str) -> int | None:
        row = (
            self._database.reading()
            .execute("select changed_at from updates where collection = ?", (collection,))
            .fetchone()
        )
        return int(row[0]) if row else None

    @guarded
    def change_folder(self, change: FolderChange) -> FolderResult:
        result, now, orphans = FolderResult(), now_micros(), set[bytes]()
        with self._database.writing() as db:
            gone = self._gone(db, change)
            for files in batches(change.writes, _chars, most=_MOST_FILES, most_size=_MOST_CHARS):
                result = self._put_files(db, change.collection, files, gone, now, result, orphans)
            self._put_records(db, change.collection, change.records)
            # Last: what moved has its vectors by now, and none is an orphan.
            self._remove_documents(list(gone.values()))
            self.drawer(Embeddings).forget(orphans)
            db.executemany(
                "delete from files where collection = ? and path = ?",
                [(change.collection, path) for path in change.forgotten],
            )
            result = replace(result, removed=len(gone))
            if result.added or result.updated or result.removed:
                self._note_change(db, change.collection, now)
        return result

    @guarded
    def drop_collection(self, collection: str) -> int:
        with self._database.writing() as db:
            item = self.drawer(Items).find("collection", None, collection, body=False)
            documents = self._documents(db, collection)
            self._remove_documents([*documents, *([item.id] if item else [])])
            db.execute("delete from files where collection = ?", (collection,))
            db.execute("delete from updates where collection = ?", (collection,))
            db.execute("delete from settings where name = ?", (UPDATE_COMMAND + collection,))
            return len(documents)

    @guarded
    def rename_collection(self, old: str, new: str) -> None:
        with self._database.writing() as db:
            item = self.drawer(Items).find("collection", None, old, body=False)
            if item is None:
                raise NotFound(f"Collection not found: {old}")
            db.execute("update items set key = :new, title = :new where id = :id", {"new": new, "id": item.id})
            documents = self._documents(db, old)
            db.execute("update items set parent = ? where kind = 'document' and parent = ?", (new, old))
            renamed = [item.id, *documents]
            raised = "update items set version = version + 1 where id in (select value from json_each(?))"
            db.execute(raised, (json.dumps(renamed),))
            self.drawer(ChangeLog).append("put", self.drawer(Items).versions(renamed))
            db.execute("update files set collection = ?, version = version + 1 where collection = ?", (new, old))
            db.execute("update updates set collection = ? where collection = ?", (new, old))
            db.execute(
                "update or replace settings set name = ? where name = ?", (UPDATE_COMMAND + new, UPDATE_COMMAND + old)
            )

    def _put_files(
        self,
        db: apsw.Connection,
        collection: str,
        files: Sequence[tuple[Write, FileRecord]],
        gone: Mapping[str, int],
        now: int,
        result: FolderResult,
        orphans: set[bytes],
    ) -> FolderResult:
        before = self._versions(db, collection, [record.path for _, record in files])
        item_ids = self.drawer(Items).store([write for write, _ in files], now, orphans)
        after = self._versions(db, collection, [record.path for _, record in files])
        records = [record._replace(version=after[record.path]) for _, record in files]
        self._put_records(db, collection, records)
        for item_id, (write, record) in zip(item_ids, files, strict=True):
            if gone and record.path not in before and (moved := gone.get(hash_of(write.draft.body))) is not None:
                self._hand_over_vectors(db, moved, item_id)
        added = sum(path not in before for path in after)
        unchanged = sum(before.get(path) == version for path, version in after.items())
        return replace(
            result,
            added=result.added + added,
            updated=result.updated + len(after) - added - unchanged,
            unchanged=result.unchanged + unchanged,
        )

    @staticmethod
    def _versions(db: apsw.Connection, collection: str, paths: Sequence[str]) -> dict[str, int]:
        rows = db.execute(
            """select key, version from items where kind = 'document' and parent = ?
               and key in (select value from json_each(?))""",
            (collection, json.dumps(paths)),
        )
        return dict(rows)

    @staticmethod
    def _put_records(db: apsw.Connection, collection: str, records: Sequence[FileRecord]) -> None:
        db.executemany(
            f"insert or replace into files (collection, {FILE_COLUMNS}) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [(collection, *record) for record in records],
        )

    @staticmethod
    def _gone(db: apsw.Connection, change: FolderChange) -> dict[str, int]:
        """Return the ids of documents that go, by the hash of their body; twins in no order that matters."""
        rows = db.execute(
            """select content_hash, id from items where kind = 'document' and parent = ?
               and key in (select value from json_each(?))""",
            (change.collection, json.dumps(list(change.gone))),
        )
        ids_by_hash: dict[str, int] = {}
        for hash, item_id in rows:
            ids_by_hash[hash if hash not in ids_by_hash else f"{hash} {item_id}"] = item_id
        return ids_by_hash

    @staticmethod
    def _hand_over_vectors(db: apsw.Connection, old: int, new: int) -> None:
        """Copy the vectors of a file that only changed its name, also where the name is part of what was embedded."""
        db.execute(
            """insert or ignore into embeddings (model, key, vector)
               select model, fresh.vector_key, vector
               from chunks as stale
               join chunks as fresh on fresh.id = stale.id - :old + :new and fresh.text = stale.text
               join embeddings on embeddings.key = stale.vector_key
               where stale.id >= :old and stale.id < :end and fresh.vector_key <> stale.vector_key""",
            {"old": chunk_id(old, 0), "end": chunk_id(old + 1, 0), "new": chunk_id(new, 0)},
        )

    def _remove_documents(self, item_ids: Sequence[int]) -> None:
        self.drawer(Items).remove(item_ids)

    @staticmethod
    def _documents(db: apsw.Connection, collection: str) -> list[int]:
        rows = db.execute("select id from items where kind = 'document' and parent = ? order by id", (collection,))
        return [item_id for (item_id,) in rows]

    @staticmethod
    def _note_change(db: apsw.Connection, collection: str, now: int) -> None:
        db.execute(
            "insert into updates values (?, ?) on conflict do update set changed_at = excluded.changed_at",
            (collection, now),
        )


def _chars(file: tuple[Write, FileRecord]) -> int:
    return len(file[0].draft.body)
