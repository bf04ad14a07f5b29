"""From the bytes of a document to its text, by the contract's one rule."""

from __future__ import annotations

import codecs

from commonplace.documents.packages.places import LeftOut, Refused
from commonplace.ingest.files.read import EMPTY, Skipped, Text, read_text

BLANK = "The file has nothing but white space."
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def document_text(data: bytes, name: str) -> Text:
    """The text of a file, whose name tells its format. Any NUL byte makes it binary, save in UTF-16 with its mark."""
    if b"\0" in data and not data.startswith(_UTF_16):
        raise Refused("The file is binary: it has NUL bytes.")
    try:
        return read_text(data, name)
    except Skipped as skipped:
        if str(skipped) == EMPTY:
            raise LeftOut(BLANK) from None
        raise Refused(f"The file cannot be read as text ({skipped}).") from None
