"""The text of a PDF, page by page, where the `media` extra is installed."""

from __future__ import annotations

import io
import logging
from datetime import datetime
from typing import BinaryIO

from commonplace.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Pages:
    """The words of each page, and what the document says of itself. A page without words is an empty text."""

    pages: tuple[str, ...]
    title: str = ""
    author: str = ""
    created: datetime | None = None
    broken: tuple[int, ...] = ()
    """Pages that could not be read, counted from 1."""


class Encrypted(ValueError):
    """A PDF that needs a password."""


def pdf_text(data: bytes) -> tuple[str, str]:
    """(text with a blank line between pages, the title the document claims)."""
    book = read_pdf(io.BytesIO(data), forgiving=False)
    return "\n\n".join(filter(None, book.pages)), book.title


def read_pdf(stream: BinaryIO, *, forgiving: bool = True) -> Pages:
    """A document's pages. A page that cannot be read is empty and named, or raises where nothing is forgiven."""
    from pypdf import PdfReader

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # what it cannot read it says by raising
    book = PdfReader(stream)
    if book.is_encrypted and not book.decrypt(""):
        raise Encrypted("it is encrypted")
    pages, broken = [], []
    for number, page in enumerate(book.pages, start=1):
        try:
            pages.append(page.extract_text().strip())
        except Exception:  # a parser of other people's files fails in every way there is
            if not forgiving:
                raise
            pages.append("")
            broken.append(number)
    about = book.metadata
    if about is None:
        return Pages(tuple(pages), broken=tuple(broken))
    return Pages(tuple(pages), about.title or "", about.author or "", _created(about), tuple(broken))


def _created(about: object) -> datetime | None:
    try:
        found = getattr(about, "creation_date", None)
    except ValueError:  # a date in a format of its own
        return None
    return found if isinstance(found, datetime) else None
