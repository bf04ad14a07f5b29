"""What is sent of an item: terms, vectors and coordinates, one row for each of its chunks. Never its text."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commonplace.index.turbopuffer.parts import LONGEST_TOKEN, token_of, value_of
from commonplace.index.turbopuffer.settings import Naming, document_id
from commonplace.lazy_dataclass import dataclass
from commonplace.model import CHUNK_BITS, IndexedItem
from commonplace.text.analyze import analyze, stems, stems_once
from commonplace.text.languages import stemmed_as

_ORDINAL = (1 << CHUNK_BITS) - 1
TABLE = "table"
PROJECT, GENERATION, NODE, SCOPE = "project:", "generation:", "node:", "scope:"
"""Facets that tell a table's items where they belong and what they are; the rest of a facet is the value."""
_ROUND_A_ROW = 160
"""Bytes for the names of a vector and its mark, for a digest and a version, and for what stands between rows."""
_OF_GENERATION = re.compile(r"~g[0-9]+\Z")


@dataclass(frozen=True, slots=True)
class Row:
    """A chunk as the index has it: where it is, what may be asked of it, and its terms, joined by blanks."""

    chunk: int
    namespace: str
    id: str
    kind: str
    parent: str
    language: str
    many: bool
    """Whether its item has other chunks."""
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
    """The last change of the log that its item and vector were read with."""

    @property
    def digest(self) -> bytes:
        """What tells whether a row has to be sent again."""
        told = hashlib.sha256(json.dumps(self.sent, sort_keys=True).encode())
        told.update(b"" if self.vector is None else self.vector.tobytes())
        return told.digest()[:16]

    def with_vector(self, vector: NDArray[np.float32]) -> Row:
        return replace(self, vector=vector)

    def size(self, dims: int | None) -> int:
        """How many bytes it takes in a request at most, however the SDK spells its characters."""
        return len(json.dumps(self.sent)) + 6 * (dims or 0) + _ROUND_A_ROW

    def payload(self, dims: int | None) -> dict[str, Any]:
        """As it is written. A namespace with vectors wants one of every row: one that has none gets a fixed one."""
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
    """The types of a row's attributes, and what may be asked of each. A table's row only tells what kind it is of."""
    asked: dict[str, Any] = {
        "id": "uuid",
        "content": {
            "type": "[]string",
            "filterable": True,
            "full_text_search": {"tokenizer": "pre_tokenized_array", "max_token_length": LONGEST_TOKEN},
        },
        "embedded": {"type": "bool", "filterable": True},
    }
    for name in ("scopes", "tags"):
        asked[name] = {"type": "[]string", "filterable": True}
    asked["kind"] = {"type": "string", "filterable": not of_table}
    for name in ("parent", "part", "table_id"):
        asked[name] = {"type": "string", "filterable": True}
    for name in ("item", "chunk", "generation", "version"):
        asked[name] = {"type": "uint", "filterable": True}
    for name in ("created", "updated"):
        asked[name] = {"type": "int", "filterable": True}
    for name in ("json_pointer", "content_hash", "digest"):
        asked[name] = {"type": "string", "filterable": False}
    for name in ("chunk_index", "total_chunks"):
        asked[name] = {"type": "uint", "filterable": False}
    if dims is not None:
        asked["vector"] = {"type": f"[{dims}]f32", "ann": True}
    return asked


def rows_of(item: IndexedItem, fallback_language: str, naming: Naming) -> Iterator[Row]:
    """The rows of an item, without vectors."""
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
        said = text if part else f"{item.title}\n{headings}\n{text}"  # a field is found by what it says alone
        words, body = analyze(f"{said}\n{item.words}" if item.words else said, language)
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
    """Where a node is. Its key is its pointer, `~` for the empty one, then `~g` and a generation after the first.

    `~n` stands for U+0000. No pointer has any of these: it has a tilde before 0 and 1 only.
    """
    pointer = _OF_GENERATION.sub("", key)
    return "" if pointer == "~" else pointer.replace("~n", "\0")


def _sent(row: Row, item: IndexedItem, facets: _Facets, content_hash: str) -> dict[str, Any]:
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
    """What the service matches and ranks by: the stems as often as they stand there, every other term once."""
    stemmed = list(map(token_of, row.body.split()))
    others = dict.fromkeys(map(token_of, (*row.words.split(), *row.title.split())))
    known = set(stemmed)
    return [*stemmed, *(term for term in others if term not in known)]


def _hash_of(item: IndexedItem) -> str:
    """Stands for the hash of a text that is only known by its parts."""
    return hashlib.sha256("\0".join(text for _, _, text in item.chunks).encode()).hexdigest()


class _Facets:
    """What an item's facets say to this index."""

    def __init__(self, facets: Sequence[str]) -> None:
        self._facets = facets

    def value(self, name: str) -> str:
        return next((facet.removeprefix(name) for facet in self._facets if facet.startswith(name)), "")

    @property
    def generation(self) -> int:
        found = self.value(GENERATION)
        return int(found) if found.isdecimal() else 0

    @property
    def scopes(self) -> Iterator[str]:
        """What queries ask for. The scope of a table is sent as the hash it is."""
        return (scope_of(facet) for facet in self._facets if not facet.startswith((PROJECT, GENERATION, NODE)))


def scope_of(facet: str) -> str:
    """A facet as it is sent."""
    return str(value_of(facet.removeprefix(SCOPE)))
