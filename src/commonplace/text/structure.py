"""The blocks and the title of a Markdown text. CommonMark decides, and line numbers stay true.

markdown-it reads the block structure and nothing else; the words inside are looked at where somebody asks for them.
Reading the 37 MB of bench/files.py so takes 0.4 s, so a text is read once for its title, its passages and its outline.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from commonplace.text.normal import whole_characters

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

Kind = Literal[
    "front matter", "heading", "fence", "code", "rule", "table", "list", "quote", "item", "definition", "import", "lead"
]  # fmt: skip


class Block(NamedTuple):
    """Lines `[line, end)` of a text, counted from 0; of a list item only the first. A tuple, for speed."""

    kind: Kind
    line: int
    end: int
    level: int = 0
    source: str = ""
    """A heading's text as written, markup included; a definition's name."""


class Structure(NamedTuple):
    """The blocks of a Markdown text and what its headings may refer to."""

    blocks: tuple[Block, ...]
    """In the order of their first lines. Headings, lists and quotes are those at the root; fences, code that is
    indented, rules, tables and items are those at any depth."""
    references: Mapping[str, Any]
    """The text's link reference definitions, as markdown-it keeps them: headings may use them."""


@cache
def _markdown() -> MarkdownIt:
    """Return the parser of headings' words."""
    from markdown_it import MarkdownIt

    from commonplace.text.commonmark import DEEPEST

    return MarkdownIt("commonmark", {"maxNesting": DEEPEST})


_FRONT_MATTER = re.compile(
    r"---[ \t]*\r?\n(?:(?![ \t]*\r?\n)(?:.*\n)*?)??(?:---|\.\.\.)[ \t]*\r?(?:\n|\Z)"
    r"|\+\+\+[ \t]*\r?\n(?:.*\n)*?\+\+\+[ \t]*\r?(?:\n|\Z)"
)
_TITLE = re.compile(r"^(?:title|\"title\"|'title')[ \t]*[:=][ \t]*(.*(?:\n[ \t]+\S.*)*)", re.M)
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|\n[ \t]*|.)")
_BLANKS = dict.fromkeys("0abefnrtvN_LP", " ")
"""Escapes of white space and of what is not seen: a title is one line."""
_MARKUP = re.compile(r"[\\`*_\[\]<&]")
_KINDS: dict[str, Kind] = {
    "heading_open": "heading",
    "fence": "fence",
    "code_block": "code",
    "hr": "rule",
    "bullet_list_open": "list",
    "ordered_list_open": "list",
    "blockquote_open": "quote",
    "list_item_open": "item",
}
_AT_THE_ROOT = {"heading", "list", "quote"}
LONGEST_MARKUP = 1000
"""Characters of a heading beyond which its markup stays as it is: reading brackets takes the square of their number."""


def blocks(body: str) -> tuple[Block, ...]:
    """Return the blocks of a Markdown text in the order of their first lines."""
    return read(body).blocks


@lru_cache(maxsize=1)
def read(body: str) -> Structure:
    """Return the block structure of a text.

    The last one is kept: its title, passages and outline are asked for in turn.
    """
    text, line = _normal(body), 0
    blocks: list[Block] = []
    if matter := _FRONT_MATTER.match(text):
        line, text = _line_count(matter.group()), text[matter.end() :]
        blocks.append(Block("front matter", 0, line))
    from commonplace.text.commonmark import block_tokens  # a tenth of a second to load, and most searches never need it

    tokens, environment = block_tokens(text)
    blocks += _from_tokens(tokens, line)
    return Structure(tuple(blocks), environment.get("references", {}))


def title_of(body: str, format: str, fallback: str) -> str:
    """Return front matter's title, else the first heading of level 1 or 2, else the fallback.

    A first heading that only says "Notes" tells nothing, so it gives way to the next one of level 2.
    """
    if format != "markdown":
        return fallback
    if given := front_matter_title(body):
        return given
    first, structure = "", read(body)
    for block in structure.blocks:
        if block.kind != "heading" or block.level > 2:
            continue
        title = plain(block.source, structure.references)
        if first and block.level == 2 and title:
            return title
        if not first and title not in ("", "Notes", "📝 Notes"):
            return title
        first = first or title
    return first or fallback


def front_matter(body: str) -> str:
    """Return what may be front matter at the head of a text, its fences included, or nothing."""
    matter = _FRONT_MATTER.match(body)
    return matter.group() if matter else ""


