"""In which encoding a file is: its mark's, UTF-8 where it is that, the one a page says, else what its bytes look like.

Bytes are guessed at only where most of what is above ASCII is no UTF-8: a broken byte or two make it no other encoding.
"""

from __future__ import annotations

import codecs
import re
import unicodedata

_HEAD = 4096
"""Bytes in which a page says its encoding, and in which text in UTF-16 shows itself."""
_MARKS = (  # the longer first: one of UTF-32 begins like one of UTF-16
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_DECLARED = re.compile(
    rb"<meta[^>]+charset\s*=\s*[\"']?([\w.:-]+)|\A\s*<\?xml[^>]+encoding\s*=\s*[\"']([\w.:-]+)", re.IGNORECASE
)
_MEANT = {
    "ascii": "cp1252", "iso8859-1": "cp1252", "iso8859-9": "cp1254", "shift_jis": "cp932", "gb2312": "gb18030",
    "gbk": "gb18030", "euc_kr": "cp949", "big5": "big5hkscs", "tis-620": "cp874", "iso8859-11": "cp874",
    "x-sjis": "cp932", "windows-31j": "cp932", "windows-874": "cp874", "x-gbk": "gb18030", "shift_jis_2004": "cp932",
}  # fmt: skip
"""The encoding that browsers read where a page names a smaller one, as most do whose characters are of the larger."""
_USED = (
    "cp1252", "iso8859-1", "iso8859-15", "cp1250", "iso8859-2", "cp1251", "koi8-r", "koi8-u", "iso8859-5", "cp1253",
    "iso8859-7", "cp1254", "iso8859-9", "cp1255", "iso8859-8", "cp1256", "iso8859-6", "cp1257", "iso8859-13", "cp874",
    "tis-620", "cp932", "shift_jis_2004", "euc_jis_2004", "gb18030", "big5hkscs", "cp949", "euc_kr",
)  # fmt: skip
"""The encodings that files were written in before UTF-8. No others are guessed: short texts fit those of DOS, of Macs
and of mainframes as well."""
_WIDE = ("utf-16-le", "utf-16-be")
_ASCII = bytes(range(128))
_HIGH = re.compile(rb"[\x80-\xff]")
_FEW = 3
"""Bytes above ASCII that say too little to tell encodings by."""
_BEFORE = 64
"""Bytes that are looked at before the first of them: more would say that all is English."""
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_CUT = re.compile(rb"[\xe0-\xf4][\x80-\xbf]{1,2}\Z")
"""The beginning of a character in UTF-8 at the end of a file: it was cut there."""
_SEVEN_BITS = ("iso2022_jp", "hz")
"""Encodings whose bytes are all ASCII, which UTF-8 takes for its own."""


def mark_of(data: bytes) -> str:
    """Return the encoding whose mark a text begins with, or "" where it has none."""
    return next((encoding for mark, encoding in _MARKS if data.startswith(mark)), "")


def page_encoding(data: bytes) -> str:
    """Return the encoding of a page, or "" where it is not UTF-8 and says none that is known."""
    if encoding := mark_of(data) or wide_encoding(data):
        return encoding
    declared = _declared(data)
    if declared.startswith(_SEVEN_BITS):
        return declared
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return declared
    return "utf-8-sig"


def wide_encoding(data: bytes) -> str:
    """Return `utf-16-le` or `utf-16-be` where data is text in it without a mark, else ""."""
    head = data[:_HEAD]
    if b"\0" not in head:
        return ""
    name = _detected(head, (*_WIDE, "cp1252"))
    return name if name in _WIDE and _is_text(head, name) else ""


def _is_text(head: bytes, encoding: str) -> bool:
    """Return whether bytes have nothing but characters of texts in an encoding. Few tables of numbers have."""
    try:
        text = codecs.getincrementaldecoder(encoding)().decode(head)
    except UnicodeDecodeError:
        return False
    return all(mark in "\t\n\f\r" or unicodedata.category(mark) not in ("Cc", "Cn", "Co", "Cs") for mark in text)


def guessed_encoding(data: bytes) -> str:
    """Return the encoding that bytes which are no UTF-8 look like, or "" where they are UTF-8 with broken bytes."""
    if not _is_another(_CUT.sub(b"", data)):
        return ""
    high = len(data.translate(None, _ASCII))
    if high <= _FEW and 2 * high <= len(data):
        return "cp1252"
    first = _HIGH.search(data)
    name = _detected(data[max(0, first.start() - _BEFORE) if first else 0 :], _USED)
    return _MEANT.get(name, name)


def _detected(data: bytes, encodings: tuple[str, ...]) -> str:
    """Return which of these encodings bytes look like, or ""."""
    from chardet import detect  # a thirtieth of a second to load, and hardly a file needs it

    return detect(data, include_encodings=encodings, compat_names=False)["encoding"] or ""


def _is_another(data: bytes) -> bool:
    """Return whether over half of the sequences above ASCII are no UTF-8."""
    text, written = data.decode("utf-8", "replace"), data.count(_REPLACEMENT.encode())
    broken = text.count(_REPLACEMENT) - written
    return broken > len(text) - len(text.encode("ascii", "ignore")) - written - broken


def _declared(data: bytes) -> str:
    match = _DECLARED.search(data[:_HEAD])
    if match is None:
        return ""
    label = (match[1] or match[2]).decode("ascii", "replace").lower()
    try:
        name = codecs.lookup(_MEANT.get(label, label)).name
        b"".decode(name)  # not all that Python knows give text
    except LookupError:
        return ""
    return "" if name.startswith(("utf-16", "utf-32")) else _MEANT.get(name, name)  # this was not said in UTF-16
