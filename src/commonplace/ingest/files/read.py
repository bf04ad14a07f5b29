"""From the bytes of a file to its text: one reader per format, found by the ending of the file's name.

Markdown, plain text and code are kept as they are, to the character. Other formats are converted, and what is stored,
quoted and counted in lines is the converted text. To teach a format, put a `Reader` into `READERS`.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import PurePosixPath
from typing import Any

from commonplace.ingest.files.charset import guessed_encoding, mark_of, page_encoding, wide_encoding
from commonplace.ingest.files.endings import PLAIN
from commonplace.ingest.prepare import RULES
from commonplace.text.chunk import LONGEST_PATH
from commonplace.text.code import can_parse
from commonplace.text.markup import org_title, rst_title
from commonplace.text.structure import title_of
from commonplace.text.told_language import language_version

log = logging.getLogger(__name__)

BINARY, EMPTY, DAMAGED, TOO_SLOW = "BINARY", "EMPTY", "DAMAGED", "TOO_SLOW"
LOOKED_AT = 8192
"""A NUL among so many first bytes makes a file binary."""
CHARSET = 1
"""Raise it when bytes that were no text would become some."""

_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_TICKS = re.compile(r"^[ \t]*(`{3,})", re.MULTILINE)


class Skipped(Exception):
    """A file that is not taken. Its message is the code to report."""


@dataclass(frozen=True, slots=True)
class FileText:
    """A file's text, its title and its format."""

    body: str
    title: str
    format: str
    warnings: int = 0
    """Bytes, or runs of them, that were no text and became U+FFFD."""
    left_out: str = ""
    """The part of the file that was not read, as part of a sentence."""


@dataclass(frozen=True, slots=True)
class Reader:
    """A converter from files of a kind to text.

    `convert` gets the bytes and gives (body, a title for want of a heading) and, where it is not all, what it left out.
    """

    format: str
    version: int = 1
    """Raise it when the same bytes would become another text, or other passages: files are then read again."""
    convert: Callable[[bytes], tuple[str, ...]] | None = None
    properties: int = 0
    """Not 0 where files of folders are read for their front matter and tags; raise it when these would be others."""


@cache
def folder_stamp_of(reader: Reader, is_doubtful: bool = False) -> str:
    """Return the stamp of a file in a folder, of which more is read than its text.

    `is_doubtful`: what was no text in it may be some, once more encodings are known.
    """
    properties = f" properties-{reader.properties}" if reader.properties else ""
    return f"{stamp_of(reader)}{properties}{f' charset-{CHARSET}' if is_doubtful else ''}"


@cache
def stamp_of(reader: Reader) -> str:
    """Return a stamp of a reader.

    Files read under another one are read again: by other rules, or with a missing parser.
    """
    parsed = "+" if can_parse(reader.format) else ""
    return f"{reader.format}-{reader.version}{parsed} {RULES.version} {language_version()}"


def _html(data: bytes) -> tuple[str, str]:
    from commonplace.ingest.files.html import html_article

    page = html_article(data.decode(page_encoding(data) or guessed_encoding(data) or "utf-8", errors="replace"))
    return page.text, page.title


def _notebook(data: bytes) -> tuple[str, str]:
    return notebook_text(decode(data)[0]), ""


def _pdf(data: bytes) -> tuple[str, str, str]:
    from commonplace.ingest.files.pdf import TooCostly, pdf_text

    try:
        return pdf_text(data)
    except TooCostly as error:
        raise Skipped(TOO_SLOW) from error


def _epub(data: bytes) -> tuple[str, str]:
    from commonplace.ingest.files.epub import epub_text

    return epub_text(data)


def _docx(data: bytes) -> tuple[str, str]:
    from commonplace.ingest.files.docx import docx_text

    return docx_text(data)


_MARKDOWN = Reader("markdown", 2, properties=1)
_TEXT, _HTML = Reader("text"), Reader("markdown", 4, _html)
_TYPESCRIPT, _JAVASCRIPT, _C = Reader("typescript", 3), Reader("javascript", 3), Reader("c", 2)
READERS: dict[str, Reader] = {
    ".md": _MARKDOWN, ".markdown": _MARKDOWN, ".mdx": _MARKDOWN, ".txt": Reader("markdown", 2),
    ".rst": Reader("rst", 2), ".org": Reader("org"),
    ".html": _HTML, ".htm": _HTML, ".xhtml": _HTML,
    ".ipynb": Reader("markdown", 3, _notebook),
    ".pdf": Reader("text", 2, _pdf),
    ".epub": Reader("markdown", 4, _epub), ".docx": Reader("markdown", 3, _docx),
    ".py": Reader("python"), ".pyi": Reader("python"),
    ".ts": _TYPESCRIPT, ".mts": _TYPESCRIPT, ".cts": _TYPESCRIPT, ".tsx": Reader("tsx", 3),
    ".js": _JAVASCRIPT, ".mjs": _JAVASCRIPT, ".cjs": _JAVASCRIPT, ".jsx": _JAVASCRIPT,
    ".go": Reader("go", 2), ".rs": Reader("rust"), ".java": Reader("java"), ".c": _C, ".h": _C,
    **{f".{ending}": _TEXT for ending in PLAIN.split()},
}  # fmt: skip


