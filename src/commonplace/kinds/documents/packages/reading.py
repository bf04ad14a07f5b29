"""Turn the bytes of a package's document into its text."""

from __future__ import annotations

import codecs
from dataclasses import replace
from pathlib import PurePosixPath

from commonplace.ingest.files.read import EMPTY, FileText, Skipped, read_text
from commonplace.kinds.documents.packages.package_paths import EntryRefused, LeftOut
from commonplace.text.outline import outline_of

BLANK = "The file has nothing but white space."
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def document_text(data: bytes, name: str) -> FileText:
    """Return the text of a file, whose name tells its format. A NUL byte makes it binary, except in UTF-16 with a BOM.

    The title is empty where it would only repeat the name: a document is not found by its name. Raise LeftOut for a
    file of white space, EntryRefused for one that cannot be read as text.
    """
    if b"\0" in data and not data.startswith(_UTF_16):
        raise EntryRefused("The file is binary: it has NUL bytes.")
    try:
        text = read_text(data, name)
    except Skipped as skipped:
        if str(skipped) == EMPTY:
            raise LeftOut(BLANK) from None
        raise EntryRefused(f"The file cannot be read as text ({skipped}).") from None
    if text.title == PurePosixPath(name).stem and not outline_of(text.body, text.format).title:
        return replace(text, title="")
    return text
