"""`get`, `multi-get` and `ls` as the command line has them."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from qmd_asking import Ask


def test_get_has_a_header_and_numbered_lines(ask: Ask) -> None:
    done = ask("get", "notes/2025/plan.md")
    assert done.code == 0
    header, rest = done.out.split("\n", 1)
    assert re.fullmatch(r"qmd://notes/2025/plan\.md  #[0-9a-f]{6}", header)
    assert rest == (
        "Folder Context: Everything about the house.\n\nPlans of the year --> and more.\n---\n\n"
        "1: # Planning\n2: \n3: The quarterly plan for the tea house.\n4: Budget and staff are in it.\n"
    )


@pytest.mark.parametrize(
    ("arguments", "lines"),
    [
        (["notes/numbers.md:120:2"], ["120: line 120", "121: line 121"]),
        (["notes/numbers.md:199"], ["199: line 199", "200: line 200"]),
        (["notes/numbers.md:199", "--from", "3"], ["199: line 199", "200: line 200"]),
        (["notes/numbers.md:5:1", "-l", "9"], ["5: line 5"]),
        (["notes/numbers.md", "--from", "7", "-l", "2"], ["7: line 7", "8: line 8"]),
        (["notes/numbers.md", "--from", "-3", "-l", "1", "--no-line-numbers"], ["line 1"]),
        (["qmd://notes/numbers.md:500"], ["[... no lines from 500: the document has 200 lines]"]),
        (["notes/crlf.md", "--no-line-numbers", "--from", "3"], ["first line", "second line"]),
        (["東京.md:3"], ["3: 東京都庁は新宿にあります。展望台からの眺めがよい。"]),
    ],
)
def test_the_suffix_of_a_name_wins(ask: Ask, arguments: list[str], lines: list[str]) -> None:
    done = ask("get", *arguments)
    assert done.code == 0
    assert done.out.split("---\n\n", 1)[1] == "\n".join(lines) + "\n"


def test_get_takes_what_get_printed(ask: Ask, shelf: Path) -> None:
    docid = ask("get", "notes/a/c.md").out.split("\n")[0].split("  ")[1]
    assert ask("get", docid).out == ask("get", "notes/a/c.md").out
    place = (shelf / "files/notes/a/c.md").resolve()
    assert ask("get", str(place)).out == ask("get", docid).out
    assert ask("get", docid, "--full-path").out.startswith(f"{place}  {docid}\n")


def test_a_path_that_begins_with_a_dot_is_seen_from_the_current_folder(
    ask: Ask, shelf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(shelf / "files/notes/a")
    assert ask("get", "./c.md:1:1").out == ask("get", "notes/a/c.md:1:1").out
    assert ask("get", "../b/c.md").out == ask("get", "notes/b/c.md").out
    assert ask("get", "./no-such.file") == (1, "", "Document not found: ./no-such.file\n")


def test_what_is_piped_is_the_text_with_every_character(qmd: Ask, desk: Path) -> None:
    """A document may be about terminals: its own escape sequences are no colour of ours."""
    body = "# Log\n\nThe word \x1b[31mred\x1b[0m in red.\n"
    (desk / "notes" / "log.md").write_text(body, "utf-8")
    assert qmd("collection", "add", str(desk / "notes")).code == 0
    assert qmd("get", "log.md", "--no-line-numbers").out.endswith(f"---\n\n{body}")
    assert body.rstrip() in qmd("multi-get", "log.md", "--no-line-numbers").out
    assert body in next(csv.DictReader(io.StringIO(qmd("search", "red", "--full", "--csv").out)))["snippet"]


def test_get_in_formats(ask: Ask) -> None:
    record = json.loads(ask("get", "notes/abc.md", "--format", "json", "--no-line-numbers").out)
    assert (record["file"], record["title"]) == ("qmd://notes/abc.md", "Abc")
    assert record["body"] == "# Abc\n\nNot to be found as c.md.\n"
    element = ElementTree.fromstring(ask("get", "notes/abc.md", "--xml").out)
    assert (element.tag, element.findtext("title")) == ("document", "Abc")
    assert element.findtext("body", "").startswith("1: # Abc\n")
    assert ask("get", "notes/abc.md", "--md").out.startswith("# Abc\n\n**file:** qmd://notes/abc.md\n**docid:** #")
    assert ask("get", "notes/abc.md", "--format", "csv") == (1, "", "Unknown --format value: csv\n")


def test_a_miss_is_told_on_stderr_with_similar_names(ask: Ask) -> None:
    done = ask("get", "notes/2025/plam.md")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith(
        "Document not found: notes/2025/plam.md\n\nDid you mean one of these?\n  - notes/2025/plan.md\n"
    )
    ambiguous = "Ambiguous path c.md: notes/a/c.md, notes/b/c.md. Use one of these paths.\n"
    assert ask("get", "c.md") == (1, "", ambiguous)
    assert ask("get", "notes/drafts/hidden.md").err.startswith("Document excluded by ignore rule: ")


def test_multi_get_prints_documents_under_rules(ask: Ask) -> None:
    done = ask("multi-get", "notes/a/*.md, notes/abc.md, nope.md")
    assert done.code == 0
    rule = "=" * 60
    assert done.out == (
        f"\n{rule}\nFile: qmd://notes/a/c.md\n{rule}\n\n"
        "Folder Context: Everything about the house.\n\nOnly folder a.\n---\n\n"
        "1: # First c\n2: \n3: The same name lives in two folders.\n"
        f"\n{rule}\nFile: qmd://notes/abc.md\n{rule}\n\n"
        "Folder Context: Everything about the house.\n---\n\n"
        "1: # Abc\n2: \n3: Not to be found as c.md.\n"
    )
    assert done.err.startswith("File not found: nope.md")


def test_multi_get_skips_what_is_too_large(ask: Ask) -> None:
    small, big = json.loads(ask("multi-get", "notes/abc.md,notes/big.md", "--max-bytes", "1000", "--json").out)
    assert list(small) == ["file", "docid", "title", "context", "body"]
    assert list(big) == ["file", "docid", "title", "context", "skipped", "reason"]
    assert big["skipped"] is True
    assert big["reason"].startswith("File too large (16KB).")
    assert "[SKIPPED: File too large" in ask("multi-get", "notes/big.md", "--max-bytes", "1000").out
    assert ask("multi-get", "notes/big.md", "--max-bytes", "1000", "--files").out.endswith(",[SKIPPED]\n")
    assert json.loads(ask("multi-get", "notes/big.md", "--json").out)[0]["body"]


def test_multi_get_cuts_long_documents(ask: Ask) -> None:
    (record,) = json.loads(ask("multi-get", "notes/numbers.md", "-l", "2", "--no-line-numbers", "--json").out)
    assert record["body"] == "line 1\nline 2\n\n[... truncated 198 more lines]"


def test_multi_get_in_every_format(ask: Ask) -> None:
    files = [record["file"] for record in json.loads(ask("multi-get", "docs/**/*.md", "--json").out)]
    assert len(files) == 9
    assert [row["file"] for row in csv.DictReader(io.StringIO(ask("multi-get", "docs/**/*.md", "--csv").out))] == files
    root = ElementTree.fromstring(ask("multi-get", "docs/**/*.md", "--xml").out)
    assert (root.tag, [one.findtext("file") for one in root]) == ("documents", files)
    assert [row[1] for row in csv.reader(io.StringIO(ask("multi-get", "docs/**/*.md", "--files").out))] == files
    assert re.findall(r"^## (.*)$", ask("multi-get", "docs/**/*.md", "--md").out, re.MULTILINE)[:1] == files[:1]


def test_nothing_matched_is_a_failure(ask: Ask) -> None:
    done = ask("multi-get", "nope/*.md")
    assert (done.code, done.out, done.err) == (1, "", "No files matched pattern: nope/*.md\n")


def test_ls_lists_collections_and_their_files(ask: Ask) -> None:
    assert "  qmd://docs/  (9 files)\n" in ask("ls").out
    lines = ask("ls", "docs").out.splitlines()
    assert len(lines) == 9
    assert all(
        re.fullmatch(r" *[\d.]+ K?B  [A-Z][a-z]{2} [ \d]\d (\d\d:\d\d| \d{4})  qmd://docs/.*", one) for one in lines
    )
    files = [line.split("  ")[-1] for line in lines]
    assert files == sorted(files)


def test_a_prefix_of_ls_ends_at_a_component(ask: Ask) -> None:
    assert [record["file"] for record in json.loads(ask("ls", "notes/a", "--json").out)] == ["qmd://notes/a/c.md"]
    (record,) = json.loads(ask("ls", "qmd://notes/2025/plan.md", "--json").out)
    assert (record["title"], record["bytes"]) == ("Planning", 78)
    done = ask("ls", "notes/jour")
    assert (done.code, done.out, done.err) == (0, "", "No files found under qmd://notes/jour\n")
    assert json.loads(ask("ls", "--json").out)[0]["name"] == "docs"
    assert ask("ls", "nope") == (1, "", "Collection not found: nope\n")
