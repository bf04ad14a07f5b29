"""The input and output of every reader: a file, remarks about it, and pieces that each hold one record."""

from __future__ import annotations

import codecs
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time, timedelta
from math import isfinite
from pathlib import PurePosixPath
from typing import IO, TYPE_CHECKING, Any, BinaryIO, Literal

from commonplace.errors import Command, CommonplaceError, InvalidInput
from commonplace.model import JSON
from commonplace.text.normal import whole_characters

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer as Buffer

Record = dict[str, Any]
"""An item as the JSON Lines interchange writes it."""

DEEPEST = 60
LARGEST_BITS = 64
LOOKED_THROUGH = 8 << 20
MOST_TAGS, LONGEST_TAG = 64, 100

_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
ImportName = Literal["everything", "jsonl", "memory"]
"""The name that `commonplace import` has for the one that stores it."""
_WRITERS = {"everything": "export everything", "jsonl": "export", "memory": "export memory"}
_OF_AN_ITEM = frozenset({"kind", "parent", "key", "body", "fields"})
_OF_AN_ENTRY = frozenset({"thread_id", "text_content"})
_RECORDS = ("note", "media", "conversation", "character", "prompt")
_MS_FROM = 100_000_000_000
"""As seconds this is the year 5138; a larger number counts milliseconds."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NUMBER = re.compile(r"-?\d{9,19}(?:\.\d{1,9})?")
_STAMP = re.compile(
    r"(\d{4})-(\d{1,2})-(\d{1,2})\s*@?\s*(?:(\d{1,2})\s?h\s?(\d{1,2})\s?m(?:\s?(\d{1,2})\s?s)?(?:\s?(\d{1,3})\s?ms)?)?"
)
_WORDS = re.compile(
    r"([A-Za-z]{3,9})\.? (\d{1,2}),? (\d{4}),?(?: (?:at )?(\d{1,2}):(\d{2})(?::(\d{2}))?\s?([AaPp][Mm])?)?"
)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


class Unreadable(CommonplaceError):
    """A file, or a line of it, that cannot be imported. The sentence says why."""

    code, status, exit_code = "unreadable", 400, 1

    def __init__(self, reason: str, line: int | None = None) -> None:
        super().__init__(reason)
        self.line = line


class Unknown(Unreadable):
    """A file that is not of the kind asked for."""

    def __init__(self) -> None:
        super().__init__("this is of no known format")


@dataclass(frozen=True, slots=True)
class Problem:
    """A sentence about a file: a warning, or why it failed."""

    path: str
    reason: str
    line: int | None = None

    def __post_init__(self) -> None:
        if not self.reason.endswith((".", "!", "?")):
            object.__setattr__(self, "reason", f"{self.reason}.")

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.reason}" if self.line else f"{self.path}: {self.reason}"

    def shown(self) -> dict[str, JSON]:
        return {"path": self.path, **({"line": self.line} if self.line else {}), "reason": self.reason}


@dataclass(frozen=True, slots=True)
class Piece:
    """A record, and the line it begins at where that is known."""

    record: Record
    line: int | None = None


@dataclass(slots=True)
class Remarks:
    """The warnings of a reader while it reads."""

    path: str
    warnings: list[Problem] = field(default_factory=list)
    skipped: int = 0

    def warn(self, reason: str, line: int | None = None) -> None:
        self.warnings.append(Problem(self.path, reason, line))

    def skip(self, reason: str, line: int | None = None) -> None:
        """Leave out something that would have been an item of its own."""
        self.warn(reason, line)
        self.skipped += 1


@dataclass(frozen=True, slots=True)
class ImportFile:
    """A file to import, on disk or inside an archive. It can be opened as often as a reader likes."""

    path: str
    """As its owner would name it."""
    identity: str
    """The same wherever the command was run: what a later import finds its items by."""
    size: int
    open: Callable[[], BinaryIO]
    beside: frozenset[str] = frozenset()
    """The names of the files in the same folder."""

    @property
    def name(self) -> str:
        return PurePosixPath(self.identity).name

    @property
    def stem(self) -> str:
        return PurePosixPath(self.name).stem

    @property
    def ending(self) -> str:
        return PurePosixPath(self.name).suffix.lower()

    def read(self) -> bytes:
        with self.open() as stream:
            return stream.read()

    def head(self, size: int = 4096) -> bytes:
        with self.open() as stream:
            return stream.read(size)

    def seekable(self) -> BinaryIO:
        """Return a stream for readers that jump about: in memory if small, as jumps in an archive are slow."""
        return self.open() if self.size > LOOKED_THROUGH else io.BytesIO(self.read())

    def text(self, remarks: Remarks) -> str:
        return decoded(self.read(), remarks)

    def watched(self, tell: Callable[[int], None]) -> ImportFile:
        """Return the same file, which tells how many bytes of it were read."""
        return replace(self, open=lambda: io.BufferedReader(_Watched(self.open(), tell), 1 << 18))


class Relay(io.RawIOBase):
    """A stream over another stream's bytes, for who has to do with how they are read."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return self._stream.seek(offset, whence)

    def tell(self) -> int:
        return self._stream.tell()

    def readinto(self, buffer: Buffer) -> int:
        view = memoryview(buffer).cast("B")
        data = self._next(len(view))
        view[: len(data)] = data
        return len(data)

    def _next(self, size: int) -> bytes:
        return self._stream.read(size)

    def close(self) -> None:
        self._stream.close()
        super().close()


