"""The blocks of a Markdown text by markdown-it's own rules, each asked only at lines that it can begin.

markdown-it asks every rule at every line, and keeps what a page needs. Here a line's first character says which rules
may apply, what is inside a block is not copied, and paragraphs leave nothing behind unless a table may be in them.
That takes a quarter of the time, and the blocks are the same (tests/text/test_commonmark.py).
"""

from __future__ import annotations

from collections.abc import MutableMapping
from functools import cache
from operator import add
from typing import Any, Literal

from markdown_it import MarkdownIt
from markdown_it.parser_block import ParserBlock, RuleFuncBlockType
from markdown_it.ruler import Ruler
from markdown_it.rules_block import (
    StateBlock,
    blockquote,
    code,
    fence,
    heading,
    hr,
    html_block,
    lheading,
    list_block,
    paragraph,
    reference,
)
from markdown_it.token import Token

from commonplace.text.text_lines import lines_of

DEEPEST = 200
"""Beyond this depth markdown-it ignores the rest of the text, and lists count twice; its own bound is 20."""

_Rules = tuple[RuleFuncBlockType, ...]
_BEGIN: dict[str, _Rules] = {
    "`": (fence,), "~": (fence,), ">": (blockquote,), "-": (hr, list_block), "*": (hr, list_block), "_": (hr,),
    "+": (list_block,), **dict.fromkeys("0123456789", (list_block,)),
    "[": (reference,), "<": (html_block,), "#": (heading,),
}  # fmt: skip
"""The rules that may apply to a line that begins with a character, in markdown-it's order. Without one, it is text."""
_INTERRUPT = {mark: rules for mark, rules in _BEGIN.items() if rules != (reference,)}
"""The rules that end a definition, and the last paragraph of a quote."""
_END_TEXT: dict[str, _Rules] = {**_INTERRUPT, "=": ()}
"""The rules that end a paragraph, or make a heading of it."""
_END_ITEM = {mark: own for mark, rules in _INTERRUPT.items() if (own := tuple({fence, blockquote, hr} & {*rules}))}
"""The rules that end a list instead of beginning its next item."""


def block_tokens(text: str) -> tuple[list[Token], dict[str, Any]]:
    """Return the tokens of a text whose last line ends with LF, and what markdown-it knows of its definitions.

    Of the tokens only type, tag, level, map and a heading's content are reliable. A paragraph has none but, with a `|`
    and more lines than one, the `inline` token of its content.
    """
    environment: dict[str, Any] = {}
    tokens: list[Token] = []
    _parser().block.parse(text, _parser(), environment, tokens)
    return tokens, environment


def tables(text: str) -> list[tuple[int, int]]:
    """Return the first line of each table in a text, and the line after it."""
    parser, tokens = _table_parser(), list[Token]()
    state = _TableState(text, parser, {}, tokens)
    parser.block.tokenize(state, 0, state.lineMax)
    return [(token.map[0], token.map[1]) for token in tokens if token.type == "table_open" and token.map]


@cache
def _table_parser() -> MarkdownIt:
    return MarkdownIt("commonmark", {"maxNesting": DEEPEST}).enable("table")


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"maxNesting": DEEPEST})
    parser.block = _Blocks()
    return parser


class _Blocks(ParserBlock):
    """Markdown-it's loop over the lines. Rules that contain others come back to it through `state.md.block`."""

    def __init__(self) -> None:
        super().__init__()
        self.ruler = Ruler()
        self.ruler.push("code", code)  # its being there tells states that indented lines are code
        self.ruler.push("interrupt", _interrupts, {"alt": ["paragraph", "reference", "blockquote"]})
        self.ruler.push("end item", _ends_item, {"alt": ["list"]})

    def parse(
        self, src: str, md: MarkdownIt, env: MutableMapping[str, Any], outTokens: list[Token]
    ) -> list[Token] | None:
        if src:
            state = _State(src, md, env, outTokens)
            self.tokenize(state, 0, state.lineMax)
        return outTokens

    def tokenize(self, state: StateBlock, startLine: int, endLine: int) -> None:
        begins, shifts, ends, indents = state.bMarks, state.tShift, state.eMarks, state.sCount
        source = state.src
        state.line = line = startLine
        while line < endLine:
            first = begins[line] + shifts[line]
            if first >= ends[line]:
                state.line = line = state.skipEmptyLines(line)
                if line >= endLine:
                    break
                first = begins[line] + shifts[line]
            indent = indents[line] - state.blkIndent
            if indent < 0:
                break
            if state.level >= DEEPEST:
                state.line = endLine
                break
            for rule in _BEGIN.get(source[first], ()) if indent < 4 else (code,):
                if rule(state, line, endLine, False):
                    break
            else:
                _text(state, line, endLine)
            line = state.line
            if line < endLine and begins[line] + shifts[line] >= ends[line]:
                state.line = line = line + 1
        state.tight = False  # whether paragraphs of a list stand apart is a question of looks


