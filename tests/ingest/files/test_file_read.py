"""From bytes to text: 1. encodings; 2. what is no text; 3. titles; 4. each format; 5. nothing makes a reader fail."""

from __future__ import annotations

import io
import json
import threading
import time
from collections.abc import Mapping
from html import escape
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pypdf import PdfWriter
from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject

from commonplace.ingest.files.endings import DEFAULT_PATTERN, PLAIN, READ
from commonplace.ingest.files.html import html_text
from commonplace.ingest.files.pdf import _workers, read_pdf
from commonplace.ingest.files.read import (
    READERS,
    Reader,
    Skipped,
    decode,
    notebook_text,
    read_text,
    reader_of,
)
from commonplace.text.glob_patterns import matcher
from commonplace.text.outline import outline
from support.folder_files import NOTEBOOK, PAGE, WORLD

TITLES = {
    "english.md": "Oolong", "deutsch.md": "Grüße", "日本/茶.md": "お茶", "русский/чай.md": "Чай", "العربية.md": "شاي",
    "ไทย.txt": "ไทย", "utf16.md": "Sechzehn", "bom.md": "Marked", "crlf.md": "Lines", "sections.rst": "Harbour",
    "tasks.org": "Errands", "plain.txt": "plain", "tides.ipynb": "Tides", "lighthouse.html": "Lighthouse",
    "code/tool.py": "tool", "code/tool.rs": "tool", "front.md": "Given by hand", "notes.md": "Real title",
}  # fmt: skip


@pytest.mark.parametrize("path", WORLD)
def test_every_file_of_the_world_is_read_and_titled(path: str) -> None:
    text = read_text(WORLD[path], path)
    assert text.title == TITLES[path]
    assert text.warnings == 0


@pytest.mark.parametrize("path", [path for path in WORLD if reader_of(path).convert is None and path != "utf16.md"])
def test_markdown_text_and_code_are_kept_to_the_character(path: str) -> None:
    assert read_text(WORLD[path], path).body == WORLD[path].decode("utf-8-sig")


@pytest.mark.parametrize(
    ("data", "body", "warnings"),
    [
        (b"plain", "plain", 0),
        (b"\xef\xbb\xbfmarked", "marked", 0),
        ("zwei".encode("utf-16"), "zwei", 0),
        (b"\xfe\xff" + "gro\u00df".encode("utf-16-be"), "groß", 0),
        ("vier".encode("utf-32"), "vier", 0),
        ("größer: ".encode() + b"bad \xff\xfe byte", "größer: bad \ufffd\ufffd byte", 2),
        ("already \ufffd there".encode(), "already \ufffd there", 0),
        (b"cut \xe2\x82", "cut \ufffd", 1),
        (b"\xff\xfea", "\ufffd", 1),
        (b"x" * 9000 + b"\0y", "x" * 9000 + "\ufffdy", 1),
        (b"a\r\nb\rc\x0c", "a\r\nb\rc\x0c", 0),
    ],
)
def test_bytes_are_decoded_and_what_is_no_text_is_counted(data: bytes, body: str, warnings: int) -> None:
    assert decode(data) == (body, warnings)


@given(st.binary(max_size=300))
def test_any_bytes_become_text_that_can_be_stored(data: bytes) -> None:
    body, warnings = decode(data)
    assert "\0" not in body
    assert body.encode("utf-8").decode("utf-8") == body
    assert warnings >= 0


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\ufeff"), max_size=200))
def test_text_survives_being_written_and_read(text: str) -> None:
    assert decode(text.encode()) == (text, 0)
    assert decode(text.encode("utf-16"))[0] == text


@pytest.mark.parametrize(
    ("path", "data", "code"),
    [
        ("a.md", b"x\0", "BINARY"),
        ("a.md", b"x" * 8191 + b"\0", "BINARY"),
        ("a.md", b"", "EMPTY"),
        ("a.md", " \n\t\u3000\n".encode(), "EMPTY"),
        ("a.html", b"<script>only</script>", "EMPTY"),
        ("a.ipynb", b"no notebook", "DAMAGED"),
        ("a.ipynb", b"[1, 2]", "DAMAGED"),
        ("a.pdf", b"%PDF-1.4 broken", "DAMAGED"),
        ("a.ipynb", b'{"cells": []}', "EMPTY"),
    ],
)
def test_what_is_no_text_is_skipped_with_a_code(path: str, data: bytes, code: str) -> None:
    with pytest.raises(Skipped, match=code):
        read_text(data, path)


