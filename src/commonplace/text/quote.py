"""The lines of a passage that show why it was found, as they stand in their source, and what they are under.

The headings or definitions around a line are told by the passage: nothing is parsed for it. What a folder's files have
for headings is kept in the store; this is for notes, and for code, of which nothing is.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from functools import cache

import regex

from commonplace.lazy_dataclass import dataclass
from commonplace.text.snippet import ELLIPSIS, Match, best_line, densest
from commonplace.text.text_lines import line_of, split_lines, starts_of
from commonplace.text.token_estimates import next_cut, safe_cut

MOST_LINES = 6
_SENTENCE = r"[.!?]\s+|[。！？]\s*"


@dataclass(frozen=True, slots=True)
class Quote:
    """Lines as they stand in a passage. Only the first and the last are ever cut, at words; an ellipsis says where."""

    text: str
    line: int
    """The line of the passage in which the text begins, from 0."""
    marks: tuple[tuple[int, int], ...] = ()
    """The (start, end) of each match in the text."""


@dataclass(frozen=True, slots=True)
class _Part:
    """The part of a line that is shown: from one character of the passage to just before another."""

    low: int
    high: int
    begun: bool = False
    """True: something of the line stands before it."""
    broken: bool = False
    """True: something stands after it."""


def quote(
    text: str, matches: Sequence[Match], length: int = 300, lines: int = MOST_LINES, *, sections: bool = True
) -> Quote:
    """Return at most `length` characters and `lines` lines, from the line on that shows the most distinct terms.

    Without a match they begin with the first line that says something. They end where the next section begins, unless
    `sections` are none of this text. Front matter is never shown. Matches come sorted by their start.
    """
    begin = _after_front_matter(text)
    if not text[begin:].strip():
        return Quote("", 0)
    matches = [match for match in matches if match[0] >= begin]
    if length < 1 or not matches:
        shifted = [(low - begin, high - begin, term) for low, high, term in matches]
        first = text.count("\n", 0, begin) + best_line(text[begin:], shifted)
    else:
        first = _first_line(text, matches, length, lines, sections=sections)
    if length < 1:
        return Quote("", first)
    shown = _said(split_lines(text)[first : first + lines], sections=sections)
    parts = _parts(text, first, matches, length, shown)
    parts = parts[: len(_said(shown[: len(parts)], sections=sections))]
    return _written(text, parts, matches, first)


def _first_line(text: str, matches: Sequence[Match], length: int, most: int, *, sections: bool) -> int:
    """Return the line from which on the most distinct terms are shown.

    Of equals it is one that has the most itself, and no heading. Headings are told beside the snippet.
    """
    starts = [*starts_of(split_lines(text)), len(text)]
    lows = [low for low, _, _ in matches]
    best, most_shown = 0, (0, 0, False)
    for line in dict.fromkeys(line_of(starts, low) - 1 for low in lows):
        low, end = starts[line], starts[line + 1]
        own: Sequence[Match] = matches[bisect_left(lows, low) : bisect_left(lows, end)]
        if end - low > length:
            first, last = densest(own, length)
            near: Sequence[Match] = [match for match in own if first <= match[0] and match[1] <= last]
        else:
            whole = starts[
                bisect_right(starts, low + length + 1) - 1
            ]  # of a later line there is all, or much, or nothing
            high = min(starts[min(line + most, len(starts) - 1)], low + length if whole - low < length // 2 else whole)
            near = matches[bisect_left(lows, low) : bisect_left(lows, high)]
        says = not (sections and _is_heading(text[low:end]))
        shown = len({term for _, _, term in near}), len({term for _, _, term in own}), says
        if shown > most_shown:
            best, most_shown = line, shown
    return best


def _is_heading(line: str) -> bool:
    return line.startswith("#") and line.lstrip("#")[:1].isspace()


def _after_front_matter(text: str) -> int:
    if not text.startswith(("---", "+++")):
        return 0
    from commonplace.text.structure import front_matter  # rare: what is read from folders is told apart from its text

    return len(front_matter(text))


def _parts(text: str, first: int, matches: Sequence[Match], length: int, shown: Sequence[str]) -> list[_Part]:
    """Return the shown parts of these lines of a passage, of which `first` is the first.

    A later one is cut only where there would be little without it: half a line of code is none.
    """
    low = starts_of(split_lines(text))[first]
    parts, room = list[_Part](), length
    for number, whole in enumerate(shown):
        line = whole.rstrip()
        if len(line) <= room:
            parts.append(_Part(low, low + len(line)))
        elif not number:
            parts.append(_window(text, low, low + len(line), matches, room))
        elif room >= length // 2 and (end := _end(text, low, low + room - 1, low)) is not None:
            parts.append(_Part(low, end, broken=True))
        else:
            break
        if parts[-1].broken:
            break
        room -= parts[-1].high - parts[-1].low + parts[-1].begun + 1
        low += len(whole) + 1
    return parts


def _said(lines: Sequence[str], *, sections: bool) -> Sequence[str]:
    """Return the lines up to the next heading after something is said, without blank ones and headings at their end."""
    count = 0
    for number, line in enumerate(lines):
        is_heading = sections and _is_heading(line)
        if is_heading and count:
            break
        if line.strip() and not is_heading:
            count = number + 1
    return lines[: count or 1]


def _window(text: str, start: int, end: int, matches: Sequence[Match], length: int) -> _Part:
    """Return the part of a long line with the most distinct terms, from the start of a sentence where there is one."""
    room = max(1, length - 2)
    inside = [(low, min(high, end), term) for low, high, term in matches if start <= low < end]
    first, last = _whole_words(text, *densest(inside, room), start, end, room) if inside else (start, start)
    low = start if last - start <= length - 1 else _begin(text, start, first, last, room)
    if end - low <= length - (low > start):
        return _Part(low, end, begun=low > start)
    high = low + length - 1 - (low > start)
    end = _end(text, low, high, last) or max(safe_cut(text, high, low), next_cut(text, low + 1, low))
    return _Part(low, end, begun=low > start, broken=True)


def _whole_words(text: str, first: int, last: int, start: int, end: int, room: int) -> tuple[int, int]:
    """Return a stretch of a line from the start of its first word to the end of its last, where that much fits."""
    begin = next((at for at in range(first, start, -1) if _is_between_words(text, at)), start)
    finish = next((at for at in range(last, end) if _is_between_words(text, at)), end)
    return (begin, finish) if finish - begin <= room else (first, last)


def _begin(text: str, start: int, first: int, last: int, room: int) -> int:
    """Return where a part begins that shows `first` to `last`: at a sentence or else at a word shortly before."""
    lowest = max(start, last - room)
    sentences = [lowest + match.end() for match in re.finditer(_SENTENCE, text[lowest:first])]
    if sentences:
        return sentences[-1]
    before = max(lowest, first - room // 3)
    return next((at for at in range(before, first) if _is_between_words(text, at) and not text[at].isspace()), first)


def _end(text: str, low: int, high: int, least: int) -> int | None:
    """Return the last end of a word at `high` or before, and at `least` or after; None where there is none."""
    for at in range(high, max(low, least - 1), -1):
        if _is_between_words(text, at) and (width := len(text[low:at].rstrip())):
            return low + width
    return None


@cache
def _no_spaces() -> regex.Pattern[str]:
    """Return the scripts that end their words without a sign. A line of theirs is cut between any two characters."""
    return regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]")


def _is_between_words(text: str, at: int) -> bool:
    before, after = text[at - 1 : at], text[at : at + 1]
    if not before or not after or before.isspace() or after.isspace():
        return True
    if before.isascii() and after.isascii():
        return False
    return bool(_no_spaces().match(before) or _no_spaces().match(after)) and safe_cut(text, at, max(0, at - 64)) == at


def _written(text: str, parts: Sequence[_Part], matches: Sequence[Match], line: int) -> Quote:
    out, marks, width = list[str](), list[tuple[int, int]](), 0
    for part in parts:
        shown = f"{ELLIPSIS if part.begun else ''}{text[part.low : part.high]}{ELLIPSIS if part.broken else ''}"
        marks += _marks(part, matches, width + part.begun - part.low)
        out.append(shown)
        width += len(shown) + 1
    return Quote("\n".join(out), line, tuple(marks))


def _marks(part: _Part, matches: Sequence[Match], shift: int) -> Iterator[tuple[int, int]]:
    """Yield the places of a part's matches in what is written. Those that overlap are one."""
    low = high = part.low
    for start, end, _ in matches:
        if start >= part.high or end <= part.low:
            continue
        start, end = max(start, part.low), min(end, part.high)
        if start > high or high == low:
            if high > low:
                yield low + shift, high + shift
            low, high = start, end
        else:
            high = max(high, end)
    if high > low:
        yield low + shift, high + shift


