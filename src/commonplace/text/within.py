"""The headings or definitions that a line of a passage is under, told by the passage: nothing is parsed for it.

What a folder's files have for headings is kept in the store; this is for notes, and for code, of which nothing is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from commonplace.text.lines import split_lines

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