def test_a_notebook_is_prose_and_fenced_code_without_results() -> None:
    assert notebook_text(NOTEBOOK) == (
        "# Tides\n\nMeasured at the pier.\n\n```python\nheight = sine(moon)\n```\n\n"
        "````\n```\nfenced already\n```\n````\n"
    )
    old = {
        "worksheets": [
            {"cells": [{"cell_type": "heading", "level": 2, "source": "Old"}, {"cell_type": "code", "input": "1"}]}
        ]
    }
    assert notebook_text(json.dumps(old)) == "## Old\n\n```python\n1\n```\n"


def test_a_cell_without_a_source_says_nothing() -> None:
    prose = {"cell_type": "markdown"}
    cells = [prose | {"source": None}, {"cell_type": "code"}, prose | {"source": "Tea"}]
    assert read_text(json.dumps({"cells": cells}).encode(), "a.ipynb").body == "Tea\n"


def test_a_lone_surrogate_in_a_notebook_is_no_character() -> None:
    data = b'{"cells": [{"cell_type": "markdown", "source": "a \\ud800 b"}]}'
    assert read_text(data, "x.ipynb").body == "a ? b\n"


def test_a_page_keeps_headings_lists_tables_and_code_and_drops_the_rest() -> None:
    assert html_text(PAGE) == (
        "# Lighthouse\n\nIt turns at night & by day.\n\n## Lamp\n\n- Fresnel\n- Lens\n\n"
        "```\ncode <here>\n  kept\n```\n\n| Year | Height |\n| 1870 | 42 m |\n",
        "From the head",
    )


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("<p>one<p>two", "one\n\ntwo\n"),
        ("no tags at all", "no tags at all\n"),
        ("<ol><li>a<li>b<ul><li>c</ul></ol>", "1. a\n2. b\n  - c\n"),
        (
            "<ol start=5><li>a<li>b<li value='9'>c<li>d</ol><ol start=x><li value=-3>e",
            "5. a\n6. b\n9. c\n10. d\n1. e\n",
        ),
        ("<p>so <math alttext='a^2'><mi>a</mi><mn>2</mn></math> is", "so a^2 is\n"),
        ("<math><mi>a</mi><mo>=</mo><mn>2</mn><annotation>a = 2</annotation></math> it is", "a=2 it is\n"),
        ("<li><p>text in it</p></li>", "- text in it\n"),
        ("<p># no heading</p><p>- no item</p><p>1. no number</p>", "\\# no heading\n\n\\- no item\n\n1\\. no number\n"),
        ("<script>if (a < b) x()</script>after", "after\n"),
        ("<nav>a<nav>b</nav>c</nav>d", "d\n"),
        ("<p>one <select><option>two</select> three", "one three\n"),
        ("<pre>a<table><tr><td>b<td>c<tr><td>d</table>e</pre>", "```\na\n```\n\n| b | c |\n| d |\n\n```\ne\n```\n"),
        ("</p></div>stray<br>line", "stray line\n"),
        ("<h3>a <code>b</code></h3>", "### a b\n"),
        ("<p>&lt;b&gt; &eacute; &#x65e5;</p>", "<b> é 日\n"),
        ("<table><tr><td><p>a</p><td>x|y</table>end", "| a | x\\|y |\n\nend\n"),
        ("<h1><div>tea/</div>pot.rs</h1>text", "# tea/ pot.rs\n\ntext\n"),
        ("<h1>Never closed<p>text", "# Never closed\n\ntext\n"),
        (f"<h1>{'a' * 200}<div>text</div>", f"# {'a' * 200}\n\ntext\n"),
        ("<h1><div>Tea</div></h1>text<h2></h2>more<li><h3><p>Pots</p></h3>", "# Tea\n\ntext\n\nmore\n\n### Pots\n"),
        ("<tr><td><p>a</p><p>b</p></td><td><div>c</div>d</td></tr>", "| a b | c d |\n"),
        ("<tr><th>x<th>y<th>z<tr><td>1<td><td>3<tr><td>&nbsp;</td><td></td>", "| x | y | z |\n| 1 |  | 3 |\n"),
        ("<tr><td><h2>Head</h2>a</td><td>b</td><td><pre>c</pre></td>", "## Head\n\na\n\nb\n\n```\nc\n```\n"),
        ("<tr><td><h2>Head</h2><tr><td>a</td><td>b", "## Head\n\n| a | b |\n"),
        ("<pre>```\nin</pre>", "````\n```\nin\n````\n"),
    ],
)
def test_pages_of_every_quality_are_read(source: str, text: str) -> None:
    assert html_text(source)[0] == text


