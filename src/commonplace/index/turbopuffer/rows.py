"""The rows that are sent of an item, one for each chunk: terms, vector and coordinates. Never its text."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commonplace.index.scope import Scope
from commonplace.index.turbopuffer.parts import LONGEST_TOKEN, Filter, one_of, token_of, value_of
from commonplace.index.turbopuffer.service_settings import Naming, document_id
from commonplace.model import CHUNK_BITS, IndexedItem
from commonplace.text.analyze import analyze, stems, stems_once
from commonplace.text.languages import stemmed_as

_ORDINAL = (1 << CHUNK_BITS) - 1
TABLE = "table"
PROJECT, GENERATION, NODE, SCOPE = "project:", "generation:", "node:", "scope:"
"""Prefixes of the facets of a table's items; the rest of a facet is the value."""
_ROUND_A_ROW = 160
"""Bytes of a row in a request besides its attributes and vector: names, digest, version, separators."""
_OF_GENERATION = re.compile(r"~g[0-9]+\Z")


@dataclass(frozen=True, slots=True)
class Row:
    """A chunk as the index holds it: its place, the attributes of filters, and its terms, joined by blanks."""

    chunk: int
    namespace: str
    id: str
    kind: str
    parent: str
    language: str
    many: bool
    """True if its item has other chunks."""
    created: int
    updated: int
    generation: int
    title: str
    body: str
    words: str
    sent: Mapping[str, Any]
    """The attributes of the row, but for its vector."""
    vector: NDArray[np.float32] | None = None
    version: int = 0
    """The last change of the log when its item and vector were read."""

    @property
    def digest(self) -> bytes:
        """Return the hash of attributes and vector, 16 bytes: a row whose digest differs has to be sent again."""
        digest = hashlib.sha256(json.dumps(self.sent, sort_keys=True).encode())
        digest.update(b"" if self.vector is None else self.vector.tobytes())
        return digest.digest()[:16]

    def size(self, dims: int | None) -> int:
        """Return the most bytes that the row takes in a request, however the SDK escapes its characters."""
        return len(json.dumps(self.sent)) + 6 * (dims or 0) + _ROUND_A_ROW

    def payload(self, dims: int | None) -> dict[str, Any]:
        """Return the row as it is written. With `dims` every row needs a vector: one without gets a fixed one."""
        sent = {**self.sent, "digest": self.digest.hex(), "version": self.version}
        if dims is None:
            return sent
        vector = self.vector
        if vector is None:
            vector = np.zeros(dims, np.float32)
            vector[0] = 1.0
        encoded = base64.b64encode(vector.astype("<f4").tobytes()).decode()
        return {**sent, "vector": encoded, "embedded": self.vector is not None}


def schema(dims: int | None, *, of_table: bool) -> dict[str, Any]:
    """Return the types of a row's attributes and whether each may be filtered by: `kind` not in a table's namespace."""
    attributes: dict[str, Any] = {
        "id": "uuid",
        "content": {
            "type": "[]string",
            "filterable": True,
            "full_text_search": {"tokenizer": "pre_tokenized_array", "max_token_length": LONGEST_TOKEN},
        },
        "embedded": {"type": "bool", "filterable": True},
    }
    for name in ("scopes", "tags"):
        attributes[name] = {"type": "[]string", "filterable": True}
    attributes["kind"] = {"type": "string", "filterable": not of_table}
    for name in ("parent", "part", "table_id"):
        attributes[name] = {"type": "string", "filterable": True}
    for name in ("item", "chunk", "generation", "version"):
        attributes[name] = {"type": "uint", "filterable": True}
    for name in ("created", "updated"):
        attributes[name] = {"type": "int", "filterable": True}
    for name in ("json_pointer", "content_hash", "digest"):
        attributes[name] = {"type": "string", "filterable": False}
    for name in ("chunk_index", "total_chunks"):
        attributes[name] = {"type": "uint", "filterable": False}
    if dims is not None:
        attributes["vector"] = {"type": f"[{dims}]f32", "ann": True}
    return attributes


def rows_of(item: IndexedItem, fallback_language: str, naming: Naming) -> Iterator[Row]:
    """Yield the rows of an item, without vectors."""
    language = stemmed_as(item.language, fallback_language)
    title = stems(item.title, language)
    if item.kind == "document":
        title = f"{title} {stems_once(item.key, language)}"
    title = " ".join(title.split())
    content_hash = item.content_hash or _hash_of(item)
    facets = _Facets(item.facets)
    namespace, kind, key = naming.items, item.kind, item.key
    if item.kind == TABLE:
        namespace = naming.table(facets.value(PROJECT) or "none", item.parent)
        kind, key = facets.value(NODE) or item.kind, pointer_of(item.key)
    for chunk, headings, text in item.chunks:
        part = item.parts.get(chunk, "")
        full_text = text if part else f"{item.title}\n{headings}\n{text}"  # a field is found by its own text alone
        words, body = analyze(f"{full_text}\n{item.words}" if item.words else full_text, language)
        row = Row(
            chunk,
            namespace,
            document_id(item.parent, key, content_hash, chunk & _ORDINAL, kind, facets.generation),
            item.kind,
            item.parent,
            language,
            len(item.chunks) > 1,
            item.created_at,
            item.updated_at,
            facets.generation,
            title if not part or part == "name" else "",
            body,
            words,
            {},
        )
        more = {"part": value_of(part.partition("[")[0])} if part else {}
        if item.kind == TABLE:
            more |= {"kind": kind, "table_id": value_of(item.parent), "json_pointer": key}
        yield replace(row, sent={**_sent(row, item, facets, content_hash), **more})


