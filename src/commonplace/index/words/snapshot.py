"""The use of tantivy: the schema, a commit as a snapshot, panics as damage, hits as arrays, segments that are folded.

Every commit makes a segment. With eight of them in its lowest layer tantivy merges all of that layer, and a library
under some seventeen thousand passages is nothing but lowest layer; it cannot be told otherwise from Python. So before
there are eight, the smallest are written again together with what is new: their documents leave them, and a segment
without documents is dropped. A few writes then never merge a whole library.
"""

from __future__ import annotations

import ctypes
import gc
import json
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import tantivy
from numpy.typing import NDArray
from tantivy import DocAddress, Occur, Query

from commonplace.index.followers import IndexDamaged
from commonplace.index.scope import Ids, among
from commonplace.index.sealed_files import REFUSALS, readable
from commonplace.lazy_dataclass import dataclass
from commonplace.model import CHUNK_BITS, SCHEMES, IndexedItem
from commonplace.text.languages import LANGUAGES

META = "meta.json"
MANY = "many"  # the value of the field `parts` in chunks of items that have several
LEAST_SHARE = 0.05  # of the chunks: rarer languages stem only words that no other language knows
MOST_LANGUAGES = 3

Floats = NDArray[np.float32]
T = TypeVar("T")


@dataclass(slots=True)
class Snapshot:
    """The index as of one commit. Searches hold one, so a commit in another thread changes nothing for them."""

    index: tantivy.Index
    searcher: tantivy.Searcher
    stamp: tuple[int, int, int]
    files: Mapping[str, Sequence[int]]
    sizes: Sequence[int]
    """The number of documents in each segment, in the searcher's order."""
    position: int
    highest: int
    """The largest item id ever indexed: a larger one need not be deleted before it is added."""
    languages: tuple[str, ...]
    rarer: tuple[str, ...]
    """The library's other languages."""
    counted: int
    """The documents that term counts include: deleted ones too, until tantivy merges their segment."""
    idfs: dict[str, float] = field(default_factory=dict)

    @property
    def schema(self) -> tantivy.Schema:
        """Return the schema of the index."""
        return self.index.schema

    @property
    def removed(self) -> int:
        """Return the number of deleted documents among those counted."""
        return self.counted - self.searcher.num_docs

    def idf(self, form: str) -> float:
        """Return BM25's inverse document frequency of a stem; 0 when no chunk has it."""
        idf = self.idfs.get(form)
        if idf is None:
            # The words of a document's key are in its title alone.
            count = self.searcher.doc_freq("body", form) or self.searcher.doc_freq("title", form)
            if 0 < count <= self.removed and not self._is_anywhere(form):
                count = 0
            idf = math.log(1 + (self.counted - count + 0.5) / (count + 0.5)) if count else 0.0
            self.idfs[form] = idf
        return idf

    def _is_anywhere(self, form: str) -> bool:
        """Return True if a chunk that was not deleted has the stem."""
        fields = [(Occur.Should, Query.term_query(self.schema, field, form, "freq")) for field in ("body", "title")]
        return bool(self.searcher.search(Query.boolean_query(fields), 1, count=False).hits)


def engine(work: Callable[[], T]) -> T:
    """Return `work()`, which calls tantivy. Raise OSError if the system refused, `IndexDamaged` for other failures."""
    try:
        return work()
    except BaseException as error:
        panicked = type(error).__name__ == "PanicException"
        if not (panicked or isinstance(error, ValueError | OSError | RuntimeError | SystemError)):
            raise
        for number in REFUSALS:
            if os.strerror(number) in str(error) or f"os error {number}" in str(error):
                raise OSError(number, os.strerror(number)) from error
        raise IndexDamaged(f"tantivy{' gave up' if panicked else ''}: {error}") from error


def make_schema() -> tantivy.Schema:
    """Return the schema of the index.

    `body` and `title` hold stems and rank; `words` holds exact terms with positions, for phrases and prefixes.
    A document's `title` also has the words of its key; its `headline` does not, for searches that ignore file names.
    """
    schema = tantivy.SchemaBuilder()
    for name in ("item", "chunk"):
        schema.add_unsigned_field(name, indexed=True, fast=True)
    for name in ("kind", "parent", "tag", "language", "mark", "parts", "facet", "part"):
        schema.add_text_field(name, tokenizer_name="raw", index_option="basic")
    for name in ("created", "updated"):
        schema.add_integer_field(name, indexed=True, fast=True)
    for name in ("position", "highest"):
        schema.add_unsigned_field(name, fast=True)
    for name in ("title", "headline", "body"):
        schema.add_text_field(name, tokenizer_name="terms", index_option="freq")
    schema.add_text_field("words", tokenizer_name="terms", index_option="position")
    return schema.build()


def open_index(folder: Path) -> tantivy.Index:
    """Return the index in a folder, created where there is none."""
    index = tantivy.Index(make_schema(), str(folder))
    index.register_tokenizer("terms", tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace()).build())
    index.config_reader("manual")
    return index


