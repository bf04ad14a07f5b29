"""What a terminal is shown: every character, but for those that it would obey."""

from __future__ import annotations

import io
import re
from typing import TextIO

_OBEYED = r"\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"
_PAINTED = rf"(\x1b\[(?:1|2|36|1;31)m[^\r{_OBEYED}]*\x1b\[0m)"
_SAID = re.compile(rf"{_PAINTED}|[{_OBEYED}]|\r(?!\n)")


def harmless(text: str) -> str:
    r"""A text whose control characters are shown as JSON writes them, such as `\u001b`. Colours of ours stay."""
    return _SAID.sub(lambda found: found[1] or f"\\u{ord(found[0]):04x}", text)


class Terminal(io.TextIOWrapper):
    """A terminal that takes no orders from documents: theirs could move the cursor, or give the window a title."""

    def write(self, text: str, /) -> int:
        return super().write(harmless(text))


def guarded(stream: TextIO) -> TextIO:
    """A stream that is a terminal, as one that shows what it is told and does not obey it; any other as it is."""
    if not (isinstance(stream, io.TextIOWrapper) and stream.isatty()):
        return stream
    return Terminal(stream.buffer, encoding=stream.encoding, errors=stream.errors, line_buffering=True)