@given(st.lists(st.sampled_from([*"ab1 _*`<>[]()!&;#\\-=.:/", "<script>", "<!--"]), max_size=20))
def test_words_of_a_page_are_no_markup(pieces: list[str]) -> None:
    words = " ".join("".join(pieces).split())
    page = f"<p>{escape(words)}</p><h2>{escape(words)}</h2><h2>Next</h2>"
    assert [heading.title for heading in outline(html_text(page)[0], "markdown")] == [*filter(None, [words]), "Next"]


@pytest.mark.parametrize(
    ("heading", "title"),
    [
        ('Tea<a class="headerlink" href="#tea">¶</a>', "Tea"),
        ('<a class="doc-anchor" href="#tea">§</a>Tea', "Tea"),
        ('Tea<span><a class="mark" href="#tea"> # </a></span>', "Tea"),
        ('Tea<a href="#tea" class="hash-link">\u200b</a>', "Tea"),
        ('<a href="#tea">Tea <b>for</b> <i>two</i></a> # 1', "Tea for two # 1"),
        ("Tea <button><svg/>Copy</button>", "Tea"),
        ("<button>What is <b>tea</b>?</button>", "What is tea?"),
        ('<a name="signs">#</a>', "#"),
        ("§ 1", "§ 1"),
    ],
)
def test_a_heading_does_not_say_its_buttons_or_the_sign_that_links_to_it(heading: str, title: str) -> None:
    text, _ = html_text(f"<p>before<h2>{heading}</h2>after")
    assert [one.title for one in outline(text, "markdown")] == [title]


def test_a_page_is_its_main_content_where_it_says_what_that_is() -> None:
    around = "<title>Brewing - The Book</title><a>Skip</a><div><h2>Keyboard shortcuts</h2></div><h1>The Book</h1>"
    page = f"{around}<main><h1>Brewing</h1><p>hot</main><h2>More</h2><main><p>cold</main><footer>Terms".encode()
    text = read_text(page, "brewing.html")
    assert (text.title, text.body) == ("Brewing", "# Brewing\n\nhot\n\n## More\n\ncold\n")
    assert read_text(page.replace(b"</main><footer>", b" "), "brewing.html").body.endswith("cold Terms\n")
    assert read_text(b"<h1>Tea</h1><main></main><p>hot", "tea.html").body == "# Tea\n\nhot\n"


def test_a_page_is_titled_by_what_its_heading_says() -> None:
    for words in ("__init__ of a class", "Vec<T> and *const T", "C #", "&amp; is an entity", "a[0](1)"):
        page = f"<h1>{escape(words)}</h1><p>text".encode()
        assert read_text(page, "p.html").title == words


def test_a_page_is_titled_by_its_heading_then_its_head_and_read_in_its_own_encoding() -> None:
    assert read_text(b"<title>From the head</title><p>x", "p.html").title == "From the head"
    latin = '<meta charset="iso-8859-1"><h1>Größe</h1>'.encode("latin-1")
    assert read_text(latin, "p.html").body == "# Größe\n"
    assert read_text('<meta charset="nonsense"><h1>Größe</h1>'.encode("latin-1"), "p.html").body == "# Größe\n"