def take_snapshot(folder: Path, files: Mapping[str, Sequence[int]], fallback_language: str) -> Snapshot:
    """Return the latest commit in a folder. Raise `IndexDamaged` if it cannot be read."""
    stamp = stamp_of(folder)
    index = engine(lambda: open_index(folder))
    engine(index.reload)
    searcher = index.searcher()
    position, highest = engine(lambda: _mark(searcher, index.schema))
    present = engine(lambda: _languages(searcher))
    languages = common_of(present, searcher.num_docs) or (fallback_language,)
    rarer = tuple(language for language in present if language not in languages)
    counted = engine(lambda: _counted(searcher))
    sizes = [documents for documents, *_ in committed_segments(folder).values()]
    return Snapshot(index, searcher, stamp, files, sizes, position, highest, languages, rarer, counted)


def _mark(searcher: tantivy.Searcher, schema: tantivy.Schema) -> tuple[int, int]:
    """Return the position and the highest item id that the marker document holds; zeros where there is none."""
    marker_hits = searcher.search(Query.term_query(schema, "mark", "position", "basic"), 1, count=False).hits
    if not marker_hits:
        return 0, 0
    address = [marker_hits[0][1]]
    return int(searcher.fast_field_values("position", address)[0] or 0), int(
        searcher.fast_field_values("highest", address)[0] or 0
    )


def _counted(searcher: tantivy.Searcher) -> int:
    return searcher.doc_freq("mark", "position") + sum(searcher.doc_freq("kind", kind) for kind in SCHEMES)


def _languages(searcher: tantivy.Searcher) -> dict[str, int]:
    counts = {language: searcher.doc_freq("language", language) for language in sorted(LANGUAGES)}
    return {language: count for language, count in counts.items() if count}


def common_of(counts: Mapping[str, int], total: int) -> tuple[str, ...]:
    """Return the languages that stem every query, commonest first, from the number of chunks in each."""
    common = [language for language, count in counts.items() if count >= LEAST_SHARE * total]
    return tuple(sorted(common, key=lambda language: -counts[language])[:MOST_LANGUAGES])


def stamp_of(folder: Path) -> tuple[int, int, int]:
    """Return (inode, size, modification time) of the commit file, which differ between any two commits."""
    try:
        status = os.stat(f"{folder}/{META}")  # at every search, so no path is made of it
    except OSError as error:
        raise IndexDamaged(f"{folder / META}: {error}") from error
    return status.st_ino, status.st_size, status.st_mtime_ns


def committed_segments(folder: Path) -> dict[str, list[int]]:
    """Return, by segment of the latest commit: documents, stamp of the last deletion (0: none), deleted documents."""
    with readable(folder / META):
        data = (folder / META).read_bytes()
    try:
        segments = json.loads(data)["segments"]
        removals = [segment["deletes"] or {"opstamp": 0, "num_deleted_docs": 0} for segment in segments]
        return {
            _plain(segment): [segment["max_doc"], removal["opstamp"], removal["num_deleted_docs"]]
            for segment, removal in zip(segments, removals, strict=True)
        }
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise IndexDamaged(f"{folder / META}: {error}") from error


def committed_files(folder: Path) -> Callable[[str], bool]:
    """Return a predicate: a file of this name belongs to the latest commit. Segments never change once written."""
    deletes = {segment: opstamp for segment, (_, opstamp, _) in committed_segments(folder).items()}

    def belongs(name: str) -> bool:
        segment, _, rest = name.partition(".")
        if segment not in deletes:
            return False
        return not rest.endswith("del") or rest == f"{deletes[segment]}.del"

    return belongs


def _plain(segment: Mapping[str, Any]) -> str:
    return str(segment["segment_id"]).replace("-", "")


def check_stamps(folder: Path, files: Mapping[str, Sequence[int]]) -> None:
    """Raise `IndexDamaged` if a file under an open snapshot has another size or modification time."""
    place = f"{folder}/"  # at every search, so no path is made of it
    for name, (size, mtime_ns, *_) in files.items():
        try:
            status = os.stat(place + name)
        except OSError as error:
            raise IndexDamaged(f"{folder / name}: {error}") from error
        if status.st_size != size or status.st_mtime_ns != mtime_ns:
            raise IndexDamaged(f"{folder / name} was changed")


def hits(searcher: tantivy.Searcher, query: Query, k: int) -> tuple[Ids, Floats]:
    """Return the best `k` chunks and their scores."""
    return _columns(searcher, engine(lambda: searcher.search(query, k, count=False).hits) if k else [])


def counted_hits(searcher: tantivy.Searcher, query: Query, k: int) -> tuple[Ids, Floats, int]:
    """Return the best `k` chunks, their scores and the number of all matches, which is free where all are scored."""
    result: Any = engine(lambda: searcher.search(query, k, count=True))
    return *_columns(searcher, result.hits), int(result.count or 0)


