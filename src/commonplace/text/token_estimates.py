"""The size of a text for a model, estimated offline, and places to cut it without breaking a character."""

from __future__ import annotations

import re
from functools import cache

import regex

_HAN = "\u2e80-\u2ef3\u2f00-\u2fd5\u3005\u3007\u3021-\u3029\u3038-\u303b\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufad9"
_HAN_BEYOND = "\U00016fe2\U00016fe3\U00016ff0-\U00016ff6\U00020000-\U0003cfff"
_KANA = "\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\u32d0-\u32fe\u3300-\u3357\uff66-\uff9d"
_KANA_BEYOND = "\U0001aff0-\U0001b16f\U0001f200"
_HANGUL = "\u1100-\u11ff\u302e\u302f\u3131-\u318e\u3200-\u321e\u3260-\u327e\ua960-\ua97c\uac00-\ud7fb\uffa0-\uffdc"
_THAI = "\u0e01-\u0e3a\u0e40-\u0e5b"
_ASCII = bytes(range(128))

CLUSTER = regex.compile(r"\X")


@cache
def _wide() -> re.Pattern[str]:  # compiled for texts that are not ASCII only, as the next two are
    return re.compile(f"[{_THAI}{_HANGUL}{_HAN}{_KANA}{_HAN_BEYOND}{_KANA_BEYOND}]+")


@cache
def _around_breaks() -> tuple[regex.Pattern[str], regex.Pattern[str]]:
    """Return the patterns of what a cluster never continues with, and of what one begins with that goes on."""
    after = regex.compile(r"[\p{GCB=Other}--\p{Extended_Pictographic}--\p{InCB=Consonant}]", regex.V1)
    return after, regex.compile(r"\p{GCB=Prepend}")


def is_narrow(text: str) -> bool:
    """Return whether no character counts as a token of its own, so that a length in characters is the weight."""
    return text.isascii() or _wide().search(_beyond_ascii(text)) is None


def _beyond_ascii(text: str) -> str:
    """Return the characters that are not ASCII. A pattern takes 15 times as long to pass over the others."""
    return text.encode("utf-8", "surrogatepass").translate(None, _ASCII).decode("utf-8", "surrogatepass")


def weight(text: str) -> int:
    """Return quarters of a token: 4 per CJK or Thai character, 1 per any other.

    Unlike tokens, weights of parts add up.
    """
    if text.isascii():
        return len(text)
    return 4 * len(text) - 3 * len(_wide().sub("", text))


def estimate(text: str) -> int:
    """Return the tokens of a text: one per Han, kana, Hangul or Thai character, one per 4 others."""
    return -(-weight(text) // 4)


def reach(text: str, start: int, budget: int) -> int:
    """Return the furthest end with `weight(text[start:end]) <= budget`."""
    end = start
    while budget > 0 and end < len(text):
        piece = text[end : end + max(1, budget // 4)]
        cost = weight(piece)
        if cost > budget:
            break
        end += len(piece)
        budget -= cost
    return end


def safe_cut(text: str, at: int, floor: int = 0) -> int:
    """Return the largest grapheme boundary not after `at`. `floor` is a known boundary: nothing before it is read."""
    if at <= floor or at >= len(text):
        return max(floor, min(at, len(text)))
    left, right = text[at - 1], text[at]
    if left.isascii() and right.isascii():
        return at - 1 if left == "\r" and right == "\n" else at
    boundary = _sure_boundary(text, at, floor)
    # A slice: what follows `at` decides nothing, and the pattern re-reads a run of flags from wherever it may begin.
    ends = (boundary + cluster.end() for cluster in CLUSTER.finditer(text[boundary : at + 1]))
    return max((end for end in ends if end <= at), default=boundary)


def next_cut(text: str, at: int, floor: int = 0) -> int:
    """Return the smallest grapheme boundary not before `at`.

    Where `safe_cut` cannot move, this one still makes progress.
    """
    boundary = safe_cut(text, at, floor)
    if boundary >= at:
        return boundary
    cluster = CLUSTER.match(text[boundary:])
    return boundary + cluster.end() if cluster else len(text)


def _sure_boundary(text: str, at: int, floor: int) -> int:
    """Return the nearest place before `at` that is a boundary whatever stands before it, as most letters are."""
    after, prepend = _around_breaks()
    for index in range(at - 1, floor, -1):
        if after.match(text, index) and not prepend.match(text, index - 1):
            return index
    return floor