@pytest.mark.parametrize(
    ("said", "encoding", "words"),
    [
        ("windows-1252", "cp1252", "“Größe” – 5 €"),
        ("iso-8859-1", "cp1252", "“Größe” – 5 €"),
        ("shift_jis", "cp932", "お茶①"),
        ("x-sjis", "cp932", "お茶①"),
        ("gb2312", "gb18030", "喝茶喆"),
        ("gb18030", "gb18030", "喝茶喆"),
        ("koi8-r", "koi8-r", "чай"),
        ("iso-2022-jp", "iso-2022-jp", "お茶"),
        ("windows-1251", "utf-8", "чай"),
        ("utf-16", "utf-8", "чай"),
        ("rot13", "utf-8", "чай"),
        ("utf-8", "utf-16-le", "一杯茶 Größe"),
        ("utf-16", "utf-16-be", "一杯茶 Größe"),
    ],
)
@pytest.mark.parametrize(
    "head", ["<meta charset={}>", "<meta content='text/html; charset={}'>", "<?xml version='1.0' encoding='{}'?>"]
)
def test_a_page_is_read_in_the_encoding_it_is_in(head: str, said: str, encoding: str, words: str) -> None:
    text = read_text(f"{head.format(said)}<h1>{words}</h1>".encode(encoding), "p.html")
    assert (text.body, text.warnings) == (f"# {words}\n", 0)


@pytest.mark.parametrize(
    ("path", "data", "warnings"),
    [
        ("p.html", "<p>&#xFFFD; and \N{REPLACEMENT CHARACTER}".encode(), 0),
        ("p.html", b"<p>a \0 b", 1),
        ("p.html", "<p>größer ".encode() + b"\xff b", 1),
        ("p.ipynb", b'{"cells": [{"cell_type": "markdown", "source": "a \\ufffd b"}]}', 0),
    ],
)
def test_only_what_was_no_text_is_counted_in_a_converted_file(path: str, data: bytes, warnings: int) -> None:
    assert read_text(data, path).warnings == warnings


HOSTILE = [
    "<", "<!--", "<a ", "</a", "<a href='", '<div a="', "<!", "<?", "&", "&#", "<script>", "<title>", "<textarea>",
    "<![CDATA[", "<ul><li>x", "<table><tr><td>", "<nav></p>", "<a><", "<style>x</style", "= ' = ", "<p>x", "<h1>",
    "<!--!>", "</ ", "<div><td><nav></div>", "a<select>b</select>", "<svg><g>",
    "<svg><desc><div><b>",
]  # fmt: skip


@pytest.mark.parametrize("piece", HOSTILE)
def test_no_page_takes_longer_than_its_size_allows(piece: str) -> None:
    started = time.process_time()
    text, _ = html_text(piece * 100_000)
    assert time.process_time() - started < 10  # the interpreter's own parser: minutes to hours for most of these
    assert len(text) < 10_000_000


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("a<!-- b -->c", "ac\n"),
        ("a<!-- never closed <p>b", "a\n"),
        ("a<!-- b --!>c<!-- d -- e --!>f", "acf\n"),
        ("a<!-->b<!--->c<!--!>d-->e", "abce\n"),
        ("a</ b>c</>d</2>e</", "acde</\n"),
        ("a<!DOCTYPE html>b<?php echo 1 ?>c", "abc\n"),
        ("1 < 2 and 3 > 2", "1 < 2 and 3 > 2\n"),
        ("<p title='a > b'>c", "c\n"),
        ('<p title="never closed>c', "c\n"),
        ("<p title=it's>c", "c\n"),
        ("<SCRIPT>var a = '<p>';</Script >b", "b\n"),
        ("<textarea><b>raw</b></textarea>", "<b>raw</b>\n"),
        ("x<br/>y<img src=a alt=b>z", "x yz\n"),
        ("a<svg width='1'/>b<math/>c", "abc\n"),
        ("a<script/>b</script>c", "ac\n"),
        ("<?xml version='1.0'?><html><head><title/><script src='a.js'/></head><h1/><p>text</p></html>", "text\n"),
        ("<html lang='en' xmlns='http://www.w3.org/1999/xhtml'><style/><p>a</p><pre/>b <iframe/>c", "a\n\nb c\n"),
    ],
)
def test_markup_is_read_as_a_browser_reads_it(source: str, text: str) -> None:
    assert html_text(source)[0] == text


