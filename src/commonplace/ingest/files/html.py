"""A web page as Markdown: its words, headings, lists, tables and code; no scripts, styles or navigation."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass

from commonplace.ingest.files.markdown_blocks import Blocks
from commonplace.ingest.files.tags import Attributes, Tags

_FOREIGN = frozenset({"svg", "math", "annotation"})
"""Drawings and formulas: a tag of pages ends them, but for inside the elements of theirs that hold parts of pages."""
_EMBEDDING = frozenset({"foreignobject", "desc", "annotation-xml", "mi", "mn", "mo", "ms", "mtext"})
_DROPPED = frozenset(
    {"script", "style", "nav", "template", "svg", "iframe", "object", "canvas", "select", "dialog"}
    | {"annotation", "annotation-xml"}  # a formula once more, for programs
)
_NO_PLACE_FOR_MAIN = _DROPPED - {"template"} | {"math"}
_BLOCKS = frozenset(
    {
        "address", "article", "aside", "blockquote", "body", "caption", "dd", "details", "div", "dl", "dt", "fieldset",
        "figcaption", "figure", "footer", "form", "header", "hr", "html", "li", "main", "ol", "p", "section", "summary",
        "table", "tbody", "tfoot", "thead", "tr", "ul",
    }
)  # fmt: skip
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_CELLS = frozenset({"td", "th"})
_TABLE_PARTS = _CELLS | {"caption", "tbody", "tfoot", "thead", "tr"}
_CONTAINERS = (_BLOCKS | _TABLE_PARTS | _EMBEDDING | set(_HEADINGS) | {"button", "center", "pre"}) - {
    "body", "form", "hr", "html", "p",
}  # fmt: skip
"""Elements whose end closes all that was left open inside of them. Forms and paragraphs do not, as in browsers."""
_INLINE = frozenset({"b", "br", "code", "em", "i", "img", "small", "span", "strong"})
_OF_PAGES = (_BLOCKS | _TABLE_PARTS | set(_HEADINGS) | _INLINE | {"center", "pre"}) - {"html"}
_SPACE = re.compile(r"\s+")
_NUMBER = re.compile(r"[0-9]{1,8}")
_DEEPEST = 1000
"""Left-out elements that may be inside each other: no page of ours is deeper."""


def html_text(source: str) -> tuple[str, str]:
    """Return the (Markdown, title) of a page."""
    page = _Page()
    page.read(source)
    return page.text(), page.title


@dataclass(frozen=True, slots=True)
class Article:
    """A page's main content as Markdown, and what the page says of itself."""

    text: str
    title: str = ""
    url: str = ""
    author: str = ""
    language: str = ""
    published: str = ""


def html_article(source: str) -> Article:
    """Return what is inside `<main>` where a page has one, else all of it. Navigation is left out in either case.

    Of several it is all from the first to the last.
    """
    page = _Article()
    page.read(source)
    about = page.about
    title = page.title or about.get("og:title", "")
    url = about.get("canonical", "") or about.get("og:url", "")
    published = about.get("article:published_time", "") or about.get("date", "")
    return Article(page.text(), title, url, about.get("author", ""), about.get("lang", ""), published)


