"""Listing, outlining and reading documents, line by line of the contract."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from documents_calls import GUIDE, REGISTRY, Tools, first_line, parsed, write

from commonplace.library import Library
from commonplace.tools.tool import View
from opening import open_library

OOLONG = {"collection": "guide", "document": "tea/oolong.md"}


def test_there_are_eight_tools_that_only_read() -> None:
    assert [tool.name.removeprefix("documents_") for tool in REGISTRY.tools] == [
        "list_collections", "list_documents", "get_document", "get_outline", "get_section", "search", "search_batch",
        "find_related",
    ]  # fmt: skip
    for tool in REGISTRY.tools:
        assert tool.annotations == {
            "readOnlyHint": True, "destructiveHint": False, "idempotentHint": True, "openWorldHint": False,
        }  # fmt: skip
        assert tool.output is not None
        assert tool.output["type"] == tool.input["type"] == "object"
        assert tool.input["additionalProperties"] is False


def test_collections_are_listed_by_name_with_their_counts_and_the_text_is_the_bare_list(words: Tools) -> None:
    reply = words.reply("list_collections")
    assert reply.structured is not None
    records = reply.structured["collections"]
    assert parsed(reply) == records
    assert [(one["collection"], one["documentCount"]) for one in records] == [("guide", 7), ("manual", 2)]
    assert records[0]["collectionId"].startswith("pkg:file:///")
    assert "description" not in records[0]
    assert records[1]["description"] == "How the machines work."


def test_no_collection_is_a_sentence_and_an_empty_list(library: Library) -> None:
    reply = Tools(library).reply("list_collections")
    assert first_line(reply) == "No document collections found."
    assert reply.structured == {"collections": []}


def test_documents_are_listed_in_code_point_order_with_titles_and_sizes(words: Tools) -> None:
    answer = words("list_documents", collection="guide")
    assert [(one["id"], one["title"]) for one in answer["documents"]] == [
        ("Zebra.md", "Zebra"),
        ("bread.md", "Bread"),
        ("plain.txt", "plain.txt"),
        ("tea/green.md", "Green tea"),
        ("tea/oolong.md", "Oolong"),
        ("windows.md", "One"),
        ("über/größe.md", "Größe"),
    ]
    assert {one["id"]: one["size"] for one in answer["documents"]} == {name: len(text) for name, text in GUIDE.items()}
    assert (answer["total"], answer["hasMore"]) == (7, False)
    assert parsed(words.reply("list_documents", collection="guide")) == answer


def test_pages_neither_overlap_nor_skip(words: Tools) -> None:
    pages = [words("list_documents", collection="guide", limit=3, offset=offset) for offset in (0, 3, 6, 9)]
    assert [len(page["documents"]) for page in pages] == [3, 3, 1, 0]
    assert [page["hasMore"] for page in pages] == [True, True, False, False]
    assert {page["total"] for page in pages} == {7}
    assert [one["id"] for page in pages for one in page["documents"]] == sorted(GUIDE)


def test_a_document_is_read_unchanged(words: Tools) -> None:
    answer = words("get_document", collection="guide", document="windows.md")
    assert answer["content"] == GUIDE["windows.md"]
    assert (answer["document"], answer["title"], answer["size"]) == ("windows.md", "One", len(GUIDE["windows.md"]))
    assert words.library.get(answer["uri"]).body == answer["content"]


@pytest.mark.parametrize(
    "name", ["./tea/oolong.md", "/tea/oolong.md", "tea\\oolong.md", ".\\tea\\oolong.md", "u\u0308ber/gro\u0308ße.md"]
)
def test_spellings_of_an_id_are_forgiven(words: Tools, name: str) -> None:
    expected = "tea/oolong.md" if "oolong" in name else "über/größe.md"
    assert words("get_document", collection="guide", document=name)["document"] == expected


@pytest.mark.parametrize("name", ["oolong.md", "TEA/OOLONG.MD", "tea/oolong", "../guide/tea/oolong.md", "setup.md"])
def test_nothing_else_is_guessed(words: Tools, name: str) -> None:
    reply = words.reply("get_document", collection="guide", document=name)
    assert reply.structured is not None
    message = f'Document "{name}" not found in collection "guide".'
    assert first_line(reply) == reply.structured["message"] == message
    assert reply.structured["found"] is False
    assert len(reply.structured["suggestions"]) <= 5
    assert set(reply.structured["suggestions"]) <= set(GUIDE)


@pytest.mark.parametrize(
    ("tool", "more"),
    [("get_document", {}), ("get_outline", {}), ("get_section", {"section": "x"}), ("find_related", {})],
)
def test_every_tool_says_that_a_document_is_missing(words: Tools, tool: str, more: dict[str, Any]) -> None:
    reply = words.reply(tool, collection="guide", document="tea/olong.md", **more)
    assert first_line(reply) == 'Document "tea/olong.md" not found in collection "guide".'
    assert reply.content[0]["text"].split("\n")[1] == "Did you mean: tea/oolong.md?"
    assert reply.structured is not None
    assert reply.structured["suggestions"] == ["tea/oolong.md"]


@pytest.mark.parametrize(
    ("tool", "more"),
    [
        ("list_documents", {}),
        ("get_document", {"document": "a"}),
        ("get_outline", {"document": "a"}),
        ("get_section", {"document": "a", "section": "x"}),
        ("find_related", {"document": "a"}),
    ],
)
def test_an_unknown_collection_is_refused_with_those_there_are(words: Tools, tool: str, more: dict[str, Any]) -> None:
    failure = words.refused(tool, collection="gide", **more)
    assert failure.code == "collection_not_found"
    assert failure.message.split("\n")[0] == 'Collection "gide" not found.'
    assert failure.record()["error"]["collections"] == ["guide", "manual"]


def test_an_outline_has_levels_lines_anchors_and_paths(words: Tools) -> None:
    answer = words("get_outline", **OOLONG)
    assert answer["title"] == "Oolong"
    assert [(e["level"], e["text"], e["line"], e["slug"], e["path"]) for e in answer["outline"]] == [
        (1, "Oolong", 3, "oolong", ["Oolong"]),
        (2, "Brewing", 7, "brewing", ["Oolong", "Brewing"]),
        (3, "Water", 11, "water", ["Oolong", "Brewing", "Water"]),
        (2, "Storing", 15, "storing", ["Oolong", "Storing"]),
        (1, "Notes", 19, "notes", ["Notes"]),
        (2, "Brewing", 21, "brewing-1", ["Notes", "Brewing"]),
    ]
    assert [entry["text"] for entry in words("get_outline", **OOLONG, maxDepth=1)["outline"]] == ["Oolong", "Notes"]
    assert words("get_outline", collection="guide", document="plain.txt")["outline"] == []


def test_a_text_file_has_the_headings_that_are_in_it(backend: str, tmp_path: Path) -> None:
    text = "# Llamas\n\n> What they eat.\n\n## Hay\n\nMost of the day.\n\nWater\n-----\n\nAlways.\n"
    with open_library(backend, tmp_path / "home") as library:
        library.add_folder(write(tmp_path / "files", {"llms.txt": text}), "files")
        tools, place = Tools(library), {"collection": "files", "document": "llms.txt"}
        answer = tools("get_outline", **place)
        assert answer["title"] == "Llamas"
        assert [(one["level"], one["text"], one["line"]) for one in answer["outline"]] == [
            (1, "Llamas", 1),
            (2, "Hay", 5),
            (2, "Water", 9),
        ]
        assert tools("get_section", **place, section="hay")["content"] == "## Hay\n\nMost of the day.\n"
        assert tools("get_document", **place)["content"] == text


def test_line_ends_do_not_change_an_outline(words: Tools) -> None:
    outline = words("get_outline", collection="guide", document="windows.md")["outline"]
    assert [(entry["text"], entry["line"]) for entry in outline] == [("One", 1), ("Two", 5)]


def test_a_section_runs_to_the_next_heading_of_its_rank(words: Tools) -> None:
    lines = GUIDE["tea/oolong.md"].split("\n")
    answer = words("get_section", **OOLONG, section="Oolong")
    assert (answer["startLine"], answer["endLine"], answer["level"]) == (3, 18, 1)
    assert answer["content"] == "\n".join(lines[2:18])
    own = words("get_section", **OOLONG, section="Oolong", includeSubsections=False)
    assert (own["startLine"], own["endLine"]) == (3, 6)
    assert own["content"] == "\n".join(lines[2:6])
    last = words("get_section", **OOLONG, section="Notes")
    assert (last["endLine"], last["content"]) == (23, "\n".join(lines[18:23]))


GENERIC = "# API\n\nAll types.\n\n## Map<String, List<Integer>>\n\nTwo type arguments.\n\n## <details> tag\n\nFolds.\n"


@pytest.mark.parametrize("section", ["Map<String, List<Integer>>", "<details> tag"])
def test_a_heading_with_angle_brackets_is_found_by_what_it_says(backend: str, tmp_path: Path, section: str) -> None:
    with open_library(backend, tmp_path / "home") as library:
        library.add_folder(write(tmp_path / "api", {"api.md": GENERIC}), "api")
        tools = Tools(library)
        listed = tools("get_outline", collection="api", document="api.md")["outline"]
        assert section in [entry["text"] for entry in listed]
        read = tools("get_section", collection="api", document="api.md", section=section)
        assert (read["section"], read["matchedBy"]) == (section, "exact")
        assert read["content"].startswith(f"## {section}\n")


def test_a_section_of_a_file_with_crlf_has_them(words: Tools) -> None:
    answer = words("get_section", collection="guide", document="windows.md", section="One", includeSubsections=False)
    assert (answer["content"], answer["endLine"]) == ("# One\r\n\r\ntext\r\n", 4)


@pytest.mark.parametrize(
    ("section", "by", "line"),
    [
        ("Storing", "exact", 15),
        ("  ## sToRiNG: ", "normalised", 15),
        ("**Storing**", "normalised", 15),
        ("#brewing-1", "slug", 21),
        ("brewing-1", "slug", 21),
        ("Notes > Brewing", "path", 21),
        ("oolong > water", "path", 11),
        ("tori", "substring", 15),
    ],
)
def test_the_first_tier_that_matches_decides(words: Tools, section: str, by: str, line: int) -> None:
    answer = words("get_section", **OOLONG, section=section)
    assert (answer["matchedBy"], answer["startLine"], answer["occurrences"]) == (by, line, 1)
    assert "candidates" not in answer


def test_several_matches_give_the_first_and_name_the_others(words: Tools) -> None:
    answer = words("get_section", **OOLONG, section="Brewing")
    assert (answer["startLine"], answer["occurrence"], answer["occurrences"]) == (7, 1, 2)
    assert answer["candidates"] == [
        {"section": "Brewing", "level": 2, "line": 7, "path": ["Oolong", "Brewing"], "occurrence": 1},
        {"section": "Brewing", "level": 2, "line": 21, "path": ["Notes", "Brewing"], "occurrence": 2},
    ]
    assert words("get_section", **OOLONG, section="Brewing", occurrence=2)["startLine"] == 21
    failure = words.refused("get_section", **OOLONG, section="Brewing", occurrence=3)
    assert "occurrence" in failure.message
    assert "at most 2" in failure.message
    assert "not 3" in failure.message


def test_a_missing_section_is_said_with_the_headings_there_are(words: Tools) -> None:
    reply = words.reply("get_section", **OOLONG, section="Espresso")
    assert reply.structured is not None
    assert first_line(reply) == reply.structured["message"]
    assert first_line(reply) == 'Section "Espresso" not found in document "tea/oolong.md".'
    assert reply.structured["found"] is False
    assert [one["section"] for one in reply.structured["candidates"]][:2] == ["Oolong", "Brewing"]


@pytest.mark.parametrize(
    ("tool", "arguments", "argument", "said"),
    [
        ("list_collections", {"x": 1}, "x", "takes none"),
        ("list_documents", {"collection": "guide", "limit": 0}, "limit", "between 1 and 1000, not 0"),
        ("list_documents", {"collection": "guide", "limit": 1001}, "limit", "not 1001"),
        ("list_documents", {"collection": "guide", "limit": 3.5}, "limit", "not 3.5"),
        ("list_documents", {"collection": "guide", "limit": "3"}, "limit", "3"),
        ("list_documents", {"collection": "guide", "offset": -1}, "offset", "-1"),
        ("list_documents", {}, "collection", "needs"),
        ("get_outline", {**OOLONG, "maxDepth": 7}, "maxDepth", "between 1 and 6, not 7"),
        ("get_outline", {**OOLONG, "depth": 2}, "depth", "maxDepth"),
        ("get_section", {**OOLONG, "section": " "}, "section", "blank"),
        ("get_section", {**OOLONG, "section": ""}, "section", "empty"),
        ("get_section", {**OOLONG, "section": "x" * 501}, "section", "at most 500 characters, not 501"),
        ("get_section", {**OOLONG, "section": "x", "occurrence": 0}, "occurrence", "at least 1, not 0"),
        ("get_section", {**OOLONG, "section": "x", "includeSubsections": "yes"}, "includeSubsections", "yes"),
        ("get_document", {"collection": "guide", "document": 3}, "document", "3"),
    ],
)
def test_arguments_are_refused_by_name_with_bound_and_value(
    words: Tools, tool: str, arguments: dict[str, Any], argument: str, said: str
) -> None:
    failure = words.refused(tool, **arguments)
    assert failure.code in ("invalid_argument", "unknown_argument")
    assert argument in failure.message
    assert said in failure.message
    assert "\n" not in failure.message


def test_a_whole_number_may_be_written_with_a_point(words: Tools) -> None:
    assert len(words("list_documents", collection="guide", limit=3.0)["documents"]) == 3


def test_a_document_too_large_to_send_is_refused_with_what_to_do(backend: str, tmp_path: Path) -> None:
    small = "# Big\n\n" + "x" * 79 + "\n"
    text = small + "## End\n\nSmall.\n\n" + "word " * 2000
    with open_library(backend, tmp_path / "home", result_tokens=1000) as library:
        library.add_folder(write(tmp_path / "files", {"big.md": text}), "files")
        tools = Tools(library)
        assert tools("list_documents", collection="files")["documents"][0]["size"] == len(text)
        for failure in (
            tools.refused("get_document", collection="files", document="big.md"),
            tools.refused("get_section", collection="files", document="big.md", section="End"),
        ):
            assert failure.code == "too_large"
            assert "documents_get_section" in failure.message
            assert "at most 4000" in failure.message
        own = tools("get_section", collection="files", document="big.md", section="Big", includeSubsections=False)
        assert own["content"] == small.removesuffix("\n")


def test_a_view_limits_every_tool(words: Tools) -> None:
    narrowed = words.narrowed("manual")
    assert [one["collection"] for one in narrowed("list_collections")["collections"]] == ["manual"]
    for tool, more in (("list_documents", {}), ("get_document", {"document": "bread.md"})):
        failure = narrowed.refused(tool, collection="guide", **more)
        unknown = narrowed.refused(tool, collection="nothing", **more)
        assert failure.record()["error"]["collections"] == unknown.record()["error"]["collections"] == ["manual"]
        assert failure.message.replace("guide", "nothing") == unknown.message
    assert narrowed.narrowed("guide")("list_collections") == {"collections": []}


def test_the_view_of_a_project_has_its_collections_and_the_users(tmp_path: Path, words: Tools) -> None:
    declared = '{"collections": {"house": {"url": "docs"}}}'
    write(tmp_path, {"context.json": declared, "docs/a.md": "# A\n"})
    space = words.library.folder.name
    tools = Tools(words.library, View(tmp_path, space=space))
    assert [(one["collection"], one["documentCount"]) for one in tools("list_collections")["collections"]] == [
        ("guide", 7),
        ("house", 0),
        ("manual", 2),
    ]
    alone = Tools(words.library, View(tmp_path, with_global=False, space=space))
    assert [one["collection"] for one in alone("list_collections")["collections"]] == ["house"]
    write(tmp_path, {"context.json": '{"collections": {"home": "docs", "house": "docs"}}'})
    assert [one["collection"] for one in alone("list_collections")["collections"]] == ["home"]
