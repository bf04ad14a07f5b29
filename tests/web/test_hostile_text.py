"""Stored text is hostile: whatever it says, a page of it runs nothing, loads nothing and leads nowhere by disguise."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from starlette.datastructures import QueryParams

from commonplace.library import Library
from commonplace.model import Draft
from commonplace.server.principal import OWNER
from commonplace.settings import Settings
from commonplace.web import prose
from commonplace.web.frame import marked, rendered
from commonplace.web.paths import item_path
from commonplace.web.reader_screen import read
from commonplace.web.search_screen import search
from commonplace.web.visits import Visit

ATTACKS = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<svg/onload=alert(1)>",
    "<iframe srcdoc='<script>alert(1)</script>'></iframe>",
    "<a href='javascript:alert(1)'>x</a>",
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt&#58;alert(1))",
    "[x](data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==)",
    "[x](vbscript:msgbox)",
    "[x](//evil.example/a)",
    "[x](\\\\evil.example/a)",
    "[x](file:///etc/passwd)",
    "[x](/logout)",
    "![x](https://evil.example/pixel.png)",
    "![x](data:image/svg+xml;base64,PHN2Zz4=)",
    '![x" onerror="alert(1)](https://evil.example/a.png)',
    '<https://evil.example/"onmouseover=alert(1)>',
    '[x](https://evil.example/ "t" onmouseover="alert(1)")',
    "`<script>alert(1)</script>`",
    "```html\n<script>alert(1)</script>\n```",
    "<style>@import 'https://evil.example/a.css'</style>",
    "<meta http-equiv=refresh content='0;url=https://evil.example'>",
    "<base href='https://evil.example/'>",
    "<form action='https://evil.example'><input name=key></form>",
    "</p></main></body><script>alert(1)</script>",
    "# <img src=x onerror=alert(1)>",
    "| a |\n|---|\n| <script>alert(1)</script> |",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "[a]: javascript:alert(1)\n\n[a]",
    "<!-- --!><script>alert(1)</script>",
    '<math><mtext></form><form><mglyph><svg><mtext><style><path id="</style><img onerror=alert(1) src>">',
    "\u202e<script>alert(1)</script>\u0000",
    "{{ 7 * 7 }} {% for x in y %}",
    "' onmouseover='alert(1)",
    '" autofocus onfocus="alert(1)',
]
MARKDOWN = st.lists(
    st.sampled_from(ATTACKS) | st.text(st.characters(exclude_categories=["Cs"]), max_size=30), max_size=6
)
LOADING = {
    "src",
    "srcset",
    "data",
    "poster",
    "background",
    "formaction",
    "action",
    "ping",
    "srcdoc",
    "style",
    "http-equiv",
}
FORBIDDEN = {
    "script",
    "style",
    "iframe",
    "object",
    "embed",
    "form",
    "input",
    "base",
    "link",
    "meta",
    "svg",
    "math",
    "img",
}


class Elements(HTMLParser):
    """Every element of a piece of HTML, as a browser would read it."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def check(html: str) -> None:
    """Raise AssertionError for a piece of HTML that runs, loads or hides anything."""
    for tag, attributes in Elements(html).found:
        assert tag not in FORBIDDEN, (tag, attributes)
        for name, value in attributes.items():
            assert not name.startswith("on"), (tag, attributes)
            assert name not in LOADING, (tag, attributes)
            if name == "href":
                parts = urlsplit(value or "")
                assert parts.scheme in ("http", "https", "mailto") or (
                    not parts.scheme and (value or "").startswith(("/i/", "/item?"))
                ), value


@given(MARKDOWN)
@example(ATTACKS)
def test_no_markdown_runs_or_loads_anything(parts: list[str]) -> None:
    html = prose.markdown("\n\n".join(parts), 1, "Title", lambda links: {}, lone_title=False)
    check(html)
    with_marks, _ = prose.with_marks(html, lambda text: [(0, 1, 0), (2, len(text), 1)])
    check(with_marks)
    check(prose.at_line(with_marks, 3))


@given(MARKDOWN)
def test_no_plain_text_or_code_is_markup(parts: list[str]) -> None:
    text = "\n".join(parts)
    check(prose.plain(text, 1))
    check(prose.code(text, 1))
    assert {tag for tag, _ in Elements(prose.code(text, 1)).found} <= {"pre", "code", "span", "b"}


@given(st.text(max_size=50), st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), max_size=5))
def test_marks_in_a_snippet_change_no_character(text: str, marks: list[tuple[int, int]]) -> None:
    within = [(start, min(end, len(text))) for start, end in marks if start <= min(end, len(text))]
    html = marked(text, within)
    assert {tag for tag, _ in Elements(html).found} <= {"mark"}
    assert html.replace("<mark>", "").replace("</mark>", "") == str(marked(text, []))


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    with Library.open(
        tmp_path, settings=Settings(home=tmp_path, models=tmp_path / "models", model="static")
    ) as library:
        yield library


def visit(library: Library, path: str, **query: str) -> Visit:
    address = ("http://127.0.0.1:8377", OWNER, "s" * 43, library.settings)
    return Visit(path, path, QueryParams(query), *address, is_owner=True)


@pytest.mark.parametrize("attack", ATTACKS)
def test_no_title_name_tag_property_or_question_is_markup(attack: str, library: Library) -> None:
    text = attack.replace("\0", "")
    draft = Draft(
        "document", f"{text}/x.md", parent=f"c {text}"[:90].replace("/", "_"), title=text, body=f"{text}\n\nkettle",
        format="markdown", metadata={text: text}, tags=(text,),
    )  # fmt: skip
    item = library.put(draft)
    path, _, query = item_path(item.uri).partition("?")
    frame = None
    pages = [(search, "/", {}), (search, "/", {"q": f"kettle {text}"}), (search, "/", {"tag": text})]
    pages.append((read, path, {"q": text}) if not query else (search, "/", {}))  # type: ignore[arg-type]
    for screen, at, asked in pages:
        seen = visit(library, at, **asked)
        html = rendered(screen(library, seen), seen)
        body = html[html.index("<main") : html.index("</footer>")]
        elements = Elements(body).found
        for tag, attributes in elements:
            assert tag not in ("script", "style", "iframe", "object", "embed", "base", "meta", "img", "math"), (
                attributes
            )
            assert not any(name.startswith("on") or name in LOADING - {"action"} for name in attributes), attributes
            assert not re.match(r"\s*(javascript|data|vbscript):", attributes.get("href") or "", re.IGNORECASE)
        scripts = [attributes for tag, attributes in Elements(html).found if tag == "script"]
        frame = frame or scripts
        assert scripts == frame
        assert len(scripts) == 1
