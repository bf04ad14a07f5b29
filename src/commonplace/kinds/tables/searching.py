"""The search tool: both legs inside one place of one table, fused by rank, every hit checked against the data."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from commonplace.errors import Unavailable
from commonplace.index.followers import ServiceIndex, Unacknowledged, WordIndex, WordReader
from commonplace.index.scope import Ids, Scope, among
from commonplace.kinds.tables import pointers
from commonplace.kinds.tables.indexing import Indexer, Walk
from commonplace.kinds.tables.node_drawer import NodeDrawer
from commonplace.kinds.tables.pointers import Tokens, escaped, is_inside, plain, plain_tokens, relative, render
from commonplace.kinds.tables.rows import DirtyRow, NodePassage, TableRow
from commonplace.kinds.tables.states import NodeScopes
from commonplace.model import JSON, Chunk
from commonplace.search.blend import falling
from commonplace.search.engine import (
    Floats,
    Legs,
    Proposed,
    Recipe,
    Semantic,
    Stages,
    in_time,
    rank,
    reciprocal,
)
from commonplace.search.legs import LexicalLeg, VectorLeg, combine, trust_for
from commonplace.search.plan import plan_lexical
from commonplace.search.request import Parsed, parse
from commonplace.store.base import Store
from commonplace.store.facets import scope_hash

LEAST_SAID = 1e-9
"""Weight of a list whose best hit says nothing: its order comes after the other's."""
Live = tuple[NodePassage, Tokens]


@dataclass(frozen=True, slots=True)
class _LiveRanking:
    """The first chunks that are alive, best first, and the candidates they are of."""

    live: Sequence[Live]
    found: Proposed


class TableResults(NamedTuple):
    """The results of one search."""

    results: list[dict[str, JSON]] | None
    """None where the index is not ready yet."""
    dirty: Sequence[DirtyRow] | None
    """Places that were still to be indexed; None where they did not have to be read."""


class _LiveChunks:
    """A filter of chunks: those of this generation, inside the place, and as the data is now."""

    def __init__(self, nodes: NodeDrawer, indexer: Indexer, table: TableRow, place: Tokens) -> None:
        self._node_rows, self._indexer, self.table, self.place = nodes, indexer, table, place
        self.seen: Sequence[DirtyRow] | None = None

    def _dirty(self) -> Sequence[DirtyRow]:
        """Return the dirty places.

        They are read after the first chunks, so that they have every write that left one of those behind.
        """
        if self.seen is None:
            self.seen = self._node_rows.dirty_of(self.table.number, self.table.generation)
        return self.seen

    @cached_property
    def _walk(self) -> Walk:
        return self._indexer.walk(self.table)

    def among(self, chunk_ids: Sequence[int]) -> list[Live]:
        """Return those of these chunks that are alive, with their places."""
        live = []
        for passage in self._node_rows.passages(self.table.id, chunk_ids):
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
        store: Store,
        lexical: WordIndex,
        semantic: Callable[[], Semantic],
        scopes: NodeScopes,
        indexer: Indexer,
        service: ServiceIndex | None = None,
    ) -> None:
        self._node_rows, self._lexical, self._semantic = store.drawer(NodeDrawer), lexical, semantic
        self._scopes, self._indexer, self._service = scopes, indexer, service

    def find(self, table: TableRow, place: Tokens, query: str, top_k: int) -> TableResults:
        """Return the best chunks inside a place, none missing, with scores that never rise."""
        started_at = time.monotonic()
        semantic = self._meaning()

        def ask(words: WordReader) -> TableResults:
            live = _LiveChunks(self._node_rows, self._indexer, table, place)
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
            legs = Legs(LexicalLeg(words, plan_lexical(variant, words), scope), vector)
            hits, scores = self._best(legs, live, top_k)
            if hits:
                rows = self._lexical.places([passage.chunk.id for passage, _ in hits])
                return [
                    {"score": score, "json_path": relative(render(hit[1]), render(place)), "chunk": shown}
                    for hit, score in zip(hits, scores, strict=True)
                    if (shown := self._shown(hit, table, rows.get(hit[0].chunk.id))) is not None
                ]
        return []

    def _best(self, legs: Legs, live: _LiveChunks, top_k: int) -> tuple[Sequence[Live], list[float]]:
        """Return the best chunks that are alive, and their scores."""
        ranking = rank(recipe_of(live, top_k), legs, top_k, Stages())
        return ranking.live, _scores(legs, ranking.found, [passage.chunk.id for passage, _ in ranking.live])

    def _shown(self, hit: Live, table: TableRow, row: tuple[str, str] | None) -> dict[str, JSON] | None:
        """Return a hit as the answer has it, None where the data has changed.

        `row`: the namespace and the id of its row, where a service holds it.
        """
        (chunk, fields, own_hash, count), tokens = hit
        text, kept_hash = chunk.text, fields.get("hash")
        if kept_hash is not None:  # it has U+0000, which is in the data alone
            node = self._indexer.walk(table).node_at(tokens)
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


def recipe_of(live: _LiveChunks, top_k: int) -> Recipe[_LiveRanking]:
    """Return the recipe of a table's search: both lists by reciprocal ranks, of which only what is alive is shown.

    A list counts as its best hit does, so a stray word outweighs no true neighbor; chunks with all words come first.
    """

    def fusion(legs: Legs, found: Proposed) -> _LiveRanking:
        (words, strengths), (near, _) = found.words, found.near
        by_words = found.weights.lexical * float(strengths.max(initial=0.0))
        ranks = reciprocal([words, near], [by_words, _nearness(legs.vector, found)])
        order = ranks.ids[np.lexsort((ranks.ids, -ranks.total, ~among(ranks.ids, found.complete)))].tolist()
        chunks: list[Live] = []
        for start in range(0, len(order), top_k):  # nearly always the first are all alive
            chunks += live.among(order[start : start + top_k])
            if len(chunks) >= top_k:
                break
        return _LiveRanking(chunks[:top_k], found)

    return Recipe(fusion, lambda ranking: len(ranking.live) >= top_k)


def _nearness(vector: VectorLeg | None, found: Proposed) -> float:
    """Return the strength of the semantic list: how much nearer its best is than strangers, weighed."""
    scaled = found.near[1]
    if vector is None or not len(scaled):
        return 0.0
    strangers = float(vector.scaled(np.array(vector.strangers.cosine)))
    return found.weights.vector * max(float(scaled[0]) - strangers, 0.0) or LEAST_SAID


def _scores(legs: Legs, found: Proposed, chunks: Sequence[int]) -> list[float]:
    """Return the engine's score of each chunk, 0 to 1, lowered where it would rise along the order."""
    if not chunks:
        return []
    by_words = _leg_scores(chunks, found.words, legs.lexical.scores)
    none = np.full(len(chunks), np.nan, dtype=np.float32)
    by_vector = _leg_scores(chunks, found.near, legs.vector.scores) if legs.vector else none
    values = combine(by_words, by_vector, found.weights)
    scores = found.scale.scores(np.array(chunks, np.int64), values, np.isnan(by_vector))
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
