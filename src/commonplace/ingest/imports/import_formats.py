"""The reader of a file: told by what is in it, then by how its name ends, unless a format is forced."""

from __future__ import annotations

import codecs
import zipfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from commonplace.errors import InvalidInput
from commonplace.ingest.imports import chat_files, document_files, prompt_files
from commonplace.ingest.imports.card_images import PNG, is_webp
from commonplace.ingest.imports.cards import read_card
from commonplace.ingest.imports.chat_files import read_chatgpt
from commonplace.ingest.imports.document_files import read_note
from commonplace.ingest.imports.import_file import ImportFile, Problem, Reader, Unreadable
from commonplace.ingest.imports.import_inputs import is_archive as is_archive
from commonplace.ingest.imports.json_stream import shape_of
from commonplace.ingest.imports.transcripts import (
    AUDIO,
    VIDEO,
    is_whisper,
    looks_like_srt,
    read_srt,
    read_vtt,
    read_whisper,
)

FORMATS = (
    "markdown", "text", "srt", "vtt", "whisper", "pdf", "epub", "docx", "html", "chatgpt", "claude", "sillytavern",
    "pairs", "messages", "card", "json", "csv",
)  # fmt: skip
_MARKDOWN = {".md": "markdown", ".markdown": "markdown"}
_ENDINGS_OF_MEDIA = {
    ".srt": "srt", ".vtt": "vtt", ".json": "whisper", ".pdf": "pdf", ".epub": "epub", ".docx": "docx",
    ".html": "html", ".htm": "html", ".xhtml": "html", ".txt": "text", **_MARKDOWN,
}  # fmt: skip
_KIND = "chats"
_NAMED = 5
"""Files without any text of a chat that are named one by one; an export may hold thousands of pictures."""


@dataclass(frozen=True, slots=True)
class Kind:
    """The formats that `import` takes of a kind."""

    noun: str
    takes: str
    readers: Mapping[str, Reader]
    endings: Mapping[str, str]
    tell: Callable[[ImportFile, bytes], str]
    """The format of a source by its first bytes, or nothing."""


def choose(kind: str, source: ImportFile, forced: str | None = None) -> Reader:
    """Return the reader of a source. Raise Unreadable with what the kind takes."""
    about = KINDS[kind]
    if forced:
        return about.readers[forced]
    head = source.head()
    format = about.tell(source, head) or about.endings.get(source.ending, "")
    if not format or format not in about.readers:
        raise not_this(kind)
    return about.readers[format]


def not_this(kind: str) -> Unreadable:
    about = KINDS[kind]
    return Unreadable(f"this is not {about.noun}; commonplace import {kind} takes {about.takes}")


def check_format(kind: str, forced: str | None) -> None:
    """Raise InvalidInput for a forced format that is not one of the kind's own."""
    readers = KINDS[kind].readers
    if forced and forced not in readers:
        raise InvalidInput(f"import {kind} has no format {forced}. It has: {', '.join(readers)}.", argument="format")


def is_known(kind: str, source: ImportFile) -> bool:
    """Return whether a file found in a folder or archive is looked at."""
    return source.ending in KINDS[kind].endings


def is_recording(source: ImportFile) -> bool:
    return source.ending in AUDIO or source.ending in VIDEO


def is_export(name: str) -> bool:
    """Return whether exports of chats keep the conversations in a file of this name."""
    stem, dot, ending = name.lower().rpartition(".")
    return dot != "" and ending == "json" and stem.rstrip("0123456789-_") == "conversations"


def _nothing(source: ImportFile, head: bytes) -> str:
    return ""


def _media_format(source: ImportFile, head: bytes) -> str:
    if b"%PDF-" in head[:1024]:
        return "pdf"
    if head.startswith(b"PK"):
        return _zipped_format(source)
    text = _start(head)
    if text.startswith("WEBVTT"):
        return "vtt"
    if looks_like_srt(text):
        return "srt"
    opening = text.lstrip().lower()
    if opening.startswith(("<!doctype html", "<html")):
        return "html"
    if source.ending == ".json" or (opening[:1] in ("{", "[") and source.ending not in _ENDINGS_OF_MEDIA):
        return "whisper" if is_whisper(shape_of(source)) else "unknown"
    return ""


def _zipped_format(source: ImportFile) -> str:
    """Return the kind of document that a ZIP is."""
    try:
        with source.open() as stream, zipfile.ZipFile(stream) as archive:
            names = set(archive.namelist())
    except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError):
        return ""
    if "META-INF/container.xml" in names:
        return "epub"
    return "docx" if "word/document.xml" in names else ""


