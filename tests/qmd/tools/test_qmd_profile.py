"""What the profile offers: six tools, one resource template, one prompt, and a word of welcome."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from commonplace.errors import CommonplaceError, NotFound
from commonplace.library import Library
from commonplace.profiles.registry import profile
from commonplace.server.mcp import declared
from commonplace.tools.tool import Call
from opening import open_library
from qmd_library import SPECIAL, Tools, failure, text_of, tools_over

QMD = profile("qmd")


def test_there_are_exactly_six_tools_in_this_order() -> None:
    assert [tool.name for tool in QMD.tools] == ["search", "vsearch", "query", "get", "multi_get", "status"]
    for tool in QMD.tools:
        assert tool.annotations == {
            "readOnlyHint": True, "destructiveHint": False, "idempotentHint": True, "openWorldHint": False,
        }  # fmt: skip
    assert not QMD.unlisted


def test_the_list_of_tools_stays_small() -> None:
    """Also where blanks are written after commas and colons, and with what an envelope of any era adds."""
    listed = [declared(tool) for tool in QMD.tools]
    assert len(json.dumps({"tools": listed}).encode()) < 8180


def test_status_counts_documents_and_collections(call: Tools, files: Path) -> None:
    reply = call("status")
    assert reply.structured is not None
    counts = {one["name"]: one["documents"] for one in reply.structured["collections"]}
    taken = [name for name in SPECIAL if name.endswith(".md")]
    assert counts == {
        "docs": sum(name.startswith("docs/") for name in taken),
        "notes": sum(name.startswith("notes/") for name in taken) + 64,
        "private": 2,
    }
    total = sum(counts.values())
    assert {key: value for key, value in reply.structured.items() if key != "collections"} == {
        "totalDocuments": total, "needsEmbedding": total, "hasVectorIndex": False,
    }  # fmt: skip
    assert text_of(reply) == (
        f"QMD Index Status:\n  Total documents: {total}\n  Needs embedding: {total}\n"
        "  Vector index: no\n  Collections: 3\n"
        + "\n".join(f"    - {files / name} ({count} docs) as {name}" for name, count in counts.items())
    )
    for one in reply.structured["collections"]:
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", one["lastUpdated"])
        assert (one["path"], one["pattern"]) == (str(files / one["name"]), "**/*.md")


def test_status_knows_vectors(vcall: Tools) -> None:
    reply = vcall("status")
    assert reply.structured is not None
    assert reply.structured["needsEmbedding"] == 0
    assert reply.structured["hasVectorIndex"] is True
    assert "\n  Vector index: yes\n" in text_of(reply)


def test_an_empty_library_is_no_failure(backend: str, tmp_path: Path) -> None:
    with open_library(backend, tmp_path) as library:
        call = tools_over(library)
        assert text_of(call("status")).endswith("Collections: 0")
        assert text_of(call("search", query="tea")) == 'No results found for "tea"'
        assert failure(lambda: call("get", file="a.md")) == ("not_found", "Document not found: a.md")
        assert QMD.instructions(library)


def test_where_no_collection_is_included_nothing_is_found(backend: str, tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "a.md").write_text("oolong", encoding="utf-8")
    with open_library(backend, tmp_path) as library:
        library.add_folder(tmp_path / "files", "n")
        library.folders.change("n", included=False)
        call = tools_over(library)
        assert text_of(call("search", query="oolong")) == 'No results found for "oolong"'
        assert text_of(call("search", query="oolong", collection="n")).startswith("Found 1 result")


def test_the_instructions_say_what_is_inside(words: Library, vectors: Library) -> None:
    said = QMD.instructions(words)
    assert len(said) < 1500
    for part in ("documents", "Everything about the house.", "docs, notes, private", "search", "no vector index"):
        assert part in said
    assert "no vector index" not in QMD.instructions(vectors)


def test_a_resource_is_read_with_numbers_and_the_address_asked_for(words: Library) -> None:
    assert QMD.resources is not None
    (template,) = QMD.resources.templates
    assert template == {
        "uriTemplate": "qmd://{+path}",
        "name": "document",
        "title": "QMD Document",
        "description": "A markdown document from your QMD knowledge base. Use search tools to discover documents.",
        "mimeType": "text/markdown",
    }
    assert list(QMD.resources.entries(Call(words))) == []
    content = QMD.resources.read(Call(words), "qmd://notes%2Fcrlf.md")
    assert content == {
        "uri": "qmd://notes%2Fcrlf.md",
        "name": "notes/crlf.md",
        "title": "Windows",
        "mimeType": "text/markdown",
        "text": "<!-- Context: Everything about the house. -->\n\n1: # Windows\n2: \n3: first line\n4: second line",
    }


@pytest.mark.parametrize(
    ("uri", "code", "suggested"),
    [
        ("qmd://notes/2025/pln.md", "not_found", ["notes/2025/plan.md"]),
        ("qmd://c.md", "ambiguous", ["notes/a/c.md", "notes/b/c.md"]),
        ("qmd://notes/drafts/hidden.md", "excluded_by_ignore", []),
    ],
)
def test_what_cannot_be_read_is_an_error_with_suggestions(
    words: Library, uri: str, code: str, suggested: list[str]
) -> None:
    assert QMD.resources is not None
    with pytest.raises(CommonplaceError) as caught:
        QMD.resources.read(Call(words), uri)
    assert caught.value.code == code
    assert caught.value.details["uri"] == uri
    assert caught.value.details["suggestions"][: len(suggested)] == suggested


def test_the_prompt_is_one_message_of_the_user(words: Library) -> None:
    assert QMD.prompts is not None
    listed, following = QMD.prompts.page(Call(words), None)
    assert ([one["name"] for one in listed], following) == (["query"], None)
    (message,) = QMD.prompts.get(Call(words), "query", {})["messages"]
    text = message["content"]["text"]
    assert message["role"] == "user"
    for line in (
        "# QMD - Quick Markdown Search",
        "- Discover documents with the search tools; there is no listing",
        "- Read a document: `resources/read` with uri `qmd://notes/path/to/file.md`",
        "- Use `minScore: 0.5` to filter low-relevance results",
    ):
        assert line in text.split("\n")
    for part in ("notes/pages/meeting.md", "file.md:100:40", "`searches`", "`intent`"):
        assert part in text
    assert "resources/list" not in text
    with pytest.raises(NotFound):
        QMD.prompts.get(Call(words), "other", {})
