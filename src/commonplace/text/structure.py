"""What a Markdown text is made of: its blocks, its headings, its title. CommonMark decides, and line numbers stay true.

A full CommonMark parse in Python takes about 9 s for the 5,000 files (37 MB) that should be cut in 2. So a text is read
in two gaits. What a CommonMark parser cannot read in two ways (headings, fences, comments, paragraphs, tables and plain
lists that begin at the margin with nothing open around them) is recognised by one pattern each; every other stretch, up
to the next line that closes all open blocks, is given to markdown-it. `tests/text/test_structure.py` holds the result
against markdown-it reading the whole text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Literal, NamedTuple

import regex

from commonplace.text.lines import split_lines, starts_of

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

Kind = Literal[
    "front matter", "heading", "fence", "rule", "table", "list", "quote", "item", "definition", "import", "lead"
]  # fmt: skip


class Block(NamedTuple):
    """Lines `[line, end)` of a text, counted from 0; of a list item only the first. A tuple, for speed."""

    kind: Kind
    line: int
    end: int
    level: int = 0
    source: str = ""
    """A heading's text as written, markup included; a definition's name."""


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading and its section, which runs to the next heading of the same or a higher level. Lines count from 1."""

    level: int
    title: str
    path: tuple[str, ...]
    """The titles from the root to this heading, itself included."""
    line: int
    line_end: int
    char_start: int
    char_end: int
    own_line_end: int
    """The section's own text, without the sections under it, ends here."""
    own_char_end: int
    slug: str
    """The usual web anchor, `-1`, `-2` … for repeats."""
    occurrence: int
    """Which of the headings with this title it is, from 1."""


@cache
def _markdown() -> MarkdownIt:
    """The parser: a tenth of a second to load, and most searches never need it."""
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark").enable("table")


_BLANKS = r"(?:[ \t]*\n)"
_ATX = r"\#{1,6}(?=[ \t\n])"
_FENCE = r"(?:`{3,}[^`\n]*\n|~{3,})"
_WORDS = r"(?:[A-Za-z\x80-\U0010ffff\[\](){}\"'!?/\\@&.,;%^]|`(?!``)|\*\*?(?=\w)|__?(?=[^\W_])|\d+(?![\d.)]))"
"""How a line starts that can begin no block but a paragraph: no marker, no indent, no underline."""

_SCAN = rf"""
      (?P<blank>  {_BLANKS}++)
    | (?P<atx>    {_ATX}[^\n]*\n)
    | (?P<fence>  (?: (?P<ticks>`{{3,}}+)[^`\n]*\n (?:[^\n]*\n)*? (?:[ ]{{0,3}}(?P=ticks)`*[ \t]*\n|\Z)
                    | (?P<tildes>~{{3,}}+)[^\n]*\n (?:[^\n]*\n)*? (?:[ ]{{0,3}}(?P=tildes)~*[ \t]*\n|\Z) ))
    | (?P<comment>(?=<!--)(?s:.)*?-->[^\n]*\n)
    | (?P<words>  (?:{_WORDS}[^\n]*\n)++ (?=[ \t]*\n|\Z|{_ATX}|{_FENCE}))
    | (?P<items>  (?P<mark>[-*+])[ ]{_WORDS}[^\n]*\n
                  (?: (?:(?P=mark)[ ]|[ ]{{2,5}}[-*+][ ]|[ ]+){_WORDS}[^\n]*\n
                    | {_BLANKS}++(?=(?:(?P=mark)[ ]|[ ]{{2,5}}[-*+][ ]|[ ]{{2}}[ ]*){_WORDS}) )*+
                  (?={_BLANKS}*+(?:\Z|{_ATX}|{_FENCE}) | {_BLANKS}++{_WORDS}))
    | (?P<numbers>\d{{1,9}}(?P<stop>[.)])[ ]{_WORDS}[^\n]*\n
                  (?: (?:\d{{1,9}}(?P=stop)[ ]|[ ]+){_WORDS}[^\n]*\n
                    | {_BLANKS}++(?=\d{{1,9}}(?P=stop)[ ]{_WORDS}) )*+
                  (?={_BLANKS}*+(?:\Z|{_ATX}|{_FENCE}) | {_BLANKS}++{_WORDS}))
    | (?P<table>  \|[^\n]*\n \|[-:| \t]*\n (?:\|[^\n]*\n)*+ (?=[ \t]*\n|\Z|{_ATX}|{_FENCE}))
    | (?P<other>  [^\n]*\n (?:(?!{_BLANKS}|{_ATX}|{_FENCE})[^\n]*\n | {_BLANKS}++(?!{_WORDS}|{_ATX}|{_FENCE}))*+)
    """