def front_matter_title(body: str) -> str:
    """Return the `title` of YAML or TOML front matter, or ""."""
    matter = _FRONT_MATTER.match(body)
    title = _TITLE.search(matter.group().replace("\r\n", "\n")) if matter else None
    return _scalar(title.group(1)) if title else ""


def opening_heading(body: str) -> str | None:
    """Return the title of the heading a text opens with, white space aside, or None. Parses only what can have one."""
    if "#" not in body and not ("\n" in body and ("-" in body or "=" in body)):
        return None
    structure = read(body)
    first = structure.blocks[0] if structure.blocks else None
    if first is None or first.kind != "heading" or first.line > body.count("\n", 0, len(body) - len(body.lstrip())):
        return None
    return plain(first.source, structure.references)


def plain(source: str, references: Mapping[str, Any] = {}) -> str:
    """Return a heading's words: Markdown, links and images reduced to their text, white space collapsed.

    Tags and `<placeholders>` stay as written, since readers call `Option<String>` by that name; comments go.
    """
    if len(source) <= LONGEST_MARKUP and _MARKUP.search(source):
        source = _read_words(source, references) if references and "[" in source else _words(source)
    return " ".join(source.replace("\0", "\ufffd").split())


@lru_cache(maxsize=1000)
def _words(source: str) -> str:
    """Return the words of a heading that refers to nothing.

    They are kept: passages and outline ask for the same ones.
    """
    return _read_words(source, {})


def _read_words(source: str, references: Mapping[str, Any]) -> str:
    inline = _markdown().parseInline(source, {"references": references})[0]
    return _text_of(inline.children or [])


def _normal(body: str) -> str:
    """Return the text with as many lines as it has LFs, each one ended. A lone CR ends no line here."""
    if "\r" in body:
        body = body.replace("\r\n", "\n").replace("\r", " ")
    return body if body.endswith("\n") or not body else body + "\n"


def _line_count(text: str) -> int:
    return text.count("\n") + (not text.endswith("\n"))


def _from_tokens(tokens: Sequence[Token], offset: int) -> Iterator[Block]:
    for index, token in enumerate(tokens):
        if token.map is None:
            continue
        kind = _KINDS.get(token.type)
        line, end = token.map[0] + offset, token.map[1] + offset
        if kind is None:
            if token.type == "inline" and "|" in token.content and "\n" in token.content:
                yield from _tables(token.content, line)
        elif kind == "heading":
            if not token.level:
                yield Block(kind, line, end, int(token.tag[1]), tokens[index + 1].content)
        elif not token.level or kind not in _AT_THE_ROOT:
            yield Block(kind, line, line + 1 if kind == "item" else end)


def _tables(paragraph: str, line: int) -> Iterator[Block]:
    """Yield the tables in a paragraph. CommonMark has none, so they are looked for where it sees plain words."""
    from commonplace.text.commonmark import tables

    for start, end in tables(paragraph):
        yield Block("table", start + line, end + line)


def _text_of(tokens: Sequence[Token]) -> str:
    return "".join(_word_of(token) for token in tokens)


def _word_of(token: Token) -> str:
    if token.type in ("softbreak", "hardbreak"):
        return " "
    if token.type == "image":
        return _text_of(token.children or [])
    return "" if token.type == "html_inline" and token.content.startswith("<!--") else token.content


def _scalar(value: str) -> str:
    """Return one YAML or TOML scalar: quoted, plain, or folded over indented lines. Comments and nulls are ""."""
    value = re.sub(r"\A[>|][+-]?\d?[ \t]*(?=\n|\Z)", "", value).strip()
    if quoted := re.match(r"\"((?:[^\"\\]|\\[\s\S])*)\"|'((?:[^']|'')*)'", value):
        double, single = quoted.groups()
        value = _unescaped(double) if double is not None else single.replace("''", "'")
    else:
        value = re.sub(r"(?:\A|\s)#.*", "", value)
        value = "" if value.strip() in ("~", "null", "Null", "NULL") else value
    return " ".join(value.split())


def _unescaped(quoted: str) -> str:
    """Return the text between double quotes. Programs write every letter beyond ASCII as an escape there."""
    return whole_characters(_ESCAPE.sub(lambda match: _character(match.group(1)), quoted))


def _character(escape: str) -> str:
    if escape[0] == "\n":
        return ""  # a line that was broken to be short
    if len(escape) == 1:
        return _BLANKS.get(escape, escape)
    number = int(escape[1:], 16)
    return chr(number) if 0 < number <= sys.maxunicode else "\N{REPLACEMENT CHARACTER}"
