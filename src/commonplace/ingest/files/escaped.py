"""Words of another format in Markdown that says the same: what would be read as markup is escaped."""

from __future__ import annotations

import re

from commonplace.text.structure import LONGEST_MARKUP, plain

_INLINE = re.compile(r"[\\`*_\[\]<&]")
_CLOSING = re.compile(r"(?:(?<=\s)|\A)(?=#+\Z)")
_START = re.compile(
    r"\d{1,9}(?=[.)](?:\s|\Z))"
    r"|(?=#{1,6}(?:\s|\Z)|[-+*](?:\s|\Z)|>|```|~~~|[-=*_+]+\s*\Z)"
    r"|(?=<(?:[!?]|(?i:pre|script|style|textarea)(?:[\s>]|\Z)))"  # a blank line ends the others
)


def heading(level: int, words: str) -> str:
    """Return a heading of these words on one line: `Vec<T>` and `__init__` are no markup where they come from."""
    if plain(words) != words and len(escaped := _INLINE.sub(r"\\\g<0>", words)) <= LONGEST_MARKUP:
        words = escaped
    words = _CLOSING.sub(r"\\", words)  # marks at the end would close the heading
    return f"{'#' * level} {words}"


def line(words: str) -> str:
    """Return a line of plain text: it begins no heading, list, quote, fence or script, and underlines nothing."""
    bare = words.lstrip()
    start = _START.match(bare)
    return f"{words[: len(words) - len(bare)]}{start[0]}\\{bare[start.end() :]}" if start else words
