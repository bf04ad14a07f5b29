"""Formats: whatever a document says, what is printed can be read back."""

from __future__ import annotations

import csv
import io
import json
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.qmd.cli.formats import FORMATS, PrintedDocument, PrintedHit, documents, hits, one_document

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
CONTEXTS = st.none() | TEXTS.filter(bool)
HITS = st.builds(
    PrintedHit,
    docid=st.just("#abc123"),
    score=st.floats(0, 1),
    file=TEXTS.map(lambda name: f"qmd://notes/{name}"),
    line=st.integers(1, 10**6),
    title=TEXTS,
    context=CONTEXTS,
    text=TEXTS,
    full=st.just(False),
    explain=st.none(),
)
DOCUMENTS = st.builds(
    PrintedDocument,
    docid=st.just("#abc123"),
    file=TEXTS.map(lambda name: f"qmd://notes/{name}"),
    title=TEXTS,
    context=CONTEXTS,
    body=TEXTS,
    reason=st.none() | st.just("File too large (70KB)."),
)
HIT = PrintedHit(
    "#abc123", 0.8549, "qmd://notes/a, b.md", 7, 'The "Plan"', "About it", "@@ -6,2 @@ (5 before, 0 after)\nx\ny"
)


def legal(text: str) -> str:
    """What XML can say of a text."""
    return "".join(mark for mark in text if mark in "\t\n\r" or " " <= mark <= "\ud7ff" or mark > "\udfff").translate(
        {0xFFFE: None, 0xFFFF: None}
    )


def test_people_see_where_what_and_how_well() -> None:
    assert hits([HIT, HIT], "cli") == "\n\n\n".join([
        'qmd://notes/a, b.md:7 #abc123\nTitle: The "Plan"\nContext: About it\nScore: 85%\n\n'
        "@@ -6,2 @@ (5 before, 0 after)\nx\ny"
    ] * 2) + "\n"  # fmt: skip


def test_a_list_of_files_is_a_row_each() -> None:
    assert hits([HIT], "files") == '#abc123,0.85,"qmd://notes/a, b.md","About it"\n'
    plain = PrintedHit("#abc123", 0.7, "qmd://notes/a.md", 1, "", None, "")
    assert hits([plain], "files") == "#abc123,0.70,qmd://notes/a.md\n"


def test_markdown_has_a_rule_and_a_heading_for_each() -> None:
    assert hits([HIT], "md") == (
        '---\n# The "Plan"\n\n**file:** qmd://notes/a, b.md\n**docid:** #abc123\n**context:** About it\n\n'
        "@@ -6,2 @@ (5 before, 0 after)\nx\ny\n"
    )


@pytest.mark.parametrize(
    ("format", "nothing"),
    [
        ("cli", "No results found.\n"),
        ("json", "[]\n"),
        ("csv", "docid,score,file,title,context,line,snippet\r\n"),
        ("md", ""),
        ("xml", "<results></results>\n"),
        ("files", ""),
    ],
)
def test_nothing_found_has_its_own_form(format: str, nothing: str) -> None:
    assert hits([], format) == nothing
    above = "No results found above minimum score threshold.\n"
    assert hits([], format, above=True) == (above if format == "cli" else nothing)


@given(found=st.lists(HITS, max_size=4))
def test_csv_of_hits_reads_back(found: list[PrintedHit]) -> None:
    header, *rows = csv.reader(io.StringIO(hits(found, "csv"), newline=""))
    assert header == ["docid", "score", "file", "title", "context", "line", "snippet"]
    assert rows == [
        [hit.docid, f"{hit.score:.4f}", hit.file, hit.title, hit.context or "", str(hit.line), hit.text]
        for hit in found
    ]


@given(found=st.lists(HITS, max_size=4))
def test_rows_of_files_read_back(found: list[PrintedHit]) -> None:
    rows = list(csv.reader(io.StringIO(hits(found, "files"), newline="")))
    assert [row[0] for row in rows] == [hit.docid for hit in found]
    assert [row[2:] for row in rows] == [[hit.file, *([hit.context] if hit.context else [])] for hit in found]


@given(found=st.lists(HITS, max_size=4))
def test_json_of_hits_reads_back(found: list[PrintedHit]) -> None:
    records = json.loads(hits(found, "json"))
    assert [record["snippet"] for record in records] == [hit.text for hit in found]
    assert all(list(record)[:5] == ["docid", "score", "file", "line", "title"] for record in records)
    assert all(("context" in record) == bool(hit.context) for record, hit in zip(records, found, strict=True))
    assert all(record["score"] == round(record["score"], 2) for record in records)


@given(found=st.lists(HITS, max_size=4))
def test_xml_of_hits_is_one_document(found: list[PrintedHit]) -> None:
    root = ElementTree.fromstring(hits(found, "xml"))
    assert root.tag == "results"
    for element, hit in zip(root, found, strict=True):
        assert element.tag == "file"
        assert (element.text or "") == legal(hit.text)
        assert element.attrib["name"] == legal(hit.file)
        assert element.attrib.get("context") == (None if hit.context is None else legal(hit.context))


@given(found=st.lists(DOCUMENTS, max_size=4))
def test_documents_read_back_in_every_format(found: list[PrintedDocument]) -> None:
    root = ElementTree.fromstring(documents(found, "xml"))
    assert [element.attrib["docid"] for element in root] == [one.docid for one in found]
    assert [element.findtext("body") for element in root] == [
        legal(one.body) if one.reason is None else None for one in found
    ]
    header, *rows = csv.reader(io.StringIO(documents(found, "csv"), newline=""))
    assert header == ["docid", "file", "title", "context", "skipped", "body"]
    assert [row[4:] for row in rows] == [
        ["false", one.body] if one.reason is None else ["true", one.reason] for one in found
    ]
    records = json.loads(documents(found, "json"))
    for record, one in zip(records, found, strict=True):
        assert ("body" in record) == (one.reason is None)
        assert record.get("skipped") == (None if one.reason is None else True)
    for row, one in zip(csv.reader(io.StringIO(documents(found, "files"), newline="")), found, strict=True):
        assert row[:2] == [one.docid, one.file]
        assert (row[-1] == "[SKIPPED]") == (one.reason is not None) or one.context == "[SKIPPED]"


@given(one=DOCUMENTS)
def test_one_document_reads_back(one: PrintedDocument) -> None:
    assert json.loads(one_document(one, "json"))["file"] == one.file
    assert ElementTree.fromstring(one_document(one, "xml")).findtext("file") == legal(one.file)


def test_a_fence_is_longer_than_any_in_the_body() -> None:
    shown = documents([PrintedDocument("#abc123", "qmd://notes/a.md", "A", None, "```py\nx\n```\n")], "md")
    assert shown == "## qmd://notes/a.md\n\n**Title:** A\n\n````\n```py\nx\n```\n````\n\n"


def test_there_is_no_other_format() -> None:
    assert FORMATS == ("cli", "json", "csv", "md", "xml", "files")
