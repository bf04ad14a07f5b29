"""Prepared documents that wait until all of them are written at once: in memory, and on disk when they are many."""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from commonplace.store.rows import FileRecord, Write

MOST_CHARS = 64_000_000
"""Characters of text that wait in memory."""


class StagedWrites:
    """A queue of writes.

    What goes to disk is in a file without a name, which the system removes however this process ends.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._waiting: list[tuple[Write, FileRecord]] = []
        self._chars = 0
        self._file: IO[bytes] | None = None
        self._spilled = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()

    def __len__(self) -> int:
        return self._spilled + len(self._waiting)

    def add(self, write: Write, record: FileRecord) -> None:
        self._waiting.append((write, record))
        self._chars += len(write.draft.body)
        if self._chars >= MOST_CHARS:
            self._spill()

    def __iter__(self) -> Iterator[tuple[Write, FileRecord]]:
        if self._file is not None:
            self._file.seek(0)
            for _ in range(self._spilled):
                yield pickle.load(self._file)  # noqa: S301 - our own file, which no other process can name
        yield from self._waiting

    def _spill(self) -> None:
        if self._file is None:
            self._file = tempfile.TemporaryFile(dir=self._folder)  # noqa: SIM115 - closed on exit; not in /tmp, which may be memory
        for waiting in self._waiting:
            pickle.dump(waiting, self._file, protocol=pickle.HIGHEST_PROTOCOL)
        self._spilled += len(self._waiting)
        self._waiting, self._chars = [], 0
