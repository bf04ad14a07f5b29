"""Documents as media: PDF, EPUB, Word, web pages, Markdown and plain text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from commonplace.ingest.files.charset import mark_of, page_encoding
from commonplace.ingest.files.docx import read_docx
from commonplace.ingest.files.epub import read_epub
from commonplace.ingest.files.html import html_article
from commonplace.ingest.files.pdf import Damaged, Encrypted, Pages, TooCostly, read_pdf
from commonplace.ingest.imports.dates import moment
from commonplace.ingest.imports.front import part
from commonplace.ingest.imports.notes import LONGEST_TITLE, first_heading, front_record
from commonplace.ingest.imports.source import (
    ImportFile,
    Piece,
    Record,
    Remarks,
    Unreadable,
    decoded,
    text_or_none,
    without_empty,
)
from commonplace.ingest.prepare import RULES
from commonplace.text.chunk import chunk
from commonplace.text.structure import blocks, plain

_NO_TEXT = (
    "there is no text in it, so there is nothing to find; if it holds scanned pages, import a text made from them"
)


def read_document_pdf(source: ImportFile, remarks: Remarks) -> Iterator[Piece]:
    """Yield a PDF. Its pages bound its passages."""
    try:
        with source.seekable() as stream:
            book = read_pdf(stream)
    except Encrypted:
        raise Unreadable("it is encrypted; save a copy without a password and import that") from None
    except TooCostly as error:
        raise Unreadable(str(error)) from None
    except Damaged as error:
        raise Unreadable(f"it is a damaged PDF ({_said(error)})") from None
    for number in book.broken:
        remarks.warn(f"page {number} cannot be read and was left out")
    if book.left_out:
        remarks.warn(book.left_out)
    body, chunks = _paged(book)
    about = {"author": book.author, "created_at": moment(book.created), "chunks": chunks}
    yield Piece(_record(source, "pdf", body, book.title, about))


def read_document_epub(source: ImportFile, remarks: Remarks) -> Iterator[Piece]:
    try:
        with source.seekable() as stream:
            book = read_epub(stream)
    except ValueError as error:
        raise Unreadable(str(error)) from None
    about = {"author": book.author, "language": book.language, "created_at": moment(book.date)}
    yield Piece(_record(source, "epub", book.text, book.title, about))


def read_document_docx(source: ImportFile, remarks: Remarks) -> Iterator[Piece]:
    try:
        with source.seekable() as stream:
            document = read_docx(stream)
    except ValueError as error:
        raise Unreadable(str(error)) from None
    times = {"created_at": moment(document.created), "updated_at": moment(document.modified)}
    about = {"author": document.author, "language": document.language, **times}
    yield Piece(_record(source, "docx", document.text, document.title, about))


def read_document_html(source: ImportFile, remarks: Remarks) -> Iterator[Piece]:
    page = html_article(_page_source(source.read(), remarks))
    about = {"author": page.author, "language": page.language, "created_at": moment(page.published)}
    url = page.url if page.url.startswith(("http://", "https://")) else ""
    yield Piece(_record(source, "html", page.text, page.title, {"url": url, **about}))


def _page_source(data: bytes, remarks: Remarks) -> str:
    encoding = page_encoding(data)
    if encoding in ("", "utf-8-sig") or mark_of(data):
        return decoded(data, remarks)  # as any other text
    text = data.decode(encoding, errors="replace")
    if "\N{REPLACEMENT CHARACTER}" in text:
        remarks.warn(f"some bytes are no {encoding} and became U+FFFD")
    return text


def read_document_markdown(source: ImportFile, remarks: Remarks) -> Iterator[Piece]:
    parted = part(source.text(remarks), remarks)
    record = front_record(parted.fields, remarks)
    metadata = record.get("metadata", {})
    for name in ("url", "author", "language"):
        if value := text_or_none(metadata.get(name)):
            record[name] = value
            del metadata[name]
    yield Piece(_record(source, "markdown", parted.body, record.pop("title", ""), record))


def read_document_text(source: ImportFile, remarks: Remarks) -> Iterator[Piece]:
    yield Piece(_record(source, "txt", source.text(remarks), "", {}, heading=False))


def _record(
    source: ImportFile, media_type: str, body: str, title: str, more: Mapping[str, Any], *, heading: bool = True
) -> Record:
    """Return a document. Its title is its own, else its first heading, else the stem of its file."""
    if not body.strip():
        raise Unreadable(_NO_TEXT)
    title = " ".join(title.split()) or (_any_heading(body) if heading else "") or source.stem
    record = {"kind": "media", "title": title[:LONGEST_TITLE], "media_type": media_type, "body": body, **more}
    return without_empty(record)


def _any_heading(body: str) -> str:
    first = first_heading(body)
    if first or "#" not in body:
        return first
    return next((plain(block.source) for block in blocks(body) if block.kind == "heading" and block.source), "")


def _paged(book: Pages) -> tuple[str, list[Record]]:
    """Return pages with a blank line between, and passages of which none spans two."""
    texts: list[str] = []
    chunks: list[Record] = []
    at = 0
    for number, page in enumerate(book.pages, start=1):
        if not page:
            continue
        spans = chunk(page, "text", RULES)
        chunks += [{"start": at + span.char_start, "end": at + span.char_end, "page": number} for span in spans]
        texts.append(page)
        at += len(page) + 2
    return "\n\n".join(texts), chunks


def _said(error: Exception) -> str:
    return " ".join(str(error).split())[:100] or type(error).__name__