class _Page(Tags):
    """A gatherer of a page's blocks. Tags that were never closed, or never opened, do no harm.

    What is left out is gathered as well, apart, and thrown away when it ends: by its own tag, or with what it is inside
    of. What has no end before the page ends hides nothing.
    """

    def __init__(self) -> None:
        self._blocks = Blocks()
        self._open: list[str] = []
        self._places: defaultdict[str, list[int]] = defaultdict(list)
        self._dropped: list[_Dropped] = []
        self._in_title = False
        self._titles: list[str] = []

    @property
    def title(self) -> str:
        return _SPACE.sub(" ", "".join(self._titles)).strip()

    def text(self) -> str:
        return self._whole().text()

    def handle_starttag(self, tag: str, attrs: Attributes) -> None:
        if self._dropped:
            self._end_dropped_before(tag)
        if tag in _TABLE_PARTS and self._places["table"]:
            self._close(self._places["table"][-1] + 1)
        if tag in _DROPPED and not (tag == "dialog" and dict(attrs).keys() & {"open"}):
            self._drop(tag)
            return
        if tag in _CONTAINERS:
            self._places[tag].append(len(self._open))
            self._open.append(tag)
        if tag == "title":
            self._in_title = not self._dropped and not self._blocks.count and not self._titles
        elif tag == "math" and (formula := dict(attrs).get("alttext")):
            self.handle_data(formula)
            self._drop(tag)
        else:
            self._start(tag, attrs)

    def _start(self, tag: str, attrs: Attributes) -> None:
        blocks = self._blocks
        if tag in _HEADINGS:
            blocks.start_heading(_HEADINGS[tag])
        elif tag == "a":
            blocks.in_link = True
        elif tag == "button":
            blocks.in_button = True
        elif tag == "pre":
            blocks.start_code()
        elif tag == "br":
            blocks.break_line()
        elif tag in ("ul", "ol"):
            blocks.start_list((_number(attrs, "start") or 1) if tag == "ol" else None)
        elif tag == "li":
            blocks.start_item(_number(attrs, "value"))
        elif tag == "tr":
            blocks.start_row()
        elif tag in _CELLS:
            blocks.start_cell()
        elif tag in _BLOCKS:
            blocks.end_part(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in _DROPPED or (tag == "math" and self._dropped):
            self._end_dropped(tag)
            return
        if self._dropped and tag in _INLINE | {"p"}:
            self._end_foreign()
        if self._is_in_scope(tag):
            self._close(self._places[tag][-1])
        if tag == "title":
            self._in_title = False
        else:
            self._end(tag)

    def _end(self, tag: str) -> None:
        blocks = self._blocks
        if tag == "a":
            blocks.in_link = False
        elif tag == "button":
            blocks.in_button = False
        elif tag in _CELLS:
            blocks.end_cell()
        elif tag == "pre":
            blocks.end_code()
        elif tag in ("ul", "ol"):
            blocks.end_list()
        elif tag in _HEADINGS:
            blocks.end_heading()
        elif tag in ("li", "tr", "table"):
            blocks.end_block()
        elif tag in _BLOCKS:
            blocks.end_part(tag)

    def handle_data(self, data: str) -> None:
        if self._in_title:
            self._titles.append(data)
        else:
            self._blocks.add_words(data)

    def _drop(self, tag: str) -> None:
        if len(self._dropped) < _DEEPEST:
            self._dropped.append(_Dropped(tag, self._blocks, len(self._open)))
            self._blocks = Blocks()

    def _end_dropped(self, tag: str) -> None:
        """Throw away the innermost part of this name that is left out, with all inside of it."""
        for place in reversed(range(len(self._dropped))):
            if self._dropped[place].tag == tag:
                self._leave(place)
                return

    def _end_dropped_before(self, tag: str) -> None:
        """Throw away what is not closed but cannot go on where this tag begins."""
        if tag == "body":
            ends = not self._dropped[0].outer  # an unclosed tag of the head hides no page
        else:
            ends = tag == "main" and all(dropped.tag in _NO_PLACE_FOR_MAIN for dropped in self._dropped)
        if ends:
            self._leave(0)
        elif tag in _OF_PAGES:
            self._end_foreign()

    def _end_foreign(self) -> None:
        while self._dropped and self._dropped[-1].tag in _FOREIGN:
            depth = self._dropped[-1].depth
            if any(self._places[name] and self._places[name][-1] >= depth for name in _EMBEDDING):
                return
            self._leave(len(self._dropped) - 1)

    def _is_in_scope(self, tag: str) -> bool:
        """Return whether an element of this name is open that an end tag would close.

        Those of cells stay inside of them.
        """
        if not self._places[tag]:
            return False
        around = () if tag == "table" else ("table",) if tag in _TABLE_PARTS else ("table", *_CELLS)
        return all(not self._places[name] or self._places[name][-1] < self._places[tag][-1] for name in around)

    def _close(self, depth: int) -> None:
        """End what was opened in containers of a depth or more, and what is left out there and has no end."""
        while len(self._open) > depth:
            self._places[self._open.pop()].pop()
        place = len(self._dropped)
        while place and self._dropped[place - 1].depth > depth:
            place -= 1
        if place < len(self._dropped):
            self._leave(place)

    def _leave(self, place: int) -> None:
        dropped = self._dropped[place]
        self._blocks = dropped.outer
        del self._dropped[place:]
        self._close(dropped.depth)

    def _whole(self) -> Blocks:
        """Return all that was said, with what had no end."""
        while self._dropped:
            outer = self._dropped.pop().outer
            outer.extend(self._blocks)
            self._blocks = outer
        return self._blocks


@dataclass(frozen=True, slots=True)
class _Dropped:
    """A part that is left out: what was gathered before it, and how many containers were open."""

    tag: str
    outer: Blocks
    depth: int


class _Article(_Page):
    """A page whose head is read, and the beginning and end of whose main content are known."""

    def __init__(self) -> None:
        super().__init__()
        self.about: dict[str, str] = {}

    def handle_starttag(self, tag: str, attrs: Attributes) -> None:
        if tag in ("html", "link", "meta"):
            self._read_head(tag, {name: (value or "").strip() for name, value in attrs})
        super().handle_starttag(tag, attrs)
        if tag == "main":
            self._blocks.start_main()

    def handle_endtag(self, tag: str) -> None:
        super().handle_endtag(tag)
        if tag == "main":
            self._blocks.end_main()

    def text(self) -> str:
        return self._whole().main_text()

    def _read_head(self, tag: str, attributes: dict[str, str]) -> None:
        if tag == "html":
            self.about.setdefault("lang", attributes.get("lang", ""))
        elif tag == "link" and "canonical" in attributes.get("rel", "").lower().split():
            self.about.setdefault("canonical", attributes.get("href", ""))
        elif tag == "meta" and (name := attributes.get("name") or attributes.get("property")):
            self.about.setdefault(name.lower(), attributes.get("content", ""))


def _number(attrs: Attributes, name: str) -> int | None:
    """Return the number that a list or an item counts from; None where it says none that Markdown knows."""
    value = (dict(attrs).get(name) or "").strip()
    return int(value) if _NUMBER.fullmatch(value) else None
