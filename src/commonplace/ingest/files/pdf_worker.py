"""The answers of a process that reads PDF files: `answers(bounds, data)`, page by page.

First `#` and what the document says of itself, as JSON; then for each page `=` and its text or `!` where it cannot be
read; last `.`, `/` where the time is over, `*` where a password is needed, or `?` and why it cannot be opened. It
imports nothing of the package, so that it starts quickly.
"""

from __future__ import annotations

import io
import json
import logging
import math
import re
import time
from collections.abc import Iterator
from typing import Any, Protocol

_HYPHEN = re.compile("-?[\x02\ufffe]\n?|\u00ad\n")
"""The signs with which pdfium, or the document, says that a line has ended inside a word."""
_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f]")
_RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]{2}")
_WORD = re.compile(r"\S+")
_TORN = 0.2
"""The part of words that are single letters from which a page is suspected of letters that stand too far apart."""
_MOST_DOUBTS = 3
"""For how many pages of a document it is asked in vain whether pypdf sees fewer single letters."""


class _Book(Protocol):
    def about(self) -> dict[str, Any]: ...
    def page(self, number: int) -> str: ...


def answers(bounds: bytes, data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the pages of a document, held to `bounds`: a JSON list of seconds of CPU time and bytes of memory."""
    seconds, memory = json.loads(bounds)
    deadline = time.process_time() + seconds
    _bound(seconds, memory + 2 * len(data))
    try:
        book = _opened(data)
        about = book.about()
    except _Encrypted:
        yield b"*", b""
        return
    except Exception as error:  # noqa: BLE001 - parsers of other people's files fail in every way there is
        yield b"?", (" ".join(str(error).split())[:200] or type(error).__name__).encode("utf-8", "replace")
        return
    yield b"#", json.dumps(about).encode("ascii")
    for number in range(about["pages"]):
        if time.process_time() > deadline:
            yield b"/", b""
            return
        try:
            text = book.page(number)
        except Exception:  # noqa: BLE001 - the same
            yield b"!", b""
        else:
            yield b"=", text.encode("utf-8", "replace")
    yield b".", b""


def _bound(seconds: float, memory: int) -> None:
    """Let the system end this process where a page takes more than is allowed, since no parser can be asked to stop."""
    try:
        import resource
    except ImportError:
        return
    for what, most in ((resource.RLIMIT_CPU, math.ceil(time.process_time() + seconds)), (resource.RLIMIT_AS, memory)):
        _, hard = resource.getrlimit(what)
        resource.setrlimit(what, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


class _Encrypted(Exception):
    pass


def _opened(data: bytes) -> _Book:
    import pypdfium2

    try:
        return _Pdfium(data)
    except pypdfium2.PdfiumError:
        return _Pypdf(data)  # which opens some that are damaged, or whose password is an empty one


class _Pdfium:
    """A reader of pages by pdfium; by pypdf where pdfium puts letters in the order they are seen in, or far apart."""

    def __init__(self, data: bytes) -> None:
        import pypdfium2

        self._data = data
        self._book = pypdfium2.PdfDocument(data)
        self._other: _Pypdf | None = None
        self._doubts = _MOST_DOUBTS

    def about(self) -> dict[str, Any]:
        metadata = self._book.get_metadata_dict()
        created = metadata.get("CreationDate", "")
        return {"pages": len(self._book), "title": metadata["Title"], "author": metadata["Author"], "created": created}

    def page(self, number: int) -> str:
        page = self._book[number]
        words = page.get_textpage()
        text = _readable(words.get_text_range())
        words.close()
        page.close()
        if _RIGHT_TO_LEFT.search(text):
            return self._other_page(number) or text
        if self._doubts and _singles(text) > _TORN:
            other = self._other_page(number)
            if _says_the_same(other, text) and _singles(other) * 2 < _singles(text):
                return other
            self._doubts -= 1  # formulas are made of single letters too
        return text

    def _other_page(self, number: int) -> str:
        try:
            self._other = self._other or _Pypdf(self._data)
            return self._other.page(number)
        except Exception:  # noqa: BLE001 - it is asked for a second opinion only
            return ""


class _Pypdf:
    def __init__(self, data: bytes) -> None:
        from pypdf import PdfReader

        logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # what it cannot read it says by raising
        self._book = PdfReader(io.BytesIO(data))
        if self._book.is_encrypted and not self._book.decrypt(""):
            raise _Encrypted

    def about(self) -> dict[str, Any]:
        metadata: dict[str, Any] = dict(self._book.metadata or {})
        title, author, created = (str(metadata.get(name) or "") for name in ("/Title", "/Author", "/CreationDate"))
        return {"pages": len(self._book.pages), "title": title, "author": author, "created": created}

    def page(self, number: int) -> str:
        return self._book.pages[number].extract_text().strip()


def _readable(text: str) -> str:
    """Return text without characters that stand for none, and words whole that the end of a line has broken."""

    def hyphen(match: re.Match[str]) -> str:
        following = text[match.end() : match.end() + 1]
        return "" if following.isalpha() and not following.isupper() else "-"  # as in Schwarz-Berg

    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return _UNPRINTABLE.sub(" ", _HYPHEN.sub(hyphen, text)).strip()


def _singles(text: str) -> float:
    """Return the part of words that are single letters."""
    words: list[str] = _WORD.findall(text)
    return sum(len(word) == 1 and word.isalpha() for word in words) / max(1, len(words))


def _says_the_same(one: str, other: str) -> bool:
    return sorted("".join(one.split())) == sorted("".join(other.split()))