class _Watched(Relay):
    def __init__(self, stream: BinaryIO, tell: Callable[[int], None]) -> None:
        super().__init__(stream)
        self._tell = tell

    def _next(self, size: int) -> bytes:
        data = super()._next(size)
        self._tell(self.tell())
        return data


Reader = Callable[[ImportFile, Remarks], Iterator[Piece]]


def decoded(data: bytes, remarks: Remarks) -> str:
    """Return the text of bytes in UTF-8, UTF-16 with its mark, else Windows-1252 with a warning.

    A NUL makes it no text.
    """
    text = _decoded(data, remarks)
    if "\0" in text:
        raise Unknown
    return text


def _decoded(data: bytes, remarks: Remarks) -> str:
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            text = data[len(mark) :].decode(encoding, errors="replace")
            if _REPLACEMENT in text:
                remarks.warn("some bytes are no text and became U+FFFD")
            return text
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        if b"\0" in data:
            raise Unknown from None
        remarks.warn("this is not UTF-8 and was read as Windows-1252")
        return data.decode("cp1252", errors="replace")


def in_utf8(source: ImportFile, remarks: Remarks) -> ImportFile:
    """Return a file as UTF-8, like any other text. What is too large to look through stays as it is."""
    if source.ending not in (".json", ".jsonl") or source.size > LOOKED_THROUGH:
        return source
    data = source.read()
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        data = decoded(data, remarks).encode("utf-8", "replace")
        return replace(source, open=lambda: io.BytesIO(data))
    return source


def storable(record: Record) -> tuple[Record, bytes]:
    """Return a record the store can take, and its bytes. Lone surrogates and NULs, which it cannot, become U+FFFD."""
    try:
        line = json.dumps(record, ensure_ascii=False, allow_nan=False)
        if "\\u0000" not in line:
            return record, line.encode("utf-8")
    except (ValueError, RecursionError):
        pass
    plain_record: Record = plain_json(record)
    return plain_record, json.dumps(plain_record, ensure_ascii=False).encode("utf-8")


def plain_json(value: Any, depth: int = 0) -> JSON:
    """Return a value with only what JSON and the store can hold."""
    if depth > DEEPEST:
        raise Unreadable(f"it is nested more than {DEEPEST} deep")
    if isinstance(value, str):
        return whole_characters(value).replace("\0", _REPLACEMENT)
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int):
        return value if value.bit_length() <= LARGEST_BITS else hex(value)
    if isinstance(value, float):
        return value if isfinite(value) else str(value)
    if isinstance(value, Mapping):
        return {plain_json(str(name)): plain_json(member, depth + 1) for name, member in value.items()}
    if isinstance(value, list | tuple):
        return [plain_json(member, depth + 1) for member in value]
    raise Unreadable(f"it holds a {type(value).__name__}, which JSON cannot")


