"""In which encoding a web page is: its mark's, UTF-8 where it is that, else the one it says, as browsers mean it."""

from __future__ import annotations

import codecs
import re

_HEAD = 4096
"""Bytes in which a page says its encoding."""
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
    "x-sjis": "cp932", "windows-31j": "cp932", "windows-874": "cp874", "x-gbk": "gb18030",
}  # fmt: skip
"""What browsers read where a page names the smaller encoding, as most do whose characters are of the larger."""
_SEVEN_BITS = ("iso2022_jp", "hz")
"""Encodings whose bytes are all ASCII, which UTF-8 takes for its own."""


def mark_of(data: bytes) -> str:
    """The encoding whose mark a text begins with."""
    return next((encoding for mark, encoding in _MARKS if data.startswith(mark)), "")


def page_encoding(data: bytes) -> str:
    """The encoding of a page, or nothing where it is not UTF-8 and says none that is known."""
    if encoding := mark_of(data) or _wide(data):
        return encoding
    declared = _declared(data)
    if declared.startswith(_SEVEN_BITS):
        return declared
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return declared
    return "utf-8-sig"


def _wide(data: bytes) -> str:
    """UTF-16 without a mark: every other byte of its tags is a NUL."""
    head = data[:_HEAD]
    more = head[1::2].count(0) - head[::2].count(0)
    if abs(more) <= len(head) // 8:
        return ""
    return "utf-16-le" if more > 0 else "utf-16-be"


def _declared(data: bytes) -> str:
    found = _DECLARED.search(data[:_HEAD])
    if found is None:
        return ""
    label = (found[1] or found[2]).decode("ascii", "replace").lower()
    try:
        name = codecs.lookup(_MEANT.get(label, label)).name
        b"".decode(name)  # not all that Python knows give text
    except LookupError:
        return ""
    return "" if name.startswith(("utf-16", "utf-32")) else _MEANT.get(name, name)  # this was not said in UTF-16
