"""tantivy as we use it: the schema, one commit as a snapshot, its panics as damage, its hits as arrays."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import tantivy
from numpy.typing import NDArray
from tantivy import Occur, Query

from commonplace.index.files import REFUSALS, readable
from commonplace.index.follower import IndexDamaged
from commonplace.index.scope import Ids, among
from commonplace.lazy_dataclass import dataclass
from commonplace.model import SCHEMES
from commonplace.text.languages import LANGUAGES

META = "meta.json"
MANY = "many"  # what `parts` says of an item's chunk that is not its only one
LEAST_SHARE = 0.05  # of the chunks: languages below it add stems only to words that no other language knows
MOST_LANGUAGES = 3

Floats = NDArray[np.float32]
T = TypeVar("T")


@dataclass(slots=True)
class Snapshot:
    """The index as of one commit. Searches hold one, so a commit in another thread changes nothing under them."""

    index: tantivy.Index
    searcher: tantivy.Searcher
    stamp: tuple[int, int, int]
    files: Mapping[str, Sequence[int]]
    sizes: Sequence[int]
    """How many documents each segment has, in the searcher's order of them."""
    position: int
    highest: int
    """The largest item id ever indexed: a larger one need not be removed before it is added."""
    languages: tuple[str, ...]
    rarer: tuple[str, ...]
    """The library's other languages."""
    counted: int
    """The documents that term counts are made of: removed ones too, until tantivy merges their segment."""
    idfs: dict[str, float] = field(default_factory=dict)

    @property
    def schema(self) -> tantivy.Schema:
        return self.index.schema

    @property
    def removed(self) -> int:
        """How many of those were removed."""
        return self.counted - self.searcher.num_docs

    def idf(self, form: str) -> float:
        """BM25's inverse document frequency of a stem; 0 when no chunk has it."""
        known = self.idfs.get(form)
        if known is None:
            # The words of a document's key are in its title alone.
            found = self.searcher.doc_freq("body", form) or self.searcher.doc_freq("title", form)
            if 0 < found <= self.removed and not self._is_anywhere(form):
                found = 0
            known = math.log(1 + (self.counted - found + 0.5) / (found + 0.5)) if found else 0.0
            self.idfs[form] = known
        return known

    def _is_anywhere(self, form: str) -> bool:
        """Whether a chunk has it that was not removed."""
        fields = [(Occur.Should, Query.term_query(self.schema, field, form, "freq")) for field in ("body", "title")]
        return bool(self.searcher.search(Query.boolean_query(fields), 1, count=False).hits)


def engine(work: Callable[[], T]) -> T:
    """Run something of tantivy's. What the system refuses is an OSError; anything else that goes wrong is damage."""
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
    """`body` and `title` hold stems and rank; `words` holds exact terms with positions, for phrases and prefixes.

    A document's `title` has the words of its key too, and its `headline` has not: for those whom a name tells nothing.
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
    """Open, or create where there is none."""
    index = tantivy.Index(make_schema(), str(folder))
    index.register_tokenizer("terms", tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace()).build())
    index.config_reader("manual")
    return index


def take_snapshot(folder: Path, files: Mapping[str, Sequence[int]], fallback_language: str) -> Snapshot:
    """The latest commit in a folder."""
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
    found = searcher.search(Query.term_query(schema, "mark", "position", "basic"), 1, count=False).hits
    if not found:
        return 0, 0
    address = [found[0][1]]
    return int(searcher.fast_field_values("position", address)[0] or 0), int(
        searcher.fast_field_values("highest", address)[0] or 0
    )


def _counted(searcher: tantivy.Searcher) -> int:
    return searcher.doc_freq("mark", "position") + sum(searcher.doc_freq("kind", kind) for kind in SCHEMES)


def _languages(searcher: tantivy.Searcher) -> dict[str, int]:
    counts = {language: searcher.doc_freq("language", language) for language in sorted(LANGUAGES)}
    return {language: count for language, count in counts.items() if count}


def common_of(counts: Mapping[str, int], total: int) -> tuple[str, ...]:
    """The languages that stem every query, commonest first, by how many of all chunks are in each."""
    common = [language for language, count in counts.items() if count >= LEAST_SHARE * total]
    return tuple(sorted(common, key=lambda language: -counts[language])[:MOST_LANGUAGES])


def stamp_of(folder: Path) -> tuple[int, int, int]:
    """What tells one commit from another without reading it."""
    try:
        found = os.stat(f"{folder}/{META}")  # at every search, so no path is made of it
    except OSError as error:
        raise IndexDamaged(f"{folder / META}: {error}") from error
    return found.st_ino, found.st_size, found.st_mtime_ns


def committed_segments(folder: Path) -> dict[str, list[int]]:
    """Of each segment of the latest commit: its documents, its last removal (0: none) and how many were removed."""
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
    """Whether a file belongs to the latest commit, told by its name. Segments are never changed once written."""
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
    """A quick look that no file under an open snapshot was cut, replaced or rewritten."""
    place = f"{folder}/"  # at every search, so no path is made of it
    for name, (size, mtime_ns, *_) in files.items():
        try:
            found = os.stat(place + name)
        except OSError as error:
            raise IndexDamaged(f"{folder / name}: {error}") from error
        if found.st_size != size or found.st_mtime_ns != mtime_ns:
            raise IndexDamaged(f"{folder / name} was changed")


def hits(searcher: tantivy.Searcher, query: Query, k: int) -> tuple[Ids, Floats]:
    """The best `k` chunks and their scores."""
    return _columns(searcher, engine(lambda: searcher.search(query, k, count=False).hits) if k else [])


def counted_hits(searcher: tantivy.Searcher, query: Query, k: int) -> tuple[Ids, Floats, int]:
    """The same, and how many chunks there are in all. Where everything is scored to find the best, that is for free."""
    found: Any = engine(lambda: searcher.search(query, k, count=True))
    return *_columns(searcher, found.hits), int(found.count or 0)


def _columns(searcher: tantivy.Searcher, found: Sequence[tuple[Any, tantivy.DocAddress]]) -> tuple[Ids, Floats]:
    if not found:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float32)
    scores, addresses = zip(*found, strict=True)
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
    """The best `k` chunks of the allowed items, ties by id, however deep they lie.

    More than `k` are asked for when the last ones tie or too few belong to the items, twice as many each time, until
    the cut falls between two different scores or there is nothing left. What is left out was mostly found by the same
    words before, so room is made for it at once. `share`: how much of all chunks belongs to the items, where told.
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
            allowed = among(chunks >> 20, items)
            chunks, scores = chunks[allowed], scores[allowed]
        if without is not None:
            allowed = ~among(chunks >> 20, without)
            chunks, scores = chunks[allowed], scores[allowed]
        if exhausted or (len(scores) > k and scores[k - 1] > last) or (len(scores) >= k and scores[k - 1] > last):
            break
        depth = min(total, depth * 2)
    order = np.lexsort((chunks, -scores))[:k]
    return chunks[order], scores[order]
