"""The text of a PDF, page by page, where the `media` extra is installed."""

from __future__ import annotations

import io
import logging
import time
from datetime import datetime
from typing import BinaryIO

from commonplace.lazy_dataclass import dataclass

MOST_SECONDS = 300.0
"""CPU time for one file. An ordinary page takes some 10 ms, one of forms in forms may take hours."""


@dataclass(frozen=True, slots=True)
class Pages:
    """The words of each page, and what the document says of itself. A page without words is an empty text."""

    pages: tuple[str, ...]
    title: str = ""
    author: str = ""
    created: datetime | None = None
    broken: tuple[int, ...] = ()
    """Pages that could not be read, counted from 1."""
    unread: int = 0
    """Pages at the end for which there was no time."""

    @property
    def left_out(self) -> str:
        """What of it was not read, as part of a sentence."""
        if not self.unread:
            return ""
        read = len(self.pages)
        return f"only {read:,} of its {read + self.unread:,} pages were read: more would take over {_bound()}"


class Encrypted(ValueError):
    """A PDF that needs a password."""


class TooSlow(ValueError):
    """A PDF of which no word was read in time."""


class _OutOfTime(BaseException):
    """No Exception: pypdf goes on after one of those in a form."""


def pdf_text(data: bytes) -> tuple[str, str, str]:
    """(text with a blank line between pages, the title the document claims, what was left out)."""
    book = read_pdf(io.BytesIO(data), forgiving=False)
    return "\n\n".join(filter(None, book.pages)), book.title, book.left_out


def read_pdf(stream: BinaryIO, *, forgiving: bool = True) -> Pages:
    """A document's pages, as many as there is time for.

    A page that cannot be read is empty and named, or raises where nothing is forgiven.
    """
    from pypdf import PdfReader

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # what it cannot read it says by raising
    deadline = time.thread_time() + MOST_SECONDS

    def look(*_: object) -> None:
        """Called before each operation of a page, also inside of its forms."""
        if time.thread_time() > deadline:
            raise _OutOfTime

    book = PdfReader(stream)
    if book.is_encrypted and not book.decrypt(""):
        raise Encrypted("it is encrypted")
    pages, broken = [], []
    for number, page in enumerate(book.pages, start=1):
        try:
            look()
            pages.append(page.extract_text(visitor_operand_before=look).strip())
        except _OutOfTime:
            break
        except Exception:  # a parser of other people's files fails in every way there is
            if not forgiving:
                raise
            pages.append("")
            broken.append(number)
    unread = len(book.pages) - len(pages)
    if unread and not any(pages):
        raise TooSlow(f"none of its words could be read within {_bound()}")
    about = book.metadata
    if about is None:
        return Pages(tuple(pages), broken=tuple(broken), unread=unread)
    return Pages(tuple(pages), about.title or "", about.author or "", _created(about), tuple(broken), unread)


def _bound() -> str:
    return f"{MOST_SECONDS:g} s of CPU time"


def _created(about: object) -> datetime | None:
    try:
        found = getattr(about, "creation_date", None)
    except ValueError:  # a date in a format of its own
        return None
    return found if isinstance(found, datetime) else None