def _columns(searcher: tantivy.Searcher, pairs: Sequence[tuple[Any, tantivy.DocAddress]]) -> tuple[Ids, Floats]:
    """Return the chunk ids and scores of (score, address) pairs."""
    if not pairs:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float32)
    scores, addresses = zip(*pairs, strict=True)
    chunks = engine(lambda: searcher.fast_field_values("chunk", list(addresses)))
    return np.array(chunks, dtype=np.int64), np.array(scores, dtype=np.float32)


def fetch(
    searcher: tantivy.Searcher,
    query: Query,
    k: int,
    items: Ids | None,
    without: Ids | None = None,
    share: float | None = None,
) -> tuple[Ids, Floats]:
    """Return the best `k` chunks of the allowed items and their scores, ties by id, however deep they lie.

    The depth doubles while the last chunks tie or too few belong to the items, until the cut falls between two
    different scores or nothing is left. Most of `without` match the same words, so the first depth has room for all
    of them. `share`: the fraction of all chunks that belong to the items; None computes it.
    """
    total = searcher.num_docs
    if share is None:
        share = 1.0 if items is None else max(len(items), 1) / max(total, 1)
    room = k + 1 + (0 if without is None else len(without))
    depth = min(total, int(room / share * 1.2) + 1)
    while True:
        chunks, scores = hits(searcher, query, depth)
        exhausted = len(chunks) < depth or depth >= total
        last = scores[-1] if len(scores) else 0.0
        if items is not None:
            allowed = among(chunks >> CHUNK_BITS, items)
            chunks, scores = chunks[allowed], scores[allowed]
        if without is not None:
            allowed = ~among(chunks >> CHUNK_BITS, without)
            chunks, scores = chunks[allowed], scores[allowed]
        if exhausted or (len(scores) >= k and scores[k - 1] > last):
            break
        depth = min(total, depth * 2)
    order = np.lexsort((chunks, -scores))[:k]
    return chunks[order], scores[order]


# folding: small segments are written again with what is new, so that segments stay few and fast to search


MERGED = 8
"""Segments of one layer that tantivy merges."""
LAYER = 17_000
"""Documents from which on a segment is above the lowest layer: 10,000 · 2^0.75, rounded up."""
FEW = 64
"""Documents that are always folded rather than merged with everything."""
MOST_LOOKED_AT = 16 * FEW
"""Documents of a segment that are read in search of one that was not deleted."""
FROM = 1_000
"""Documents of a library from which on `company` pays. In fewer, deleted documents distort term counts too much."""
MOST_FOLDED = 500
"""Documents that are folded at a time. Beyond that a merge is cheap beside what was written."""


def to_fold(snapshot: Snapshot) -> list[int]:
    """Return the items to write again with the next ones."""
    sizes = snapshot.sizes
    return _items_at(snapshot, [(place, document) for place in smallest(sizes) for document in range(sizes[place])])


def company(snapshot: Snapshot, read: Callable[[list[int]], list[IndexedItem]]) -> list[int]:
    """Return items to write again together with a position, where nothing else is written.

    A segment of the position alone has no text, and every look-up of a term opens its empty dictionary, which took 2 %
    of a hybrid search of 10,000 passages. Items that kept the last position company move along with it, and their old
    segment is dropped.
    """
    if snapshot.counted < FROM:
        return []
    for size, place in sorted((size, place) for place, size in enumerate(snapshot.sizes)):
        for start in range(0, min(size, MOST_LOOKED_AT), FEW):
            documents = range(start, min(start + FEW, size))
            items = [item for item in read(_items_at(snapshot, [(place, one) for one in documents])) if item.chunks]
            if items:  # else they were all deleted, or have no text any more
                shortest = sorted(items, key=lambda item: len(item.chunks))
                return [item.id for item in (items if size <= FEW else shortest[:1])]
    return []


def _items_at(snapshot: Snapshot, places: Sequence[tuple[int, int]]) -> list[int]:
    addresses = [DocAddress(*place) for place in places]
    values = engine(lambda: snapshot.searcher.fast_field_values("item", addresses)) if addresses else []
    return list(dict.fromkeys(int(item) for item in values if item is not None))  # the marker document has no item


def smallest(sizes: Sequence[int]) -> list[int]:
    """Return the places of the segments to fold into one; none while there are few, or if the smallest are large.

    They are segments with a few documents in all, then each that is no larger than twice those before it. So a
    document is written again about log10(documents since the last merge) times, not with every commit.
    """
    low = sorted((size, place) for place, size in enumerate(sizes) if size < LAYER)
    if len(low) + 1 < MERGED:
        return []
    chosen: list[int] = []
    total = 0
    for size, place in low:
        if total + size > (MOST_FOLDED if size <= 2 * total else FEW):
            break
        chosen.append(place)
        total += size
    return chosen if len(chosen) >= 2 else []


@contextmanager
def giving_back() -> Iterator[None]:
    """Return freed memory to the system after the block, where the C library can (glibc): 55 MB after a first index."""
    try:
        yield
    finally:
        gc.collect()
        with suppress(OSError, AttributeError, TypeError):  # no such library, no such function
            ctypes.CDLL(None).malloc_trim(0)
