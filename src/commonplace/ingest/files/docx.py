"""The text of a Word document as Markdown: headings, lists, tables and notes; no comments, deletions or field codes."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import BinaryIO
from zipfile import ZipFile

from commonplace.ingest.files.markdown_blocks import escaped_heading, escaped_line
from commonplace.ingest.files.tags import read_xml
from commonplace.ingest.files.zipped import BadZip, entry_bytes, opened

OLD_OFFICE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
"""The beginning of files of Word before 2007, and of the envelope of encrypted ones since."""

_HEADING = re.compile(r"heading ?([1-9])", re.IGNORECASE)
_BUILT_IN = {"Title": 1, **{f"Heading{level}": level for level in range(1, 10)}}
"""Names of the heading styles of a document that describes no styles."""
_UNSAID = frozenset({"del", "moveFrom", "instrText", "delText", "Fallback"})
"""Elements that are no longer part of the text, never were, or are there twice."""


@dataclass(frozen=True, slots=True)
class WordDocument:
    """A document's text as Markdown, and its properties."""

    text: str
    title: str = ""
    author: str = ""
    created: str = ""
    modified: str = ""
    language: str = ""


def docx_text(data: bytes) -> tuple[str, str]:
    """Return the (Markdown, title) of a document."""
    document = read_docx(io.BytesIO(data))
    return document.text, document.title


def read_docx(stream: BinaryIO) -> WordDocument:
    """Return a document. Raise ValueError for what is none, or is encrypted."""
    head = stream.read(len(OLD_OFFICE))
    stream.seek(0)
    if head == OLD_OFFICE:
        raise BadZip("it is encrypted, or of Word before 2007; save it as .docx without a password")
    with opened(stream) as archive:
        names = set(archive.namelist())
        if "word/document.xml" not in names:
            raise BadZip("it is no Word document: word/document.xml is missing")
        words = _Words(_levels(archive) if "word/styles.xml" in names else _BUILT_IN, _notes(archive, names))
        read_xml(entry_bytes(archive, "word/document.xml"), words.start, words.end, words.text)
        about = _about(archive) if "docProps/core.xml" in names else {}
    return WordDocument(
        words.markdown(), about.get("title", ""), about.get("creator", ""), about.get("created", ""),
        about.get("modified", ""), about.get("language", ""),
    )  # fmt: skip