@cache
def _scan() -> regex.Pattern[str]:
    """Compiled when first used: it takes longer than a search.

    By `regex`, because possessive quantifiers in `re` match wrongly before Python 3.11.5, and Debian 12 has 3.11.2.
    """
    return regex.compile(_SCAN, regex.X | regex.V0)


_FRONT_MATTER = re.compile(
    r"---[ \t]*\r?\n(?:(?![ \t]*\r?\n)(?:.*\n)*?)??(?:---|\.\.\.)[ \t]*\r?(?:\n|\Z)"
    r"|\+\+\+[ \t]*\r?\n(?:.*\n)*?\+\+\+[ \t]*\r?(?:\n|\Z)"
)
_TITLE = re.compile(r"^(?:title|\"title\"|'title')[ \t]*[:=][ \t]*(.*(?:\n[ \t]+\S.*)*)", re.M)
_MARKER = re.compile(r" *[-*+] |\d+[.)] ")
_ATX_LINE = re.compile(r" {0,3}(#{1,6})(?=[ \t\r\n]|\Z)([^\n]*)")
_CLOSING_MARKS = re.compile(r"[ \t]#+\Z")
_UNDERLINE = re.compile(r"^ {0,3}(?:=+|-+)[ \t\r]*$", re.M)
_BLANK_LINE = re.compile(_BLANKS)
_CODE_INDENT = re.compile(r" {0,3}\t| {4}")
_CLOSES_ALL = regex.compile(rf"^(?={_ATX}|{_FENCE}|{_BLANKS}++{_WORDS})", regex.M)
"""Before such a line nothing is open but a fence or an HTML block."""
_NOT_IN_ANCHORS = regex.compile(r"[^\p{L}\p{M}\p{N}\p{Pc}\- ]")
_MARKUP = re.compile(r"[\\`*_\[\]<&]")
_KINDS: dict[str, Kind] = {
    "heading_open": "heading",
    "fence": "fence",
    "hr": "rule",
    "table_open": "table",
    "bullet_list_open": "list",
    "ordered_list_open": "list",
    "blockquote_open": "quote",
    "list_item_open": "item",
}
_AT_THE_ROOT = {"heading", "list", "quote"}


def blocks(body: str) -> Iterator[Block]:
    """The blocks of a Markdown text in the order of their first lines.

    Headings, lists and quotes are those at the root; fences, rules, tables and items are those at any depth. Lazy, so
    that whoever looks for a title reads no further than the title.
    """
    text, line, at, scan = _normal(body), 0, 0, _scan()
    if matter := _FRONT_MATTER.match(text):
        line, at = _line_count(matter.group()), matter.end()
        yield Block("front matter", 0, line)
    while at < len(text):
        part = scan.match(text, at)
        assert part is not None  # noqa: S101 - `other` takes any line
        source, kind = part.group(), part.lastgroup
        if kind == "other":
            tokens = _parse(source)
            while _left_open(tokens, source, text, at + len(source)):
                further = _CLOSES_ALL.search(text, at + 2 * len(source))
                source = text[at : further.start() if further else len(text)]
                tokens = _parse(source)
            yield from _from_tokens(tokens, line)
        elif kind == "atx":
            level, title = _atx(source)
            yield Block("heading", line, line + 1, level, title)
        elif kind == "fence":
            yield Block("fence", line, line + source.count("\n"))
        elif kind in ("items", "numbers"):
            yield from _items(source, line)
        elif kind == "table":
            yield from _table(source, line)
        line += source.count("\n")
        at += len(source)


