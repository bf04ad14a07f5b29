"""Documents as media: made by code, read by the real readers.

1. A PDF's pages bound its passages; an EPUB follows its spine; a Word file keeps headings, lists and tables.
2. What is encrypted, empty or damaged is refused with a sentence; nothing expands, links or reaches outside.
3. The same readers serve folders of files.
"""

from __future__ import annotations

import io
import resource
import time
import zipfile

import pytest
from import_samples import _WORD, docx, epub, pdf, remarks, source_of, zipped

from commonplace.ingest.files.read import Skipped, read_text
from commonplace.ingest.imports.import_file import Record, Unreadable
from commonplace.ingest.imports.import_formats import choose
from commonplace.text.outline import outline

_BOMB = '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;">]><x>&b;</x>'


def read(data: bytes, name: str) -> Record:
    source = source_of(data, name)
    return next(iter(choose("media", source)(source, remarks(name)))).record


def test_the_pages_of_a_pdf_bound_its_passages() -> None:
    record = read(pdf("Oolong is first", "", "Sencha is third", title="Teas"), "scan.pdf")
    assert record["title"] == "Teas"
    assert record["media_type"] == "pdf"
    assert record["author"] == "Mo"
    assert record["created_at"] == "2023-04-01T12:00:00Z"
    body = record["body"]
    quoted = [(body[one["start"] : one["end"]].strip(), one["page"]) for one in record["chunks"]]
    assert quoted == [("Oolong is first", 1), ("Sencha is third", 3)]


def test_a_pdf_without_words_says_so() -> None:
    with pytest.raises(Unreadable, match="there is no text in it"):
        read(pdf("", ""), "scan.pdf")


def test_an_encrypted_pdf_says_so() -> None:
    from pypdf import PdfReader, PdfWriter

    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(pdf("Secret"))))
    writer.encrypt("pass")
    made = io.BytesIO()
    writer.write(made)
    with pytest.raises(Unreadable, match="encrypted"):
        read(made.getvalue(), "secret.pdf")


def test_a_damaged_pdf_is_refused() -> None:
    with pytest.raises(Unreadable, match="damaged PDF"):
        read(b"%PDF-1.4\nnothing more", "a.pdf")


def test_a_pdf_is_read_as_far_as_its_time_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    data = endless(pdf("Oolong is first", "Sencha is second", "This page has no end", "This is never reached"), page=2)
    monkeypatch.setattr("commonplace.ingest.files.pdf.MOST_SECONDS", 0.5)
    monkeypatch.setattr("commonplace.ingest.files.pdf.MOST_MEMORY", 4 * 1024**3)
    text = read_text(data, "slow.pdf")
    said = remarks("slow.pdf")
    record = next(iter(choose("media", source_of(data, "slow.pdf"))(source_of(data, "slow.pdf"), said))).record
    assert text.body == record["body"] == "Oolong is first\n\nSencha is second"
    assert text.left_out == "only 2 of its 4 pages were read: more would take over 0.5 s of CPU time"
    assert [one.reason for one in said.warnings] == [f"{text.left_out}."]
    assert read_text(pdf("Tea after it"), "tea.pdf").body == "Tea after it"


def test_a_pdf_of_which_no_word_is_read_in_time_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    data = endless(pdf("This page has no end"), page=0)
    monkeypatch.setattr("commonplace.ingest.files.pdf.MOST_SECONDS", 0.5)
    monkeypatch.setattr("commonplace.ingest.files.pdf.MOST_MEMORY", 4 * 1024**3)
    with pytest.raises(Skipped, match="TOO_SLOW"):
        read_text(data, "slow.pdf")
    with pytest.raises(Unreadable, match=r"none of its words could be read: they would take over 0\.5 s of CPU time"):
        read(data, "slow.pdf")


