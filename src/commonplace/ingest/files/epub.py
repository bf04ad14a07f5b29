"""The text of an EPUB: its chapters in the order of the spine."""

from __future__ import annotations

import io
import posixpath
from collections.abc import Mapping
from dataclasses import dataclass
from typing import BinaryIO
from urllib.parse import unquote, urlsplit
from zipfile import ZipFile

from commonplace.ingest.files.charset import page_encoding
from commonplace.ingest.files.html import html_text
from commonplace.ingest.files.tags import read_xml
from commonplace.ingest.files.zipped import BadZip, entry_bytes, opened

LARGEST_TEXT = 64 * 1024 * 1024
_FONTS = ("http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC")
_PAGES = ("application/xhtml+xml", "text/html", "application/x-dtbook+xml")


@dataclass(frozen=True, slots=True)
class Book:
    """An EPUB's text as Markdown, and its properties."""

    chapters: tuple[str, ...]
    title: str = ""
    author: str = ""
    language: str = ""
    date: str = ""

    @property
    def text(self) -> str:
        return "\n\n".join(chapter.strip("\n") for chapter in self.chapters)


def epub_text(data: bytes) -> tuple[str, str]:
    """Return the (Markdown, title) of a book."""
    book = read_epub(io.BytesIO(data))
    return book.text, book.title


def read_epub(stream: BinaryIO) -> Book:
    """Return a book's chapters. Raise ValueError for what is none, or is protected."""
    with opened(stream) as archive:
        _check_protection(archive)
        place = _package_place(archive)
        package = _package(archive, place)
        chapters, room = [], LARGEST_TEXT
        for href in package.spine:
            name = posixpath.normpath(posixpath.join(posixpath.dirname(place), unquote(urlsplit(href).path)))
            try:
                page = entry_bytes(archive, name)
            except KeyError:
                continue  # a chapter that is listed but not there
            room -= len(page)
            if room < 0:
                raise BadZip(f"its chapters unpack to more than {LARGEST_TEXT:,} bytes")
            encoding = page_encoding(page) or "utf-8"
            if text := html_text(page.decode(encoding, errors="replace"))[0].strip():
                chapters.append(text)
        about = package.about
        return Book(
            tuple(chapters), about.get("title", ""), about.get("creator", ""), about.get("language", ""),
            about.get("date", ""),
        )  # fmt: skip


class _Package:
    """The package file: the book's properties, its files, and their order."""

    def __init__(self) -> None:
        self.about: dict[str, str] = {}
        self._files: dict[str, str] = {}
        self._order: dict[str, None] = {}
        self._words: list[str] | None = None

    @property
    def spine(self) -> list[str]:
        return [self._files[name] for name in self._order if name in self._files]

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if name in ("title", "creator", "language", "date"):
            self._words = []
        elif name == "item" and attributes.get("media-type", _PAGES[0]) in _PAGES:
            self._files[attributes.get("id", "")] = attributes.get("href", "")
        elif name == "itemref":
            self._order.setdefault(attributes.get("idref", ""))

    def end(self, name: str) -> None:
        if self._words is not None and name in ("title", "creator", "language", "date"):
            self.about.setdefault(name, " ".join("".join(self._words).split()))
            self._words = None

    def text(self, words: str) -> None:
        if self._words is not None:
            self._words.append(words)


def _package(archive: ZipFile, place: str) -> _Package:
    package = _Package()
    try:
        read_xml(entry_bytes(archive, place), package.start, package.end, package.text)
    except KeyError:
        raise BadZip(f'it names "{place}", which is not there') from None
    return package


def _package_place(archive: ZipFile) -> str:
    places: list[str] = []

    def start(name: str, attributes: Mapping[str, str]) -> None:
        if name == "rootfile" and attributes.get("full-path"):
            places.append(attributes["full-path"])

    try:
        read_xml(entry_bytes(archive, "META-INF/container.xml"), start, _nothing, _nothing)
    except KeyError:
        raise BadZip("it is no EPUB: META-INF/container.xml is missing") from None
    if not places:
        raise BadZip("it is no EPUB: META-INF/container.xml names no book")
    return places[0]


def _check_protection(archive: ZipFile) -> None:
    """Raise ValueError for a book whose chapters are scrambled. Fonts may be."""
    if "META-INF/encryption.xml" not in archive.namelist():
        return
    ways: set[str] = set()

    def start(name: str, attributes: Mapping[str, str]) -> None:
        if name == "EncryptionMethod":
            ways.add(attributes.get("Algorithm", ""))

    read_xml(entry_bytes(archive, "META-INF/encryption.xml"), start, _nothing, _nothing)
    if ways - set(_FONTS):
        raise BadZip("it is protected against reading")


def _nothing(_: object) -> None:
    return None