def outline(body: str, format: str) -> list[Heading]:
    """The headings of a text with the sections under them. Only Markdown has any."""
    if format != "markdown":
        return []
    found = [block for block in blocks(body) if block.kind == "heading"]
    starts = [*starts_of(split_lines(body)), len(body)]
    titles = [plain(block.source) for block in found]
    parents, ends = _nesting([block.level for block in found])
    lines = [*(block.line for block in found), len(starts) - 1]
    anchors, seen, paths = _anchors(titles), Counter[str](), list[tuple[str, ...]]()
    headings = []
    for index, (block, title) in enumerate(zip(found, titles, strict=True)):
        seen[title] += 1
        parent = parents[index]
        paths.append((*(paths[parent] if parent is not None else ()), title))
        own_end, end = lines[index + 1], lines[ends[index]]
        headings.append(
            Heading(
                level=block.level,
                title=title,
                path=paths[index],
                line=block.line + 1,
                line_end=end,
                char_start=starts[block.line],
                char_end=starts[end],
                own_line_end=own_end,
                own_char_end=starts[own_end],
                slug=anchors[index],
                occurrence=seen[title],
            )
        )
    return headings


def title_of(body: str, format: str, fallback: str) -> str:
    """Front matter's title, else the first heading of level 1 or 2, else the fallback.

    A first heading that only says "Notes" tells nothing, so it gives way to the next one of level 2.
    """
    if format != "markdown":
        return fallback
    if given := front_matter_title(body):
        return given
    first = ""
    for block in blocks(body):
        if block.kind != "heading" or block.level > 2:
            continue
        title = plain(block.source)
        if first and block.level == 2 and title:
            return title
        if not first and title not in ("", "Notes", "📝 Notes"):
            return title
        first = first or title
    return first or fallback


def front_matter_title(body: str) -> str:
    """The `title` of YAML or TOML front matter, or nothing."""
    matter = _FRONT_MATTER.match(body)
    found = _TITLE.search(matter.group().replace("\r\n", "\n")) if matter else None
    return _scalar(found.group(1)) if found else ""


def opening_heading(body: str) -> str | None:
    """The title of the heading a text opens with, white space aside. Parses only where a glance cannot tell."""
    start = body.rfind("\n", 0, len(body) - len(body.lstrip())) + 1
    if found := _ATX_LINE.match(body, start):
        return plain(_atx(_normal(found.group()))[1])
    end = body.find("\n\n", start)
    paragraph = body[start : end if end >= 0 else len(body)]
    if not _UNDERLINE.search(paragraph, paragraph.find("\n") + 1):
        return None
    first = next(blocks(body), None)
    if first is None or first.kind != "heading" or first.line > body.count("\n", 0, start):
        return None
    return plain(first.source)


def parents_of(levels: Sequence[int]) -> list[int | None]:
    """For each heading the one it stands under, by index."""
    return _nesting(levels)[0]


def plain(source: str) -> str:
    """A heading's words: markup, links and images reduced to their text, white space collapsed."""
    if _MARKUP.search(source):
        inline = _markdown().parseInline(source)[0]
        source = _text_of(inline.children or [])
    return " ".join(source.replace("\0", "\ufffd").split())


def _normal(body: str) -> str:
    """The text with as many lines as it has LFs, each one ended: a lone CR is no line break for us."""
    if "\r" in body:
        body = body.replace("\r\n", "\n").replace("\r", " ")
    return body if body.endswith("\n") or not body else body + "\n"


def _line_count(text: str) -> int:
    return text.count("\n") + (not text.endswith("\n"))


def _parse(source: str) -> list[Token]:
    """Block structure alone: the words inside are nobody's business here, and reading them is most of the cost."""
    tokens: list[Token] = []
    _markdown().block.parse(source, _markdown(), {}, tokens)
    return tokens


def _from_tokens(tokens: Sequence[Token], offset: int) -> Iterator[Block]:
    for index, token in enumerate(tokens):
        kind = _KINDS.get(token.type)
        if kind is None or token.map is None or (token.level and kind in _AT_THE_ROOT):
            continue
        line, end = token.map[0] + offset, token.map[1] + offset
        if kind == "heading":
            yield Block(kind, line, end, int(token.tag[1]), tokens[index + 1].content)
        else:
            yield Block(kind, line, line + 1 if kind == "item" else end)