def test_a_pdf_that_takes_more_memory_than_it_may_is_read_up_to_there() -> None:
    data = endless(pdf("Oolong is first", "This page has no end"), 1, b"BT /F1 12 Tf (tea) Tj ET " * 2000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    text = read_text(data, "large.pdf")
    assert text.body == "Oolong is first"
    assert text.left_out == (
        "only 1 of its 2 pages were read: more would take over 1 GiB of memory, or break the reader"
    )
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # KiB: it was not this process
    assert read_text(pdf("Tea after it"), "tea.pdf").body == "Tea after it"


def endless(data: bytes, page: int, words: bytes = b"") -> bytes:
    """A document with a page whose forms show each other, a hundred million of them."""
    from pypdf import PdfReader, PdfWriter
    from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject

    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(data)))
    resources = writer.pages[page]["/Resources"]
    for _ in range(8):
        form = DecodedStreamObject()
        form.set_data(words + b"/Next Do " * 10)
        form[NameObject("/Subtype")] = NameObject("/Form")
        form[NameObject("/Resources")] = resources
        forms = DictionaryObject({NameObject("/Next"): writer._add_object(form)})
        resources = DictionaryObject({NameObject("/Font"): resources["/Font"], NameObject("/XObject"): forms})  # type: ignore[index]
    content = DecodedStreamObject()
    content.set_data(b"/Next Do")
    writer.pages[page][NameObject("/Contents")] = writer._add_object(content)
    writer.pages[page][NameObject("/Resources")] = resources
    made = io.BytesIO()
    writer.write(made)
    return made.getvalue()


def test_an_epub_is_read_in_the_order_of_its_spine() -> None:
    record = read(epub(), "tea.epub")
    assert record == {
        "kind": "media",
        "title": "A Book of Tea",
        "media_type": "epub",
        "body": "# The First\n\nWater & leaves.\n\n# The Last\n\nIt is poured.",
        "author": "Kakuzo",
        "language": "en",
        "created_at": "1906-05-01T00:00:00Z",
    }


def test_pages_and_chapters_are_read_in_the_encoding_they_say() -> None:
    page = "<?xml version='1.0' encoding='koi8-r'?><html><h1>Чай</h1><p>Горячий</p></html>".encode("koi8-r")
    said = remarks("tea.html")
    source = source_of(page, "tea.html")
    assert next(iter(choose("media", source)(source, said))).record["body"] == "# Чай\n\nГорячий\n"
    assert said.warnings == []
    assert "Горячий" in read(epub(**{"OEBPS__a-last.xhtml": page}), "tea.epub")["body"]


def test_an_epub_is_known_by_what_is_in_it() -> None:
    assert read(epub(), "a.bin")["media_type"] == "epub"


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (zipped({"mimetype": "application/epub+zip"}), "container.xml is missing"),
        (epub(**{"META-INF__container.xml": "<container><rootfiles/></container>"}), "names no book"),
        (epub(**{"META-INF__container.xml": "<container>"}), "XML is broken"),
        (epub(**{"META-INF__container.xml": _BOMB}), "declares entities"),
        (epub(**{"OEBPS__book.opf": "<a>" * 2000}), "nested more than"),
        (
            epub(**{"META-INF__encryption.xml": '<e><EncryptionMethod Algorithm="http://www.w3.org/aes"/></e>'}),
            "protected",
        ),
        (epub()[:-30], "damaged archive"),
        (epub(**{"..__evil.xhtml": "x"}), "points outside"),
    ],
)
def test_what_is_wrong_with_an_epub_is_said(data: bytes, reason: str) -> None:
    with pytest.raises(Unreadable, match=reason):
        read(data, "a.epub")


def test_a_spine_without_end_is_read_in_time_and_a_chapter_once() -> None:
    refs = "".join(f'<itemref idref="{name}"/>' for name in ("a", "a", *range(100_000)))
    item = '<item id="a" href="a-last.xhtml" media-type="application/xhtml+xml"/>'
    package = f"<package><manifest>{item}</manifest><spine>{refs}</spine></package>"
    begun = time.process_time()
    text = read_text(epub(**{"OEBPS__book.opf": package}), "a.epub")
    assert time.process_time() - begun < 10
    assert text.body.count("It is poured.") == 1


