"""The store on SQLite: models and their vectors."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import apsw
import numpy as np
from numpy.typing import NDArray

from commonplace.model import CHUNK_BITS, Chunk, chunk_id
from commonplace.store.rows import MODEL_COLUMNS, Model
from commonplace.store.shaping import CHUNK_COLUMNS, chunk_from
from commonplace.store.sqlite.items import SqliteItems, consistent, guarded
from commonplace.store.sqlite.rows import find_by_vector, log_changes


class SqliteVectors(SqliteItems):
    """Models, and vectors by what was embedded."""

    @guarded
    def model(self, fingerprint: str) -> Model | None:
        row = (
            self._database.reading()
            .execute(f"select {MODEL_COLUMNS} from models where fingerprint = ?", (fingerprint,))
            .fetchone()
        )
        return Model(*row) if row else None

    @guarded
    def models(self) -> list[Model]:
        return [
            Model(*row) for row in self._database.reading().execute(f"select {MODEL_COLUMNS} from models order by id")
        ]

    @guarded
    def add_model(self, fingerprint: str, name: str, dims: int) -> Model:
        with self._database.writing() as db:
            db.execute(
                "insert into models (fingerprint, name, dims, position) values (?, ?, ?, 0) on conflict do nothing",
                (fingerprint, name, dims),
            )
            return Model(*next(db.execute(f"select {MODEL_COLUMNS} from models where fingerprint = ?", (fingerprint,))))

    @guarded
    def drop_model(self, model_id: int) -> None:
        with self._database.writing() as db:
            db.execute("delete from embeddings where model = ?", (model_id,))
            db.execute("delete from models where id = ?", (model_id,))

    @guarded
    def unembedded(self, model: Model, after: int, limit: int) -> tuple[list[Chunk], int]:
        db, chunks, seen, reached = self._database.reading(), list[Chunk](), set[int](), after
        while len(chunks) < limit:
            lines: list[Any] = db.execute(
                "select seq, op, item_id from changes where seq > ? order by seq limit 500", (reached,)
            ).fetchall()
            for seq, op, item_id in lines:
                reached = seq
                if op == "put" and item_id not in seen:
                    seen.add(item_id)
                    chunks += self._unembedded_of(db, model, item_id)
                if len(chunks) >= limit:
                    break
            if not lines:
                break
        return chunks, reached

    @consistent
    def lacking(self, model: Model, item_ids: Sequence[int]) -> list[Chunk]:
        db = self._database.reading()
        return [chunk for item_id in item_ids for chunk in self._unembedded_of(db, model, item_id)]

    @staticmethod
    def _unembedded_of(db: apsw.Connection, model: Model, item_id: int) -> list[Chunk]:
        rows = db.execute(
            f"""select {CHUNK_COLUMNS} from chunks where id >= ? and id < ?
                and not exists (select 1 from embeddings where model = ? and key = vector_key) order by id""",
            (chunk_id(item_id, 0), chunk_id(item_id + 1, 0), model.id),
        )
        return [chunk_from(row) for row in rows]

    @guarded
    def add_vectors(self, model: Model, vectors: Sequence[tuple[bytes, bytes]]) -> None:
        with self._database.writing() as db:
            gained: set[int] = set()
            if not db.execute(
                "select 1 from models where (id, fingerprint) = (?, ?)", (model.id, model.fingerprint)
            ).fetchone():
                return  # the model was dropped while it was at work
            find_by_vector(db)
            for key, vector in vectors:
                items = {
                    chunk >> CHUNK_BITS for (chunk,) in db.execute("select id from chunks where vector_key = ?", (key,))
                }
                if not items:
                    continue  # the passage was forgotten while it was being embedded
                db.execute(
                    "insert or ignore into embeddings (model, key, vector) values (?, ?, ?)", (model.id, key, vector)
                )
                if db.changes():
                    gained |= items
            among = "select id, version from items where id in (select value from json_each(?)) order by id"
            log_changes(db, "embed", list(db.execute(among, (json.dumps(sorted(gained)),))))

    @guarded
    def drop_vectors(self, model_id: int, item_ids: Sequence[int]) -> None:
        with self._database.writing() as db:
            for item_id in item_ids:
                db.execute(
                    """delete from embeddings where model = ? and key in
                         (select vector_key from chunks where id >= ? and id < ?)""",
                    (model_id, chunk_id(item_id, 0), chunk_id(item_id + 1, 0)),
                )
            db.execute("update models set position = 0 where id = ?", (model_id,))

    @guarded
    def set_position(self, model: Model, seq: int) -> None:
        with self._database.writing() as db:
            db.execute("update models set position = max(position, ?) where id = ?", (seq, model.id))

    @guarded
    def vectors_of(self, model_id: int, item_ids: Sequence[int]) -> tuple[NDArray[np.int64], NDArray[np.float16]]:
        db = self._database.reading()
        ids: list[int] = []
        rows: list[bytes] = []
        for item_id in item_ids:
            for chunk, vector in db.execute(
                """select chunks.id, vector from chunks cross join embeddings on model = ? and key = vector_key
                   where chunks.id >= ? and chunks.id < ? order by chunks.id""",
                (model_id, chunk_id(item_id, 0), chunk_id(item_id + 1, 0)),
            ):
                ids.append(chunk)
                rows.append(vector)
        matrix = np.frombuffer(b"".join(rows), dtype=np.float16)
        return np.array(ids, dtype=np.int64), matrix.reshape(len(ids), -1) if ids else matrix.reshape(0, 0)

    @guarded
    def embedded_total(self, model_id: int) -> int:
        query = (
            "select count(*) from chunks where exists (select 1 from embeddings where model = ? and key = vector_key)"
        )
        return int(next(self._database.reading().execute(query, (model_id,)))[0])