@pytest.mark.parametrize("tag", ["nav", "svg", "select", "object", "dialog", "template", "canvas", "annotation"])
def test_what_is_never_closed_hides_nothing_of_the_page_around_it(tag: str) -> None:
    assert html_text(f"<p>a<header><{tag}><g>menu</header><h2>Tea</h2>b")[0] == "a\n\n## Tea\n\nb\n"
    assert html_text(f"<table><tr><td><{tag}><g>menu<td>tea<tr><td>b</table>c")[0] == "|  | tea |\n| b |\n\nc\n"
    assert html_text(f"<p>a<{tag}>menu<h2>Tea</h2><ul><li>b")[0].endswith("## Tea\n\n- b\n")
    assert html_text(f"<div><{tag}>menu<div>more</div>most</{tag}>a</div>b")[0].endswith("a\n\nb\n")


def test_a_main_part_begins_whatever_was_left_open_before_it() -> None:
    page = "<title>Tea</title><header><svg><g></header><nav>menu<main><p>content</p></main><footer>Terms"
    assert read_text(page.encode(), "p.html").body == "content\n"
    page = "<nav>menu<p>tea<template><main>new</main></template>s"
    assert read_text(page.encode(), "p.html").body == "menu\n\nteas\n"


def test_a_drawing_ends_where_the_page_goes_on() -> None:
    assert html_text("a<svg><g><text>b</text><p>c</p>d")[0] == "a\n\nc\n\nd\n"
    assert html_text("a<svg><foreignObject><p>b</p></foreignObject>c</svg>d")[0] == "ad\n"


@given(st.text(st.sampled_from(list("<>/phliabr1 \"'=&;#\n-!ulotdnv")), max_size=200))
def test_no_page_makes_the_reader_fail(source: str) -> None:
    html_text(source)


def test_a_pdf_is_read_page_by_page() -> None:
    text = read_text(_pdf("Tea at four", "Page two"), "a.pdf")
    assert text.body.split() == ["Tea", "at", "four", "Page", "two"]
    assert (text.title, text.format) == ("The tea book", "text")


@pytest.mark.parametrize(
    "name",
    [
        "a.cpp", "a.hpp", "a.cc", "a.cs", "a.kt", "a.swift", "a.rb", "a.php", "a.lua", "a.scala", "a.jl", "a.R",
        "a.sql", "a.sh", "a.css", "a.json", "a.yaml", "a.yml", "a.toml", "a.ini", "a.cfg", "a.conf", "a.xml", "a.csv",
        "a.tsv", "sub/Dockerfile", "Makefile", "README", "a.PDF", "a.MD", "a.TXT", "a.mjs", "a.pyi", "a.vue", "a.tex",
    ],
)  # fmt: skip
def test_common_files_are_taken_unasked(name: str) -> None:
    assert matcher(DEFAULT_PATTERN)(name)
    if not name.endswith("PDF"):
        assert read_text(b"retries = 3\n", name).body == "retries = 3\n"


def test_every_file_that_has_a_reader_is_taken_unasked() -> None:
    takes = matcher(DEFAULT_PATTERN)
    assert [ending for ending in READERS if not takes(f"sub/a{ending}")] == []


@pytest.mark.parametrize(
    "name", ["a.png", "a.zip", "a.log", "a.lock", "a.pyc", "a.exe", "a", ".env", "cpp", "a.md.bak"]
)
def test_other_files_are_not(name: str) -> None:
    assert not matcher(DEFAULT_PATTERN)(name)


