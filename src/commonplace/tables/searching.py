"""The search tool: both legs inside one place of one table, fused by rank, every hit held against the store."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from commonplace.errors import Unavailable
from commonplace.index.base import ServiceIndex, Unacknowledged, WordIndex, WordReader
from commonplace.index.scope import Ids, Scope
from commonplace.model import JSON, Chunk, Item, item_of
from commonplace.search.blend import falling
from commonplace.search.fuse import Weights, calibrate, combine, reciprocal_rank, weigh
from commonplace.search.legs import LexicalLeg, VectorLeg, trust_for
from commonplace.search.parse import Parsed, parse
from commonplace.search.pipeline import Semantic
from commonplace.search.plan import plan_lexical
from commonplace.store.places import scope_hash
from commonplace.store.table_base import TableStore
from commonplace.store.table_rows import DirtyRow, TableRow
from commonplace.tables import pointers
from commonplace.tables.indexing import Indexer, tokens_of
from commonplace.tables.pointers import Tokens, is_inside, relative, render
from commonplace.tables.scopes import Scopes
from commonplace.tables.walking import Walk

LEAST_DEPTH = 50
DEPTH_PER_HIT = 5
Live = tuple[Chunk, Item, Tokens]


@dataclass(frozen=True, slots=True)
class _Legs:
    lexical: LexicalLeg
    vector: VectorLeg | None


class TableSearch:
    """Made once per library."""

    def __init__(
        self,
        store: TableStore,
        lexical: WordIndex,
        semantic: Callable[[], Semantic],
        scopes: Scopes,
        indexer: Indexer,
        service: ServiceIndex | None = None,
    ) -> None:
        self._store, self._lexical, self._semantic = store, lexical, semantic
        self._scopes, self._indexer, self._service = scopes, indexer, service

    def find(self, table: TableRow, place: Tokens, query: str, top_k: int) -> list[dict[str, JSON]] | None:
        """The best chunks inside a place, complete, with scores that never rise; None where the index is not ready."""
        began = time.monotonic()
        semantic = self._meaning()

        def ask(words: WordReader) -> list[dict[str, JSON]] | None:
            found = self._find(words, semantic, table, place, query, top_k)
            return None if words.waiting() else found

        try:
            if self._service:
                self._service.raise_since(began)
            return self._lexical.ask(ask)
        except Unacknowledged:
            return None

    def _meaning(self) -> Semantic | None:
        try:
            return self._semantic()
        except Unavailable:
            return None

    def _find(
        self, words: WordReader, semantic: Semantic | None, table: TableRow, place: Tokens, query: str, top_k: int
    ) -> list[dict[str, JSON]]:
        pointer = render(place).replace("\0", "~n")
        items = self._scopes.nodes(table, pointer).items
        if not len(items):
            return []
        parsed, scope = parse(query), _scope(table, pointer, items)
        outside = self._scopes.others(table, pointer)
        vector = _vector_leg(semantic, words, parsed, items, outside) if semantic else None
        live = self._live(table, place)
        for phrases in (parsed.phrases, ()) if parsed.phrases else ((),):
            asked = replace(parsed, phrases=phrases)
            legs = _Legs(LexicalLeg(words, plan_lexical(asked, words), scope), vector)
            found, scores = self._best(legs, live, top_k)
            if found:
                rows = self._lexical.places([hit[0].id for hit in found])
                return [
                    {"score": score, "json_path": relative(render(hit[2]), render(place)), "chunk": shown}
                    for hit, score in zip(found, scores, strict=True)
                    if (shown := self._shown(hit, table, rows.get(hit[0].id))) is not None
                ]
        return []

    def _best(
        self, legs: _Legs, live: Callable[[Sequence[int]], list[Live]], top_k: int
    ) -> tuple[list[Live], list[float]]:
        depth = max(LEAST_DEPTH, DEPTH_PER_HIT * top_k)
        while True:
            order, weights, full = _fused(legs, depth)
            found: list[Live] = []
            for start in range(0, len(order), top_k):  # nearly always the first are all alive
                found += live(order[start : start + top_k])
                if len(found) >= top_k:
                    break
            if len(found) >= top_k or not full:
                found = found[:top_k]
                return found, _scores(legs, [hit[0].id for hit in found], weights)
            depth *= 4

    def _live(self, table: TableRow, place: Tokens) -> Callable[[Sequence[int]], list[Live]]:
        """Of some chunks those that are there, of this generation, inside the place and as the data is now."""
        dirty = self._store.dirty_of(table.number, table.generation)
        walk = Walk(self._store, table.number, self._indexer.rules(table)[0]) if dirty else None

        def live(chunk_ids: Sequence[int]) -> list[Live]:
            chunks = self._store.chunks(chunk_ids)
            items = {item.id: item for item in self._store.items(list({item_of(chunk) for chunk in chunk_ids}))}
            found = []
            for chunk in chunks:
                item = items.get(chunk.item_id)
                if item is None or item.kind != "table" or item.parent != table.id:
                    continue
                tokens = tokens_of(item)
                if item.fields["generation"] != table.generation or not is_inside(tokens, place):
                    continue
                if walk is None or not _is_dirty(tokens, dirty) or _is_current(walk, tokens, item):
                    found.append((chunk, item, tokens))
            return found

        return live

    def _shown(self, hit: Live, table: TableRow, row: tuple[str, str] | None) -> dict[str, JSON] | None:
        """`row`: the namespace and the id of its row, where a service holds it."""
        chunk, item, tokens = hit
        text, kept_hash = chunk.text, item.fields.get("hash")
        if kept_hash is not None:  # it has U+0000, which is in the data alone
            node = Walk(self._store, table.number, self._indexer.rules(table)[0]).node_at(tokens)
            if node is None or node.content_hash != kept_hash:
                return None
            text = node.text[chunk.char_start : chunk.char_end]
        content_hash = str(kept_hash or item.content_hash)
        pointer = render(tokens)
        namespace, document = row or (None, None)
        shown: dict[str, JSON] = {
            "id": chunk_name(table.id, pointer, str(item.fields["node"]), content_hash, chunk),
            "table_id": table.id,
            "json_pointer": pointer,
            "kind": item.fields["node"],
            "chunk_text": text,
            "char_start": chunk.char_start,
            "char_end": chunk.char_end,
            "chunk_index": chunk.ordinal,
            "total_chunks": item.chunk_count,
            "content_hash": content_hash,
            "turbopuffer_namespace": namespace,
            "turbopuffer_doc_id": document,
        }
        if chunk.anchor is not None:
            shown["members"] = [
                {"json_pointer": render((*tokens, key.replace("~n", "\0"))), "start": start, "end": end}
                for key, start, end in chunk.anchor["members"]
            ]
        return shown


def chunk_name(table: str, pointer: str, kind: str, content_hash: str, chunk: Chunk) -> str:
    """The same for the same text at the same place, whenever and by whom it is made."""
    told = f"{table}\n{pointer}\n{kind}\n{content_hash}\n{chunk.char_start}\n{chunk.char_end}"
    return hashlib.sha256(told.encode("utf-8")).hexdigest()[:24]


def _scope(table: TableRow, pointer: str, items: Ids) -> Scope:
    return Scope(
        parents=(table.id,),
        facets=(f"scope:{scope_hash(pointer)}",),
        must=(f"generation:{table.generation}",),
        known=items,
    )


def _vector_leg(
    semantic: Semantic, words: WordReader, parsed: Parsed, items: Ids, outside: Ids | None
) -> VectorLeg | None:
    """Held to the items of the place, or kept from those outside of it, whichever names fewer."""
    meaning = " ".join((parsed.words, *parsed.phrases, *parsed.prefixes)).strip()
    if not meaning:
        return None
    embedder = semantic.embedder
    vector = embedder.embed_queries([meaning])[0]
    trust = trust_for(meaning, embedder, words.languages()[0])
    if outside is None:
        return VectorLeg(semantic.index, embedder, vector, items, trust)
    return VectorLeg(semantic.index, embedder, vector, None, trust, outside if len(outside) else None)


def _fused(legs: _Legs, depth: int) -> tuple[list[int], Weights, bool]:
    """Chunks by weighted reciprocal ranks, how the legs were weighed, and whether either may have more."""
    if legs.vector is not None:
        legs.lexical.expect(legs.vector, depth)
    words, _ = legs.lexical.candidates(depth)
    mass = legs.lexical.plan.mass if legs.lexical.plan.query else 0.0
    if legs.vector is None:
        return words.tolist(), Weights(1.0, 0.0), len(words) >= depth
    near, scaled = legs.vector.candidates(depth)
    full = len(words) >= depth or (len(near) >= depth and bool(scaled[-1] > 0))
    related = near[(scaled > 0) | np.isin(near, words)]  # further than strangers are: no answer at all
    related = related[_allowed(legs, related)]
    weights = weigh(mass, legs.vector.weight)
    fused = reciprocal_rank([(words.tolist(), weights.lexical), (related.tolist(), weights.vector)])
    return sorted(fused, key=lambda chunk: (-fused[chunk], chunk)), weights, full


def _allowed(legs: _Legs, chunks: Ids) -> NDArray[np.bool_]:
    query = legs.lexical.plan.query
    if not query.phrases and not query.excluded:
        return np.ones(len(chunks), dtype=np.bool_)
    return legs.lexical.allows(chunks)


def _scores(legs: _Legs, chunks: Sequence[int], weights: Weights) -> list[float]:
    """What the engine thinks of each, 0 to 1, as near as can be without rising along the order."""
    if not chunks:
        return []
    ids = np.array(chunks, dtype=np.int64)
    by_words = legs.lexical.scores(ids)
    by_vector = legs.vector.scores(ids) if legs.vector else np.full(len(ids), np.nan, dtype=np.float32)
    scores = calibrate(combine(by_words, by_vector, weights))
    return [round(score, 4) for score in falling(scores.tolist())]


def _is_dirty(tokens: Tokens, dirty: Sequence[DirtyRow]) -> bool:
    for row in dirty:
        place = pointers.parse(row.pointer)
        if tokens == place if row.alone else is_inside(tokens, place):
            return True
    return False


def _is_current(walk: Walk, tokens: Tokens, item: Item) -> bool:
    node = walk.node_at(tokens)
    return node is not None and node.content_hash == item.fields.get("hash", item.content_hash)
