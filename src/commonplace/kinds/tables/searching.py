"""The search tool: both legs inside one place of one table, fused by rank, every hit checked against the data."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from commonplace.errors import Unavailable
from commonplace.index.base import ServiceIndex, Unacknowledged, WordIndex, WordReader
from commonplace.index.scope import Ids, Scope, among
from commonplace.kinds.tables import pointers
from commonplace.kinds.tables.indexing import Indexer, Walk
from commonplace.kinds.tables.pointers import Tokens, is_inside, plain_tokens, relative, render
from commonplace.kinds.tables.states import NodeScopes
from commonplace.model import JSON, Chunk
from commonplace.search.blend import falling
from commonplace.search.engine import Floats, Semantic, deepen, in_time, reciprocal
from commonplace.search.legs import LexicalLeg, VectorLeg, Weights, combine, scale_of, trust_for, weigh
from commonplace.search.plan import plan_lexical
from commonplace.search.ranking import no_passages, with_complete
from commonplace.search.request import Parsed, parse
from commonplace.search.scale import Scale
from commonplace.store.places import escaped, plain, scope_hash
from commonplace.store.table_base import TableStore
from commonplace.store.table_rows import DirtyRow, NodePassage, TableRow

LEAST_DEPTH = 50
DEPTH_PER_HIT = 5
LEAST_SAID = 1e-9
"""Weight of a list whose best hit says nothing: its order comes after the other's."""
Live = tuple[NodePassage, Tokens]


@dataclass(frozen=True, slots=True)
class _Legs:
    """The legs of one search; `vector` is None where there is no vector of the query."""

    lexical: LexicalLeg
    vector: VectorLeg | None


@dataclass(frozen=True, slots=True)
class _Fused:
    """The chunks by weighted reciprocal ranks, and each leg's scores of the chunks it proposed."""

    order: Sequence[int]
    weights: Weights
    scale: Scale
    full: bool
    """Either leg may have more."""
    words: tuple[Ids, Floats]
    near: tuple[Ids, Floats]


class TableResults(NamedTuple):
    """The results of one search."""

    results: list[dict[str, JSON]] | None
    """None where the index is not ready yet."""
    dirty: Sequence[DirtyRow] | None
    """Places that were still to be indexed; None where they did not have to be read."""


class _LiveChunks:
    """A filter of chunks: those of this generation, inside the place, and as the data is now."""

    def __init__(self, store: TableStore, indexer: Indexer, table: TableRow, place: Tokens) -> None:
        self._store, self._indexer, self.table, self.place = store, indexer, table, place
        self.seen: Sequence[DirtyRow] | None = None

    def _dirty(self) -> Sequence[DirtyRow]:
        """Return the dirty places.

        They are read after the first chunks, so that they have every write that left one of those behind.
        """
        if self.seen is None:
            self.seen = self._store.dirty_of(self.table.number, self.table.generation)
        return self.seen

    @cached_property
    def _walk(self) -> Walk:
        return Walk(self._store, self.table.number, self._indexer.rules(self.table)[0])

    def among(self, chunk_ids: Sequence[int]) -> list[Live]:
        """Return those of these chunks that are alive, with their places."""
        live = []
        for passage in self._store.table_passages(self.table.id, chunk_ids):
            tokens = plain_tokens(str(passage.fields["pointer"]))
            if passage.fields["generation"] != self.table.generation or not is_inside(tokens, self.place):
                continue
            if not _is_dirty(tokens, self._dirty()) or _is_current(self._walk, tokens, passage):
                live.append((passage, tokens))
        return live


