"""`search`, `vsearch` and `query` as the command line has them."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from qmd_asking import Ask, asked

from commonplace.text.text_lines import split_lines

HEADER = re.compile(r"@@ -(\d+),(\d+) @@ \((\d+) before, (\d+) after\)")


def test_people_get_five_and_programs_twenty(ask: Ask) -> None:
    assert len(ask("search", "entry number", "--csv").out.split("\r\n#")) == 6
    assert len(json.loads(ask("search", "entry number", "--json").out)) == 20
    assert len(ask("search", "entry number", "--files").out.splitlines()) == 20
    assert len(json.loads(ask("search", "entry number", "--json", "-n", "3").out)) == 3
    assert len(json.loads(ask("search", "entry number", "--json", "--all").out)) >= 64


def test_a_hit_has_its_place_title_context_score_and_snippet(ask: Ask) -> None:
    done = ask("search", "quarterly", "plan", "-n", "1")
    assert done.code == 0
    lines = done.out.split("\n")
    assert re.fullmatch(r"qmd://notes/2025/plan\.md:3 #[0-9a-f]{6}", lines[0])
    assert lines[1:3] == ["Title: Planning", "Context: Everything about the house."]
    assert re.fullmatch(r"Score: \d+%", lines[5])
    assert lines[6:] == [
        "", "@@ -2,3 @@ (1 before, 0 after)", "", "The quarterly plan for the tea house.",
        "Budget and staff are in it.", "",
    ]  # fmt: skip


def test_two_hits_are_two_blank_lines_apart(ask: Ask) -> None:
    first, second = ask("search", "twin", "-n", "2").out.split("\n\n\n")
    assert first.startswith("qmd://notes/twin-1.md:")
    assert second.startswith("qmd://notes/twin-2.md:")


@pytest.mark.parametrize("query", ["oolong", "line", "新宿", "quokka", "зав", "larger than ten"])
def test_snippets_say_where_they_are_in_the_file(ask: Ask, shelf: Path, query: str) -> None:
    found = json.loads(ask("search", query, "--json").out)
    assert found
    for record in found:
        header, *shown = record["snippet"].split("\n")
        start, count, before, after = map(int, HEADER.fullmatch(header).groups())  # type: ignore[union-attr]
        lines = split_lines((shelf / "files" / record["file"].removeprefix("qmd://")).read_text("utf-8"))
        assert (before, count, before + count + after) == (start - 1, len(shown), len(lines))
        assert start <= record["line"] < start + count
        for number, line in enumerate(shown, start=start):
            assert line.strip("…") in lines[number - 1]
        assert len("\n".join(shown)) <= 300


def test_line_numbers_are_those_of_the_file(ask: Ask) -> None:
    snippet = json.loads(ask("search", "restart the modem", "--json", "--line-numbers", "-n", "1").out)[0]["snippet"]
    header, *lines = snippet.split("\n")
    assert [line.split(":")[0] for line in lines] == [
        str(number)
        for number in range(int(HEADER.match(header)[1]), int(HEADER.match(header)[1]) + len(lines))  # type: ignore[index]
    ]


def test_full_gives_the_body(ask: Ask, shelf: Path) -> None:
    (record,) = json.loads(ask("search", "xylophone", "-c", "private", "--json", "--full").out)
    assert record["body"] == (shelf / "files/private/diary.md").read_text("utf-8")
    assert "snippet" not in record
    (record,) = json.loads(ask("search", "xylophone", "-c", "private", "--json", "--full", "--line-numbers").out)
    assert record["body"].startswith("1: # Diary\n2: \n3: A xylophone")


def test_full_path_is_the_path_on_disk(ask: Ask, shelf: Path) -> None:
    place = (shelf / "files/notes/2025/plan.md").resolve()
    assert ask("search", "quarterly plan", "-n", "1", "--full-path").out.startswith(f"{place}:3 #")


def test_every_format_tells_of_the_same_hits(ask: Ask) -> None:
    def run(format: str) -> str:
        return ask("search", "oolong", "-n", "4", "--format", format).out

    files = [record["file"] for record in json.loads(run("json"))]
    assert len(files) == 4
    assert [row["file"] for row in csv.DictReader(io.StringIO(run("csv"), newline=""))] == files
    assert [row[2] for row in csv.reader(io.StringIO(run("files"), newline=""))] == files
    assert [element.attrib["name"] for element in ElementTree.fromstring(run("xml"))] == files
    assert re.findall(r"^\*\*file:\*\* (.*)$", run("md"), re.MULTILINE) == files
    assert re.findall(r"^(qmd://.*):\d+ #", run("cli"), re.MULTILINE) == files


def test_the_last_format_named_counts(ask: Ask) -> None:
    assert ask("search", "oolong", "--format", "csv", "--json").out.startswith("[")
    assert ask("search", "oolong", "--json", "--format", "csv").out.startswith("docid,")


@pytest.mark.parametrize("command", ["search", "vsearch", "query", "multi-get"])
def test_another_format_is_refused(ask: Ask, command: str) -> None:
    assert ask(command, "oolong", "--format", "yaml") == (1, "", "Unknown --format value: yaml\n")


def test_explain_tells_what_went_into_a_score(ask: Ask) -> None:
    (record,) = json.loads(ask("query", "quarterly plan", "-n", "1", "--json", "--explain").out)
    assert record["explain"]["rrf"]["contributions"][0]["source"] == "fts"
    assert record["explain"]["blendedScore"] == pytest.approx(record["score"], abs=0.005)
    assert "Explain: retrieval " in ask("query", "quarterly plan", "-n", "1", "--explain").out


def test_a_score_below_the_least_one_is_none(ask: Ask) -> None:
    assert ask("search", "zeppelin", "--min-score", "1").out == "No results found above minimum score threshold.\n"
    assert ask("search", "nosuchwordanywhere").out == "No results found.\n"
    assert ask("search", "nosuchwordanywhere", "--min-score", "0.5").out == "No results found.\n"
    assert ask("search", "zeppelin", "--min-score", "1", "--json").out == "[]\n"
    scores = [record["score"] for record in json.loads(ask("search", "zeppelin", "--min-score", "0.7", "--json").out)]
    assert scores
    assert min(scores) >= 0.7


def test_an_excluded_collection_is_searched_when_it_is_named(ask: Ask) -> None:
    assert ask("search", "xylophone").out == "No results found.\n"
    assert ask("search", "xylophone", "-c", "private").out.startswith("qmd://private/diary.md:3")
    both = {record["file"] for record in json.loads(ask("search", "tea", "-c", "private", "-c", "docs", "--json").out)}
    assert {file.split("/")[2] for file in both} == {"private", "docs"}


def test_an_unknown_collection_fails(ask: Ask) -> None:
    done = ask("search", "tea", "-c", "nope")
    assert (done.code, done.out) == (1, "")
    assert done.err == "Collection not found: nope. Available collections: docs, notes, private.\n"


@pytest.mark.parametrize("command", ["vsearch", "vector-search"])
def test_meaning_needs_vectors(ask: Ask, command: str) -> None:
    sentence = "Vector index not found. Run 'qmd embed' first to create embeddings.\n"
    assert ask(command, "hot drinks") == (1, "", sentence)


@pytest.mark.parametrize("command", ["query", "deep-search"])
def test_query_goes_by_words_without_vectors_and_says_so(ask: Ask, command: str) -> None:
    done = ask(command, "quarterly plan", "-n", "1", "--files")
    assert done.code == 0
    assert "qmd://notes/2025/plan.md" in done.out
    assert done.err.startswith("Note: keyword search only.")


@pytest.mark.parametrize(
    ("text", "line"),
    [("lex: oolong\ntea", 2), ("oolong\n\nvec: hot tea", 1), ("lex: tea\nexpand: more", 2), ("lex: tea\nvec:", 2)],
)
def test_a_query_document_is_typed_on_every_line(ask: Ask, text: str, line: int) -> None:
    done = ask("query", text)
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith(f"Line {line} ")


def test_a_query_document_makes_its_own_lists(ask: Ask) -> None:
    typed = json.loads(ask("query", "lex: oolong\nintent: brewing", "--json", "--explain", "-n", "1").out)
    (contribution,) = typed[0]["explain"]["rrf"]["contributions"]
    assert (contribution["queryType"], contribution["query"]) == ("lex", "oolong")
    assert ask("query", "expand: oolong", "--files", "-n", "1").code == 0


@pytest.mark.parametrize("text", ['"unmatched', "AND OR NOT", "a:b (c", "🍵", "it's", "%", "*", "--", "C++ HTTP/2"])
def test_no_text_is_an_error(ask: Ask, text: str) -> None:
    for command in ("search", "query"):
        assert ask(command, "--", text).code == 0


@pytest.mark.parametrize(
    "wrong",
    [
        ["search"],
        ["search", " "],
        ["search", "tea", "-n", "0"],
        ["search", "tea", "-n", "many"],
        ["search", "tea", "--min-score", "2"],
        ["search", "tea", "--no-such-option"],
        ["search", "tea", "--no-rerank"],
        ["query", "tea", "-C", "0"],
        ["nosuchcommand"],
        ["search", "tea", "--index", "../elsewhere"],
    ],
)
def test_wrong_usage_exits_2_and_prints_no_result(ask: Ask, wrong: list[str]) -> None:
    done = ask(*wrong)
    assert (done.code, done.out) == (2, "")
    assert done.err


def test_another_index_is_another_world(ask: Ask) -> None:
    assert ask("search", "oolong", "--index", "work").out == "No results found.\n"
    assert ask("--index", "work", "search", "oolong").out == "No results found.\n"
    assert ask("--index=default", "search", "oolong", "--files", "-n", "1").out.startswith("#")


def test_meaning_finds_other_words_once_there_are_vectors(qmd: Ask, desk: Path) -> None:
    qmd("collection", "add", str(desk / "notes"))
    assert qmd("embed").code == 0
    done = asked("vsearch", "boiling water for tea", "--min-score", "0", "--files")
    assert "qmd://notes/tea.md" in done.out
    assert asked("query", "lex: oolong\nvec: hot drinks", "--files").out.startswith("#")
    assert asked("query", "oolong", "--no-rerank", "-C", "5").code == 0
