"""The lexical follower: a tantivy index of the analyzer's terms, kept level with the log."""

from __future__ import annotations

import json
import logging
import re
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import tantivy
from tantivy import Document, Query

from commonplace.errors import StorageBroken
from commonplace.index.followers import IndexDamaged, Progress, WordSource
from commonplace.index.scope import Ids, Scope
from commonplace.index.sealed_files import (
    LOCK_NAME,
    PART_SUFFIX,
    REBUILDS,
    Sealed,
    check_seal,
    is_full,
    no_room,
    readable,
    seal,
    writable,
    write_atomically,
    writer_lock,
)
from commonplace.index.words.lexical_query import LexicalQuery
from commonplace.index.words.lexical_reader import LexicalReader
from commonplace.index.words.snapshot import (
    MANY,
    META,
    Floats,
    Snapshot,
    check_stamps,
    committed_files,
    committed_segments,
    company,
    engine,
    giving_back,
    open_index,
    stamp_of,
    take_snapshot,
    to_fold,
)
from commonplace.model import Change, IndexedItem
from commonplace.text.analyze import analyze, many_texts, stems, stems_once
from commonplace.text.languages import stemmed_as

log = logging.getLogger(__name__)

FORMAT = 7
BATCH = 100_000  # changes per commit: fewer commits make fewer segments, and those are quicker to search
GROUP = 200  # items read at a time while following
QUIET = 5_000  # changes without text after which the position is committed all the same
SMALL_HEAP, BULK_HEAP = 15_000_000, 100_000_000
LOCK_S = 60.0
_SEAL = "seal.json"
_LEFT_OVER = re.compile(
    rf"[0-9a-f]{{32}}\..+|\.tmp.+|.+\{PART_SUFFIX}"
)  # a segment's file, or one not yet in its place

T = TypeVar("T")