def test_a_title_in_a_million_pieces_is_put_together_in_time() -> None:
    title = f"<core><title>{'a<b/>' * 1_000_000}</title></core>"
    begun = time.process_time()
    assert read_text(docx("<w:p><w:r><w:t>Tea</w:t></w:r></w:p>", **{"docProps__core.xml": title}), "a.docx")
    assert time.process_time() - begun < 10


def test_scrambled_fonts_do_not_protect_a_book() -> None:
    fonts = '<e><EncryptionMethod Algorithm="http://www.idpf.org/2008/embedding"/></e>'
    assert read(epub(**{"META-INF__encryption.xml": fonts}), "a.epub")["author"] == "Kakuzo"


def test_a_word_file_keeps_headings_lists_and_tables() -> None:
    record = read(docx(), "plan.docx")
    assert record["title"] == "The Garden Plan"
    assert record["author"] == "Mo"
    assert record["created_at"] == "2023-02-01T08:00:00Z"
    assert record["body"] == (
        "# Garden\n\nPlant early.\n\n## Beds\n\n- Peas\n  - Sugar\n\n"
        "| Bed | Crop |\n| --- | --- |\n| 1 | a\\|b more |\n\nEnd<script>\n"
    )


def test_a_word_file_keeps_its_footnotes_where_they_belong_and_its_endnotes_at_the_end() -> None:
    def run(words: str, note: str = "") -> str:
        return f"<w:r><w:t>{words}</w:t></w:r>" + (f"<w:r>{note}</w:r>" if note else "")

    def foot(number: int) -> str:
        return f'<w:footnoteReference w:id="{number}"/>'

    end = '<w:endnoteReference w:id="2"/>'
    item = '<w:p><w:pPr><w:numPr><w:ilvl w:val="0"/></w:numPr></w:pPr>'
    body = (
        f'<w:p><w:pPr><w:pStyle w:val="berschrift1"/></w:pPr>{run("Garden", foot(4))}</w:p>'
        f"<w:p>{run('Sow early', foot(2))}{run(', water', end)}{run(' late.', foot(2))}</w:p>"
        f"{item}{run('Peas', foot(3))}</w:p>{item}{run('Beans')}</w:p>"
        f"<w:tbl><w:tr><w:tc><w:p>{run('Bed', foot(5))}</w:p></w:tc></w:tr>"
        f"<w:tr><w:tc><w:p>{run('1')}</w:p></w:tc></w:tr></w:tbl>"
        f"<w:p><w:del>{run('gone', foot(6))}</w:del>{run('End', foot(99))}</w:p>"
    )
    notes = '<w:footnote w:type="separator" w:id="0"><w:p><w:r><w:t>never</w:t></w:r></w:p></w:footnote>' + "".join(
        f'<w:footnote w:id="{number}"><w:p><w:r><w:footnoteRef/></w:r>{run(words)}</w:p><w:p>{run("More.")}</w:p>'
        "</w:footnote>"
        for number, words in (
            (2, " By # March."),
            (3, "Sugar."),
            (4, "The south one."),
            (5, "Raised."),
            (6, "Not said."),
        )
    )
    parts = {
        "word__footnotes.xml": f"<w:footnotes {_WORD}>{notes}</w:footnotes>",
        "word__endnotes.xml": (
            f'<w:endnotes {_WORD}><w:endnote w:id="2"><w:p>{run("Almanac, 1906")}</w:p></w:endnote></w:endnotes>'
        ),
    }
    assert read(docx(body, **parts), "a.docx")["body"] == (
        "# Garden\n\n[^1]: The south one. More.\n\nSow early[^2], water[^e1] late.[^2]\n\n[^2]: By # March. More.\n\n"
        "- Peas[^3]\n- Beans\n\n[^3]: Sugar. More.\n\n| Bed[^4] |\n| --- |\n| 1 |\n\n[^4]: Raised. More.\n\nEnd\n\n"
        "[^e1]: Almanac, 1906\n"
    )