def tags_of(value: Any, remarks: Remarks, separators: str = ",") -> list[str]:
    """Return the tags of a list or of one text: trimmed, without a leading `#`, each in its first spelling alone."""
    if isinstance(value, str):
        for separator in separators[1:]:
            value = value.replace(separator, separators[0])
        value = value.split(separators[0])
    values = value if isinstance(value, list | tuple) else [] if value is None else [value]
    tag_by_fold: dict[str, str] = {}
    for one in values:
        if not isinstance(one, str | int | float):
            remarks.warn("a tag that is no text was left out")
            continue
        tag = " ".join(str(one).strip().removeprefix("#").split())
        if len(tag) > LONGEST_TAG:
            remarks.warn(f'the tag "{tag[:20]}…" has more than {LONGEST_TAG} characters and was left out')
        elif tag:
            tag_by_fold.setdefault(tag.casefold(), tag)
    if len(tag_by_fold) > MOST_TAGS:
        remarks.warn(f"only the first {MOST_TAGS} of {len(tag_by_fold)} tags were kept")
    return list(tag_by_fold.values())[:MOST_TAGS]


def text_or_none(value: Any) -> str | None:
    """Return a scalar as text; None for what is none, or blank."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    text = str(value).strip()
    return text or None


def without_empty(record: Mapping[str, Any]) -> Record:
    """Return a record without the members that say nothing."""
    return {name: value for name, value in record.items() if value not in (None, "", [], {})}


def first_of(record: Mapping[str, Any], names: Iterable[str]) -> Any:
    """Return the first of several names that is there, whatever it says; else None."""
    return next((record[name] for name in names if record.get(name) is not None), None)


def refuse_others(record: JSON, own: ImportName) -> None:
    """Raise InvalidInput, in half a sentence, where a line is no record, or surely one of another kind."""
    if not isinstance(record, dict):
        raise InvalidInput("it is no JSON object")
    command = _import_name(record)
    if command not in (None, own):
        writer, reader = Command(_WRITERS[command]), Command(f"import {command}")
        raise InvalidInput("`", writer, "` wrote it, and `", reader, "` stores it")


def _import_name(record: dict[str, JSON]) -> ImportName | None:
    if record.keys() >= _OF_AN_ITEM:
        return "everything"
    if record.keys() >= _OF_AN_ENTRY:
        return "memory"
    return "jsonl" if record.get("kind") in _RECORDS and "id" in record and "key" not in record else None


def moment(value: Any) -> str | None:
    """Return the moment as ISO 8601 in UTC with a `Z`, or None when the value is none. Naive means UTC."""
    try:
        when = _moment(value)
        return when.astimezone(UTC).isoformat().replace("+00:00", "Z") if when else None
    except (ValueError, OverflowError):  # a 13th month, the year 0, a zone that leaves the calendar
        return None


def _moment(value: Any) -> datetime | None:
    if isinstance(value, datetime):
        return value if value.tzinfo else value.replace(tzinfo=UTC)
    if isinstance(value, date):
        return datetime.combine(value, time(), UTC)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _unix(value)
    if not isinstance(value, str):
        return None
    text = value.strip()
    if _NUMBER.fullmatch(text):
        return _unix(float(text))
    try:
        return _moment(datetime.fromisoformat(text))
    except ValueError:
        return _stamped(text) or _worded(text)


def _unix(value: float) -> datetime | None:
    if not isfinite(value):
        return None
    return _EPOCH + timedelta(seconds=value / 1000 if abs(value) >= _MS_FROM else value)


def _stamped(text: str) -> datetime | None:
    """Return the moment of `2023-6-12 @19h 28m 3s 456ms`, with or without the clock; None for any other text."""
    match = _STAMP.fullmatch(text)
    if match is None:
        return None
    year, month, day, hour, minute, second, ms = (int(part or 0) for part in match.groups())
    return datetime(year, month, day, hour, minute, second, ms * 1000, UTC)


def _worded(text: str) -> datetime | None:
    """Return the moment of `June 12, 2023 7:28pm`, the clock of 12 or of 24 hours; None for any other text."""
    match = _WORDS.fullmatch(" ".join(text.split()))
    month = match[1][:3].lower() if match else ""
    if match is None or month not in _MONTHS:
        return None
    hour = int(match[4] or 0)
    if match[7]:
        hour = hour % 12 + (12 if match[7].lower() == "pm" else 0)
    parts = int(match[3]), _MONTHS.index(month) + 1, int(match[2]), hour, int(match[5] or 0), int(match[6] or 0)
    return datetime(*parts, tzinfo=UTC)