class LexicalIndex:
    """A `WordIndex` on disk. Damage of any kind ends in a rebuild, never in an error or a wrong answer."""

    def __init__(self, folder: Path, source: WordSource, fallback_language: str = "en") -> None:
        self._folder = folder
        self._source = source
        self._fallback = fallback_language
        self._lock = threading.RLock()
        self._snapshot: Snapshot | None = None
        self._quiet = range(0)  # an index level with its start is level with its stop: the rest held nothing for it

    def exists(self) -> bool:
        """Return True if the index was ever created."""
        return self._folder.exists()

    # following

    def position(self) -> int:
        """Return the last change that the index is level with; 0 when empty."""
        return self._healing(self._reached)

    def catch_up(self, progress: Progress | None = None) -> int:
        """Apply what is pending and return the position."""
        return self._healing(lambda: self._position_of(self._level(progress)))

    def reset(self) -> None:
        """Remove everything, the position included."""
        self._healing(self._reset)

    def check(self) -> list[str]:
        """Return what is wrong with the files, one sentence each, after reading all of them; [] when nothing is."""
        try:
            with writable(self._folder):
                check_seal(self._folder, self._sealed_files(), thorough=True)
        except IndexDamaged as damage:
            return [str(damage)]
        return []

    def _position(self) -> int:
        with writable(self._folder):
            return self._position_of(self._current())

    def _reached(self) -> int:
        """Return the position, past changes that hold nothing for this index: they do not leave it behind."""
        with writable(self._folder):
            snapshot = self._current()
            position, last = self._position_of(snapshot), self._source.last_change()
            if position < last and self._goes_quiet(snapshot, position, last):
                return self._position_of(snapshot)
            return position

    def _position_of(self, snapshot: Snapshot) -> int:
        position = snapshot.position
        return max(position, self._quiet.stop) if position >= self._quiet.start else position

    def _catch_up(self) -> int:
        return self._position_of(self._level())

    def _level(self, progress: Progress | None = None) -> Snapshot:
        """Return a commit with everything that was written before the call.

        What comes meanwhile is left to the next call: where others write all the time, the log is never at its end.
        """
        target = self._source.last_change()
        with self._lock, writable(self._folder):
            snapshot = self._current()
            position = self._position_of(snapshot)
            if position > target and position > (last := self._source.last_change()):
                raise IndexDamaged(f"the index is at change {position}, the store at {last}")
            if position >= target or self._goes_quiet(snapshot, position, target):
                return snapshot
            with writer_lock(self._folder, LOCK_S):
                self._apply_pending(target, progress)
            return self._current()

    def _goes_quiet(self, snapshot: Snapshot, position: int, last: int) -> bool:
        """Return True if items only gained vectors since: there is nothing to write, and no lock to take."""
        if last - snapshot.position > QUIET:
            return False
        changes = self._source.changes(position, QUIET)
        if not changes or any(change.op != "embed" for change in changes):
            return False
        self._quiet = range(snapshot.position, changes[-1].seq)
        return True

    def _apply_pending(self, target: int, progress: Progress | None) -> None:
        batch = self._source.changes(self._position(), BATCH)
        if len(batch) <= 2 * GROUP:
            self._apply(batch, target, SMALL_HEAP, progress)
            return
        with giving_back(), many_texts():
            self._apply(batch, target, BULK_HEAP, progress)

    def _apply(self, batch: Sequence[Change], target: int, heap: int, progress: Progress | None) -> None:
        snapshot = self._current()
        highest = snapshot.highest
        writer: tantivy.IndexWriter | None = None
        try:
            while batch:
                items = list(dict.fromkeys(change.item_id for change in batch if change.op != "embed"))
                position = batch[-1].seq
                if items or position - snapshot.position > QUIET:
                    if heap == SMALL_HEAP:
                        items = list(dict.fromkeys((*items, *to_fold(snapshot))))
                    writer = writer or self._writer(snapshot.index, heap)
                    highest = self._commit(writer, snapshot, items, highest, position, progress)
                else:
                    self._quiet = range(snapshot.position, position)
                batch = self._source.changes(position, BATCH) if position < target else []
        except BaseException:
            if writer is not None:
                with suppress(IndexDamaged, OSError):
                    engine(writer.wait_merging_threads)  # gives tantivy's own lock back while the error travels
            raise
        if writer is not None:
            engine(writer.wait_merging_threads)
            self._seal(snapshot.files)
            self._snapshot = self._load()

    def _writer(self, index: tantivy.Index, heap: int) -> tantivy.IndexWriter:
        """Return a writer, after removing the files of killed writers: tantivy never writes over a file."""
        belongs = committed_files(self._folder)
        for path in self._folder.iterdir():
            if _LEFT_OVER.fullmatch(path.name) and not belongs(path.name):
                path.unlink(missing_ok=True)
        return engine(lambda: index.writer(heap, 1))

    def _commit(
        self,
        writer: tantivy.IndexWriter,
        snapshot: Snapshot,
        items: list[int],
        highest: int,
        position: int,
        progress: Progress | None,
    ) -> int:
        """Replace these items and store the position, in one commit. Return the largest item id indexed so far."""
        schema, added = snapshot.schema, 0
        self._remove(writer, schema, [item_id for item_id in items if item_id <= highest])
        for start in range(0, len(items), GROUP):
            added += self._add(writer, items[start : start + GROUP])
            if progress:
                progress(min(start + GROUP, len(items)), len(items))
        if not added and (others := company(snapshot, self._source.indexed)):
            self._remove(writer, schema, others)
            self._add(writer, others)
        highest = max([highest, *items])
        marker = Document()
        marker.add_text("mark", "position")
        marker.add_unsigned("position", position)
        marker.add_unsigned("highest", highest)
        engine(lambda: writer.delete_documents_by_query(Query.term_query(schema, "mark", "position", "basic")))
        engine(lambda: writer.add_document(marker))
        engine(writer.commit)
        return highest

    def _remove(self, writer: tantivy.IndexWriter, schema: tantivy.Schema, items: list[int]) -> None:
        if items:
            engine(lambda: writer.delete_documents_by_query(Query.term_set_query(schema, "item", items)))

    def _add(self, writer: tantivy.IndexWriter, items: Sequence[int]) -> int:
        """Add the documents of these items and return their number."""
        added = 0
        for item in self._source.indexed(items):
            for document in self._documents(item):
                engine(lambda document=document: writer.add_document(document))  # type: ignore[misc]
                added += 1
        return added

    def _documents(self, item: IndexedItem) -> Iterator[Document]:
        """Yield one document for each chunk of an item."""
        language = stemmed_as(item.language, self._fallback)
        headline = stems(item.title, language)
        title = f"{headline} {stems_once(item.key, language)}" if item.kind == "document" else headline
        for chunk, headings, text in item.chunks:
            part = item.parts.get(chunk, "")
            full_text = text if part else f"{item.title}\n{headings}\n{text}"  # a field is found by its own text alone
            words, body = analyze(f"{full_text}\n{item.words}" if item.words else full_text, language)
            document = Document()
            document.add_unsigned("item", item.id)
            document.add_unsigned("chunk", chunk)
            document.add_text("kind", item.kind)
            document.add_text("parent", item.parent)
            document.add_text("language", language)
            if len(item.chunks) > 1:
                document.add_text("parts", MANY)
            for tag in item.tags:
                document.add_text("tag", tag)
            for facet in item.facets:
                document.add_text("facet", facet)
            if part:
                document.add_text("part", part.partition("[")[0])
            document.add_integer("created", item.created_at)
            document.add_integer("updated", item.updated_at)
            if not part or part == "name":
                document.add_text("title", title)
                if item.kind == "document":
                    document.add_text("headline", headline)
            document.add_text("body", body)
            document.add_text("words", words)
            yield document

    # searching

    def ask(self, work: Callable[[LexicalReader], T]) -> T:
        """Return `work` of a reader that is level with the log. `work` runs again if damage shows on the way."""
        return self._healing(lambda: work(LexicalReader(self._level())))

    def languages(self) -> tuple[str, ...]:
        """Return the languages that stem this library's queries, commonest first."""
        return self.ask(lambda reader: reader.languages())

    def search(self, query: LexicalQuery, k: int, scope: Scope) -> tuple[Ids, Floats]:
        """Return chunk ids and BM25 scores, best first, ties by id; `k` of them where that many match the scope."""
        return self.ask(lambda reader: reader.search(query, k, scope))

    def places(self, chunks: Sequence[int]) -> Mapping[int, tuple[str, str]]:
        """Return {}: no service holds any of them."""
        return {}

    # files

    def _current(self) -> Snapshot:
        """Return the latest commit of any process. Raise `IndexDamaged` if its files were touched."""
        snapshot = self._snapshot
        if snapshot is not None and stamp_of(self._folder) == snapshot.stamp:
            check_stamps(self._folder, snapshot.files)
            return snapshot
        with self._lock:
            self._snapshot = self._load()
            return self._snapshot

    def _load(self) -> Snapshot:
        files = self._sealed_files()
        check_seal(self._folder, files)
        return take_snapshot(self._folder, files, self._fallback)

    def _sealed_files(self) -> Mapping[str, Sequence[int]]:
        """Return the seals of the latest commit's files. A crash before sealing leaves newer files without one."""
        belongs, segments = committed_files(self._folder), committed_segments(self._folder)
        with readable(self._folder / _SEAL):
            data = (self._folder / _SEAL).read_bytes()
        try:
            sealed = json.loads(data)
            if sealed.pop("crc32") != _crc_of(sealed) or sealed["format"] != FORMAT:
                raise ValueError("not as it was written, or by another version")
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise IndexDamaged(f"{self._folder / _SEAL}: {error}") from error
        for name, (documents, removal, removed) in sealed["segments"].items():
            segment = segments.get(name)
            if segment and (segment[0] != documents or (segment[1] == removal and segment[2] != removed)):
                raise IndexDamaged(f"{self._folder / META} is not what was written")
        return {name: entry for name, entry in sealed["files"].items() if belongs(name)}

    def _seal(self, known: Mapping[str, Sequence[int]]) -> None:
        belongs = committed_files(self._folder)
        names = [path.name for path in self._folder.iterdir() if belongs(path.name)]
        self._write_seal(seal(self._folder, names, known), committed_segments(self._folder))

    def _write_seal(self, files: Mapping[str, Sealed], segments: Mapping[str, Sequence[int]]) -> None:
        content = {"format": FORMAT, "files": files, "segments": segments}
        write_atomically(self._folder / _SEAL, json.dumps({**content, "crc32": _crc_of(content)}).encode())

    def _start_over(self) -> None:
        """Replace the index by an empty one. Only for the holder of the writer lock."""
        self._snapshot, self._quiet = None, range(0)
        with writable(self._folder):
            # First, so that a crash here leaves no index rather than half of one.
            (self._folder / META).unlink(missing_ok=True)
            for path in self._folder.iterdir():
                if path.name != LOCK_NAME and not path.is_dir():
                    path.unlink(missing_ok=True)
            self._write_seal({}, {})
            engine(lambda: open_index(self._folder))

    def _healing(self, work: Callable[[], T]) -> T:
        """Return `work()`; where the index turns out damaged, mend it, then rebuild it from the store, and try again.

        Raise `StorageBroken` if it is still damaged after that, `StorageFull` if the disk is full.
        """
        last_damage: IndexDamaged | None = None
        for mend in (None, self._heal, *[self._reset] * REBUILDS):
            try:
                if mend:
                    mend()
                    self._catch_up()
                return work()
            except IndexDamaged as damage:
                if is_full(self._folder):
                    raise no_room(self._folder) from damage
                log.info("Mending the lexical index: %s", damage)
                last_damage = damage
        raise StorageBroken(
            f"The index in {self._folder} cannot be rebuilt: {last_damage}. Check that disk."
        ) from last_damage

    def _reset(self) -> None:
        with self._lock, writer_lock(self._folder, LOCK_S):
            self._start_over()

    def _heal(self) -> None:
        """Start over unless the index can be loaded, because another process rebuilt it meanwhile."""
        with self._lock, writer_lock(self._folder, LOCK_S), writable(self._folder):
            self._snapshot = None
            try:
                snapshot = self._load()
                if snapshot.position <= self._source.last_change():
                    return  # another process was in the middle of a commit, or has rebuilt it already
            except IndexDamaged:
                pass
            self._start_over()


def _crc_of(content: Mapping[str, Any]) -> int:
    return zlib.crc32(json.dumps(content, sort_keys=True).encode())
