"""The nouns. Plain frozen values: no behavior that needs a database, an index or a model."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from datetime import datetime
from typing import Any, Literal, TypeVar, cast
from urllib.parse import quote, unquote

from commonplace.lazy_dataclass import dataclass

JSON = Any  # what json.loads gives back
T = TypeVar("T")

LAST_MOMENT = 253_402_300_799_999_999
"""The end of the year 9999 in microseconds: the last moment that is told."""

CHUNK_BITS = 20
"""A chunk's id is its item's id and its ordinal in one integer, so either is read off without a look-up."""

MOST_CHUNKS = 1 << CHUNK_BITS


def chunk_id(item_id: int, ordinal: int) -> int:
    """Return the id of an item's chunk: stable, dense per item, and sorted as the text is."""
    return item_id << CHUNK_BITS | ordinal


def item_of(chunk: int) -> int:
    """Return the item a chunk id belongs to."""
    return chunk >> CHUNK_BITS


@dataclass(frozen=True, slots=True)
class Span:
    """A passage before it is stored. `body[char_start:char_end] == text`; lines count from 1, both ends included."""

    text: str
    char_start: int
    char_end: int
    line_start: int
    line_end: int
    headings: tuple[str, ...] = ()
    anchor: Mapping[str, JSON] | None = None
    """More that is known of it: a page, a time, the field it is of."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """A passage of an item's body. `body[char_start:char_end] == text`, for every chunk ever stored."""

    id: int
    text: str
    char_start: int
    char_end: int
    line_start: int
    line_end: int
    headings: tuple[str, ...] = ()
    anchor: Mapping[str, JSON] | None = None
    vector_key: bytes = b""

    @property
    def item_id(self) -> int:
        return item_of(self.id)

    @property
    def ordinal(self) -> int:
        return self.id & (MOST_CHUNKS - 1)


@dataclass(frozen=True, slots=True)
class Draft:
    """An item as a caller hands it in: everything but what the store decides (id, version, times, hash)."""

    kind: str
    key: str
    parent: str = ""
    title: str = ""
    body: str = ""
    format: str = "text"
    fields: Mapping[str, JSON] = field(default_factory=dict)
    metadata: Mapping[str, JSON] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    created_at: datetime | None = None
    updated_at: datetime | None = None
    spans: tuple[Span, ...] | None = None
    """Passages the record brought along. None: the engine cuts the body itself."""


@dataclass(frozen=True, slots=True)
class Item:
    """A thing worth finding again. `body` is None where the caller did not ask for it."""

    id: int
    kind: str
    parent: str
    key: str
    title: str
    format: str
    fields: Mapping[str, JSON]
    metadata: Mapping[str, JSON]
    tags: tuple[str, ...]
    created_at: datetime
    updated_at: datetime
    version: int
    content_hash: str
    chunk_count: int
    body: str | None = None

    @property
    def uri(self) -> str:
        return uri_of(self.kind, self.parent, self.key)


@dataclass(frozen=True, slots=True)
class IndexedItem:
    """An item as a lexical index needs it: everything but the body."""

    id: int
    kind: str
    parent: str
    key: str
    title: str
    language: str
    tags: tuple[str, ...]
    created_at: int
    updated_at: int
    chunks: Sequence[tuple[int, str, str]]
    """(chunk id, headings joined by newlines, text)"""
    words: str = ""
    """More words that it is found by, beside its title and text."""
    facets: tuple[str, ...] = ()
    """Names that a filter may ask for beside its tags, such as `type:video`."""
    parts: Mapping[int, str] = field(default_factory=dict)
    """Of chunks that are one field of a record each: which, such as `system_prompt`."""
    content_hash: str = ""
    """The SHA-256 of its body, where the store says so."""


Op = Literal["put", "delete", "embed"]


@dataclass(frozen=True, slots=True)
class Change:
    """A line of the log. `seq` rises by one, without gaps, in the order the writes became durable."""

    seq: int
    op: Op
    item_id: int
    version: int