def pointer_of(key: str) -> str:
    """Return the JSON Pointer of a node from its key: the pointer, `~` for the empty one, then `~g` and a generation.

    The first generation has no `~g`. `~n` stands for U+0000. No pointer has any of these: after a tilde it has only 0
    or 1.
    """
    pointer = _OF_GENERATION.sub("", key)
    return "" if pointer == "~" else pointer.replace("~n", "\0")


def _sent(row: Row, item: IndexedItem, facets: _Facets, content_hash: str) -> dict[str, Any]:
    """Return the attributes of a row, but for its vector."""
    return {
        "id": row.id,
        "content": terms_of(row),
        "scopes": list(facets.scopes),
        "tags": list(map(value_of, item.tags)),
        "kind": item.kind,
        "parent": value_of(item.parent),
        "item": item.id,
        "chunk": row.chunk,
        "generation": facets.generation,
        "created": item.created_at,
        "updated": item.updated_at,
        "content_hash": content_hash,
        "chunk_index": row.chunk & _ORDINAL,
        "total_chunks": len(item.chunks),
    }


def terms_of(row: Row) -> list[str]:
    """Return the terms that the service matches and ranks by: stems as often as they occur, every other term once."""
    stemmed = list(map(token_of, row.body.split()))
    others = dict.fromkeys(map(token_of, (*row.words.split(), *row.title.split())))
    stem_set = set(stemmed)
    return [*stemmed, *(term for term in others if term not in stem_set)]


def _hash_of(item: IndexedItem) -> str:
    """Return a hash of an item's chunks, for an item without the hash of its text."""
    return hashlib.sha256("\0".join(text for _, _, text in item.chunks).encode()).hexdigest()


class _Facets:
    """The facets of an item, by what they mean to this index."""

    def __init__(self, facets: Sequence[str]) -> None:
        self._facets = facets

    def value(self, name: str) -> str:
        """Return the value of the first facet with a prefix; empty if there is none."""
        return next((facet.removeprefix(name) for facet in self._facets if facet.startswith(name)), "")

    @property
    def generation(self) -> int:
        """Return the generation of a table that the item is of; 0 if it is of none."""
        value = self.value(GENERATION)
        return int(value) if value.isdecimal() else 0

    @property
    def scopes(self) -> Iterator[str]:
        """Yield the facets that scopes name. The scope of a table is sent as the hash it is."""
        return (scope_of(facet) for facet in self._facets if not facet.startswith((PROJECT, GENERATION, NODE)))


def scope_of(facet: str) -> str:
    """Return a facet as it is sent."""
    return str(value_of(facet.removeprefix(SCOPE)))


# a scope as filters of the service


LISTED = 4_000
"""Item ids in one condition."""


def conditions(scope: Scope) -> list[Filter]:
    """Return the filters for a scope, which the service checks by itself. Long lists of items are not among them."""
    filters: list[Filter] = []
    for name, values in (("kind", scope.kinds), ("parent", scope.parents), ("part", scope.parts)):
        if values:
            filters.append(one_of(name, values))
    if scope.tags:
        filters.append(("tags", "ContainsAny", tuple(map(value_of, scope.tags))))
    if len(scope.facets) == 1:
        filters.append(("scopes", "Contains", scope_of(scope.facets[0])))
    elif scope.facets:
        filters.append(("scopes", "ContainsAny", tuple(map(scope_of, scope.facets))))
    for facet in scope.must:
        generation = facet.removeprefix(GENERATION) if facet.startswith(GENERATION) else ""
        filters.append(("generation", "Eq", int(generation)) if generation else ("scopes", "Contains", scope_of(facet)))
    for name, (low, high) in (("created", scope.created), ("updated", scope.updated)):
        filters += [(name, "Gte", low)] if low is not None else []
        filters += [(name, "Lte", high)] if high is not None else []
    if scope.without is not None and 0 < len(scope.without) <= LISTED:
        filters.append(("item", "NotIn", tuple(scope.without.tolist())))
    return filters


def is_place(scope: Scope) -> bool:
    """Return True if a scope is a place in a table: its facet then selects the items, and no list of them is needed."""
    return bool(scope.parents) and any(facet.startswith(SCOPE) for facet in scope.facets)
