"""Stored text as HTML. It is hostile until proven otherwise: Markdown is rendered without HTML, then sanitized."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from html import escape, unescape
from itertools import accumulate
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

import nh3
from markdown_it import MarkdownIt
from markdown_it.token import Token

from commonplace.text.structure import front_matter
from commonplace.text.text_lines import split_lines

MOST_BYTES = 24_000
"""The bytes of a source that one page shows."""
_TAGS = frozenset(
    {
        "a", "blockquote", "br", "code", "dd", "del", "div", "dl", "dt", "em", "h2", "h3", "h4", "h5", "h6", "hr", "li",
        "ol", "p", "pre", "s", "span", "strong", "table", "tbody", "td", "th", "thead", "tr", "ul",
    }
)  # fmt: skip
_PLACED = ("paragraph_open", "heading_open", "list_item_open", "blockquote_open", "table_open", "fence", "code_block")
_ATTRIBUTES = {
    **{tag: {"id"} for tag in _TAGS},
    "a": {"href", "title", "class"},
    "span": {"class", "id"},
    "pre": {"class", "id"},
    "ol": {"start", "id"},
}
_SCHEMES = {"http", "https", "mailto"}
_TAG = re.compile(r"<[^\"'>]*(?:\"[^\"]*\"[^\"'>]*|'[^']*'[^\"'>]*)*>")
_PLACE = re.compile(r' id="L(\d+)"')
Find = Callable[[str], Sequence[Sequence[int]]]
"""Return the (start, end, …) of what is to be marked in a text."""
Links = Callable[[Iterable[str]], dict[str, str]]
"""Return where the page shows the items that these relative links mean, by link; unknown ones are left out."""


class Part(NamedTuple):
    """A page of a source: whole lines (counted from 1), or a piece of one that is longer than a page."""

    first: int
    last: int
    start: int
    """Its first character in the source."""
    end: int


def cut(body: str, headings: Iterable[int], most: int = MOST_BYTES) -> list[Part]:
    """Return a source in pages of at most `most` bytes, cut before the headings (lines from 1) where that goes.

    Without one in the second half of a page it is cut after a blank line, else after a line.
    """
    cutting = _Cutting(frozenset(headings), most)
    for number, line in enumerate(split_lines(body), 1):
        for piece in _pieces(line + "\n", most):
            cutting.add(number, piece)
    return cutting.parts()


class _Cutting:
    """The lines of the page that is being filled, and the pages before it."""

    def __init__(self, headings: frozenset[int], most: int) -> None:
        self._headings, self._most = headings, most
        self._lines: list[tuple[int, str, int]] = []
        """(number, text, bytes) of each line or piece of one."""
        self._size = self._start = 0
        self._parts: list[Part] = []

    def add(self, number: int, text: str) -> None:
        """Add a line, after cutting what is before it where both would be too much for a page."""
        size = len(text.encode("utf-8", "surrogatepass"))
        while self._lines and self._size + size > self._most:
            self._cut(self._break())
        self._lines.append((number, text, size))
        self._size += size

    def parts(self) -> list[Part]:
        """Return all pages; one, which is empty, of nothing."""
        if self._lines:
            self._cut(len(self._lines))
        return self._parts or [Part(1, 1, 0, 0)]

    def _cut(self, count: int) -> None:
        lines, self._lines = self._lines[:count], self._lines[count:]
        end = self._start + sum(len(text) for _, text, _ in lines)
        self._parts.append(Part(lines[0][0], lines[-1][0], self._start, end))
        self._start, self._size = end, self._size - sum(size for _, _, size in lines)

    def _break(self) -> int:
        """Return how many lines the page before a cut has."""
        sums = list(accumulate(size for _, _, size in self._lines))
        after = [count for count in range(1, len(self._lines)) if sums[count - 1] >= self._size / 2]
        at_heading = [count for count in after if self._lines[count][0] in self._headings]
        blank = [count for count in after if not self._lines[count - 1][1].strip()]
        return (at_heading or blank or [len(self._lines)])[-1]


def _pieces(line: str, most: int) -> list[str]:
    step = most // 4  # characters, each of four bytes at most
    return (
        [line]
        if len(line.encode("utf-8", "surrogatepass")) <= most
        else [line[at : at + step] for at in range(0, len(line), step)]
    )


def without_front_matter(body: str) -> str:
    """Return a text with blank lines where its front matter stood, so that lines keep their numbers."""
    matter = front_matter(body)
    return "\n" * matter.count("\n") + body[len(matter) :]


def markdown(text: str, first: int, title: str, links: Links, *, lone_title: bool) -> str:
    """Return a page of Markdown as safe HTML. Blocks have the line they begin at as id, `L12`.

    A first heading that repeats the title is left out. `lone_title`: it is the only one of its level, so that the
    others keep theirs; otherwise all go down by one, because a page has one heading of the first level.
    """
    tokens = _parser().parse(text)
    targets = links(dict.fromkeys(filter(None, (_relative(token) for token in _inline(tokens)))))
    if _repeats(tokens, title):
        tokens = tokens[3:]
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(6, max(2, int(token.tag[1]) + (0 if lone_title else 1)))}"
        if token.map and token.type in _PLACED:
            token.attrSet("id", f"L{first + token.map[0]}")
    for token in _inline(tokens):
        _aim(token, targets)
    html = _parser().renderer.render(tokens, _parser().options, {})
    return clean(html)


def clean(html: str) -> str:
    """Return HTML with nothing in it but text, its structure, and links."""
    return nh3.clean(
        html,
        tags=set(_TAGS),
        attributes=_ATTRIBUTES,
        url_schemes=_SCHEMES,
        set_tag_attribute_values={"pre": {"tabindex": "0"}, "table": {"tabindex": "0"}},  # they may have to be scrolled
        link_rel="noopener noreferrer",
        clean_content_tags={"script", "style"},
    )


def plain(text: str, first: int) -> str:
    """Return a page of plain text as HTML, paragraph by paragraph."""
    paragraphs = list[str]()
    held, began = list[str](), first
    for number, line in enumerate([*text.split("\n"), ""], first):
        if line.strip():
            began = began if held else number
            held.append(escape(line))
        elif held:
            paragraphs.append(f'<p class="plain" id="L{began}">' + "\n".join(held) + "</p>")
            held = []
    return "".join(paragraphs)


def code(text: str, first: int) -> str:
    """Return a page of code as HTML, with the numbers of its lines."""
    lines = text.removesuffix("\n").split("\n")
    rows = (
        f'<span class="row" id="L{number}"><b>{number}</b>{escape(line)}\n</span>'
        for number, line in enumerate(lines, first)
    )
    return f'<pre class="code" tabindex="0"><code>{"".join(rows)}</code></pre>'


def with_marks(html: str, find: Find) -> tuple[str, int]:
    """Return safe HTML with `<mark>` around what is found in its texts, and how many that are."""
    out, done, count = list[str](), 0, 0
    for tag in [*_TAG.finditer(html), None]:
        raw = html[done : tag.start() if tag else len(html)]
        text = unescape(raw)
        places = find(text) if text.strip() else ()
        if places:
            raw, found = _framed(text, places)
            count += found
        out += [raw, tag[0] if tag else ""]
        done = tag.end() if tag else done
    return "".join(out), count


def _framed(text: str, places: Sequence[Sequence[int]]) -> tuple[str, int]:
    out, done, count = list[str](), 0, 0
    for start, end in sorted((place[0], place[1]) for place in places):
        if start >= done:
            out += [escape(text[done:start], quote=False), f"<mark>{escape(text[start:end], quote=False)}</mark>"]
            done, count = end, count + 1
    return "".join([*out, escape(text[done:], quote=False)]), count


def at_line(html: str, line: int) -> str:
    """Return HTML in which the last block that begins up to a line has the id `here`."""
    places = [place for place in _PLACE.finditer(html) if int(place[1]) <= line]
    if not places:
        return html
    best = max(places, key=lambda place: (int(place[1]), place.start()))
    return f'{html[: best.start()]} id="here"{html[best.end() :]}'


@cache
def _parser() -> MarkdownIt:
    made = MarkdownIt("commonmark", {"html": False, "maxNesting": 50}).enable(["table", "strikethrough"])
    made.add_render_rule("image", _image)
    return made


def _image(self: object, tokens: Sequence[Token], index: int, options: object, env: object) -> str:
    """Return a link to a picture: nothing is loaded from elsewhere without being asked for."""
    token = tokens[index]
    label = escape(token.content or "picture")
    source = str(token.attrGet("src") or "")
    if urlsplit(source).scheme not in ("http", "https"):
        return f'<span class="quiet">[picture: {label}]</span>'
    return f'<a href="{escape(source)}">[picture: {label}]</a>'


def _inline(tokens: Sequence[Token]) -> list[Token]:
    return [child for token in tokens if token.type == "inline" for child in token.children or ()]


def _relative(token: Token) -> str | None:
    """Return the target of a link that names no server, or None."""
    target = str(token.attrGet("href") or "") if token.type == "link_open" else ""
    try:
        parts = urlsplit(target)
    except ValueError:
        return None
    return target if parts.path and not parts.scheme and not parts.netloc else None


def _aim(token: Token, targets: dict[str, str]) -> None:
    """Let a link lead to the page of what it means. One that leads nowhere here is text."""
    if token.type == "link_open" and (target := _relative(token)) is not None:
        if target in targets:
            token.attrSet("href", targets[target])
        else:
            token.attrs.pop("href", None)
            token.attrSet("class", "nowhere")
    elif token.type == "link_open" and not str(token.attrGet("href")).lower().startswith(
        ("http:", "https:", "mailto:")
    ):
        token.attrs.pop("href", None)
        token.attrSet("class", "nowhere")


def _repeats(tokens: Sequence[Token], title: str) -> bool:
    """Return whether a text opens with its title as a heading."""
    if len(tokens) < 3 or tokens[0].type != "heading_open" or tokens[0].tag != "h1":
        return False
    text = "".join(child.content for child in tokens[1].children or () if child.type in ("text", "code_inline"))
    return " ".join(text.split()) == " ".join(title.split())


def path_of(link: str, at: str) -> str:
    """Return the path that a relative link in the document `at` means, inside its collection; "" for one outside."""
    target = unquote(urlsplit(link).path)
    folder = [] if target.startswith("/") else at.split("/")[:-1]
    for part in target.split("/"):
        if part == "..":
            if not folder:
                return ""
            folder.pop()
        elif part not in ("", "."):
            folder.append(part)
    return "/".join(folder)
