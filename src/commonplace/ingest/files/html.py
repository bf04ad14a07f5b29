"""A web page as Markdown: its words, headings, lists, tables and code; no scripts, styles or navigation."""

from __future__ import annotations

import re

from commonplace.ingest.files import escaped
from commonplace.ingest.files.tags import Attributes, Tags
from commonplace.lazy_dataclass import dataclass

_DROPPED = frozenset(
    {"script", "style", "nav", "template", "noscript", "svg", "iframe", "object", "canvas", "select", "dialog"}
    | {"annotation", "annotation-xml"}  # a formula once more, for programs
)
_BLOCKS = frozenset(
    {
        "address", "article", "aside", "blockquote", "body", "caption", "dd", "details", "div", "dl", "dt", "fieldset",
        "figcaption", "figure", "footer", "form", "header", "hr", "html", "li", "main", "ol", "p", "section", "summary",
        "table", "tbody", "tfoot", "thead", "tr", "ul",
    }
)  # fmt: skip
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_SIGN = re.compile("\\s*[¶§#🔗⚓\u200b\ufe0e\ufe0f]+\\s*")
"""What programs that make pages let a heading's link to itself say."""
_SPACE = re.compile(r"\s+")
_NUMBER = re.compile(r"[0-9]{1,8}")
_TICKS = re.compile(r"`{3,}")
_LONG_HEADING = 200
"""Characters after which a heading that goes on was never closed."""
_DEEPEST, _DEEPEST_LIST = 1000, 10
"""How many elements may be open at once, and how far lists are indented: no page of ours is deeper."""


