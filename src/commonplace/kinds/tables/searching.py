"""The search tool: both legs inside one place of one table, fused by rank, every hit held against the store."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from commonplace.errors import Unavailable
from commonplace.index.base import ServiceIndex, Unacknowledged, WordIndex, WordReader
from commonplace.index.scope import Ids, Scope
from commonplace.kinds.tables import pointers
from commonplace.kinds.tables.indexing import Indexer
from commonplace.kinds.tables.pointers import Tokens, is_inside, plain_tokens, relative, render
from commonplace.kinds.tables.scopes import Scopes
from commonplace.kinds.tables.walking import Walk
from commonplace.lazy_dataclass import dataclass
from commonplace.model import JSON, Chunk
from commonplace.models.hurry import hurried
from commonplace.search.blend import falling
from commonplace.search.fuse import Weights, combine, reciprocal_rank, weigh
from commonplace.search.legs import LexicalLeg, VectorLeg, scale_of, trust_for
from commonplace.search.parse import Parsed, parse
from commonplace.search.pipeline import EMBED_S, Semantic
from commonplace.search.plan import plan_lexical
from commonplace.search.ranking import Floats, no_passages, with_complete
from commonplace.search.scale import Scale
from commonplace.store.places import escaped, plain, scope_hash
from commonplace.store.table_base import TableStore
from commonplace.store.table_rows import DirtyRow, NodePassage, TableRow

LEAST_DEPTH = 50
DEPTH_PER_HIT = 5
LEAST_SAID = 1e-9
"""What a list counts whose best says nothing: its order stands behind the other's."""
Live = tuple[NodePassage, Tokens]


@dataclass(frozen=True, slots=True)
class _Legs:
    lexical: LexicalLeg
    vector: VectorLeg | None


@dataclass(frozen=True, slots=True)
class _Fused:
    """Chunks by weighted reciprocal ranks, and what each leg told of those it found itself."""

    order: Sequence[int]
    weights: Weights
    scale: Scale
    full: bool
    """Whether either leg may have more."""
    words: tuple[Ids, Floats]
    near: tuple[Ids, Floats]


class Finding(NamedTuple):
    """What a search found."""

    results: list[dict[str, JSON]] | None
    """None where the index is not ready."""
    dirty: Sequence[DirtyRow] | None
    """The places that were left to index; None where it did not have to know."""