# Patterns that `re` compiles when they are first needed, since most searches need none of them.
_HEADING = r" {0,3}(#{1,6})[ \t]+(.*?)(?:[ \t]+#+)?[ \t]*$"
_FENCE = r" {0,3}(```|~~~)"
_MODIFIERS = (
    r"(?:(?:export|default|declare|public|private|protected|internal|static|abstract|final|sealed|override|async|unsafe|"
    r"const|extern|inline|pub(?:\([^)]*\))?)[ \t]+)*"
)
_DEFINITION = (
    rf"([ \t]*){_MODIFIERS}(?:def|class|fn|function\*?|interface|struct|enum|union|trait|impl(?:<[^>]*>)?|mod|"
    r"namespace|record|type|func(?:[ \t]*\([^)]*\))?)[ \t]+([\w$]+)"
    r"(?=[ \t]*(?:[(<:{\[=;]|$|(?:extends|implements|for|struct|interface|where|func|map)\b))"
)
_METHOD = r"([ \t]*)(?:[\w<>\[\],.*&:?@]+[ \t]+)*[*&]*(?:\w+(?:::|\.))?([\w$]+)[ \t]*\([^;]*\{[ \t]*$"
"""A method of Java, a function of C, a method of JavaScript: it opens a block and no keyword says what it is."""
_NO_METHOD = frozenset({"if", "for", "while", "switch", "catch", "return", "else", "do", "synchronized", "function"})
_BRACED = frozenset({"java", "c", "javascript", "typescript", "tsx"})
CODE = frozenset({"python", "typescript", "tsx", "javascript", "go", "rust", "java", "c"})
_LEAD = ("//", "/*", "*", "#", "@")
_CLOSING = (")", "]", "}")
_TAB = 4


