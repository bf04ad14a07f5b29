"""Notes, and documents as media: PDF, EPUB, Word, web pages, Markdown and plain text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from commonplace.ingest.files.charset import mark_of, page_encoding
from commonplace.ingest.files.docx import read_docx
from commonplace.ingest.files.epub import read_epub
from commonplace.ingest.files.html import html_article
from commonplace.ingest.files.pdf import Damaged, Encrypted, Pages, TooCostly, read_pdf
from commonplace.ingest.imports.import_file import (
    ImportFile,
    Piece,
    Record,
    Remarks,
    Unreadable,
    decoded,
    first_of,
    moment,
    tags_of,
    text_or_none,
    without_empty,
)
from commonplace.ingest.imports.markdown_fields import part
from commonplace.ingest.prepare import RULES
from commonplace.text.chunk import chunk
from commonplace.text.structure import blocks, plain

_NO_TEXT = (
    "there is no text in it, so there is nothing to find; if it holds scanned pages, import a text made from them"
)
LONGEST_TITLE = 512
ID = re.compile(r"[A-Za-z0-9._~-]{1,128}")
_TAGS = ("tags", "keywords")
_CREATED = ("created", "created_at", "date")
_UPDATED = ("updated", "updated_at", "modified")


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


def read_note(source: ImportFile, remarks: Remarks) -> Iterator[Piece]:
    """Yield the one note of a file."""
    parted = part(source.text(remarks), remarks)
    record = front_record(parted.fields, remarks)
    title = record.pop("title", None) or first_heading(parted.body) or source.stem
    note: Record = {"kind": "note", **record, "title": title[:LONGEST_TITLE], "body": parted.body}
    yield Piece(without_empty(note) | {"body": parted.body})


def front_record(fields: Mapping[str, Any], remarks: Remarks) -> Record:
    """Return the fields of front matter that every kind has: id, title, tags, times; all else is metadata."""
    metadata = dict(fields)
    record: Record = {}
    id = first_of(fields, ("id",))
    if id is not None and ID.fullmatch(str(id)):
        record["id"] = str(metadata.pop("id"))
    elif id is not None:
        remarks.warn('the "id" may hold only letters, digits and . _ ~ - (at most 128); it was kept as metadata', 1)
    if title := text_or_none(fields.get("title")):
        record["title"] = " ".join(title.split())
        del metadata["title"]
    record["tags"] = tags_of([*_listed(fields, "tags"), *_listed(fields, "keywords")], remarks)
    for name in _TAGS:
        metadata.pop(name, None)
    for field, names in (("created_at", _CREATED), ("updated_at", _UPDATED)):
        date_field = next((name for name in names if fields.get(name) is not None), None)
        if date_field is None:
            continue
        if when := moment(fields[date_field]):
            record[field] = when
            del metadata[date_field]
        else:
            remarks.warn(f'"{date_field}" is no date; it was kept as metadata', 1)
    record["metadata"] = metadata
    return without_empty(record)


def first_heading(body: str) -> str:
    """Return the words of the first heading of level 1, or ""."""
    if "# " not in body and "==" not in body:
        return ""
    titles = (plain(block.source) for block in blocks(body) if block.kind == "heading" and block.level == 1)
    return next(filter(None, titles), "")


def _listed(fields: Mapping[str, Any], name: str) -> list[Any]:
    value = fields.get(name)
    return (
        value.split(",") if isinstance(value, str) else value if isinstance(value, list) else [value] if value else []
    )
