"""Text as others may take it: characters that are whole, and Unicode's normal forms.

The forms take a time that grows with the text and not with its square. The standard library brings the marks behind a
letter in order by moving each before all that belong behind it, and the whole process waits meanwhile. A letter has a
few, in any language; a hundred thousand are there to hold others up.
"""

from __future__ import annotations

import unicodedata
from itertools import groupby
from typing import Literal
from unicodedata import combining

import regex

_FEW = 64
_MANY_MARKS = regex.compile(rf"[\p{{M}}\uff9e\uff9f]{{{_FEW},}}")  # the last two are marks where K says so

Form = Literal["NFC", "NFD", "NFKC", "NFKD"]


def whole_characters(text: str) -> str:
    """Return a text with the two halves that JSON escapes an emoji as joined, and U+FFFD for one without the other.

    UTF-8 has no halves.
    """
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def normalized(form: Form, text: str) -> str:
    """Return a text in a normal form, as `unicodedata.normalize` does."""
    if len(text) > _FEW:
        text = _MANY_MARKS.sub(lambda marks: _in_order(form, marks[0]), text)
    return unicodedata.normalize(form, text)


def _in_order(form: Form, marks: str) -> str:
    """Return the marks as the standard library would order them, so that it has nothing to do."""
    alone: Form = "NFKD" if "K" in form else "NFD"
    apart = "".join(unicodedata.normalize(alone, mark) for mark in marks)
    return "".join("".join(sorted(run, key=combining)) for _, run in groupby(apart, lambda mark: combining(mark) > 0))