def _chat_format(source: ImportFile, head: bytes) -> str:
    opening = _start(head).lstrip()[:1]
    if opening not in ("{", "["):
        return "unknown"
    shape = shape_of(source)
    return chat_files.format_of(shape) or "unknown"


def _card_format(source: ImportFile, head: bytes) -> str:
    return "card" if head.startswith(PNG) or is_webp(head) else ""


def _prompt_format(source: ImportFile, head: bytes) -> str:
    opening = _start(head).lstrip()[:1]
    if opening in ("{", "[") and source.ending != ".csv":
        shape = shape_of(source)
        if shape.type:
            return "json" if prompt_files.is_prompt(shape.names) or source.ending == ".json" else "unknown"
    return ""


def _start(head: bytes) -> str:
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return head.decode("utf-16", errors="ignore")
    return head.decode("utf-8-sig", errors="replace")


KINDS: Mapping[str, Kind] = {
    "notes": Kind(
        "a note",
        ".md, .markdown and .txt files",
        {"markdown": read_note, "text": read_note},
        {**_MARKDOWN, ".txt": "text"},
        _nothing,
    ),
    "media": Kind(
        "a transcript or document",
        ".srt, .vtt, Whisper .json, .pdf, .epub, .docx, .html, .md and .txt files",
        {
            "srt": read_srt, "vtt": read_vtt, "whisper": read_whisper, "pdf": document_files.read_document_pdf,
            "epub": document_files.read_document_epub, "docx": document_files.read_document_docx,
            "html": document_files.read_document_html, "markdown": document_files.read_document_markdown,
            "text": document_files.read_document_text,
        },
        _ENDINGS_OF_MEDIA,
        _media_format,
    ),
    "chats": Kind(
        "a chat",
        "exports of ChatGPT and Claude (.json or .zip), SillyTavern .jsonl, and pair or message lists (.json)",
        {
            "chatgpt": read_chatgpt, "claude": chat_files.read_claude, "sillytavern": chat_files.read_sillytavern,
            "pairs": chat_files.read_pairs, "messages": chat_files.read_messages,
        },
        {".json": "unknown", ".jsonl": "unknown"},
        _chat_format,
    ),
    "characters": Kind(
        "a character card",
        "cards as .png, .webp, .charx, .json and .md files",
        {"card": read_card, "json": read_card, "markdown": read_card},
        dict.fromkeys((".png", ".webp", ".charx", ".json", *_MARKDOWN), "card"),
        _card_format,
    ),
    "prompts": Kind(
        "a prompt",
        ".json, .csv and .md files",
        {
            "json": prompt_files.read_prompts_json, "csv": prompt_files.read_prompts_csv,
            "markdown": prompt_files.read_prompt_markdown,
        },
        {".json": "json", ".csv": "csv", **_MARKDOWN},
        _prompt_format,
    ),
}  # fmt: skip


def within_exports(sources: Sequence[ImportFile]) -> set[str]:
    """Return the identities of the files that lie in the folder of an export, or below it, and are not the export."""
    folders = {str(PurePosixPath(source.identity).parent) for source in sources if is_export(source.name)}
    if not folders:
        return set()
    return {
        source.identity
        for source in sources
        if not is_export(source.name) and any(str(above) in folders for above in PurePosixPath(source.identity).parents)
    }


def recognized(sources: Sequence[ImportFile], problems: list[Problem]) -> Iterator[ImportFile]:
    """Yield those that hold chats, told by their content. Why the others are left out is added to `problems`."""
    files_by_folder: dict[str, list[ImportFile]] = defaultdict(list)
    for source in sources:
        try:
            choose(_KIND, source)
        except Unreadable as error:
            if source.ending in KINDS[_KIND].endings:
                problems.append(Problem(source.path, f"{error}, so it was left out"))
            else:
                files_by_folder[str(PurePosixPath(source.path).parent)].append(source)
            continue
        yield source
    for folder, files in files_by_folder.items():
        problems.append(Problem(folder, _said(files)))


def _said(files: Sequence[ImportFile]) -> str:
    names = ", ".join(source.name for source in files[:_NAMED])
    if len(files) > _NAMED:
        return f"{names} and {len(files) - _NAMED} more hold no chats and were left out"
    return f"{names} {'holds no chats and was' if len(files) == 1 else 'hold no chats and were'} left out"
