"""The text of a PDF, page by page, read in a process that has bounds: the parsers of PDF have none of their own."""

from __future__ import annotations

import atexit
import json
import re
import signal
import time
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, BinaryIO

from commonplace.workers.worker import Gone, Late, Program, Worker, WorkerPool

MOST_SECONDS = 300.0
"""CPU time for one file. An ordinary page takes less than a millisecond, one of forms in forms may take hours."""
MOST_MEMORY = 1024**3
"""Bytes of address space for one file, beside twice its size."""

_MOST_WORKERS = 4
_IDLE_S = 60.0
_WAITING = 20
"""The clock may show so many times the CPU time: another machine's load is no fault of a file."""
_MODULE = Path(__file__).with_name("pdf_worker.py")
_DATE = re.compile(r"(?:D:)?(\d{4})(\d\d)?(\d\d)?(\d\d)?(\d\d)?(\d\d)?(?:Z|([+-])(\d\d)(?:'?(\d\d))?)?")


@dataclass(frozen=True, slots=True)
class Pages:
    """The words of each page of a PDF, and its properties. A page without words is an empty text."""

    pages: tuple[str, ...]
    title: str = ""
    author: str = ""
    created: datetime | None = None
    broken: tuple[int, ...] = ()
    """Pages that could not be read, counted from 1."""
    unread: int = 0
    """Pages at the end that would have taken more than is allowed."""
    reason: str = ""
    """The memory or time that they would have taken."""

    @property
    def left_out(self) -> str:
        """Return what of it was not read, as part of a sentence."""
        if not self.unread:
            return ""
        read = len(self.pages)
        return f"only {read:,} of its {read + self.unread:,} pages were read: more would take {self.reason}"


class Damaged(ValueError):
    """A PDF that cannot be opened, or has a page that cannot be read where nothing is forgiven."""


class Encrypted(ValueError):
    """A PDF that needs a password."""


class TooCostly(ValueError):
    """A PDF of which no word was read within its bounds."""


def pdf_text(data: bytes) -> tuple[str, str, str]:
    """Return (text with a blank line between pages, the title the document claims, what was left out)."""
    book = _read(data)
    if book.broken:
        raise Damaged(f"page {book.broken[0]} cannot be read")
    return "\n\n".join(filter(None, book.pages)), book.title, book.left_out


def read_pdf(stream: BinaryIO) -> Pages:
    """Return a document's pages, as many as its bounds allow. A page that cannot be read is empty and named.

    Raises Damaged, Encrypted or TooCostly.
    """
    return _read(stream.read())


def _read(data: bytes) -> Pages:
    reading = _Reading()
    with _workers().lent() as worker:
        assert worker is not None  # noqa: S101 - it was waited for
        try:
            worker.ask(json.dumps([MOST_SECONDS, MOST_MEMORY]).encode(), data)
            reading.follow(worker)
        except (Gone, Late) as error:
            reading.break_off(error)
            worker.end()
    return reading.result()


@cache
def _workers() -> WorkerPool:
    workers = WorkerPool(_program, _MOST_WORKERS)
    atexit.register(workers.close)
    return workers


def _program() -> Program:
    packages = [find_spec(name) for name in ("pypdfium2", "pypdf")]  # found and not imported: 8 MB that only it needs
    return Program(_MODULE, tuple(spec.origin for spec in packages if spec and spec.origin), 2 * MOST_MEMORY, _IDLE_S)


class _Reading:
    """The answers of a worker about a document so far."""

    def __init__(self) -> None:
        self._about: dict[str, Any] = {}
        self._pages: list[str] = []
        self._broken: list[int] = []
        self._last = b""
        self._problem = ""
        self._reason = f"over {MOST_SECONDS:g} s of CPU time"

    def follow(self, worker: Worker) -> None:
        """Listen until all is said. Raise Gone or Late, as the worker does."""
        deadline = time.monotonic() + MOST_SECONDS * _WAITING
        while not self._last:
            mark, block = worker.answer(deadline)
            if mark == b"#":
                self._about = json.loads(block)
            elif mark == b"=":
                self._pages.append(block.decode("utf-8"))
            elif mark == b"!":
                self._pages.append("")
                self._broken.append(len(self._pages))
            else:
                self._last, self._problem = mark, block.decode("utf-8")

    def break_off(self, error: Gone | Late) -> None:
        if isinstance(error, Gone) and error.signal != signal.SIGXCPU:
            self._reason = f"over {MOST_MEMORY / 1024**3:g} GiB of memory, or break the reader"

    def result(self) -> Pages:
        if self._last == b"*":
            raise Encrypted("it is encrypted")
        if self._last == b"?":
            raise Damaged(self._problem)
        unread = self._about.get("pages", 1) - len(self._pages)
        if unread and not any(self._pages):
            raise TooCostly(f"none of its words could be read: they would take {self._reason}")
        about = self._about
        created = _created(about["created"])
        pages, broken = tuple(self._pages), tuple(self._broken)
        return Pages(pages, about["title"], about["author"], created, broken, unread, self._reason)


def _created(text: str) -> datetime | None:
    """Return the time of "D:20221105120000+01'00'", of which all but the year may be missing."""
    match = _DATE.match(text)
    if match is None:
        return None
    numbers = (int(part or usual) for part, usual in zip(match.groups()[:6], "011000", strict=True))
    year, month, day, hour, minute, second = numbers
    away = timedelta(hours=int(match[8] or 0), minutes=int(match[9] or 0))
    with suppress(ValueError):  # a date in a format of its own
        zone = timezone(-away if match[7] == "-" else away) if away else UTC
        return datetime(year, month, day, hour, minute, second, tzinfo=zone)
    return None