class _Words:
    """A gatherer of paragraphs and rows. A table inside a cell becomes words of that cell.

    A footnote comes after the paragraph, list or table that it is about, an endnote at the end.
    """

    def __init__(self, levels: Mapping[str, int], notes: Mapping[tuple[str, str], str] = {}) -> None:
        self._levels = levels
        self._notes = notes
        self._labels: dict[tuple[str, str], str] = {}
        self._new_notes: list[str] = []
        self._footnotes: list[str] = []
        self._endnotes: list[str] = []
        self._blocks: list[tuple[str, str]] = []
        self._paragraph: list[str] = []
        self._level = 0
        self._item: int | None = None
        self._in_text = False
        self._unsaid = 0
        self._tables = 0
        self._table = 0
        self._cell: list[str] = []
        self._row: list[str] = []
        self._ruled = False

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if name in _UNSAID:
            self._unsaid += 1
        elif self._unsaid:
            return
        elif name == "pStyle":
            self._level = self._levels.get(attributes.get("val", ""), 0)
        elif name == "outlineLvl" and attributes.get("val", "").isdigit():
            level = int(attributes["val"]) + 1
            self._level = level if level <= 9 else 0
        elif name == "ilvl" and attributes.get("val", "").isdigit():
            self._item = min(int(attributes["val"]), 8)
        elif name == "t":
            self._in_text = True
        elif name in ("tab", "br", "cr") and not (name == "tab" and "pos" in attributes):
            self._paragraph.append("\t" if name == "tab" else "\n")
        elif name == "noBreakHyphen":
            self._paragraph.append("-")
        elif name in ("footnoteReference", "endnoteReference"):
            self._refer(name.removesuffix("Reference"), attributes.get("id", ""))
        elif name == "tbl":
            self._tables += 1
            if self._tables == 1:
                self._table += 1
                self._ruled = False

    def end(self, name: str) -> None:
        if name in _UNSAID:
            self._unsaid = max(0, self._unsaid - 1)
        elif self._unsaid:
            return
        elif name == "t":
            self._in_text = False
        elif name == "p":
            self._end_paragraph()
        elif name == "tc" and self._tables == 1:
            self._row.append(" ".join(self._cell).replace("|", "\\|"))
            self._cell = []
        elif name == "tr" and self._tables == 1:
            self._end_row()
        elif name == "tbl":
            self._tables = max(0, self._tables - 1)

    def text(self, words: str) -> None:
        if self._in_text and not self._unsaid:
            self._paragraph.append(words)

    def markdown(self) -> str:
        """Return blocks with a blank line between, but items and rows close together."""
        lines: list[str] = []
        before = ""
        for kind, block in (*self._blocks, *(("note", note) for note in self._footnotes + self._endnotes)):
            if lines and not (kind == before and kind.startswith(("item", "row"))):
                lines.append("")
            lines.append(block)
            before = kind
        return "\n".join(lines) + "\n" if lines else ""

    def _end_paragraph(self) -> None:
        words = "".join(self._paragraph).strip()
        level, item = self._level, self._item
        self._paragraph, self._level, self._item = [], 0, None
        if not words:
            return
        if self._tables:
            self._cell.append(" ".join(words.split()))
        elif level:
            self._add("heading", escaped_heading(min(level, 6), " ".join(words.split())))
        elif item is not None:
            self._add("item", f"{'  ' * item}- {' '.join(words.split())}")
        else:
            self._add("text", "\n".join(map(escaped_line, words.split("\n"))))

    def _refer(self, kind: str, number: str) -> None:
        """Mark a note; its words follow what it is about, once."""
        note = kind, number
        if note not in self._notes:
            return
        if note not in self._labels:
            prefix = "" if kind == "footnote" else "e"
            label = self._labels[note] = f"[^{prefix}{sum(known[0] == kind for known in self._labels) + 1}]"
            (self._new_notes if kind == "footnote" else self._endnotes).append(f"{label}: {self._notes[note]}")
        if not self._level:
            self._paragraph.append(self._labels[note])

    def _add(self, kind: str, block: str) -> None:
        goes_on = kind.startswith(("item", "row")) and self._blocks and self._blocks[-1][0] == kind
        if not goes_on:
            self._blocks += [("note", note) for note in self._footnotes]
            self._footnotes.clear()
        self._blocks.append((kind, block))
        self._footnotes += self._new_notes
        self._new_notes.clear()

    def _end_row(self) -> None:
        row, self._row = self._row, []
        if not any(row):
            return
        kind = f"row {self._table}"
        self._add(kind, f"| {' | '.join(row)} |")
        if not self._ruled:
            self._add(kind, f"|{' --- |' * len(row)}")
            self._ruled = True


def _notes(archive: ZipFile, names: set[str]) -> dict[tuple[str, str], str]:
    """Return the words of each footnote and endnote, each on one line, by its kind and number."""
    notes: dict[tuple[str, str], str] = {}
    words, number = _Words({}), ""

    def start(name: str, attributes: Mapping[str, str]) -> None:
        nonlocal words, number
        if name == kind:
            words, number = _Words({}), "" if "type" in attributes else attributes.get("id", "")
        else:
            words.start(name, attributes)

    def end(name: str) -> None:
        if name != kind:
            words.end(name)
        elif number and (words_of_note := " ".join(words.markdown().split())):
            notes[kind, number] = words_of_note

    for kind in ("footnote", "endnote"):
        if (part := f"word/{kind}s.xml") in names:
            read_xml(entry_bytes(archive, part), start, end, lambda text: words.text(text))
    return notes


def _levels(archive: ZipFile) -> dict[str, int]:
    """Return the levels of the styles that are headings, by the names Word gives them or by their outline level."""
    levels: dict[str, int] = {}
    style = ""

    def start(name: str, attributes: Mapping[str, str]) -> None:
        nonlocal style
        value = attributes.get("val", "")
        if name == "style":
            style = attributes.get("styleId", "")
        elif name == "name" and style:
            match = _HEADING.fullmatch(value)
            if match or value.lower() == "title":
                levels[style] = int(match[1]) if match else 1
        elif name == "outlineLvl" and style and value.isdigit() and int(value) < 9:
            levels.setdefault(style, int(value) + 1)

    read_xml(entry_bytes(archive, "word/styles.xml"), start, lambda _: None, lambda _: None)
    return levels


def _about(archive: ZipFile) -> dict[str, str]:
    words_by_name: dict[str, list[str]] = {}
    names: list[str] = []

    def text(words: str) -> None:
        if names:
            words_by_name.setdefault(names[-1], []).append(words)

    def end(name: str) -> None:
        names.pop()

    read_xml(entry_bytes(archive, "docProps/core.xml"), lambda name, _: names.append(name), end, text)
    return {name: " ".join("".join(words).split()) for name, words in words_by_name.items()}