class TableSearch:
    """The search of one library's tables."""

    def __init__(
        self,
        store: TableStore,
        lexical: WordIndex,
        semantic: Callable[[], Semantic],
        scopes: NodeScopes,
        indexer: Indexer,
        service: ServiceIndex | None = None,
    ) -> None:
        self._store, self._lexical, self._semantic = store, lexical, semantic
        self._scopes, self._indexer, self._service = scopes, indexer, service

    def find(self, table: TableRow, place: Tokens, query: str, top_k: int) -> TableResults:
        """Return the best chunks inside a place, none missing, with scores that never rise."""
        started_at = time.monotonic()
        semantic = self._meaning()

        def ask(words: WordReader) -> TableResults:
            live = _LiveChunks(self._store, self._indexer, table, place)
            results = self._find(words, semantic, live, query, top_k)
            return TableResults(None if words.waiting() else results, live.seen)

        try:
            if self._service:
                self._service.raise_since(started_at)
            return self._lexical.ask(ask)
        except Unacknowledged:
            return TableResults(None, None)

    def _meaning(self) -> Semantic | None:
        """Return the index of vectors and its model, None where there are none in time."""
        semantic = in_time(self._semantic)
        return None if isinstance(semantic, Unavailable) else semantic

    def _find(
        self, words: WordReader, semantic: Semantic | None, live: _LiveChunks, query: str, top_k: int
    ) -> list[dict[str, JSON]]:
        table, place = live.table, live.place
        pointer = plain(render(place))
        items, outside = self._scopes.around(table, pointer)
        if not len(items):
            return []
        parsed, scope = parse(query), _scope(table, pointer, items)
        vector = _vector_leg(semantic, words, parsed, items, outside) if semantic else None
        for phrases in (parsed.phrases, ()) if parsed.phrases else ((),):
            variant = replace(parsed, phrases=phrases)
            legs = _Legs(LexicalLeg(words, plan_lexical(variant, words), scope), vector)
            hits, scores = self._best(legs, live, top_k)
            if hits:
                rows = self._lexical.places([passage.chunk.id for passage, _ in hits])
                return [
                    {"score": score, "json_path": relative(render(hit[1]), render(place)), "chunk": shown}
                    for hit, score in zip(hits, scores, strict=True)
                    if (shown := self._shown(hit, table, rows.get(hit[0].chunk.id))) is not None
                ]
        return []

    def _best(self, legs: _Legs, live: _LiveChunks, top_k: int) -> tuple[list[Live], list[float]]:
        """Return the best chunks that are alive, and their scores, fetching deeper until there are enough."""

        def rank(depth: int) -> tuple[_Fused, list[Live]]:
            fused, chunks = _fused(legs, depth), list[Live]()
            for start in range(0, len(fused.order), top_k):  # nearly always the first are all alive
                chunks += live.among(fused.order[start : start + top_k])
                if len(chunks) >= top_k:
                    break
            return fused, chunks

        def enough(step: tuple[_Fused, list[Live]]) -> bool:
            return len(step[1]) >= top_k or not step[0].full

        fused, chunks = deepen(max(LEAST_DEPTH, DEPTH_PER_HIT * top_k), rank, enough)
        return chunks[:top_k], _scores(legs, fused, [passage.chunk.id for passage, _ in chunks[:top_k]])

    def _shown(self, hit: Live, table: TableRow, row: tuple[str, str] | None) -> dict[str, JSON] | None:
        """Return a hit as the answer has it, None where the data has changed.

        `row`: the namespace and the id of its row, where a service holds it.
        """
        (chunk, fields, own_hash, count), tokens = hit
        text, kept_hash = chunk.text, fields.get("hash")
        if kept_hash is not None:  # it has U+0000, which is in the data alone
            node = Walk(self._store, table.number, self._indexer.rules(table)[0]).node_at(tokens)
            if node is None or node.content_hash != kept_hash:
                return None
            text = node.text[chunk.char_start : chunk.char_end]
        content_hash = str(kept_hash or own_hash)
        pointer = render(tokens)
        namespace, document = row or (None, None)
        record: dict[str, JSON] = {
            "id": chunk_name(table.id, pointer, str(fields["node"]), content_hash, chunk),
            "table_id": table.id,
            "json_pointer": pointer,
            "kind": fields["node"],
            "chunk_text": text,
            "char_start": chunk.char_start,
            "char_end": chunk.char_end,
            "chunk_index": chunk.ordinal,
            "total_chunks": count,
            "content_hash": content_hash,
            "turbopuffer_namespace": namespace,
            "turbopuffer_doc_id": document,
        }
        if chunk.anchor is not None:
            record["members"] = [
                {"json_pointer": f"{pointer}/{_token(key, kept_hash)}", "start": start, "end": end}
                for key, start, end in chunk.anchor["members"]
            ]
        return record


def chunk_name(table: str, pointer: str, kind: str, content_hash: str, chunk: Chunk) -> str:
    """Return the id of a chunk: the same for the same text at the same place, whenever and by whom it is made."""
    identity = f"{table}\n{pointer}\n{kind}\n{content_hash}\n{chunk.char_start}\n{chunk.char_end}"
    return hashlib.sha256(identity.encode("utf-8")).hexdigest()[:24]


def _token(key: str, kept_hash: object) -> str:
    """Return the last token of a member's pointer. Beside U+0000 keys are stored as tokens already."""
    return escaped(key) if kept_hash is None else key.replace("~n", "\0")


def _scope(table: TableRow, pointer: str, items: Ids) -> Scope:
    """Return the scope of a search: the table, the place and the generation."""
    return Scope(
        parents=(table.id,),
        facets=(f"scope:{scope_hash(pointer)}",),
        must=(f"generation:{table.generation}",),
        known=items,
    )


