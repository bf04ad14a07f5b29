"""The store on PostgreSQL: collections of files. A reader sees each change of one in full or not at all."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any

from commonplace.errors import NotFound
from commonplace.model import Item, fingerprint
from commonplace.store.change_log import ChangeLog
from commonplace.store.embeddings import Embeddings
from commonplace.store.items import Items
from commonplace.store.postgres.filters import HEAD
from commonplace.store.postgres.items import PostgresItems, reads, writes
from commonplace.store.rows import FILE_COLUMNS, UPDATE_COMMAND, FileRecord, FolderChange, FolderResult, Write
from commonplace.store.shaping import now_micros


class PostgresFiles(PostgresItems):
    """Collections of files: their records, and changes of whole collections."""

    @reads
    def collections(self) -> list[Item]:
        ids = [item_id for (item_id,) in self._all("select id from items where kind = 'collection' order by key")]
        return self.drawer(Items).get(ids)

    @reads
    def file_records(self, collection: str) -> dict[str, FileRecord]:
        rows = self._all(f"select {FILE_COLUMNS} from files where collection = %s", (collection,))
        return {record.path: record._replace(inode=int(record.inode)) for record in map(FileRecord._make, rows)}

    @reads
    def document_versions(self, collection: str) -> dict[str, int]:
        query = "select key, version from items where kind = 'document' and parent_head = %s and parent = %s"
        return dict(self._all(query, (collection[:HEAD], collection)))

    @reads
    def collection_changed_at(self, collection: str) -> int | None:
        changed = self._one("select changed_at from updates where collection = %s", (collection,))
        return None if changed is None else int(changed)

    @writes
    def change_folder(self, change: FolderChange) -> FolderResult:
        result, now, orphans = FolderResult(), now_micros(), set[bytes]()
        gone = self._gone(change)
        for write, record in change.writes:
            result = self._put_file(change.collection, write, record, gone, now, result, orphans)
        for record in change.records:
            self._put_record(change.collection, record)
        self._remove_documents(list(gone.values()))  # last: what moved has its vectors by now, and none is an orphan
        self.drawer(Embeddings).forget(orphans)
        for path in change.forgotten:
            self._forget(change.collection, path)
        result = replace(result, removed=len(gone))
        if result.added or result.updated or result.removed:
            self._run(
                """insert into updates (collection, changed_at) values (%s, %s)
                   on conflict (space, collection) do update set changed_at = excluded.changed_at""",
                (change.collection, now),
            )
        return result

    @writes
    def drop_collection(self, collection: str) -> int:
        item = self.drawer(Items).find("collection", None, collection, body=False)
        documents = self._documents(collection)
        self._remove_documents([*documents, *([item.id] if item else [])])
        self._run("delete from files where collection = %s", (collection,))
        self._run("delete from updates where collection = %s", (collection,))
        self._run("delete from settings where name = %s", (UPDATE_COMMAND + collection,))
        return len(documents)

    @writes
    def rename_collection(self, old: str, new: str) -> None:
        item = self.drawer(Items).find("collection", None, old, body=False)
        if item is None:
            raise NotFound(f"Collection not found: {old}")
        documents = self._all(
            "select id, key from items where kind = 'document' and parent_head = %s and parent = %s order by id",
            (old[:HEAD], old),
        )
        self._run(
            "update items set key = %(new)s, title = %(new)s, address = %(address)s where id = %(id)s",
            {"new": new, "id": item.id, "address": fingerprint("collection", item.parent, new)},
        )
        self._run_all(
            "update items set parent = %s, address = %s where id = %s",
            [(new, fingerprint("document", new, key), item_id) for item_id, key in documents],
        )
        for item_id, key in documents:
            self._name_document(item_id, new, key)
        ids = [item.id, *(item_id for item_id, _ in documents)]
        self._run("update items set version = version + 1 where id = any(%s::bigint[])", (ids,))
        self.drawer(ChangeLog).append("put", self.drawer(Items).versions(ids))
        self._run("update files set collection = %s, version = version + 1 where collection = %s", (new, old))
        self._run("update updates set collection = %s where collection = %s", (new, old))
        if self._one("select 1 from settings where name = %s", (UPDATE_COMMAND + old,)):
            self._run("delete from settings where name = %s", (UPDATE_COMMAND + new,))
            self._run("update settings set name = %s where name = %s", (UPDATE_COMMAND + new, UPDATE_COMMAND + old))

    def _put_file(
        self,
        collection: str,
        write: Write,
        record: FileRecord,
        gone: dict[str, int],
        now: int,
        result: FolderResult,
        orphans: set[bytes],
    ) -> FolderResult:
        old = self.drawer(Items).find("document", collection, record.path, body=False)
        item_id = self.drawer(Items).store([write], now, orphans)[0]
        version = int(self._one("select version from items where id = %s", (item_id,)))
        self._put_record(collection, record._replace(version=version))
        if old is None:
            moved = gone.get(hashlib.sha256(write.draft.body.encode("utf-8")).hexdigest()) if gone else None
            if moved is not None:
                self._hand_over_vectors(moved, item_id)
            return replace(result, added=result.added + 1)
        if old.version == version:
            return replace(result, unchanged=result.unchanged + 1)
        return replace(result, updated=result.updated + 1)

    def _put_record(self, collection: str, record: FileRecord) -> None:
        self._forget(collection, record.path)
        self._run(
            f"insert into files (collection, {FILE_COLUMNS}) values (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)",
            (collection, *record),
        )

    def _forget(self, collection: str, path: str) -> None:
        self._run(
            "delete from files where collection = %s and path_head = %s and path = %s", (collection, path[:HEAD], path)
        )

    def _gone(self, change: FolderChange) -> dict[str, int]:
        """Return the ids of documents that go, by the hash of their body; twins in no order that matters."""
        rows: Any = self._all(
            "select content_hash, id from items where address = any(%s::bytea[])",
            ([fingerprint("document", change.collection, path) for path in change.gone],),
        )
        ids_by_hash: dict[str, int] = {}
        for hash, item_id in rows:
            ids_by_hash[hash if hash not in ids_by_hash else f"{hash} {item_id}"] = item_id
        return ids_by_hash

    def _hand_over_vectors(self, old: int, new: int) -> None:
        """Copy the vectors of a file that only changed its name, also where the name is part of what was embedded."""
        self._run(
            """insert into embeddings (model, key, vector)
               select model, fresh.vector_key, vector
               from chunks as stale
               join chunks as fresh on fresh.ordinal = stale.ordinal and fresh.text = stale.text
               join embeddings on embeddings.key = stale.vector_key
               where stale.item_id = %s and fresh.item_id = %s and fresh.vector_key <> stale.vector_key
               on conflict (space, model, key) do nothing""",
            (old, new),
        )

    def _remove_documents(self, item_ids: list[int]) -> None:
        self.drawer(Items).remove(item_ids)

    def _documents(self, collection: str) -> list[int]:
        rows = self._all(
            "select id from items where kind = 'document' and parent_head = %s and parent = %s order by id",
            (collection[:HEAD], collection),
        )
        return [item_id for (item_id,) in rows]
