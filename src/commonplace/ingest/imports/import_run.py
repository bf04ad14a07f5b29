"""An import from paths to outcome: every file goes in whole or not at all, and a second time changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from commonplace.errors import AlreadyExists, CommonplaceError, InvalidInput, NotFound, TooLarge
from commonplace.ingest.imports.import_file import (
    ImportFile,
    Piece,
    Problem,
    Record,
    Remarks,
    Unknown,
    Unreadable,
    in_utf8,
    storable,
    tags_of,
)
from commonplace.ingest.imports.import_formats import (
    check_format,
    choose,
    is_known,
    is_recording,
    not_this,
    recognized,
    within_exports,
)
from commonplace.ingest.imports.import_inputs import (
    ArchiveLimits,
    archive_sources,
    file_source,
    folder_sources,
    is_archive,
    is_shared,
    named,
    remembered,
    said_of,
    was_imported,
)
from commonplace.model import JSON, Item, fingerprint
from commonplace.store.base import Store
from commonplace.store.import_sources import ImportSource, ImportSources
from commonplace.store.items import Items
from commonplace.store.lasting_names import LastingNames

READ_AHEAD_BYTES = 1 << 20
"""Files of at most this size are read before a transaction begins; of larger ones, what holds many items streams."""
BATCH_FILES, BATCH_BYTES = 200, 8 << 20
"""Files and bytes in one transaction: enough to be fast, little enough to let others in."""

REFUSED = (InvalidInput, Unreadable, AlreadyExists, NotFound, TooLarge)
"""Errors of the input. Any other is an error of the library and ends the import."""
_RECORDING = "audio and video come in through their transcript: import its .srt, .vtt or Whisper .json file instead"
_MANY_IN_ONE = ("chats", "prompts")

KIB = 1024
Progress = Callable[[int, int], None]
"""Told how many KiB of how many are in."""


class Done(Protocol):
    """The result of storing a record."""

    @property
    def uri(self) -> str: ...
    @property
    def status(self) -> str: ...
    @property
    def item_id(self) -> int: ...
    @property
    def version(self) -> int: ...
    @property
    def warnings(self) -> tuple[str, ...]: ...


Put = Callable[[Record, Item | None], Done]
"""Stores a record, in place of an item where one is given."""


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """The options of a command line, for everything it imports."""

    format: str | None = None
    tags: tuple[str, ...] = ()
    fields: Mapping[str, str] = field(default_factory=dict)
    """Values of every record, whatever its file says: `media_type`, `title`, `url` …"""
    dry_run: bool = False
    strict: bool = False


@dataclass(slots=True)
class Summary:
    """The results of an import."""

    kind: str
    items: list[dict[str, str]] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)
    errors: list[Problem] = field(default_factory=list)
    skipped: int = 0
    found: int = 0
    """Files, or lines, that there were to read."""
    missing: int = 0
    """Paths that are not there at all."""

    def count(self, *statuses: str) -> int:
        return sum(item["status"] in statuses for item in self.items)

    def line(self) -> str:
        counts = f"created {self.count('created')}, updated {self.count('updated', 'deleted')}"
        return f"{counts}, unchanged {self.count('unchanged')}, skipped {self.skipped}, failed {len(self.errors)}"

    def shown(self) -> dict[str, JSON]:
        counts = {"created": self.count("created"), "updated": self.count("updated", "deleted")}
        counts |= {"unchanged": self.count("unchanged"), "skipped": self.skipped, "failed": len(self.errors)}
        problems = {"warnings": [one.shown() for one in self.warnings], "errors": [one.shown() for one in self.errors]}
        return {"kind": self.kind, **counts, "items": self.items, **problems}

    @property
    def exit_code(self) -> int:
        if not self.found and not self.skipped and self.missing == len(self.errors):
            return 2  # nothing to read
        return 1 if self.errors else 0


class _Undo(Exception):
    """An end of the transaction: nothing is to be kept."""


def import_paths(
    store: Store,
    put: Put,
    kind: str,
    paths: Sequence[Path],
    limits: ArchiveLimits,
    options: ImportOptions = ImportOptions(),
    progress: Progress | None = None,
) -> Summary:
    """Import files, folders and archives, and return what was done.

    Raise InvalidInput for options that exclude each other.
    """
    check_format(kind, options.format)
    summary = Summary(kind)
    with ExitStack() as closing:
        sources = list(_sources(kind, paths, limits, options, closing, summary))
        if len(sources) > 1 and {"title", "url"} & set(options.fields):
            raise InvalidInput("--title and --url say what one file is, but more than one was found. Name one file.")
        summary.found = len(sources)
        run = _Import(store, put, kind, limits, options, summary)
        with kept(store, summary, options):
            run.all(sources, progress)
    return summary


@contextmanager
def kept(store: Store, summary: Summary, options: ImportOptions) -> Iterator[None]:
    """Keep everything inside, or nothing where it was only tried or, where asked for, when anything failed."""
    if not options.dry_run and not options.strict:
        yield
        return
    try:
        with store.transaction():
            yield
            if options.dry_run or summary.errors:
                raise _Undo
    except _Undo:
        if options.strict and summary.errors:
            summary.items.clear()


def _sources(
    kind: str,
    paths: Sequence[Path],
    limits: ArchiveLimits,
    options: ImportOptions,
    closing: ExitStack,
    summary: Summary,
) -> Iterator[ImportFile]:
    """Yield the files to read, each once."""
    identities: set[str] = set()
    failed = summary.errors.append
    for path in paths:
        try:
            if path.is_dir():
                inside = folder_sources(path, lambda error: failed(Problem(named(error.filename), said_of(error))))
                files = _wanted(kind, list(inside), options, summary)
            elif is_archive(path):
                files = _wanted(kind, archive_sources(path, limits, closing), options, summary)
            else:
                files = [file_source(path)]
        except Unreadable as error:
            summary.missing += not path.exists()
            failed(Problem(named(path), str(error)))
            continue
        for one in files:
            if one.identity not in identities:
                identities.add(one.identity)
                yield one


def _wanted(kind: str, sources: Sequence[ImportFile], options: ImportOptions, summary: Summary) -> list[ImportFile]:
    """Return the found files that are read. What an export of chats holds beside them is named."""
    beside = within_exports(sources) if kind == "chats" else set()
    others = [one for one in sources if one.identity in beside]
    chats = {one.identity for one in recognized(others, summary.warnings)}
    summary.skipped += len(others) - len(chats)
    return [
        one
        for one in sources
        if (one.identity in chats if one.identity in beside else _is_wanted(kind, one, options, summary))
    ]


def _is_wanted(kind: str, source: ImportFile, options: ImportOptions, summary: Summary) -> bool:
    """Return whether a file that was found, not named, is read. One of no known ending is left out in silence."""
    if kind == "media" and is_recording(source):
        if not _has_transcript(source):
            summary.skipped += 1
            summary.warnings.append(Problem(source.path, _RECORDING))
        return False
    return is_known(kind, source) or (options.format is not None and source.ending == "")


def _has_transcript(source: ImportFile) -> bool:
    return any(f"{source.stem}{ending}" in source.beside for ending in (".srt", ".vtt", ".json"))


@dataclass(slots=True)
class _Read:
    """A file that was read, or is being read, and what there is to say about it."""

    source: ImportFile
    pieces: Iterable[Piece]
    remarks: Remarks
    positions: set[str] = field(default_factory=set)


class _Import:
    """One import of one kind."""

    def __init__(
        self, store: Store, put: Put, kind: str, limits: ArchiveLimits, options: ImportOptions, summary: Summary
    ) -> None:
        self._store, self._put, self._kind = store, put, kind
        self._limits, self._options, self._summary = limits, options, summary
        self._whence: dict[str, str] = {}  # address -> the file it came from just now

    def all(self, sources: Sequence[ImportFile], progress: Progress | None) -> None:
        batch: list[_Read] = []
        total, done = sum(source.size for source in sources) // KIB, 0
        tell = progress if progress and total >= READ_AHEAD_BYTES // KIB else None
        for number, source in enumerate(sources, start=1):
            watched = source
            if tell:
                watched = source.watched(lambda at, before=done: tell((before + at) // KIB, total))  # type: ignore[misc]
            if read := self._read(watched):
                batch.append(read)
            size = sum(one.source.size for one in batch)
            if number == len(sources) or len(batch) >= BATCH_FILES or size >= BATCH_BYTES:
                self._write(batch)
                batch = []
            done += source.size
            if tell:
                tell(done // KIB, total)

    def _read(self, source: ImportFile) -> _Read | None:
        """Return the pieces of a file. What is small, or one item, is read here, before anything is locked."""
        remarks = Remarks(source.path)
        try:
            self._limits.check(source.size)
            if self._kind == "media" and is_recording(source) and not self._options.format:
                raise Unreadable(_RECORDING)
            if _is_empty(source):
                remarks.skip("it is empty")
                self._say(remarks)
                return None
            source = in_utf8(source, remarks)
            pieces: Iterable[Piece] = choose(self._kind, source, self._options.format)(source, remarks)
            if self._kind not in _MANY_IN_ONE or source.size <= READ_AHEAD_BYTES:
                pieces = list(pieces)
        except REFUSED as error:
            self._fail(remarks, error)
            return None
        return _Read(source, pieces, remarks)

    def _write(self, batch: Sequence[_Read]) -> None:
        with self._store.transaction():
            for read in batch:
                before = len(self._summary.items)
                try:
                    with self._store.transaction():
                        for number, piece in enumerate(read.pieces):
                            self._keep(read, piece, number)
                except REFUSED as error:
                    del self._summary.items[before:]
                    self._fail(read.remarks, error)
                    continue
                self._say(read.remarks)
                self._whence |= {item["uri"]: item["path"] for item in self._summary.items[before:]}

    def _keep(self, read: _Read, piece: Piece, number: int) -> None:
        """Store a piece unless it is what it was when it last came from here."""
        record, line = storable(self._amended(piece.record, read))
        kind, position = record["kind"], _position(record, number)
        path = read.source.identity
        mark = fingerprint(line)
        repeated = position in read.positions
        read.positions.add(position)
        source = remembered(self._store, record, path, position, mark)
        there = self._store.drawer(Items).get([source.item_id], body=True) if source else []
        if source and there and source.hash == mark:
            self._note(there[0].uri, "unchanged", read.source)
            return
        if repeated:
            what, _, name = position.partition(" ")
            read.remarks.skip(f'the {what} "{name}" is there more than once; the first was kept', piece.line)
            return
        if source and not _names_itself(record) and is_shared(self._store, source):
            source, there = None, []
        target = there[0] if there and not _names_itself(record) else None
        try:
            result = self._put(self._linked(record), target)
        except REFUSED as error:
            raise Unreadable(str(error), piece.line) from None
        for warning in result.warnings:
            read.remarks.warn(warning, piece.line)
        if source and there and result.status == "updated" and there[0].version != source.version:
            read.remarks.warn(
                f"{result.uri} was changed in the library since it was imported; that change was replaced"
            )
        elif result.status == "updated" and (other := self._whence.get(result.uri)):
            read.remarks.warn(f"{result.uri} is also what {other} is; what came from there was replaced")
        elif (
            result.status == "updated"
            and not source
            and not was_imported(self._store, result.item_id, result.version - 1)
        ):
            read.remarks.warn(f"{result.uri} was in the library already; what it said was replaced")
        self._store.drawer(ImportSources).keep(ImportSource(kind, path, position, mark, result.item_id, result.version))
        self._note(result.uri, result.status, read.source)

    def _amended(self, record: Record, read: _Read) -> Record:
        """Return a record with what the command line says."""
        fields: Record = dict(self._options.fields)
        if self._options.tags:
            fields["tags"] = tags_of([*record.get("tags", []), *self._options.tags], read.remarks)
        return {**record, **fields}

    def _linked(self, record: Record) -> Record:
        """Return a conversation that names a character only where there is one of that name.

        Its metadata keeps the name.
        """
        name = record.get("character")
        if record["kind"] == "conversation" and name and not self._store.drawer(LastingNames).named("character", name):
            return {field: value for field, value in record.items() if field != "character"}
        return record

    def _note(self, uri: str, status: str, source: ImportFile) -> None:
        self._summary.items.append({"uri": uri, "status": status, "path": source.path})

    def _say(self, remarks: Remarks) -> None:
        self._summary.warnings += remarks.warnings
        self._summary.skipped += remarks.skipped

    def _fail(self, remarks: Remarks, error: CommonplaceError) -> None:
        """Note an error, with what was said before it: that may be why."""
        if isinstance(error, Unknown):
            error = not_this(self._kind)
        line = error.line if isinstance(error, Unreadable) else None
        self._summary.warnings += remarks.warnings
        self._summary.errors.append(Problem(remarks.path, str(error), line))


def _is_empty(source: ImportFile) -> bool:
    return source.size == 0 or (source.size < 4096 and not source.read().strip(b" \t\r\n\f\v\xef\xbb\xbf"))


def _names_itself(record: Record) -> bool:
    return "id" in record or record["kind"] == "prompt"


def _position(record: Record, number: int) -> str:
    """Return which piece of its file a record is: by its name where that lasts, else by its place."""
    if "id" in record:
        return f"id {record['id']}"
    return f"name {str(record['name']).casefold()}" if record["kind"] == "prompt" else str(number)
