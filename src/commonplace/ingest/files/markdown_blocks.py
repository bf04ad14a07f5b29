"""Markdown that says what another format says: words escaped where they would be markup, and blocks of web pages."""

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
_SIGN = re.compile("\\s*[¶§#🔗⚓\u200b\ufe0e\ufe0f]+\\s*")
"""Texts of a heading's link to itself, by programs that make pages."""
_SPACE = re.compile(r"\s+")
_TICKS = re.compile(r"`{3,}")
_ITEM = re.compile(r" *(?:- |\d+\. )")
_LONG_HEADING = 200
"""Characters after which a heading that goes on was never closed."""
_DEEPEST_LIST = 10
"""The indent of lists."""


def escaped_heading(level: int, words: str) -> str:
    """Return a heading of these words on one line: `Vec<T>` and `__init__` are no markup where they come from."""
    if plain(words) != words and len(escaped := _INLINE.sub(r"\\\g<0>", words)) <= LONGEST_MARKUP:
        words = escaped
    words = _CLOSING.sub(r"\\", words)  # marks at the end would close the heading
    return f"{'#' * level} {words}"


def escaped_line(words: str) -> str:
    """Return a line of plain text: it begins no heading, list, quote, fence or script, and underlines nothing."""
    bare = words.lstrip()
    start = _START.match(bare)
    return f"{words[: len(words) - len(bare)]}{start[0]}\\{bare[start.end() :]}" if start else words


class Blocks:
    """A gatherer of the words of a page, or of a part of it that may yet be left out, block by block."""

    def __init__(self) -> None:
        self.in_link = self.in_button = False
        self._main: list[int] = []
        self._blocks: list[str] = []
        self._words: list[str] = []
        self._lists: list[int | None] = []
        self._heading = 0
        self._signs: list[str] = []
        self._pre = 0
        self._cells: list[str] | None = None
        self._in_cell = False
        self._marker = ""

    def __bool__(self) -> bool:
        """Return whether anything was said."""
        return bool(self._blocks or self._words)

    @property
    def count(self) -> int:
        """Return how many blocks have ended."""
        return len(self._blocks)

    def text(self) -> str:
        """Return the Markdown of all blocks."""
        self.end_block()
        return _joined(self._blocks)

    def main_text(self) -> str:
        """Return the Markdown from the first `<main>` to the end of the last, or of all where that says nothing."""
        self.end_block()
        start, end = (*self._main, self.count)[:2] if self._main else (0, self.count)
        return _joined(self._blocks[start:end] or self._blocks)

    def extend(self, others: Blocks) -> None:
        """Add a part that is not left out after all."""
        self.end_block()
        others.end_block()
        main = [self.count + place for place in others._main]
        self._main = (self._main[:1] or main[:1]) + main[1:] if main else self._main
        self._blocks += others._blocks

    def start_main(self) -> None:
        self._main = self._main[:1] or [self.count]

    def end_main(self) -> None:
        if self._main:
            self._main[1:] = [self.count]

    def add_words(self, words: str) -> None:
        if self._heading and (self.in_button or (self.in_link and _SIGN.fullmatch(words))):
            self._signs.append(words)
        else:
            self._words.append(words)

    def break_line(self) -> None:
        self._words.append("\n" if self._pre else " ")

    def start_heading(self, level: int) -> None:
        self.end_block()
        self._heading = level

    def end_heading(self) -> None:
        self.start_heading(0)

    def start_code(self) -> None:
        self.end_block()
        self._pre += 1

    def end_code(self) -> None:
        self.end_block()
        self._pre = max(0, self._pre - 1)

    def start_list(self, first: int | None) -> None:
        """Begin a list that is numbered from `first`, or not numbered."""
        self.end_block()
        self._lists.append(None if first is None else first - 1)

    def end_list(self) -> None:
        self.end_block()
        del self._lists[-1:]

    def start_item(self, value: int | None) -> None:
        """Begin an item, of the number `value` where it says one and its list is numbered."""
        self.end_block()
        depth = max(0, min(len(self._lists), _DEEPEST_LIST) - 1)
        number = self._lists[-1] if self._lists else None
        if number is None:
            self._marker = f"{'  ' * depth}- "
            return
        self._lists[-1] = number = number + 1 if value is None else value
        self._marker = f"{'   ' * depth}{number}. "

    def start_row(self) -> None:
        self.end_block()
        self._cells, self._in_cell = [], False

    def start_cell(self) -> None:
        self.end_cell()
        self._in_cell = True

    def end_cell(self) -> None:
        if self._cells is None:  # a heading or a list in the row has ended it
            self.end_block()
            return
        words = self._taken()
        if words or self._in_cell:
            self._cells.append(words.replace("|", "\\|"))
        self._in_cell = False

    def end_part(self, tag: str) -> None:
        """End a block where one ends or begins. In a cell all of them are its words, and in a heading the `<div>`s."""
        in_heading = self._heading and tag == "div" and sum(map(len, self._words)) < _LONG_HEADING
        if self._cells is not None or in_heading:
            self._words.append(" ")
        else:
            self.end_block()

    def end_block(self) -> None:
        if self._cells is not None:
            self._end_row()
        elif self._pre:
            self._end_code()
        else:
            self._end_text()

    def _end_row(self) -> None:
        self.end_cell()
        cells, self._cells = self._cells or [], None
        if any(cells):
            self._blocks.append(f"| {' | '.join(cells)} |")

    def _end_code(self) -> None:
        code = "".join(self._words).strip("\n")
        self._words.clear()
        if code.strip():
            fence = "`" * max(3, 1 + max((len(ticks) for ticks in _TICKS.findall(code)), default=0))
            self._blocks.append(f"{fence}\n{code}\n{fence}")

    def _end_text(self) -> None:
        words = self._taken() or _SPACE.sub(" ", "".join(self._signs)).strip()  # of a heading that says nothing else
        self._signs.clear()
        if not words:
            return  # a paragraph inside an item, or a heading, is its text
        heading, marker = self._heading, self._marker
        self._heading, self._marker = 0, ""
        if heading:
            self._blocks.append(escaped_heading(heading, words))
        else:
            self._blocks.append(marker + escaped_line(words))

    def _taken(self) -> str:
        words = _SPACE.sub(" ", "".join(self._words)).strip()
        self._words.clear()
        return words


def _joined(blocks: list[str]) -> str:
    """Return blocks with a blank line between, but items and rows close together."""
    lines: list[str] = []
    before = ""
    for block in blocks:
        tight = (_ITEM.match(block) and _ITEM.match(before)) or (block.startswith("| ") and before.startswith("| "))
        if lines and not tight:
            lines.append("")
        lines.append(block)
        before = block
    return "\n".join(lines) + "\n" if lines else ""
