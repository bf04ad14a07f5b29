"""Output to a terminal without the control characters that it would obey."""

from __future__ import annotations

import io
import re
from typing import TextIO

_OBEYED = r"\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"
_PAINTED = rf"(\x1b\[(?:1|2|36|1;31)m[^\r{_OBEYED}]*\x1b\[0m)"
_SAID = re.compile(rf"{_PAINTED}|[{_OBEYED}]|\r(?!\n)")


def harmless(text: str) -> str:
    r"""Return a text with control characters written as in JSON, such as `\u001b`, but for our own colors."""
    return _SAID.sub(lambda found: found[1] or f"\\u{ord(found[0]):04x}", text)


class Terminal(io.TextIOWrapper):
    """A terminal stream that shows control sequences of documents, which could move the cursor or set the title."""

    def write(self, text: str, /) -> int:
        return super().write(harmless(text))


def guarded(stream: TextIO) -> TextIO:
    """Return a terminal's stream as one that shows control sequences; any other stream as it is."""
    if not (isinstance(stream, io.TextIOWrapper) and stream.isatty()):
        return stream
    return Terminal(stream.buffer, encoding=stream.encoding, errors=stream.errors, line_buffering=True)
