"""Character cards in images: in PNG text chunks, and in the EXIF and XMP of WebP. Only the texts are read."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Mapping

from commonplace.ingest.files.tags import BadXml, read_xml
from commonplace.ingest.imports.import_file import Remarks, Unreadable

PNG = b"\x89PNG\r\n\x1a\n"
LARGEST_TEXT = 32 * 1024 * 1024
"""Bytes that all texts of an image may unpack to: many times any real card, far less than a bomb."""
CARD_NAMES = ("ccv3", "chara")
"""The newer first."""

_EXIF_IFD, _USER_COMMENT, _DESCRIPTION, _XP_COMMENT = 0x8769, 0x9286, 0x010E, 0x9C9C
_CODES = {b"ASCII\0\0\0": "utf-8", b"UNICODE\0": "utf-16-le", b"\0" * 8: "utf-8"}
_MOST_TAGS = 1000


def is_webp(data: bytes) -> bool:
    return data[:4] == b"RIFF" and data[8:12] == b"WEBP"


def png_texts(data: bytes, remarks: Remarks) -> list[tuple[str, str]]:
    """Return the (keyword, text) of the chunks that may hold a card. A damaged chunk is left out with a warning."""
    texts: list[tuple[str, str]] = []
    room = LARGEST_TEXT
    for kind, body, whole in _png_chunks(data, remarks):
        if kind not in (b"tEXt", b"zTXt", b"iTXt"):
            continue
        keyword, zero, rest = body.partition(b"\0")
        name = keyword.decode("latin-1").lower()
        if name not in CARD_NAMES:
            continue
        try:
            if not zero:
                raise ValueError("it has no end of its keyword")
            text = _text_of(kind, rest, room)
        except (ValueError, zlib.error) as error:
            remarks.warn(f'the PNG chunk "{name}" is broken: {error}')
            continue
        room -= len(text)
        texts.append((name, text))
        if not whole:
            remarks.warn(f'the checksum of the PNG chunk "{name}" is wrong; it was read all the same')
    return texts


def _png_chunks(data: bytes, remarks: Remarks) -> Iterator[tuple[bytes, bytes, bool]]:
    """Yield the (type, bytes, whether its checksum is right) of every chunk that is there in full."""
    view, at = memoryview(data), len(PNG)
    while at + 12 <= len(data):
        length, kind = struct.unpack(">I4s", view[at : at + 8])
        end = at + 8 + length
        if end + 4 > len(data):
            remarks.warn("the PNG ends in the middle of a chunk")
            return
        body = bytes(view[at + 8 : end]) if kind[1:] == b"EXt" or kind in (b"tEXt", b"zTXt", b"iTXt") else b""
        right = not body or zlib.crc32(view[at + 4 : end]) == struct.unpack(">I", view[end : end + 4])[0]
        yield kind, body, right
        if kind == b"IEND":
            return
        at = end + 4


def _text_of(kind: bytes, rest: bytes, most: int) -> str:
    if kind == b"tEXt":
        return rest.decode("latin-1")
    if kind == b"zTXt":
        return _unpacked(rest[1:], most).decode("latin-1")
    if len(rest) < 2:
        raise ValueError("it is too short")
    packed, text = rest[0], rest[2:].split(b"\0", 2)
    if len(text) < 3:
        raise ValueError("it is too short")
    return (_unpacked(text[2], most) if packed else text[2]).decode("utf-8")


def _unpacked(data: bytes, most: int) -> bytes:
    """Return the bytes that zlib packed, unless there are more than of any card."""
    inflater = zlib.decompressobj()
    text = inflater.decompress(data, max(1, most))  # nothing at all would mean no limit
    if inflater.unconsumed_tail or most < 1:
        raise ValueError(f"what is packed unpacks to more than {LARGEST_TEXT:,} bytes")
    if not inflater.eof:
        raise ValueError("it ends too early")
    return text


def webp_texts(data: bytes) -> list[tuple[str, str]]:
    """Return the (place, text) of everything in EXIF and XMP that may be a card."""
    found_texts: list[tuple[str, str]] = []
    at, room = 12, LARGEST_TEXT
    while at + 8 <= len(data):
        kind, length = struct.unpack("<4sI", data[at : at + 8])
        body = data[at + 8 : at + 8 + length]
        if kind == b"EXIF":
            texts = _exif_texts(body.removeprefix(b"Exif\0\0"), room)
            room -= sum(len(text) for _, text in texts)
            found_texts += texts
        elif kind == b"XMP ":
            found_texts += _xmp_texts(body)
        at += 8 + length + length % 2
    return sorted(found_texts, key=lambda text: CARD_NAMES.index(text[0]) if text[0] in CARD_NAMES else len(CARD_NAMES))


def _exif_texts(data: bytes, most: int) -> list[tuple[str, str]]:
    order = {b"II": "<", b"MM": ">"}.get(data[:2])
    if order is None or len(data) < 8:
        return []
    texts: list[tuple[str, str]] = []
    places, visited = [int(struct.unpack(f"{order}I", data[4:8])[0])], set[int]()
    while places and len(visited) < 8:
        place = places.pop()
        if place in visited:
            continue
        visited.add(place)
        for tag, value in _exif_tags(data, place, order):
            if tag == _EXIF_IFD and len(value) == 4:
                places.append(int(struct.unpack(f"{order}I", value)[0]))
            elif tag in (_USER_COMMENT, _DESCRIPTION, _XP_COMMENT):
                most -= len(value)  # any number of them may point at the same bytes
                if most < 0:
                    raise Unreadable(f"the texts of its EXIF have more than {LARGEST_TEXT:,} bytes")
                texts.append(("exif", _exif_text(tag, value, order)))
    return texts


def _exif_tags(data: bytes, place: int, order: str) -> Iterator[tuple[int, bytes]]:
    if place + 2 > len(data):
        return
    (count,) = struct.unpack(f"{order}H", data[place : place + 2])
    sizes = {1: 1, 2: 1, 3: 2, 4: 4, 7: 1}
    for number in range(min(count, _MOST_TAGS)):
        entry = data[place + 2 + 12 * number : place + 14 + 12 * number]
        if len(entry) < 12:
            return
        tag, kind, many = struct.unpack(f"{order}HHI", entry[:8])
        size = sizes.get(kind, 0) * many
        if size <= 4:
            yield tag, entry[8 : 8 + size]
        else:
            (at,) = struct.unpack(f"{order}I", entry[8:])
            yield tag, data[at : at + size]


def _exif_text(tag: int, value: bytes, order: str) -> str:
    encoding = "utf-8"
    if tag == _XP_COMMENT:
        encoding = "utf-16-le"
    elif tag == _USER_COMMENT and value[:8] in _CODES:
        encoding, value = _CODES[value[:8]], value[8:]
        if encoding.startswith("utf-16") and order == ">":
            encoding = "utf-16-be"
    return value.decode(encoding, errors="replace").strip("\0 ")


def _xmp_texts(data: bytes) -> list[tuple[str, str]]:
    texts: list[tuple[str, str]] = []
    names: list[str] = []
    words: list[str] = []

    def start(name: str, attributes: Mapping[str, str]) -> None:
        words.clear()
        names.append(name)
        texts.extend((key.lower(), value) for key, value in attributes.items())

    def end(name: str) -> None:
        if words:
            texts.append(
                (next((one.lower() for one in names[::-1] if one.lower() in CARD_NAMES), "xmp"), "".join(words))
            )
        words.clear()
        names.pop()

    try:
        read_xml(data.strip(b"\0"), start, end, words.append)
    except BadXml as error:
        raise Unreadable(f"its XMP cannot be read: {error}") from None
    return [(name, text.strip()) for name, text in texts if text.strip()]