Operator = Literal[
    "eq", "ne", "gt", "gte", "lt", "lte", "in", "not_in", "exists", "not_exists", "is_null", "is_not_null",
    "contains", "starts_with", "ends_with", "array_contains",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Condition:
    """A test of a value inside an item's metadata. Types never mix: `true` is not 1, `"7"` is not 7."""

    path: tuple[str, ...]
    op: Operator
    value: JSON = None
    case_sensitive: bool = False
    include_missing: bool = False


@dataclass(frozen=True, slots=True)
class Entries:
    """Conditions on memory entries, beyond those on every item. Items of other kinds never satisfy them."""

    source: str | None = None
    multimodal: bool | None = None
    """With images or without."""
    superseded: bool = False
    """True: entries that a newer one has replaced may answer too."""


@dataclass(frozen=True, slots=True)
class Filter:
    """The items that may answer. Every part that is given must hold; an empty filter lets everything through."""

    kinds: tuple[str, ...] = ()
    parents: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    """Any of these, compared under casefold."""
    paths: tuple[str, ...] = ()
    """Any of these folders, files or globs, of documents alone; see `text.globs.place_matcher`."""
    created_from: datetime | None = None
    created_to: datetime | None = None
    updated_from: datetime | None = None
    updated_to: datetime | None = None
    where: tuple[Condition, ...] = ()
    entries: Entries | None = None

    def __post_init__(self) -> None:
        """Take a list for a tuple, and a text alone for one of them. An empty list asks for nothing either."""
        for name in ("kinds", "parents", "tags", "paths", "where"):
            if type(value := getattr(self, name)) is not tuple:
                object.__setattr__(self, name, each(value))

    def __bool__(self) -> bool:
        return self != Filter()


def each(given: Iterable[T]) -> tuple[T, ...]:
    """Return all values as a tuple.

    A text alone is one value, and not its characters, though a type checker would let it.
    """
    return (cast(T, given),) if isinstance(given, str) else tuple(given)


SCHEMES = {
    "document": "docs",
    "note": "notes",
    "media": "media",
    "conversation": "chats",
    "message": "chats",
    "character": "characters",
    "prompt": "prompts",
    "memory": "memory",
    "table": "tables",
    "collection": "collections",
}
_KINDS = {"qmd": "document", **{scheme: kind for kind, scheme in SCHEMES.items() if kind != "message"}}
"""The kinds by the schemes that are read: documents also by the one that clients of qmd know."""
_PLAIN = re.compile(r"[A-Za-z0-9_.~-]+")  # what quoting leaves alone; most keys are just that
_PLAIN_PATH = re.compile(r"[A-Za-z0-9_.~/-]+")
_WITH_PARENT = {"document", "message", "table"}
_PATHS = {"document", "table"}  # kinds whose keys are paths

_NOUNS = {
    "media": ("media", "media"),
    "memory": ("memory", "memories"),
    "table": ("place in a table", "places in tables"),  # a table is as many items as it has places that are indexed
}


def number_of(kind: str, count: int) -> str:
    """Return a number of items of a kind in words: `1 note`, `2 memories`."""
    one, several = _NOUNS.get(kind, (kind, f"{kind}s"))
    return f"{count} {one if count == 1 else several}"


def uri_of(kind: str, parent: str, key: str) -> str:
    """Return the address of an item: `docs://notes/a/b.md`, `memory://12`, `chats://conversation/message`."""
    paths = kind in _PATHS
    path = key if (_PLAIN_PATH if paths else _PLAIN).fullmatch(key) else quote(key, safe="/~" if paths else "~")
    if kind in _WITH_PARENT:
        path = f"{parent if _PLAIN.fullmatch(parent) else quote(parent, safe='~')}/{path}"
    return f"{SCHEMES[kind]}://{path}"


def kind_of(scheme: str) -> str | None:
    """Return the kind whose addresses begin with this scheme in any case; None for no scheme of ours."""
    return _KINDS.get(scheme.lower())


def parse_uri(uri: str) -> tuple[str, str | None, str] | None:
    """Return the (kind, parent, key) of an address, or None when it is not ours.

    The parent is None where the kind has none.
    """
    scheme, mark, path = uri.partition("://")
    kind = _KINDS.get(scheme)
    if not mark or kind is None or not path:
        return None
    parent, slash, key = path.partition("/")
    if kind == "conversation" and slash:
        return ("message", unquote(parent), unquote(key)) if key else None
    if kind in _WITH_PARENT:
        return (kind, unquote(parent), unquote(key)) if slash and key else None
    return kind, None, unquote(path)


def fingerprint(*parts: str | bytes, size: int = 16) -> bytes:
    """Return a hash of `size` bytes over parts that cannot run into each other."""
    digest = hashlib.blake2b(digest_size=size)
    for part in parts:
        data = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "big"))
        digest.update(data)
    return digest.digest()


Mode = Literal["auto", "lexical", "semantic", "hybrid"]


@dataclass(frozen=True, slots=True)
class Stage:
    """A step of a search: what it did, or why it did not run."""

    name: str
    status: Literal["ran", "skipped", "failed"]
    ms: float = 0.0
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Hit:
    """An answer: an item at its best passage. `score` is 0–1 and means the same in every search (docs/search.md)."""

    uri: str
    kind: str
    parent: str
    title: str
    score: float
    snippet: str
    """Lines as they stand in the body, from `line` on; cut at words."""
    line: int
    """The line of the body from which on the match is densest: the first of the snippet."""
    headings: tuple[str, ...]
    """The headings that the line is under, from the root down; of code the definitions."""
    chunk: Chunk
    item: Item
    explain: Mapping[str, JSON] | None = None
    marks: tuple[tuple[int, int], ...] = ()
    """The (start, end) of each match in the snippet."""

    def record(self) -> dict[str, JSON]:
        """Return what a tool or `--json` shows of it."""
        record: dict[str, JSON] = {"uri": self.uri, "title": self.title, "score": self.score, "line": self.line}
        record |= {"headings": list(self.headings), "snippet": self.snippet}
        return {**record, "explain": dict(self.explain)} if self.explain else record


@dataclass(frozen=True, slots=True)
class Page:
    """The hits of one search, what its stages did, and anything the caller should know."""

    hits: tuple[Hit, ...]
    stages: tuple[Stage, ...]
    notes: tuple[str, ...] = ()
    more: bool = False
    found: int = 0
    """The number of hits known to answer: all that do, unless there are more."""
    skipped: int = 0
    """The number of items that answer but were asked to be left out."""
    tied: bool = False
    """True: the first that is not shown scores what the last that is shown does."""
    items: tuple[int, ...] = ()
    """The ids of the items of all hits known to answer, in their order, each once; see `found`."""
    unplaced: int = 0
    """The number of passages left out because nobody knows how near they are, where that was asked for."""