def headings_over(text: str, line: int, format: str, headings: Sequence[str]) -> tuple[str, ...]:
    """Return the headings, or of code the definitions, that a line of a passage is under, from the root down.

    `line` counts from 0. `headings` are those in force where the passage begins.
    """
    if format in CODE:
        return _in_code(split_lines(text), line, format, headings)
    if format != "markdown":
        return tuple(headings)
    open_ = list(enumerate(headings, start=1))
    for level, title in _in_markdown(split_lines(text)[: line + 1]):
        while open_ and open_[-1][0] >= level:
            open_.pop()
        open_.append((level, title))
    return tuple(title for _, title in open_ if title)


def _in_markdown(lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    fence = ""
    for line in lines:
        if opened := re.match(_FENCE, line):
            fence = "" if opened[1] == fence else fence or opened[1]
        elif not fence and (heading := re.match(_HEADING, line)):
            yield len(heading[1]), heading[2]


def _in_code(lines: Sequence[str], line: int, format: str, headings: Sequence[str]) -> tuple[str, ...]:
    """Return the definitions around a line, which are those before it that are indented less and less."""
    line = _led_to(lines, line, format)
    own = _definition(lines[line], format)
    names = [own[2]] if own else []
    indents = [_indent(lines[line]) + lines[line].lstrip().startswith(_CLOSING)]
    for before in reversed(lines[:line]):
        if not indents[-1]:
            break
        if not before or before.isspace() or before.lstrip().startswith(_CLOSING) or before[0] == "#":
            continue
        if (indent := _indent(before)) < indents[-1]:
            indents.append(indent)
            if around := _definition(before, format):
                names.append(around[2])
    step = 2 if any(indent % _TAB == 2 for indent in indents) else _TAB
    return (*headings[: indents[-1] // step], *reversed(names))


def _led_to(lines: Sequence[str], line: int, format: str) -> int:
    """Return the definition that comments and decorators lead up to, for one of those; for any other line itself."""
    after = line
    while after < len(lines) and lines[after].lstrip().startswith(_LEAD):
        after += 1
    return after if after < len(lines) and _definition(lines[after], format) else line


def _indent(line: str) -> int:
    text = line.lstrip()
    return len(line[: len(line) - len(text)].expandtabs(_TAB))


def _definition(line: str, format: str) -> re.Match[str] | None:
    definition = re.match(_DEFINITION, line)
    if not definition and format in _BRACED and (method := re.match(_METHOD, line)) and method[2] not in _NO_METHOD:
        return method
    return definition
