"""What the Markdown files of a folder say of themselves.

1. Tags of the front matter and of the text are tags of the document: searches filter by them.
2. Its times are the document's times; its other properties are metadata, with their types.
3. None of the front matter is a snippet or embedded; its words are found all the same, and lines and text stay true.
4. What cannot be read is said, and the file is read without it. What is no front matter is text.
5. Files that were read before there were properties are read once more.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from commonplace.ingest.files.properties import LONGEST_TAG, MOST_TAGS, properties_of
from commonplace.kinds.documents.collection_files import CollectionFiles
from commonplace.kinds.documents.folders.library_folders import Report
from commonplace.library import Library
from commonplace.model import Condition, Filter, Hit, Item
from commonplace.profiles.commonplace.search_tools import SEARCH
from commonplace.store.chunks import Chunks
from commonplace.tools.tool import Call

LOCKS = """---
title: Distributed locks
tags: [infra, On Call]
created: 2024-03-05
updated: 2024-04-01T10:30:00+02:00
status: done
rank: 3
public: false
aliases:
  - zebra lease
---

# Locks

Leases last thirty seconds. #ops/locks
"""


def read(library: Library, root: Path, text: str, name: str = "locks.md") -> Report:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(text, "utf-8", newline="")
    library.folders.ensure(root)
    return library.folders.update("notes")


def found(library: Library, query: str, **asked: tuple[object, ...]) -> list[Hit]:
    return list(library.search(query, filter=Filter(**asked)).hits)  # type: ignore[arg-type]


def item(library: Library, name: str = "locks.md") -> Item:
    return library.get(f"docs://notes/{name}")


@pytest.mark.parametrize("tag", ["infra", "on call", "INFRA", "ops/locks"])
def test_tags_of_front_matter_and_text_filter(library: Library, root: Path, tag: str) -> None:
    read(library, root, LOCKS)
    read(library, root, "Leases of another kind.\n", "other.md")
    assert [hit.uri for hit in found(library, "leases", tags=(tag,))] == ["docs://notes/locks.md"]
    answer = SEARCH.call(Call(library), {"query": "leases", "tags": [tag]})
    assert [record["uri"] for record in answer["results"]] == ["docs://notes/locks.md"]  # type: ignore[index]


def test_times_are_those_of_the_front_matter_and_the_rest_is_metadata_with_its_types(
    library: Library, root: Path
) -> None:
    read(library, root, LOCKS)
    document = item(library)
    assert document.title == "Distributed locks"
    assert document.created_at == datetime(2024, 3, 5, tzinfo=UTC)
    assert document.updated_at == datetime(2024, 4, 1, 8, 30, tzinfo=UTC)
    assert document.metadata == {"status": "done", "rank": 3, "public": False, "aliases": ["zebra lease"]}
    for condition in (
        Condition(("status",), "eq", "Done"),
        Condition(("rank",), "gt", 2),
        Condition(("public",), "eq", False),
        Condition(("aliases",), "array_contains", "zebra lease"),
    ):
        assert len(found(library, "leases", where=(condition,))) == 1
    assert not found(library, "leases", where=(Condition(("rank",), "eq", "3"),))
    assert len(found(library, "leases", created_to=datetime(2024, 3, 6, tzinfo=UTC))) == 1  # type: ignore[arg-type]
    assert not found(library, "leases", updated_from=datetime(2024, 5, 1, tzinfo=UTC))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("matter", "created", "metadata"),
    [
        ("date: 2024-03-05", datetime(2024, 3, 5, tzinfo=UTC), {}),
        ("created: 2024-03-05\ndate: 2020-01-01", datetime(2024, 3, 5, tzinfo=UTC), {"date": "2020-01-01"}),
        ("created: 1709596800", datetime(2024, 3, 5, tzinfo=UTC), {}),
        ("created: the day before", None, {"created": "the day before"}),
    ],
)
def test_what_is_a_time(matter: str, created: datetime | None, metadata: dict[str, object]) -> None:
    known = properties_of(f"---\n{matter}\n---\nText.\n")
    assert (known.created, known.metadata) == (created, metadata)


def test_front_matter_is_neither_snippet_nor_embedded_but_its_words_are_found(library: Library, root: Path) -> None:
    read(library, root, LOCKS)
    (chunk,) = library.store.drawer(Chunks).of(item(library).id)
    assert chunk.text == "# Locks\n\nLeases last thirty seconds. #ops/locks\n"
    assert (chunk.line_start, chunk.line_end, chunk.headings) == (13, 15, ("Locks",))
    for query in ("zebra", '"zebra lease"', "infra", "leases", "status done"):
        (hit,) = found(library, query)
        assert "zebra" not in hit.snippet
        assert "---" not in hit.snippet
        assert hit.line in (13, 15)
    assert item(library).body == LOCKS, "the file is shown as it is"


def test_the_words_of_front_matter_count_once_in_a_long_file(library: Library, root: Path) -> None:
    read(library, root, LOCKS + "\n" + "A sentence about nothing much at all.\n" * 600)
    chunks = library.store.drawer(Chunks).of(item(library).id)
    assert len(chunks) > 3
    assert not any("zebra" in chunk.text for chunk in chunks)
    body = item(library).body or ""
    assert all(body[chunk.char_start : chunk.char_end] == chunk.text for chunk in chunks)
    page = library.search("zebra", filter=Filter(kinds=("document",)))
    assert [hit.chunk.ordinal for hit in page.hits] == [0]


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_file_of_front_matter_alone_is_found_by_its_title(library: Library, root: Path, newline: str) -> None:
    report = read(library, root, newline.join(["---", "title: Tidal pools", "tags: sea", "---", ""]))
    assert (report.added, report.warnings) == (1, [])
    assert [hit.uri for hit in found(library, "pools", tags=("sea",))] == ["docs://notes/locks.md"]


@pytest.mark.parametrize(
    ("line", "tags"),
    [
        ("tags: [a, b]", ("a", "b")),
        ("tags: a, b", ("a", "b")),
        ("tags: a b", ("a", "b")),
        ("tags: '#a #b'", ("a", "b")),
        ("tags:\n  - a\n  - '#b'\n  - A", ("a", "b")),
        ("tag: a\nkeywords: [b]", ("a", "b")),
        ("tags: 2024", ("2024",)),
        ("tags: [a, {b: c}, null, true, [d]]", ("a",)),
        ("tags:", ()),
        (f"tags: ['{'x' * (LONGEST_TAG + 1)}', a]", ("a",)),
    ],
)
def test_tags_may_be_a_list_or_words(line: str, tags: tuple[str, ...]) -> None:
    assert properties_of(f"---\n{line}\n---\nText.\n").tags == tags
    assert not properties_of(f"---\n{line}\n---\nText.\n").metadata


@pytest.mark.parametrize(
    ("text", "tags"),
    [
        ("A #tag and #another-one, #a_b/c.", ("tag", "another-one", "a_b/c")),
        ("#first at the start\n\n- an item #second", ("first", "second")),
        ("- item\n\t- nested #deep\n", ("deep",)),
        ("#日本 #Über #y2024 #café.", ("日本", "Über", "y2024", "café")),
        ("#Same #same", ("Same",)),
        ("# Heading\n\n## Another #inside\n\nText", ()),
        ("#1 #2024 # ## #- a#b /#c [x](y#z) &#169; http://x.y/#z", ()),
        ("Text `code #no` and ``a ` #no`` #yes", ("yes",)),
        ("```\n#no\n```\n\n~~~sh\n # a #no\n~~~\n\n#yes", ("yes",)),
        ("Text\n\n    indented #no\n\n#yes", ("yes",)),
        ("---\ntags: a # comment #no\n---\n\n#yes", ("a", "yes")),
    ],
)
def test_tags_stand_in_the_text_but_not_in_code_or_headings(text: str, tags: tuple[str, ...]) -> None:
    assert properties_of(text).tags == tags


def test_tags_in_code_and_plain_text_files_are_none(library: Library, root: Path) -> None:
    read(library, root, "#include it\n", "a.txt")
    read(library, root, "x = 1 #todo\n", "a.py")
    assert item(library, "a.txt").tags == item(library, "a.py").tags == ()


@pytest.mark.parametrize(
    "matter", ["tags: [a\nb: c", "a: &x [*x]\nb: *y", "tags: a\n\tb: c", "a: !!python/object:os.system {}", "{a: b"]
)
def test_front_matter_that_cannot_be_read_is_a_note_and_the_file_is_read_without_it(
    library: Library, root: Path, matter: str
) -> None:
    report = read(library, root, f"---\nname: zebra\n{matter}\n---\nKelp here. #sea\n")
    ((path, note),) = report.warnings
    assert path == "locks.md"
    assert note.startswith("its front matter says nothing: ")
    assert (item(library).tags, item(library).metadata) == (("sea",), {})
    (chunk,) = library.store.drawer(Chunks).of(item(library).id)
    assert chunk.text == "Kelp here. #sea\n"
    assert len(found(library, "zebra")) == len(found(library, "kelp")) == 1


@pytest.mark.parametrize("text", ["---\nA sentence, and: more.\n---\nB.\n", "---\n\n- a\n---\nB.\n", "---\nNo end.\n"])
def test_what_stands_between_two_rules_and_is_no_front_matter_is_text(library: Library, root: Path, text: str) -> None:
    text = text.replace(", and: more", "")
    report = read(library, root, text)
    assert report.warnings == []
    (chunk,) = library.store.drawer(Chunks).of(item(library).id)
    assert chunk.text == text


def test_front_matter_and_tags_have_bounds(library: Library, root: Path) -> None:
    read(library, root, f"---\ntags: [{', '.join(f't{n}' for n in range(MOST_TAGS + 5))}]\n---\nKelp. #more\n")
    assert len(item(library).tags) == MOST_TAGS
    report = read(library, root, f"---\nname: {'long ' * 20_000}\n---\nKelp.\n")
    assert "has more than 65,536 characters" in report.warnings[0][1]
    assert item(library).metadata == {}
    for hostile in ("[" * 60_000, "- " * 30_000, "{a: " * 15_000, "? " * 30_000, "a: &a [x]\nb: [" + "*a," * 20_000):
        report = read(library, root, f"---\nname: {hostile}\n---\nKelp.\n")
        assert report.warnings
        assert len(found(library, "kelp")) == 1


def test_toml_counts_too(library: Library, root: Path) -> None:
    read(library, root, '+++\ntags = ["sea"]\ndate = 2024-03-05\nrank = 2\n+++\nKelp.\n')
    assert (item(library).tags, item(library).metadata) == (("sea",), {"rank": 2})
    assert item(library).created_at == datetime(2024, 3, 5, tzinfo=UTC)


def test_the_title_follows_the_text(library: Library, root: Path) -> None:
    for text, title in (
        ("# One\n\nText.\n", "One"), ("# Two\n\nText.\n", "Two"), ("---\ntitle: Given\n---\n# Two\n", "Given"),
        ("# Three\n", "Three"), ("Text.\n", "locks"),
    ):  # fmt: skip
        read(library, root, text)
        assert item(library).title == title


def test_what_changes_in_the_front_matter_changes_in_the_library(library: Library, root: Path) -> None:
    read(library, root, LOCKS)
    read(library, root, LOCKS.replace("Distributed locks", "Leases").replace("infra", "platform"))
    assert item(library).title == "Leases"
    assert item(library).tags[0] == "platform"
    assert not found(library, "leases", tags=("infra",))
    read(library, root, "# Plain\n\nLeases.\n")
    assert (item(library).title, item(library).tags, item(library).metadata) == ("Plain", (), {})


def test_files_read_before_there_were_properties_are_read_once_more(library: Library, root: Path) -> None:
    read(library, root, LOCKS)
    (record,) = library.store.drawer(CollectionFiles).records("notes").values()
    assert record.reader.endswith(" properties-1")
    from commonplace.store.rows import FolderChange

    old = record._replace(reader=record.reader.removesuffix(" properties-1"))
    library.store.drawer(CollectionFiles).change(FolderChange("notes", [], [old], [], []))
    change = library.store.last_change()
    assert library.folders.update("notes").unchanged == 1
    assert library.store.drawer(CollectionFiles).records("notes")["locks.md"].reader == record.reader
    assert library.store.last_change() == change, "what says the same is not written anew"