def test_words_of_a_pdf_are_whole_across_lines_and_without_ligatures() -> None:
    lines = "It is adip-) Tj 0 -14 Td (iscing, in Schwarz-) Tj 0 -14 Td (Berg:) Tj 0 -14 Td (a \\336lled\\001cup"
    assert (
        read_text(_pdf(lines, unicode={0xDE: "\ufb01"}), "a.pdf").body
        == "It is adipiscing, in Schwarz-Berg:\na filled cup"
    )


@pytest.mark.parametrize(
    ("drawn", "letters", "words"),
    [
        ("dcba hgfe", dict(zip(range(0x61, 0x69), "שלוםעולם", strict=True)), "עולם שלום"),
        ("ab", {0x61: "ى", 0x62: "عل"}, "على"),  # pdfium turns the two letters of a glyph around
        ("ab cab", {0x61: "ى", 0x62: "عل", 0x63: "b"}, "على"),
    ],
)
def test_pages_of_a_pdf_that_run_right_to_left_are_read_in_the_order_of_their_letters(
    drawn: str, letters: dict[int, str], words: str
) -> None:
    assert words in read_text(_pdf("Tea", drawn, unicode=letters), "a.pdf").body


def test_a_page_of_a_pdf_that_cannot_be_read_is_named() -> None:
    data = _pdf("Tea at four", "Page two", "Page three")
    data = data.replace(b"/Type /Page\n", b"/Type /Pale\n", 1)
    book = read_pdf(io.BytesIO(data))
    assert (book.pages, book.broken) == (("", "Page two", "Page three"), (1,))


def test_many_pdfs_are_read_by_one_process() -> None:
    _workers().close()
    _workers.cache_clear()
    children = {*_children()}
    seen = set()
    for number in range(5):
        assert read_text(_pdf(f"Page {number}"), "a.pdf").body == f"Page {number}"
        seen |= {*_children()} - children
    assert len(seen) == 1
    _workers().close()
    assert not {*_children()} & seen


def _children() -> list[str]:
    return Path(f"/proc/self/task/{threading.get_native_id()}/children").read_text(encoding="ascii").split()


def test_formats_are_a_table_that_can_be_added_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(READERS, ".shout", Reader("text", convert=lambda data: (data.decode().upper(), "Loud")))
    assert read_text(b"tea", "a.shout").body == "TEA"
    assert read_text(b"tea", "a.shout").title == "Loud"
    assert reader_of("x.y/README").format == reader_of("a.unknown").format == reader_of(".md").format == "text"
    assert reader_of("A.MD").format == "markdown"


def _pdf(*pages: str, unicode: Mapping[int, str] = {}) -> bytes:
    """A page of words each, in a font of which some bytes stand for other letters."""
    writer = PdfWriter()
    font = DictionaryObject(
        {NameObject("/Type"): NameObject("/Font"), NameObject("/Subtype"): NameObject("/Type1"),
         NameObject("/BaseFont"): NameObject("/Helvetica")}
    )  # fmt: skip
    if unicode:
        rows = "\n".join(f"<{code:02x}> <{letters.encode('utf-16-be').hex()}>" for code, letters in unicode.items())
        table = DecodedStreamObject()
        table.set_data(
            "/CIDInit /ProcSet findresource begin begincmap 1 begincodespacerange <00> <ff> endcodespacerange "
            f"{len(unicode)} beginbfchar {rows} endbfchar endcmap end".encode()
        )
        font[NameObject("/ToUnicode")] = writer._add_object(table)
    for text in pages:
        page = writer.add_blank_page(200, 200)
        stream = DecodedStreamObject()
        stream.set_data(f"BT /F1 12 Tf 10 100 Td ({text}) Tj ET".encode())
        page[NameObject("/Contents")] = writer._add_object(stream)
        page[NameObject("/Resources")] = DictionaryObject(
            {NameObject("/Font"): DictionaryObject({NameObject("/F1"): writer._add_object(font)})}
        )
    writer.add_metadata({"/Title": "The tea book"})
    made = io.BytesIO()
    writer.write(made)
    return made.getvalue()


def test_every_ending_that_is_taken_has_a_reader_and_the_other_way_round() -> None:
    assert {f".{ending}" for ending in f"{READ} {PLAIN}".split()} == set(READERS)
