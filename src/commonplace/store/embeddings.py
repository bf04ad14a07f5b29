"""Embedders that have vectors here, and their vectors, each kept by what was embedded and not by where it stands."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from commonplace.model import CHUNK_BITS, Chunk
from commonplace.store.change_log import ChangeLog
from commonplace.store.dialect import Tuned
from commonplace.store.rows import MODEL_COLUMNS, Model
from commonplace.store.session import Drawer, reads, writes
from commonplace.store.shaping import CHUNK, chunk_from

_MODEL = f"select {MODEL_COLUMNS} from models where fingerprint = :fingerprint"
_LINES = {"sqlite": 50, "postgres": 500}
"""Lines of the log that are looked at together: each look is a round trip to a server."""
_WITHIN = f"chunks.id >= value << {CHUNK_BITS} and chunks.id < (value + 1) << {CHUNK_BITS}"
_LACKING = "not exists (select 1 from embeddings where model = :model and key = vector_key)"
_LACKING_OF = Tuned(
    sqlite=f"select {CHUNK.sqlite} from json_each(:list) cross join chunks on {_WITHIN} where {_LACKING}",
    postgres=f"select {CHUNK.postgres} from chunks where item_id in each(:items int) and {_LACKING}",
)
_VECTORS_OF = Tuned(
    sqlite=f"""select chunks.id, vector from json_each(:list) cross join chunks on {_WITHIN}
               cross join embeddings on model = :model and embeddings.key = vector_key""",
    postgres=f"""select item_id << {CHUNK_BITS} | ordinal, vector from chunks join embeddings on key = vector_key
                 where model = :model and item_id in each(:items int)""",
)
_KEYS_OF = Tuned(
    sqlite=f"select vector_key from json_each(:list) cross join chunks on {_WITHIN}",
    postgres="select vector_key from chunks where item_id in each(:items int)",
)
_ITEM_OF = Tuned(sqlite=f"id >> {CHUNK_BITS}", postgres="item_id")
_ANY_OF = Tuned(
    sqlite=f"""select 1 from json_each(:list) cross join chunks on {_WITHIN}
               cross join models cross join embeddings
               on embeddings.model = models.id and embeddings.key = chunks.vector_key limit 1""",
    postgres="""select 1 from chunks join embeddings on key = vector_key join models on models.id = model
                where item_id in each(:items int) limit 1""",
)
# On SQLite passages are looked at only where there are vectors to look for: without any, reading them was 20 MB.
_LACKS_SOME = Tuned(
    sqlite=f"""chunk_count > 0 and (not exists (select 1 from embeddings where model = :model) or exists
                 (select 1 from chunks where chunks.id >= items.id << {CHUNK_BITS}
                    and chunks.id < (items.id + 1) << {CHUNK_BITS}
                    and not exists (select 1 from embeddings where model = :model and key = vector_key)))""",
    postgres="""exists (select 1 from chunks where chunks.item_id = items.id and not exists
                  (select 1 from embeddings where model = cast(:model as bigint) and key = vector_key))""",
)
_OF_PARENTS = Tuned(
    sqlite="and parent in each(:parents text)",
    postgres="and parent_head in each(:heads text) and parent in each(:parents text)",
)


class Embeddings(Drawer):
    """A row per model, a row per model and text that it has embedded."""

    @reads
    def model(self, fingerprint: str) -> Model | None:
        """Return the model with this fingerprint, or None."""
        row = self._db.row(_MODEL, {"fingerprint": fingerprint})
        return Model(*row) if row else None

    @reads
    def models(self) -> list[Model]:
        """Return all models by id."""
        return [Model(*row) for row in self._db.all(f"select {MODEL_COLUMNS} from models order by id")]

    @writes
    def add_model(self, fingerprint: str, name: str, dims: int) -> Model:
        """Return the model with this fingerprint, stored now unless there is one."""
        self._db.run(
            """insert into models (id, fingerprint, name, dims, position)
               select coalesce(max(id), 0) + 1, :fingerprint, :name, :dims, 0 from models where true
               on conflict key(fingerprint) do nothing""",
            {"fingerprint": fingerprint, "name": name, "dims": dims},
        )
        (row,) = self._db.all(_MODEL, {"fingerprint": fingerprint})
        return Model(*row)

    @writes
    def drop_model(self, model_id: int) -> None:
        """Remove a model and all of its vectors."""
        self._db.run("delete from embeddings where model = :model", {"model": model_id})
        self._db.run("delete from models where id = :model", {"model": model_id})

    @reads
    def unembedded(self, model: Model, after: int, limit: int) -> tuple[list[Chunk], int]:
        """Walk the log from just after a change until about `limit` chunks without a vector are found, or it ends.

        Return the chunks, those of the oldest change first, and the change that the walk has reached.
        """
        chunks, seen, reached = list[Chunk](), set[int](), after
        while len(chunks) < limit:
            lines = self._db.all(
                "select seq, op, item_id from changes where seq > :after order by seq limit :lines",
                {"after": reached, "lines": _LINES[self._db.dialect]},
            )
            lacking = self._lacking(model, list({item_id for _, op, item_id in lines if op == "put"} - seen))
            for seq, op, item_id in lines:
                reached = seq
                if op == "put" and item_id not in seen:
                    seen.add(item_id)
                    chunks += lacking.get(item_id, ())
                if len(chunks) >= limit:
                    break
            if not lines:
                break
        return chunks, reached

    @reads
    def lacking(self, model: Model, item_ids: Sequence[int]) -> list[Chunk]:
        """Return the chunks of these items that have no vector of a model, in the order of the items."""
        lacking = self._lacking(model, item_ids)
        return [chunk for item_id in item_ids for chunk in lacking.get(item_id, ())]

    @writes
    def add(self, model: Model, vectors: Sequence[tuple[bytes, bytes]]) -> None:
        """Store vectors as (key, float16 bytes), and log an `embed` change for every item that gains one."""
        known = "select 1 from models where id = :id and fingerprint = :fingerprint"
        if self._db.row(known, {"id": model.id, "fingerprint": model.fingerprint}) is None:
            return  # the model was dropped while it was at work
        self._find_by_vector()
        vectors_by_key = dict(reversed(vectors))
        # A passage that was forgotten while it was being embedded gets no vector.
        rows = self._db.all(
            f"""select vector_key, {self._db.tuned(_ITEM_OF)} from chunks
                where vector_key in each(:keys bytes) and {_LACKING}""",
            {"keys": list(vectors_by_key), "model": model.id},
        )
        self._db.run_all(
            """insert into embeddings (model, key, vector) values (:model, :key, :vector)
               on conflict key(model, key) do nothing""",
            [(model.id, key, vectors_by_key[key]) for key in dict.fromkeys(key for key, _ in rows)],
        )
        gained = self._db.all(
            "select id, version from items where id in each(:items int) order by id",
            {"items": list({item_id for _, item_id in rows})},
        )
        self._db.drawer(ChangeLog).append("embed", [(item_id, version) for item_id, version in gained])

    @writes
    def drop(self, model_id: int, item_ids: Sequence[int]) -> None:
        """Remove the vectors of these items' passages, so that they count as lacking."""
        self._db.run(
            f"delete from embeddings where model = :model and key in ({self._db.tuned(_KEYS_OF)})",
            {"model": model_id, **_listed(item_ids)},
        )
        self._db.run("update models set position = 0 where id = :model", {"model": model_id})

    @writes
    def set_position(self, model: Model, seq: int) -> None:
        """Raise the change up to which every chunk has a vector of a model."""
        query = "update models set position = greatest(position, :seq) where id = :model"
        self._db.run(query, {"seq": seq, "model": model.id})

    @reads
    def vectors_of(self, model_id: int, item_ids: Sequence[int]) -> tuple[NDArray[np.int64], NDArray[np.float16]]:
        """Return the chunk ids of these items that have a vector of a model, and the vectors, one to a row."""
        rows = self._db.all(_VECTORS_OF, {"model": model_id, **_listed(item_ids)})
        places = {item_id: place for place, item_id in enumerate(item_ids)}
        rows.sort(key=lambda row: (places[row[0] >> CHUNK_BITS], row[0]))
        ids = [chunk for chunk, _ in rows]
        matrix = np.frombuffer(b"".join(vector for _, vector in rows), dtype=np.float16)
        return np.array(ids, dtype=np.int64), matrix.reshape(len(ids), -1) if ids else matrix.reshape(0, 0)

    @reads
    def total(self, model_id: int) -> int:
        """Return the number of chunks that have a vector of a model."""
        query = """select count(*) from chunks
                   where exists (select 1 from embeddings where model = :model and key = vector_key)"""
        row = self._db.row(query, {"model": model_id})
        return int(row[0]) if row else 0

    @reads
    def documents_lacking(self, model_id: int | None, parents: Sequence[str] = ()) -> int:
        """Return how many documents, of these collections where any are named, have a passage without a vector."""
        among = self._db.tuned(_OF_PARENTS) if parents else ""
        query = f"select count(*) from items where kind = 'document' {among} and {self._db.tuned(_LACKS_SOME)}"
        heads = [parent[:100] for parent in parents]
        row = self._db.row(query, {"model": model_id, "parents": parents, "heads": heads})
        return int(row[0]) if row else 0

    @reads
    def any_of(self, item_id: int) -> bool:
        """Return whether any passage of an item has a vector of any model."""
        return self._db.row(_ANY_OF, _listed([item_id])) is not None

    def forget(self, keys: Iterable[bytes]) -> None:
        """Remove the vectors of those keys that no passage has any more. Belongs into a write."""
        keys = list(keys)
        if not keys:
            return
        if self._db.dialect == "sqlite":
            held = (
                "select distinct key from embeddings where model in (select id from models) and key in each(:k bytes)"
            )
            keys = [key for (key,) in self._db.all(held, {"k": keys})]
            if not keys:
                return
            self._find_by_vector()
        self._db.run(
            """delete from embeddings where key in each(:keys bytes) and model in (select id from models)
               and not exists (select 1 from chunks where vector_key = embeddings.key)""",
            {"keys": keys},
        )

    def _lacking(self, model: Model, item_ids: Sequence[int]) -> dict[int, list[Chunk]]:
        rows = self._db.all(_LACKING_OF, {"model": model.id, **_listed(item_ids)})
        chunks_by_item: dict[int, list[Chunk]] = defaultdict(list)
        for chunk in map(chunk_from, sorted(rows)):
            chunks_by_item[chunk.item_id].append(chunk)
        return chunks_by_item

    def _find_by_vector(self) -> None:
        """Make SQLite find passages by the key of their vector: from the first vector on, and not where there is none.

        Keys are hashes. Every passage that is stored changes another page of this index, which costs more than the
        passage.
        """
        if self._db.dialect == "sqlite":
            self._db.run("create index if not exists chunks_by_vector on chunks (vector_key)")


def _listed(item_ids: Sequence[int]) -> dict[str, object]:
    """Return item ids as both databases have them: as a list, and as JSON for what SQLite has to be led through."""
    ids = list(dict.fromkeys(item_ids))
    return {"items": ids, "list": json.dumps(ids)}