def html_text(source: str) -> tuple[str, str]:
    """(Markdown, the page's title)."""
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
    """What is inside `<main>` where a page has one, else all of it; navigation is left out in either case.

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
    """Gathers blocks. Tags that were never closed, or never opened, do no harm."""

    def __init__(self) -> None:
        self._blocks: list[str] = []
        self._words: list[str] = []
        self._dropped: list[str] = []
        self._lists: list[int | None] = []
        self._heading = 0
        self._in_link = self._in_button = False
        self._signs: list[str] = []
        self._pre = 0
        self._in_title = False
        self._cells: list[str] | None = None
        self._in_cell = False
        self._marker = ""
        self._titles: list[str] = []

    @property
    def title(self) -> str:
        return _SPACE.sub(" ", "".join(self._titles)).strip()

    def text(self) -> str:
        self._end_block()
        lines: list[str] = []
        for block in self._blocks:
            tight = lines and _is_item(block) and _is_item(lines[-1])
            tight = tight or bool(lines and block.startswith("| ") and lines[-1].startswith("| "))
            if lines and not tight:
                lines.append("")
            lines.append(block)
        return "\n".join(lines) + "\n" if lines else ""

    def handle_starttag(self, tag: str, attrs: Attributes) -> None:
        if tag == "body" and not self._in_page:
            self._dropped.clear()  # an unclosed tag of the head hides no page
        if tag in _DROPPED:
            self._dropped += [tag] if len(self._dropped) < _DEEPEST else []
        elif self._dropped:
            return
        elif tag == "title":
            self._in_title = not self._blocks and not self._titles
        elif tag in _HEADINGS:
            self._end_block()
            self._heading = _HEADINGS[tag]
        elif tag == "a":
            self._in_link = True
        elif tag == "button":
            self._in_button = True
        elif tag == "pre":
            self._end_block()
            self._pre += 1
        elif tag == "br":
            self._words.append("\n" if self._pre else " ")
        elif tag in ("ul", "ol"):
            self._end_block()
            self._lists.append(_number(attrs, "start", 1) - 1 if tag == "ol" else None)
        elif tag == "li":
            self._end_block()
            self._marker = self._item_marker(attrs)
        elif tag == "math" and (formula := dict(attrs).get("alttext")):
            self.handle_data(formula)
            self._dropped.append(tag)
        elif tag == "tr":
            self._end_block()
            self._cells, self._in_cell = [], False
        elif tag in ("td", "th"):
            self._end_cell()
            self._in_cell = True
        elif tag in _BLOCKS:
            self._end_part(tag)

    def handle_endtag(self, tag: str) -> None:
        if self._dropped:
            if tag in self._dropped:
                del self._dropped[len(self._dropped) - 1 - self._dropped[::-1].index(tag) :]
            return
        if tag == "title":
            self._in_title = False
        elif tag == "a":
            self._in_link = False
        elif tag == "button":
            self._in_button = False
        elif tag in ("td", "th"):
            self._end_cell()
        elif tag == "pre":
            self._end_block()
            self._pre = max(0, self._pre - 1)
        elif tag in ("ul", "ol"):
            self._end_block()
            del self._lists[-1:]
        elif tag in _HEADINGS:
            self._end_block()
            self._heading = 0
        elif tag in ("li", "tr", "table"):
            self._end_block()
        elif tag in _BLOCKS:
            self._end_part(tag)

    def handle_data(self, data: str) -> None:
        if self._dropped:
            return
        if self._in_title:
            self._titles.append(data)
        elif self._heading and (self._in_button or (self._in_link and _SIGN.fullmatch(data))):
            self._signs.append(data)
        else:
            self._words.append(data)

    @property
    def _in_page(self) -> bool:
        return bool(self._blocks or self._words)

    def _item_marker(self, attrs: Attributes) -> str:
        depth = max(0, min(len(self._lists), _DEEPEST_LIST) - 1)
        number = self._lists[-1] if self._lists else None
        if number is None:
            return f"{'  ' * depth}- "
        self._lists[-1] = number = _number(attrs, "value", number + 1)
        return f"{'   ' * depth}{number}. "

    def _end_cell(self) -> None:
        if self._cells is None:  # a heading or a list in the row has ended it
            self._end_block()
            return
        words = self._taken()
        if words or self._in_cell:
            self._cells.append(words.replace("|", "\\|"))
        self._in_cell = False

    def _end_part(self, tag: str) -> None:
        """A block has ended, or one begins. In a cell all of them are its words, and in a heading the `<div>`s."""
        in_heading = self._heading and tag == "div" and sum(map(len, self._words)) < _LONG_HEADING
        if self._cells is not None or in_heading:
            self._words.append(" ")
        else:
            self._end_block()

    def _end_block(self) -> None:
        if self._pre:
            self._end_code()
            return
        if self._cells is not None:
            self._end_cell()
            cells, self._cells = self._cells, None
            if any(cells):
                self._blocks.append(f"| {' | '.join(cells)} |")
            return
        words = self._taken() or _SPACE.sub(" ", "".join(self._signs)).strip()  # of a heading that says nothing else
        self._signs.clear()
        if not words:
            return  # a paragraph inside an item, or a heading, is its text
        heading, marker = self._heading, self._marker
        self._heading, self._marker = 0, ""
        if heading:
            self._blocks.append(escaped.heading(heading, words))
        else:
            self._blocks.append(marker + escaped.line(words))

    def _end_code(self) -> None:
        code = "".join(self._words).strip("\n")
        self._words.clear()
        if code.strip():
            fence = "`" * max(3, 1 + max((len(ticks) for ticks in _TICKS.findall(code)), default=0))
            self._blocks.append(f"{fence}\n{code}\n{fence}")

    def _taken(self) -> str:
        words = _SPACE.sub(" ", "".join(self._words)).strip()
        self._words.clear()
        return words


class _Article(_Page):
    """Also keeps what the head says, and where the main content begins and ends."""

    def __init__(self) -> None:
        super().__init__()
        self.about: dict[str, str] = {}
        self._main: list[int] = []

    def handle_starttag(self, tag: str, attrs: Attributes) -> None:
        given = {name: (value or "").strip() for name, value in attrs}
        if tag == "html":
            self.about.setdefault("lang", given.get("lang", ""))
        elif tag == "link" and "canonical" in given.get("rel", "").lower().split():
            self.about.setdefault("canonical", given.get("href", ""))
        elif tag == "meta" and (name := given.get("name") or given.get("property")):
            self.about.setdefault(name.lower(), given.get("content", ""))
        super().handle_starttag(tag, attrs)
        if tag == "main":
            self._main = self._main[:1] or [len(self._blocks)]

    def handle_endtag(self, tag: str) -> None:
        super().handle_endtag(tag)
        if tag == "main" and self._main:
            self._main[1:] = [len(self._blocks)]

    def text(self) -> str:
        self._end_block()
        start, end = (*self._main, len(self._blocks))[:2] if self._main else (0, len(self._blocks))
        self._blocks = self._blocks[start:end] or self._blocks
        return super().text()


def _number(attrs: Attributes, name: str, usual: int) -> int:
    """What a list is said to count from; Markdown knows no other numbers than these."""
    given = (dict(attrs).get(name) or "").strip()
    return int(given) if _NUMBER.fullmatch(given) else usual


def _is_item(block: str) -> bool:
    return bool(re.match(r" *(?:- |\d+\. )", block))