def _left_open(tokens: Sequence[Token], source: str, text: str, end: int) -> bool:
    """Whether a stretch ends inside a fence or an HTML block, which do not end where everything else does."""
    last = tokens[-1] if tokens else None
    if end == len(text) or last is None or last.map is None or last.level or last.map[1] < source.count("\n"):
        return False
    lines = source.split("\n")
    opening, closing = lines[last.map[0]], lines[-2]
    if last.type == "fence":
        return last.map[1] - last.map[0] < 2 or not _closes(closing, last.markup)
    if last.type != "html_block":
        return False
    from markdown_it.rules_block.html_block import HTML_SEQUENCES

    for starts, ends, _ in HTML_SEQUENCES[:5]:
        if starts.search(opening.lstrip()):
            return not ends.search(closing)
    return not _BLANK_LINE.match(text, end)


def _closes(line: str, fence: str) -> bool:
    marks = line.strip(" \t")
    return len(marks) >= len(fence) and set(marks) == set(fence) and not _CODE_INDENT.match(line)


def _table(source: str, line: int) -> Iterator[Block]:
    """Rows as far as the pattern went, if the first two make a table; splitting the others into cells tells nothing."""
    head = "\n".join(source.split("\n", 2)[:2])
    is_table = any(token.type == "table_open" for token in _parse(head))
    yield from [Block("table", line, line + source.count("\n"))] if is_table else _from_tokens(_parse(source), line)


def _items(source: str, line: int) -> Iterator[Block]:
    yield Block("list", line, line + source.count("\n"))
    for number, item in enumerate(source.split("\n"), start=line):
        if _MARKER.match(item):
            yield Block("item", number, number + 1)


def _atx(source: str) -> tuple[int, str]:
    marks = source.strip(" \t\n")
    title = marks.lstrip("#")
    level = len(marks) - len(title)
    return level, _CLOSING_MARKS.sub("", title).strip(" \t") if title.strip("#") != "" else ""


def _nesting(levels: Sequence[int]) -> tuple[list[int | None], list[int]]:
    """For each heading its parent, and the heading that ends its section (or how many there are, for the end)."""
    parents: list[int | None] = []
    ends = [len(levels)] * len(levels)
    open_: list[int] = []
    for index, level in enumerate(levels):
        while open_ and levels[open_[-1]] >= level:
            ends[open_.pop()] = index
        parents.append(open_[-1] if open_ else None)
        open_.append(index)
    return parents, ends


def _anchors(titles: Sequence[str]) -> list[str]:
    """Web anchors, unique even where a heading is itself called `intro-1`."""
    taken: dict[str, int] = {}
    anchors = []
    for title in titles:
        base = anchor = _NOT_IN_ANCHORS.sub("", title.lower()).replace(" ", "-")
        while anchor in taken:
            taken[base] += 1
            anchor = f"{base}-{taken[base]}"
        taken[anchor] = 0
        anchors.append(anchor)
    return anchors


def _text_of(tokens: Sequence[Token]) -> str:
    return "".join(_word_of(token) for token in tokens)


def _word_of(token: Token) -> str:
    if token.type in ("softbreak", "hardbreak"):
        return " "
    if token.type == "image":
        return _text_of(token.children or [])
    return "" if token.type == "html_inline" else token.content


def _scalar(value: str) -> str:
    """One YAML or TOML scalar: quoted, plain, or folded over indented lines. Comments and nulls say nothing."""
    value = re.sub(r"\A[>|][+-]?\d?[ \t]*(?=\n|\Z)", "", value).strip()
    if quoted := re.match(r"\"((?:[^\"\\]|\\.)*)\"|'((?:[^']|'')*)'", value):
        double, single = quoted.groups()
        value = re.sub(r"\\(.)", r"\1", double) if double is not None else single.replace("''", "'")
    else:
        value = re.sub(r"(?:\A|\s)#.*", "", value)
        value = "" if value.strip() in ("~", "null", "Null", "NULL") else value
    return " ".join(value.split())


__all__ = [
    "Block",
    "Heading",
    "blocks",
    "front_matter_title",
    "opening_heading",
    "outline",
    "parents_of",
    "plain",
    "title_of",
]