def reader_of(path: str) -> Reader:
    """Return the reader of a file. One whose ending nobody knows is plain text."""
    name = path[path.rfind("/") + 1 :]
    dot = name.rfind(".")
    return READERS.get(name[dot:].lower(), _TEXT) if dot > 0 else _TEXT


def read_text(data: bytes, path: str) -> FileText:
    """Return the text of a file's bytes. Raise Skipped with the reason where there is none."""
    reader = reader_of(path)
    if reader.convert is None:
        if is_binary(data):
            raise Skipped(BINARY)
        body, warnings = decode(data)
        title = left_out = ""
    else:
        body, title, left_out, warnings = _converted(reader.convert, data)
    if not body or body.isspace():
        raise Skipped(EMPTY)
    title = _title(body, reader.format, title) or PurePosixPath(path).stem
    return FileText(body, title[:LONGEST_PATH], reader.format, warnings, left_out)


def no_text(places: int) -> str:
    """Return the sentence about a file with so many places that were no text."""
    return f"{'1 place is' if places == 1 else f'{places} places are'} no UTF-8 and became U+FFFD"


def is_binary(data: bytes) -> bool:
    return b"\0" in data[:LOOKED_AT] and not (mark_of(data) or wide_encoding(data))


def decode(data: bytes) -> tuple[str, int]:
    """Return bytes as text without its mark, and how many places were no text. Line endings stay."""
    encoding = mark_of(data) or wide_encoding(data)
    written = 0
    if not encoding:
        try:
            return _storable_body(data.decode("utf-8-sig"), 0)
        except UnicodeDecodeError:
            encoding = guessed_encoding(data) or "utf-8-sig"
            written = data.count(_REPLACEMENT.encode()) if encoding == "utf-8-sig" else 0
    body = data.decode(encoding, errors="replace")
    return _storable_body(body, body.count(_REPLACEMENT) - written)


def _storable_body(body: str, warnings: int) -> tuple[str, int]:
    """Return a text without NULs, which the store takes none of, and its warnings with them."""
    return (body.replace("\0", _REPLACEMENT), warnings + body.count("\0")) if "\0" in body else (body, warnings)


def _converted(convert: Callable[[bytes], tuple[str, ...]], data: bytes) -> tuple[str, str, str, int]:
    try:
        body, title, *left_out = convert(data)
    except Skipped:
        raise
    except Exception as error:  # parsers of other people's formats fail in every way there is
        log.debug("A file could not be converted", exc_info=True)
        raise Skipped(DAMAGED) from error
    warnings = body.count("\0")
    if _REPLACEMENT in body and not _is_utf8(data):  # else it is what the file says
        warnings += body.count(_REPLACEMENT)
    return _storable(body), " ".join(_storable(title).split()), "".join(left_out), warnings


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _storable(text: str) -> str:
    """Return a text without NULs and lone surrogates.

    Converters make them from escapes such as `\ud800`, and no file holds them.
    """
    return text.encode("utf-8", "replace").decode("utf-8").replace("\0", _REPLACEMENT)


def _title(body: str, format: str, fallback: str) -> str:
    if format == "org":
        return org_title(body) or fallback
    if format == "rst":
        return rst_title(body) or fallback
    return title_of(body, format, fallback)


def notebook_text(source: str) -> str:
    """Return the cells in order, a blank line between. Raise ValueError for what is no notebook."""
    book = json.loads(source)
    if not isinstance(book, dict):
        raise ValueError("a notebook is a JSON object")
    cells = book.get("cells")
    if cells is None:  # the third format kept them on sheets
        cells = [cell for sheet in book.get("worksheets", []) for cell in sheet.get("cells", [])]
    language = _language(book.get("metadata") or {})
    return "\n\n".join(text for cell in cells if (text := _cell(cell, language))) + "\n"


def _language(metadata: dict[str, Any]) -> str:
    for name in ("language_info", "kernelspec"):
        about = metadata.get(name) or {}
        name_of_language = about.get("name") if name == "language_info" else about.get("language")
        if isinstance(name_of_language, str) and name_of_language.strip():
            return name_of_language.split()[0]
    return "python"


def _cell(cell: dict[str, Any], language: str) -> str:
    source = cell.get("source", cell.get("input")) or ""  # null where a program had nothing to write
    text = ("".join(source) if isinstance(source, list) else str(source)).strip("\n")
    kind = cell.get("cell_type")
    if not text.strip():
        return ""
    if kind == "heading":
        return f"{'#' * max(1, min(6, int(cell.get('level', 1))))} {text}"
    if kind == "markdown":
        return text
    longest = max((len(ticks) for ticks in _TICKS.findall(text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language if kind == 'code' else ''}\n{text}\n{fence}"
