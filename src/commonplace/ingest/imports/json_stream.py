"""JSON that may be larger than memory: what it looks like, and its members one at a time."""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO

import ijson

from commonplace.ingest.imports.import_file import ImportFile, Remarks, Unreadable

_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_BLOCK = 1 << 18
_OPENING = b"[{"
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
DEEPEST = 500


@dataclass(frozen=True, slots=True)
class JsonShape:
    """The outline of a JSON text: the names in its object, or in the first object of its array."""

    type: str
    """`object`, `array`, or nothing for anything else."""
    names: frozenset[str] = frozenset()


def shape_of(source: ImportFile) -> JsonShape:
    """Return the shape of a JSON text. What is no JSON has none, and neither has what goes wrong before it is told."""
    names: set[str] = set()
    kind, depth, opened = "", 0, 0
    try:
        with _utf8(source) as stream:
            for event, value in ijson.basic_parse(_Shallow(stream), buf_size=_BLOCK, multiple_values=True):
                if not kind:
                    kind = {"start_map": "object", "start_array": "array"}.get(event, "")
                    opened = 1 if kind == "object" else 2
                    if not kind:
                        return JsonShape("")
                if event == "map_key" and depth == opened:
                    names.add(value)
                depth += event in ("start_map", "start_array")
                if event in ("end_map", "end_array"):
                    depth -= 1
                if depth < opened and event.startswith("end"):
                    break
    except (ijson.JSONError, ValueError, OSError, Unreadable):
        pass
    return JsonShape(kind, frozenset(names))


def items(source: ImportFile, prefix: str = "item") -> Iterator[Any]:
    """Yield the members of an array, each made when it is asked for."""
    try:
        with _utf8(source) as stream:
            yield from ijson.items(_Shallow(stream), prefix, use_float=True, buf_size=_BLOCK)
    except ijson.JSONError as error:
        raise Unreadable(f"it is no JSON: {_first_line(error)}") from None
    except (ValueError, OverflowError) as error:
        raise Unreadable(f"it is no JSON: {_first_line(error)}") from None


def whole(source: ImportFile, remarks: Remarks) -> Any:
    """Return a JSON text in one piece, for formats that are one item."""
    return parsed(source.text(remarks))


def parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise Unreadable(f"it is no JSON: {error.msg}", error.lineno) from None
    except RecursionError:
        raise Unreadable("it is nested too deeply") from None
    except ValueError as error:  # a number of more digits than Python reads
        raise Unreadable(f"it is no JSON: {_first_line(error)}") from None


def lines(source: ImportFile, remarks: Remarks) -> Iterator[tuple[int, Any]]:
    """Yield the (line number, value) of JSON Lines, one line in memory at a time."""
    with _utf8(source) as stream:
        for number, line in enumerate(stream, start=1):
            try:
                text = line.decode("utf-8")
            except UnicodeDecodeError:
                raise Unreadable("this line is not UTF-8", number) from None
            if not text.strip():
                continue
            try:
                yield number, parsed(text)
            except Unreadable as error:
                raise Unreadable(str(error), number) from None


class _Shallow:
    """A stream of JSON that ends with an error where it is nested too deep.

    ijson spells out the path of every value, so its time would grow with the square of the depth.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._depth = 0
        self._in_string = False
        self._held = b""

    def read(self, size: int) -> bytes:
        data = self._stream.read(size)
        self._look(data)
        return data

    def _look(self, data: bytes) -> None:
        data = self._held + data
        ends = len(data) - len(data.rstrip(b"\\"))
        self._held = b"\\" if ends % 2 else b""  # it escapes whatever comes next
        data = data.removesuffix(self._held).replace(b"\\\\", b"").replace(b'\\"', b"")
        parts = data.split(b'"')
        outside = b"".join(parts[self._in_string :: 2])
        self._in_string ^= len(parts) % 2 == 0
        for mark in outside.translate(None, _NO_BRACKETS):
            self._depth += 1 if mark in _OPENING else -1
            if self._depth > DEEPEST:
                raise Unreadable(f"it is nested more than {DEEPEST} deep")


@contextmanager
def _utf8(source: ImportFile) -> Iterator[BinaryIO]:
    """Yield the bytes as UTF-8 without a mark, whatever they came as."""
    with closing(source.open()) as stream:
        head = stream.read(3)
        stream.seek(3 if head == codecs.BOM_UTF8 else 0)
        if head.startswith(_UTF16):
            yield codecs.EncodedFile(stream, "utf-8", "utf-16")
        else:
            yield stream


def _first_line(error: Exception) -> str:
    return " ".join(str(error).split("\n")[0].split())[:120] or "it ends too early"