class _State(StateBlock):
    """The places of a text's lines, found line by line and not character by character."""

    def __init__(self, src: str, md: MarkdownIt, env: MutableMapping[str, Any], tokens: list[Token]) -> None:
        super().__init__("", md, env, tokens)
        self.src, self._closing = src, _Token("", "", 0)
        lines, bounds = lines_of(src)
        self.bMarks = list(bounds)
        self.eMarks = [*map(add, bounds, map(len, lines)), len(src)]
        self.tShift, self.sCount, self.bsCount = [0] * len(bounds), [0] * len(bounds), [0] * len(bounds)
        self.lineMax = len(lines)
        for number in [number for number, line in enumerate(lines) if line and line[0] in " \t"]:
            line = lines[number]
            self.tShift[number] = shift = len(line) - len(line.lstrip(" \t"))
            self.sCount[number] = len(line[:shift].expandtabs(4)) if "\t" in line else shift

    def push(self, ttype: str, tag: str, nesting: Literal[-1, 0, 1]) -> Token:
        if nesting < 0:
            self.level -= 1
            return self._closing  # for the rule to write on: where a block ends is known from its beginning
        token = _Token(ttype, tag, self.level)
        self.tokens.append(token)
        self.level += nesting
        return token

    def getLines(self, begin: int, end: int, indent: int, keepLastLF: bool) -> str:
        """Return the words of a text or a definition.

        Nothing inside fences, code and HTML is copied, since nobody reads it.
        """
        is_read = self.parentType in ("paragraph", "reference")
        return super().getLines(begin, end, indent, keepLastLF) if is_read else ""


class _TableState(StateBlock):
    """A state that forgets what is in a table.

    Tokens of its cells would take a hundred times the memory of the text.
    """

    _forgotten = Token("", "", 0)

    def push(self, ttype: str, tag: str, nesting: Literal[-1, 0, 1]) -> Token:
        if self.parentType != "table" or ttype == "table_open":
            return super().push(ttype, tag, nesting)
        self.level += nesting
        return self._forgotten


class _Token(Token):
    """A token with as much as `block_tokens` promises.

    The rules may set the rest, which costs nothing until they do.
    """

    __slots__ = ()

    def __init__(self, type: str, tag: str, level: int) -> None:
        self.type, self.tag, self.level, self.map = type, tag, level, None


def _any_begins(rules: _Rules, state: StateBlock, line: int, end: int) -> bool:
    for rule in rules:  # noqa: SIM110 - a generator would take longer than the rules
        if rule(state, line, end, True):
            return True
    return False


def _interrupts(state: StateBlock, line: int, end: int, silent: bool) -> bool:
    return _any_begins(_INTERRUPT.get(state.src[state.bMarks[line] + state.tShift[line]], ()), state, line, end)


def _ends_item(state: StateBlock, line: int, end: int, silent: bool) -> bool:
    return _any_begins(_END_ITEM.get(state.src[state.bMarks[line] + state.tShift[line]], ()), state, line, end)


def _text(state: StateBlock, start: int, end: int) -> None:
    """Read a paragraph, or the heading that an underline makes of it.

    markdown-it's own rules read one only where something of it is kept.
    """
    line, is_underlined = start + 1, False
    if line < state.lineMax and state.bMarks[line] + state.tShift[line] < state.eMarks[line]:
        around, state.parentType = state.parentType, "paragraph"  # as its own rules do: lists interrupt it with care
        line, is_underlined = _extent(state, start, end)
        state.parentType = around
    if is_underlined and lheading(state, start, end, False):
        return
    if line > start + 1 and state.src.find("|", state.bMarks[start], state.eMarks[line - 1]) >= 0:
        paragraph(state, start, end, False)
    else:
        state.line = line


def _extent(state: StateBlock, start: int, end: int) -> tuple[int, bool]:
    """Return the line after a text, and whether that underlines it.

    This is markdown-it's `lheading` and `paragraph` in one pass.
    """
    begins, shifts, ends, indents = state.bMarks, state.tShift, state.eMarks, state.sCount
    source, line = state.src, start
    while (line := line + 1) < state.lineMax:
        first = begins[line] + shifts[line]
        if first >= ends[line]:
            break
        mark = source[first]
        if mark not in _END_TEXT or (indent := indents[line] - state.blkIndent) > 3:
            continue
        if mark in "-=" and indent >= 0 and line < end and not source[first : ends[line]].lstrip(mark).strip(" \t"):
            return line, True
        if indents[line] >= 0 and _any_begins(_END_TEXT[mark], state, line, end):
            break
    return line, False