def _vector_leg(
    semantic: Semantic, words: WordReader, parsed: Parsed, items: Ids, outside: Ids | None
) -> VectorLeg | None:
    """Return the semantic leg, None without a vector in time.

    It is limited to the items of the place, or kept from those outside, whichever are fewer.
    """
    meaning = " ".join((parsed.words, *parsed.phrases, *parsed.prefixes)).strip()
    if not meaning:
        return None
    embedder = semantic.embedder
    vector = in_time(lambda: embedder.embed_queries([meaning])[0])
    if isinstance(vector, Unavailable):  # words answer alone
        return None
    trust = trust_for(meaning, embedder, words.languages()[0])
    if outside is None:
        return VectorLeg(semantic.index, embedder, vector, items, trust)
    return VectorLeg(semantic.index, embedder, vector, None, trust, outside if len(outside) else None)


def _fused(legs: _Legs, depth: int) -> _Fused:
    if legs.vector is not None:
        legs.lexical.expect(legs.vector, depth)
    proposed = legs.lexical.candidates(depth)
    full, complete = len(proposed[0]) >= depth, legs.lexical.complete()
    words, matched = with_complete(legs.lexical, proposed, complete, depth)
    weights, near, scaled = Weights(1.0, 0.0), *no_passages()
    if legs.vector is not None:
        near, scaled = legs.vector.candidates(depth)
        full = full or len(near) >= depth
        allowed = _allowed(legs, near)
        near, scaled = near[allowed], scaled[allowed]
        weights = weigh(legs.lexical.plan.mass if legs.lexical.plan.query else 0.0, legs.vector.weight)
    strengths = weights.lexical * float(matched.max(initial=0.0)), _nearness(legs.vector, weights, scaled)
    ranks = reciprocal([words, near], strengths)
    order = ranks.ids[np.lexsort((ranks.ids, -ranks.total, ~among(ranks.ids, complete)))].tolist()
    scale = scale_of(legs.lexical, legs.vector, weights, complete)
    return _Fused(order, weights, scale, full, (words, matched), (near, scaled))


def _nearness(vector: VectorLeg | None, weights: Weights, scaled: Floats) -> float:
    """Return the strength of the semantic list: how much nearer its best is than strangers, weighed.

    The lexical list has the score of its best. A list counts in the fusion as its best does, so a stray word
    outweighs no true neighbor.
    """
    if vector is None or not len(scaled):
        return 0.0
    strangers = float(vector.scaled(np.array(vector.strangers.cosine)))
    return weights.vector * max(float(scaled[0]) - strangers, 0.0) or LEAST_SAID


def _allowed(legs: _Legs, chunks: Ids) -> NDArray[np.bool_]:
    """Return which chunks have the required phrases and none of the excluded words."""
    query = legs.lexical.plan.query
    if not query.phrases and not query.excluded:
        return np.ones(len(chunks), dtype=np.bool_)
    return legs.lexical.allows(chunks)


def _scores(legs: _Legs, fused: _Fused, chunks: Sequence[int]) -> list[float]:
    """Return the engine's score of each chunk, 0 to 1, lowered where it would rise along the order."""
    if not chunks:
        return []
    by_words = _leg_scores(chunks, fused.words, legs.lexical.scores)
    none = np.full(len(chunks), np.nan, dtype=np.float32)
    by_vector = _leg_scores(chunks, fused.near, legs.vector.scores) if legs.vector else none
    values = combine(by_words, by_vector, fused.weights)
    scores = fused.scale.scores(np.array(chunks, np.int64), values, np.isnan(by_vector))
    return [round(score, 4) for score in falling(scores.tolist())]


def _leg_scores(chunks: Sequence[int], proposed: tuple[Ids, Floats], ask: Callable[[Ids], Floats]) -> Floats:
    """Return a leg's scores of some chunks. Those it proposed keep their score, to the last bit."""
    score_by_chunk = dict(zip(proposed[0].tolist(), proposed[1].tolist(), strict=True))
    others = [chunk for chunk in chunks if chunk not in score_by_chunk]
    if others:
        score_by_chunk.update(zip(others, ask(np.array(others, dtype=np.int64)).tolist(), strict=True))
    return np.array([score_by_chunk[chunk] for chunk in chunks], dtype=np.float32)


def _is_dirty(tokens: Tokens, dirty: Sequence[DirtyRow]) -> bool:
    """Return whether a place is in one that is still to be indexed."""
    for row in dirty:
        place = pointers.tokens(row.pointer)
        if tokens == place if row.alone else is_inside(tokens, place):
            return True
    return False


def _is_current(walk: Walk, tokens: Tokens, passage: NodePassage) -> bool:
    """Return whether a passage is of its node as the data is now."""
    node = walk.node_at(tokens)
    return node is not None and node.content_hash == passage.fields.get("hash", passage.content_hash)