def test_words_of_a_document_are_no_markup() -> None:
    body = (
        '<w:p><w:pPr><w:pStyle w:val="berschrift1"/></w:pPr><w:r><w:t>The __init__ of Vec&lt;T&gt;</w:t></w:r></w:p>'
        "<w:p><w:r><w:t># apt install tea</w:t></w:r></w:p>"
        "<w:p><w:r><w:t>a line</w:t><w:br/><w:t>---</w:t><w:br/><w:t xml:space='preserve'>  # more</w:t></w:r></w:p>"
        "<w:p><w:r><w:t>&lt;script&gt; runs</w:t></w:r></w:p>"
        '<w:p><w:pPr><w:pStyle w:val="Deep"/></w:pPr><w:r><w:t>Next</w:t></w:r></w:p>'
    )
    text = read_text(docx(body), "a.docx")
    assert text.title == "The __init__ of Vec<T>"
    assert [heading.title for heading in outline(text.body, "markdown")] == ["The __init__ of Vec<T>", "Next"]


def test_a_word_document_that_describes_no_styles_has_those_of_word() -> None:
    body = '<w:p><w:pPr><w:pStyle w:val="Heading2"/></w:pPr><w:r><w:t>Beds</w:t></w:r></w:p>'
    body += "<w:p><w:r><w:t>x</w:t></w:r></w:p>"
    space = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    document = f'<w:document xmlns:w="{space}"><w:body>{body}</w:body></w:document>'
    record = read(zipped({"word/document.xml": document}), "a.docx")
    assert (record["title"], record["body"]) == ("Beds", "## Beds\n\nx\n")


def test_an_encrypted_word_file_says_so() -> None:
    with pytest.raises(Unreadable, match="encrypted"):
        read(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 100, "a.docx")


def test_entities_in_a_word_file_are_refused() -> None:
    with pytest.raises(Unreadable, match="declares entities"):
        read(docx(word__document_xml="", **{"word__document.xml": _BOMB}), "a.docx")


def test_an_entry_that_unpacks_without_end_is_refused() -> None:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("word/document.xml", "w") as entry:
        for _ in range(70):
            entry.write(b" " * (1 << 20))
    assert len(made.getvalue()) < 1 << 20
    with pytest.raises(Unreadable, match="unpacks to more than"):
        read(made.getvalue(), "a.docx")


def test_markdown_as_media_says_its_url_and_author() -> None:
    text = b"---\ntitle: T\nurl: https://x.example/\nauthor: Mo\ntags: [a]\nmood: calm\n---\nBody.\n"
    record = read(text, "a.md")
    assert (record["title"], record["url"], record["author"], record["tags"]) == (
        "T",
        "https://x.example/",
        "Mo",
        ["a"],
    )
    assert record["metadata"] == {"mood": "calm"}
    assert record["media_type"] == "markdown"


def test_a_text_is_titled_by_its_file() -> None:
    assert read(b"# no heading\nwords", "log.txt") == {
        "kind": "media",
        "title": "log",
        "media_type": "txt",
        "body": "# no heading\nwords",
    }


@pytest.mark.parametrize(
    ("data", "name", "words"), [(epub(), "a.epub", "Water & leaves."), (docx(), "a.docx", "Plant early.")]
)
def test_folders_read_books_and_word_files_too(data: bytes, name: str, words: str) -> None:
    text = read_text(data, name)
    assert words in text.body
    assert text.title in ("A Book of Tea", "The Garden Plan", "The First", "Garden")
