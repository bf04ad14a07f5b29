"""The files that a collection's documents were made of, and its changes. A reader sees each in full or not at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from commonplace.batches import batches
from commonplace.errors import NotFound
from commonplace.kinds.documents.document_names import DocumentNames
from commonplace.model import chunk_id, fingerprint
from commonplace.store.change_log import ChangeLog
from commonplace.store.dialect import Tuned, Values, marks
from commonplace.store.embeddings import Embeddings
from commonplace.store.items import Items, hash_of
from commonplace.store.rows import FILE_COLUMNS, UPDATE_COMMAND, FileRecord, FolderChange, FolderResult, Write
from commonplace.store.session import Drawer, reads, writes
from commonplace.store.shaping import now_micros

_MOST_FILES, _MOST_CHARS = 100, 4_000_000  # of files that the same few statements write
_RECORDS = f"select {FILE_COLUMNS} from files where collection = :collection".replace("inode", "cast(inode as bigint)")
_OF_COLLECTION = Tuned(
    sqlite="kind = 'document' and parent = :collection",
    postgres="kind = 'document' and parent_head = left(:collection, 100) and parent = :collection",
)
_AT_PATHS = Tuned(
    sqlite="kind = 'document' and parent = :collection and key in each(:paths text)",
    postgres="address in each(:addresses bytes)",
)
_KEEP = Tuned(  # a path is too long for a key on PostgreSQL, so what was there is deleted before
    sqlite=f"insert or replace into files (collection, {FILE_COLUMNS}) values (:collection, {marks(FILE_COLUMNS)})",
    postgres=f"insert into files (collection, {FILE_COLUMNS}) values (:collection, {marks(FILE_COLUMNS)})",
)
_FORGET = Tuned(
    sqlite="delete from files where collection = :collection and path = :path",
    postgres="""delete from files where collection = :collection and path_head = left(cast(:path as text), 100)
                and path = :path""",
)
_HAND_OVER = Tuned(
    sqlite="""insert or ignore into embeddings (model, key, vector)
              select model, fresh.vector_key, vector
              from chunks as stale
              join chunks as fresh on fresh.id = stale.id - :old_first + :new_first and fresh.text = stale.text
              join embeddings on embeddings.key = stale.vector_key
              where stale.id >= :old_first and stale.id < :old_end and fresh.vector_key <> stale.vector_key""",
    postgres="""insert into embeddings (model, key, vector)
                select model, fresh.vector_key, vector
                from chunks as stale
                join chunks as fresh on fresh.ordinal = stale.ordinal and fresh.text = stale.text
                join embeddings on embeddings.key = stale.vector_key
                where stale.item_id = :old and fresh.item_id = :new and fresh.vector_key <> stale.vector_key
                on conflict key(model, key) do nothing""",
)
_RENAME = Tuned(
    sqlite="update items set key = :new, title = :new where id = :id",
    postgres="update items set key = :new, title = :new, address = :address where id = :id",
)


class CollectionFiles(Drawer):
    """A row per file that was read, a row per collection with the time of its last change."""

    @reads
    def records(self, collection: str) -> dict[str, FileRecord]:
        """Return what is known of each file of a collection, by path."""
        rows = self._db.all(_RECORDS, {"collection": collection})
        return {record.path: record for record in map(FileRecord._make, rows)}

    @reads
    def versions(self, collection: str) -> dict[str, int]:
        """Return the versions of a collection's documents, by path."""
        query = f"select key, version from items where {self._db.tuned(_OF_COLLECTION)}"
        return dict(self._db.all(query, {"collection": collection}))

    @reads
    def changed_at(self, collection: str) -> int | None:
        """Return when a document of a collection was last written or removed, in microseconds, or None."""
        row = self._db.row("select changed_at from updates where collection = :name", {"name": collection})
        return int(row[0]) if row else None

    @writes
    def change(self, change: FolderChange) -> FolderResult:
        """Write everything that a sync found to differ, and return how many documents that were."""
        result, now, orphans = FolderResult(), now_micros(), set[bytes]()
        gone = self._gone(change)
        for files in batches(change.writes, _chars, most=_MOST_FILES, most_size=_MOST_CHARS):
            result = self._put_files(change.collection, files, gone, now, result, orphans)
        self._keep(change.collection, change.records)
        self._items.remove(list(gone.values()))  # last: what moved has its vectors by now, and none is an orphan
        self._db.drawer(Embeddings).forget(orphans)
        self._db.run_all(_FORGET, [(change.collection, path) for path in change.forgotten])
        result = replace(result, removed=len(gone))
        if result.added or result.updated or result.removed:
            self._db.run(
                """insert into updates (collection, changed_at) values (:collection, :now)
                   on conflict key(collection) do update set changed_at = excluded.changed_at""",
                {"collection": change.collection, "now": now},
            )
        return result

    @writes
    def drop(self, collection: str) -> int:
        """Remove a collection with its documents and records, and return the number of documents."""
        item = self._items.find("collection", None, collection, body=False)
        documents = [item_id for item_id, _ in self._documents(collection)]
        self._items.remove([*documents, *([item.id] if item else [])])
        self._db.run("delete from files where collection = :name", {"name": collection})
        self._db.run("delete from updates where collection = :name", {"name": collection})
        self._db.run("delete from settings where name = :name", {"name": UPDATE_COMMAND + collection})
        return len(documents)

    @writes
    def rename(self, old: str, new: str) -> None:
        """Rename a collection with its documents, records and update command. Raise NotFound where there is none."""
        item = self._items.find("collection", None, old, body=False)
        if item is None:
            raise NotFound(f"Collection not found: {old}")
        documents = self._documents(old)
        address = fingerprint("collection", item.parent, new)
        self._db.run(_RENAME, {"new": new, "address": address, "id": item.id})
        self._move(documents, old, new)
        ids = [item.id, *(item_id for item_id, _ in documents)]
        self._db.run("update items set version = version + 1 where id in each(:ids int)", {"ids": ids})
        self._db.drawer(ChangeLog).append("put", self._items.versions(ids))
        names = {"old": old, "new": new}
        self._db.run("update files set collection = :new, version = version + 1 where collection = :old", names)
        self._db.run("update updates set collection = :new where collection = :old", names)
        commands = {"old": UPDATE_COMMAND + old, "new": UPDATE_COMMAND + new}
        if self._db.row("select 1 from settings where name = :old", commands):
            self._db.run("delete from settings where name = :new", commands)
            self._db.run("update settings set name = :new where name = :old", commands)

    def _move(self, documents: Sequence[tuple[int, str]], old: str, new: str) -> None:
        """Give documents another collection, and with it other names."""
        if self._db.dialect == "sqlite":  # triggers write the names
            self._db.run(
                "update items set parent = :new where kind = 'document' and parent = :old", {"new": new, "old": old}
            )
            return
        self._db.run_all(
            "update items set parent = :new, address = :address where id = :id",
            [(new, fingerprint("document", new, key), item_id) for item_id, key in documents],
        )
        self._db.drawer(DocumentNames).rename([(item_id, new, key) for item_id, key in documents])

    @property
    def _items(self) -> Items:
        return self._db.drawer(Items)

    def _put_files(
        self,
        collection: str,
        files: Sequence[tuple[Write, FileRecord]],
        gone: Mapping[str, int],
        now: int,
        result: FolderResult,
        orphans: set[bytes],
    ) -> FolderResult:
        query = f"select key, version from items where {self._db.tuned(_AT_PATHS)}"
        before = dict(self._db.all(query, self._at(collection, [record.path for _, record in files])))
        item_ids = self._items.store([write for write, _ in files], now, orphans)
        versions = dict(self._items.versions(item_ids))
        after = {record.path: versions[item_id] for item_id, (_, record) in zip(item_ids, files, strict=True)}
        self._keep(collection, [record._replace(version=after[record.path]) for _, record in files])
        for item_id, (write, record) in zip(item_ids, files, strict=True):
            if gone and record.path not in before and (moved := gone.get(hash_of(write.draft.body))) is not None:
                self._hand_over_vectors(moved, item_id)
        added = sum(path not in before for path in after)
        unchanged = sum(before.get(path) == version for path, version in after.items())
        return replace(
            result,
            added=result.added + added,
            updated=result.updated + len(after) - added - unchanged,
            unchanged=result.unchanged + unchanged,
        )

    def _keep(self, collection: str, records: Sequence[FileRecord]) -> None:
        if self._db.dialect == "postgres":
            self._db.run_all(_FORGET, [(collection, record.path) for record in records])
        self._db.run_all(_KEEP, [(collection, *record) for record in records])

    def _gone(self, change: FolderChange) -> dict[str, int]:
        """Return the ids of documents that go, by the hash of their body; twins in no order that matters."""
        query = f"select content_hash, id from items where {self._db.tuned(_AT_PATHS)}"
        ids_by_hash: dict[str, int] = {}
        for hash, item_id in self._db.all(query, self._at(change.collection, change.gone)) if change.gone else ():
            ids_by_hash[hash if hash not in ids_by_hash else f"{hash} {item_id}"] = item_id
        return ids_by_hash

    def _at(self, collection: str, paths: Sequence[str]) -> Values:
        """Return the values of `_AT_PATHS`."""
        if self._db.dialect == "sqlite":
            return {"collection": collection, "paths": paths}
        return {"addresses": [fingerprint("document", collection, path) for path in paths]}

    def _hand_over_vectors(self, old: int, new: int) -> None:
        """Copy the vectors of a file that only changed its name, also where the name is part of what was embedded."""
        chunks = {"old_first": chunk_id(old, 0), "old_end": chunk_id(old + 1, 0), "new_first": chunk_id(new, 0)}
        self._db.run(_HAND_OVER, {"old": old, "new": new, **chunks})

    def _documents(self, collection: str) -> list[tuple[int, str]]:
        query = f"select id, key from items where {self._db.tuned(_OF_COLLECTION)} order by id"
        return [(item_id, key) for item_id, key in self._db.all(query, {"collection": collection})]


def _chars(file: tuple[Write, FileRecord]) -> int:
    return len(file[0].draft.body)