class _Alive:
    """Which chunks are there, of this generation, inside the place and as the data is now."""

    def __init__(self, store: TableStore, indexer: Indexer, table: TableRow, place: Tokens) -> None:
        self._store, self._indexer, self.table, self.place = store, indexer, table, place
        self.seen: Sequence[DirtyRow] | None = None

    def _dirty(self) -> Sequence[DirtyRow]:
        """Read after the first chunks, so that it tells of every write that left one of them behind."""
        if self.seen is None:
            self.seen = self._store.dirty_of(self.table.number, self.table.generation)
        return self.seen

    @cached_property
    def _walk(self) -> Walk:
        return Walk(self._store, self.table.number, self._indexer.rules(self.table)[0])

    def among(self, chunk_ids: Sequence[int]) -> list[Live]:
        found = []
        for passage in self._store.table_passages(self.table.id, chunk_ids):
            tokens = plain_tokens(str(passage.fields["pointer"]))
            if passage.fields["generation"] != self.table.generation or not is_inside(tokens, self.place):
                continue
            if not _is_dirty(tokens, self._dirty()) or _is_current(self._walk, tokens, passage):
                found.append((passage, tokens))
        return found


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

    def find(self, table: TableRow, place: Tokens, query: str, top_k: int) -> Finding:
        """The best chunks inside a place, complete, with scores that never rise."""
        began = time.monotonic()
        semantic = self._meaning()

        def ask(words: WordReader) -> Finding:
            live = _Alive(self._store, self._indexer, table, place)
            found = self._find(words, semantic, live, query, top_k)
            return Finding(None if words.waiting() else found, live.seen)

        try:
            if self._service:
                self._service.raise_since(began)
            return self._lexical.ask(ask)
        except Unacknowledged:
            return Finding(None, None)

    def _meaning(self) -> Semantic | None:
        try:
            with hurried(EMBED_S):  # the first contact with a provider
                return self._semantic()
        except Unavailable:
            return None

    def _find(
        self, words: WordReader, semantic: Semantic | None, live: _Alive, query: str, top_k: int
    ) -> list[dict[str, JSON]]:
        table, place = live.table, live.place
        pointer = plain(render(place))
        items, outside = self._scopes.around(table, pointer)
        if not len(items):
            return []
        parsed, scope = parse(query), _scope(table, pointer, items)
        vector = _vector_leg(semantic, words, parsed, items, outside) if semantic else None
        for phrases in (parsed.phrases, ()) if parsed.phrases else ((),):
            asked = replace(parsed, phrases=phrases)
            legs = _Legs(LexicalLeg(words, plan_lexical(asked, words), scope), vector)
            found, scores = self._best(legs, live, top_k)
            if found:
                rows = self._lexical.places([passage.chunk.id for passage, _ in found])
                return [
                    {"score": score, "json_path": relative(render(hit[1]), render(place)), "chunk": shown}
                    for hit, score in zip(found, scores, strict=True)
                    if (shown := self._shown(hit, table, rows.get(hit[0].chunk.id))) is not None
                ]
        return []

    def _best(self, legs: _Legs, live: _Alive, top_k: int) -> tuple[list[Live], list[float]]:
        depth = max(LEAST_DEPTH, DEPTH_PER_HIT * top_k)
        while True:
            fused = _fused(legs, depth)
            found: list[Live] = []
            for start in range(0, len(fused.order), top_k):  # nearly always the first are all alive
                found += live.among(fused.order[start : start + top_k])
                if len(found) >= top_k:
                    break
            if len(found) >= top_k or not fused.full:
                found = found[:top_k]
                return found, _scores(legs, fused, [passage.chunk.id for passage, _ in found])
            depth *= 4

    def _shown(self, hit: Live, table: TableRow, row: tuple[str, str] | None) -> dict[str, JSON] | None:
        """`row`: the namespace and the id of its row, where a service holds it."""
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
        shown: dict[str, JSON] = {
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
            shown["members"] = [
                {"json_pointer": f"{pointer}/{_token(key, kept_hash)}", "start": start, "end": end}
                for key, start, end in chunk.anchor["members"]
            ]
        return shown


def chunk_name(table: str, pointer: str, kind: str, content_hash: str, chunk: Chunk) -> str:
    """The same for the same text at the same place, whenever and by whom it is made."""
    told = f"{table}\n{pointer}\n{kind}\n{content_hash}\n{chunk.char_start}\n{chunk.char_end}"
    return hashlib.sha256(told.encode("utf-8")).hexdigest()[:24]


def _token(key: str, kept_hash: object) -> str:
    """The last token of a member's pointer. Beside U+0000 keys are kept as tokens already."""
    return escaped(key) if kept_hash is None else key.replace("~n", "\0")


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
    try:
        with hurried(EMBED_S):
            vector = embedder.embed_queries([meaning])[0]
    except Unavailable:  # a provider that is late or gone: words answer alone
        return None
    trust = trust_for(meaning, embedder, words.languages()[0])
    if outside is None:
        return VectorLeg(semantic.index, embedder, vector, items, trust)
    return VectorLeg(semantic.index, embedder, vector, None, trust, outside if len(outside) else None)


def _fused(legs: _Legs, depth: int) -> _Fused:
    if legs.vector is not None:
        legs.lexical.expect(legs.vector, depth)
    found = legs.lexical.candidates(depth)
    full, complete = len(found[0]) >= depth, legs.lexical.complete()
    words, matched = with_complete(legs.lexical, found, complete)
    weights, near, scaled = Weights(1.0, 0.0), *no_passages()
    if legs.vector is not None:
        near, scaled = legs.vector.candidates(depth)
        full = full or len(near) >= depth
        allowed = _allowed(legs, near)
        near, scaled = near[allowed], scaled[allowed]
        weights = weigh(legs.lexical.plan.mass if legs.lexical.plan.query else 0.0, legs.vector.weight)
    said = weights.lexical * float(matched.max(initial=0.0)), _nearness(legs.vector, weights, scaled)
    ranks = reciprocal_rank([(words.tolist(), said[0]), (near.tolist(), said[1])])
    first = set(complete.tolist())
    order = sorted(ranks, key=lambda chunk: (chunk not in first, -ranks[chunk], chunk))
    scale = scale_of(legs.lexical, legs.vector, weights, complete)
    return _Fused(order, weights, scale, full, (words, matched), (near, scaled))


def _nearness(vector: VectorLeg | None, weights: Weights, scaled: Floats) -> float:
    """What the nearest of a list has to say, as the best of the other list has what it scores: how far it is from
    strangers, weighed. A list counts in the fusion as its best does, so a stray word outweighs no true neighbor.
    """
    if vector is None or not len(scaled):
        return 0.0
    strangers = float(vector.scaled(np.array(vector.strangers.cosine)))
    return weights.vector * max(float(scaled[0]) - strangers, 0.0) or LEAST_SAID


def _allowed(legs: _Legs, chunks: Ids) -> NDArray[np.bool_]:
    query = legs.lexical.plan.query
    if not query.phrases and not query.excluded:
        return np.ones(len(chunks), dtype=np.bool_)
    return legs.lexical.allows(chunks)


def _scores(legs: _Legs, fused: _Fused, chunks: Sequence[int]) -> list[float]:
    """What the engine thinks of each, 0 to 1, as near as can be without rising along the order."""
    if not chunks:
        return []
    by_words = _told(chunks, fused.words, legs.lexical.scores)
    none = np.full(len(chunks), np.nan, dtype=np.float32)
    by_vector = _told(chunks, fused.near, legs.vector.scores) if legs.vector else none
    values = combine(by_words, by_vector, fused.weights)
    scores = fused.scale.scores(np.array(chunks, np.int64), values, np.isnan(by_vector))
    return [round(score, 4) for score in falling(scores.tolist())]


def _told(chunks: Sequence[int], found: tuple[Ids, Floats], ask: Callable[[Ids], Floats]) -> Floats:
    """A leg's scores of some chunks. What it found it has scored: the same chunk scores the same to the last bit."""
    known = dict(zip(found[0].tolist(), found[1].tolist(), strict=True))
    others = [chunk for chunk in chunks if chunk not in known]
    if others:
        known.update(zip(others, ask(np.array(others, dtype=np.int64)).tolist(), strict=True))
    return np.array([known[chunk] for chunk in chunks], dtype=np.float32)


def _is_dirty(tokens: Tokens, dirty: Sequence[DirtyRow]) -> bool:
    for row in dirty:
        place = pointers.tokens(row.pointer)
        if tokens == place if row.alone else is_inside(tokens, place):
            return True
    return False


def _is_current(walk: Walk, tokens: Tokens, passage: NodePassage) -> bool:
    node = walk.node_at(tokens)
    return node is not None and node.content_hash == passage.fields.get("hash", passage.content_hash)
