"""JSON Lines into the library: a bad line fails alone."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from tempfile import SpooledTemporaryFile
from typing import IO

from commonplace.batches import batches
from commonplace.errors import InvalidInput, said_by
from commonplace.ingest.imports.import_file import Problem, Record, Unreadable, refuse_others, storable
from commonplace.ingest.imports.import_run import BATCH_BYTES, BATCH_FILES, REFUSED, ImportOptions, Put, Summary, kept
from commonplace.store.base import Store

Line = tuple[int, bytes]
"""A line and its number."""


def import_lines(
    store: Store,
    put: Put,
    lines: Iterable[bytes],
    path: str,
    options: ImportOptions = ImportOptions(),
    most: int = 1 << 30,
) -> Summary:
    """Import the lines of a file, each of at most so many bytes, and report them in their order.

    Conversations go in last: the characters that they name may come after them.
    """
    run = _LineImport(store, put, path, most)
    with kept(store, run.summary, options), SpooledTemporaryFile(BATCH_BYTES) as later:
        run.put(run.at_once(lines, later))
        run.put(run.waiting(later))
        run.in_order()
    return run.summary


class _LineImport:
    """One import of one file."""

    def __init__(self, store: Store, put: Put, path: str, most: int) -> None:
        self.summary = Summary("jsonl")
        self._store, self._put, self._path, self._most = store, put, path, most
        self._waiting: list[int] = []
        self._done: dict[int, dict[str, str]] = {}

    def at_once(self, lines: Iterable[bytes], later: IO[bytes]) -> Iterator[Line]:
        """Yield the lines that need not wait. The others go where they are kept, so that memory stays small."""
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            if not self.summary.found:
                self._refuse_others(line, number)
            self.summary.found += 1
            if self._is_conversation(line):
                self._waiting.append(number)
                later.write(line.rstrip(b"\n") + b"\n")
            else:
                yield number, line

    def waiting(self, later: IO[bytes]) -> Iterator[Line]:
        later.seek(0)
        return zip(self._waiting, later, strict=True)

    def put(self, lines: Iterator[Line]) -> None:
        for batch in batches(lines, lambda line: len(line[1]), most=BATCH_FILES, most_size=BATCH_BYTES):
            with self._store.transaction():
                self._put_batch(batch)

    def in_order(self) -> None:
        self.summary.items = [item for _, item in sorted(self._done.items(), key=lambda done: done[0])]
        for problems in (self.summary.warnings, self.summary.errors):
            problems.sort(key=lambda problem: problem.line or 0)

    def _put_batch(self, batch: Sequence[Line]) -> None:
        for number, line in batch:
            try:
                result = self._put(self._parsed(line), None)
            except REFUSED as error:
                self.summary.errors.append(Problem(self._path, str(error), number))
                continue
            self.summary.warnings += [Problem(self._path, reason, number) for reason in result.warnings]
            self._done[number] = {"uri": result.uri, "status": result.status, "path": self._path}

    def _refuse_others(self, line: bytes, number: int) -> None:
        """Refuse a file that another export wrote: what its lines have would be taken for something else."""
        try:
            with suppress(Unreadable):
                refuse_others(self._parsed(line), "jsonl")
        except InvalidInput as error:
            raise InvalidInput(f"{self._path}:{number}: ", said_by(error), ". Nothing was imported.") from None

    def _is_conversation(self, line: bytes) -> bool:
        with suppress(Unreadable):
            return b"conversation" in line and self._parsed(line).get("kind") == "conversation"
        return False

    def _parsed(self, line: bytes) -> Record:
        if len(line) > self._most:
            raise Unreadable(f"this line has more than {self._most:,} bytes")
        try:
            record = json.loads(line.decode("utf-8-sig"))
        except UnicodeDecodeError:
            raise Unreadable("this line is not UTF-8") from None
        except (ValueError, RecursionError) as error:
            raise Unreadable(f"this line is no JSON: {getattr(error, 'msg', 'it cannot be read')}") from None
        if not isinstance(record, dict):
            raise Unreadable("this line is no JSON object")
        return storable(record)[0]
