"""The store on PostgreSQL: models and their vectors."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from commonplace.model import CHUNK_BITS, Chunk
from commonplace.store.postgres.items import CHUNK, PostgresItems, reads, writes
from commonplace.store.rows import MODEL_COLUMNS, Model
from commonplace.store.shaping import chunk_from

_LINES = 500


class PostgresVectors(PostgresItems):
    """Models, and vectors by what was embedded."""

    @reads
    def model(self, fingerprint: str) -> Model | None:
        rows = self._all(f"select {MODEL_COLUMNS} from models where fingerprint = %s", (fingerprint,))
        return Model(*rows[0]) if rows else None

    @reads
    def models(self) -> list[Model]:
        return [Model(*row) for row in self._all(f"select {MODEL_COLUMNS} from models order by id")]

    @writes
    def add_model(self, fingerprint: str, name: str, dims: int) -> Model:
        self._run(
            """insert into models (id, fingerprint, name, dims, position)
               select coalesce(max(id), 0) + 1, %s, %s, %s, 0 from models
               on conflict (space, fingerprint) do nothing""",
            (fingerprint, name, dims),
        )
        return Model(*self._all(f"select {MODEL_COLUMNS} from models where fingerprint = %s", (fingerprint,))[0])

    @writes
    def drop_model(self, model_id: int) -> None:
        self._run("delete from embeddings where model = %s", (model_id,))
        self._run("delete from models where id = %s", (model_id,))

    @reads
    def unembedded(self, model: Model, after: int, limit: int) -> tuple[list[Chunk], int]:
        chunks, seen, reached = list[Chunk](), set[int](), after
        while len(chunks) < limit:
            lines = self._all(
                "select seq, op, item_id from changes where seq > %s order by seq limit %s", (reached, _LINES)
            )
            put = list({item_id for _, op, item_id in lines if op == "put"} - seen)
            lacking = self._lacking(model, put)
            for seq, op, item_id in lines:
                reached = seq
                if op == "put" and item_id not in seen:
                    seen.add(item_id)
                    chunks += lacking[item_id]
                if len(chunks) >= limit:
                    break
            if not lines:
                break
        return chunks, reached

    @reads
    def lacking(self, model: Model, item_ids: Sequence[int]) -> list[Chunk]:
        lacking = self._lacking(model, item_ids)
        return [chunk for item_id in item_ids for chunk in lacking[item_id]]

    def _lacking(self, model: Model, item_ids: Sequence[int]) -> dict[int, list[Chunk]]:
        rows = self._all(
            f"""select {CHUNK} from chunks where item_id = any(%s::bigint[])
                and not exists (select 1 from embeddings where model = %s and key = vector_key)
                order by item_id, ordinal""",
            (list(item_ids), model.id),
        )
        chunks_by_item: dict[int, list[Chunk]] = defaultdict(list)
        for chunk in map(chunk_from, rows):
            chunks_by_item[chunk.item_id].append(chunk)
        return chunks_by_item

    @writes
    def add_vectors(self, model: Model, vectors: Sequence[tuple[bytes, bytes]]) -> None:
        if not self._one("select 1 from models where (id, fingerprint) = (%s, %s)", (model.id, model.fingerprint)):
            return  # the model was dropped while it was at work
        vectors_by_key = dict(reversed(vectors))
        # A passage that was forgotten while it was being embedded gets no vector.
        added = self._all(
            """insert into embeddings (model, key, vector)
               select %s, given.key, given.vector from unnest(%s::bytea[], %s::bytea[]) as given (key, vector)
               where exists (select 1 from chunks where vector_key = given.key)
               on conflict (space, model, key) do nothing returning key""",
            (model.id, list(vectors_by_key), list(vectors_by_key.values())),
        )
        gained = self._all(
            """select id, version from items
               where id in (select item_id from chunks where vector_key = any(%s::bytea[])) order by id""",
            ([key for (key,) in added],),
        )
        self._log("embed", [(item_id, version) for item_id, version in gained])

    @writes
    def drop_vectors(self, model_id: int, item_ids: Sequence[int]) -> None:
        self._run(
            """delete from embeddings where model = %s and key in
                 (select vector_key from chunks where item_id = any(%s::bigint[]))""",
            (model_id, list(item_ids)),
        )
        self._run("update models set position = 0 where id = %s", (model_id,))

    @writes
    def set_position(self, model: Model, seq: int) -> None:
        self._run("update models set position = greatest(position, %s) where id = %s", (seq, model.id))

    @reads
    def vectors_of(self, model_id: int, item_ids: Sequence[int]) -> tuple[NDArray[np.int64], NDArray[np.float16]]:
        rows = self._all(
            f"""select item_id << {CHUNK_BITS} | ordinal, vector from chunks join embeddings on key = vector_key
                where model = %s and item_id = any(%s::bigint[])
                order by array_position(%s::bigint[], item_id), ordinal""",
            (model_id, list(item_ids), list(item_ids)),
        )
        ids = [chunk for chunk, _ in rows]
        matrix = np.frombuffer(b"".join(vector for _, vector in rows), dtype=np.float16)
        return np.array(ids, dtype=np.int64), matrix.reshape(len(ids), -1) if ids else matrix.reshape(0, 0)

    @reads
    def embedded_total(self, model_id: int) -> int:
        query = """select count(*) from chunks
                   where exists (select 1 from embeddings where model = %s and key = vector_key)"""
        return int(self._one(query, (model_id,)))

    @reads
    def has_vectors(self, item_id: int) -> bool:
        query = """select exists (select 1 from chunks join embeddings on key = vector_key
                   join models on models.id = model where item_id = %s)"""
        return bool(self._one(query, (item_id,)))
