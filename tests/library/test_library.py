"""The Library: one space, and what can be done with it besides searching."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import apsw
import pytest

from commonplace.errors import InvalidInput, NotFound, VersionConflict
from commonplace.kinds.knowledge.records import put_record
from commonplace.library import Library, restore
from commonplace.model import JSON, LAST_MOMENT, Draft, Filter, Span
from commonplace.space import space_folder
from commonplace.store.listing import Listing
from commonplace.store.stored_settings import StoredSettings
from opening import library_settings, open_library

GUIDE = """# Guide

Intro.

## Green *tea*

Cool water.

## Oolong

Hot water.

### Times

Three minutes.
"""


@pytest.fixture
def guide(library: Library) -> Library:
    library.put(Draft("document", "guide.md", parent="docs", title="Guide", body=GUIDE, format="markdown"))
    return library


def test_a_draft_goes_in_and_comes_back(library: Library) -> None:
    item = library.put(Draft("note", "tea", title="Tea", body="Oolong."))
    assert library.get("notes://tea").body == "Oolong."
    assert library.get("notes://tea", body=False) == item
    with pytest.raises(VersionConflict):
        library.put(Draft("note", "tea", body="x"), expected_version=0)
    library.delete("notes://tea", expected_version=1)
    with pytest.raises(NotFound, match="notes://tea"):
        library.get("notes://tea")


def test_a_library_stays_where_it_was_opened_when_the_working_directory_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, elsewhere = tmp_path / "here", tmp_path / "elsewhere"
    here.mkdir()
    elsewhere.mkdir()
    monkeypatch.chdir(here)
    with Library.open("home", settings=library_settings(Path("home"))) as library:
        library.put(Draft("note", "tea", body="Oolong."))
        monkeypatch.chdir(elsewhere)
        library.put(Draft("note", "more", body="More oolong."))
        assert len(library.search("oolong").hits) == 2
        library.embed()
    assert list(elsewhere.iterdir()) == []


def test_nobody_else_looks_into_a_new_library(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        with Library.open(tmp_path / "home") as library:
            library.put(Draft("note", "secret", body="oolong"))
            library.search("oolong")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "home" / "spaces" / "default").stat().st_mode) == 0o700


def test_a_library_opens_and_searches_while_another_process_writes(tmp_path: Path) -> None:
    with Library.open(tmp_path, settings=library_settings(tmp_path)) as library:
        library.put(Draft("note", "tea", body="Oolong."))
        assert [hit.uri for hit in library.search("oolong").hits] == ["notes://tea"]
    writer = apsw.Connection(str(space_folder(tmp_path, "default") / "library.db"))
    try:
        writer.execute("begin immediate")
        with Library.open(tmp_path, settings=library_settings(tmp_path)) as library:  # not after half a minute
            assert [hit.uri for hit in library.search("oolong").hits] == ["notes://tea"]
    finally:
        writer.close()


@pytest.mark.parametrize(
    "uri",
    ["notes://nothing", "nonsense", "", "notes://", "docs://only", "unknown://x", "notes://\ud800", "notes://%ff%00"],
)
def test_an_address_of_nothing_is_not_found(library: Library, uri: str) -> None:
    with pytest.raises((NotFound, InvalidInput)):
        library.get(uri)


def test_many_are_put_in_bounded_batches_and_counted(library: Library) -> None:
    seen: list[int] = []
    drafts = (Draft("note", str(n), body="x") for n in range(1201))
    assert library.put_many(drafts, lambda done, _: seen.append(done)) == 1201
    assert seen == [500, 1000, 1201]


def test_a_delete_by_filter_deletes_just_that(library: Library) -> None:
    library.put_many(Draft("note", str(n), parent="a" if n % 2 else "b", body="tea") for n in range(10))
    assert library.delete_where(Filter(parents=("a",))) == 5
    assert len(library.search("tea", limit=50).hits) == 5
    with pytest.raises(InvalidInput, match="everything"):
        library.delete_where(Filter())


def test_an_outline_lists_the_headings_and_a_section_is_found_by_any_of_its_names(guide: Library) -> None:
    uri = "docs://docs/guide.md"
    assert [heading.title for heading in guide.outline(uri)] == ["Guide", "Green tea", "Oolong", "Times"]
    oolong = guide.section(uri, "oolong")
    assert oolong.startswith("## Oolong")
    assert "Three minutes" in oolong
    for name in ("Times", "times", "Guide › Oolong › Times"):
        assert guide.section(uri, name).strip().endswith("Three minutes.")
    with pytest.raises(NotFound, match=r'no heading "Milk".*"Green tea"'):
        guide.section(uri, "Milk")


def test_the_status_counts_without_changing_anything(guide: Library) -> None:
    before = guide.store.last_change()
    status = guide.status()
    assert (status.items, status.collections, status.changes) == ({"document": 1}, {"docs": 1}, before)
    assert (status.coverage.model, status.coverage.embedded) == (None, 0)
    guide.embed()
    status = guide.status()
    assert (status.coverage.model, status.coverage.pending) == ("static", 0)
    assert status.chunks == status.coverage.total
    assert guide.doctor() == []


def test_a_rebuild_changes_no_answer(guide: Library) -> None:
    guide.embed()
    before = [(hit.uri, hit.score) for hit in guide.search("water").hits]
    guide.rebuild()
    assert [(hit.uri, hit.score) for hit in guide.search("water").hits] == before


def test_a_restored_backup_answers_as_it_did_then(guide: Library, tmp_path: Path) -> None:
    guide.embed()
    guide.backup(tmp_path / "backup.db")
    guide.put_many(Draft("note", f"later{n}", body="later water") for n in range(30))
    guide.search("water")
    other = tmp_path / "other"
    restore(tmp_path / "backup.db", other)
    with Library.open(other, settings=library_settings(other)) as elsewhere:
        assert [hit.uri for hit in elsewhere.search("water").hits] == ["docs://docs/guide.md"]
    restore(tmp_path / "backup.db", tmp_path, guide.folder.name, guide.settings)  # while it is open
    for mode in ("lexical", "semantic", "hybrid"):
        hits = guide.search("water", mode=mode, limit=2).hits
        assert [hit.uri for hit in hits] == ["docs://docs/guide.md"], mode
    guide.put(Draft("note", "fresh", body="fresh water"))
    assert "notes://fresh" in [hit.uri for hit in guide.search("fresh").hits]
    assert guide.doctor() == []


def test_a_backup_goes_where_a_link_leads_as_an_export_does(guide: Library, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere.backup")
    guide.backup(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    restore(tmp_path / "elsewhere.backup", tmp_path / "other")


def test_a_backup_is_for_its_owner_alone_to_read_also_while_it_is_made(
    guide: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    modes = []
    monkeypatch.setattr(os, "fsync", lambda file: modes.append(stat.S_IMODE(os.fstat(file).st_mode)))
    (tmp_path / "older").touch(0o644)
    before = os.umask(0o022)
    try:
        for target in (tmp_path / "backup.db", tmp_path / "older"):
            guide.backup(target)
            modes.append(stat.S_IMODE(target.stat().st_mode))
    finally:
        os.umask(before)
    assert modes == [0o600] * 4


def test_a_backup_takes_no_place_of_what_is_no_file(guide: Library, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for target in (pipe, tmp_path, Path()):
        with pytest.raises(InvalidInput, match=r"is no file, and one would take its place\."):
            guide.backup(target)
    assert pipe.is_fifo()


@pytest.mark.parametrize("later", [0, 40])
def test_what_a_restored_backup_lacks_in_vectors_is_made_under_an_open_library(
    later: int, guide: Library, backend: str, tmp_path: Path
) -> None:
    guide.embed()
    guide.put_many(Draft("note", f"pending{n}", body=f"volcano {n}") for n in range(5))
    guide.backup(tmp_path / "backup.db")
    guide.put_many(Draft("note", f"gone{n}", body=f"water {n}") for n in range(20))
    assert len(guide.search("volcano", mode="semantic", limit=100).hits) > 20  # it has come to the end of the log
    restore(tmp_path / "backup.db", tmp_path, guide.folder.name, guide.settings)
    with open_library(backend, tmp_path) as other:  # whose log may be longer than the old one by now
        other.put_many(Draft("note", f"new{n}", body=f"lava {n}") for n in range(later))
    found = {hit.item.key for hit in guide.search("volcano", mode="semantic", limit=100).hits}
    assert {f"pending{n}" for n in range(5)} <= found
    assert guide.store.replaced
    assert guide.doctor() == []


def test_a_store_put_back_under_an_open_library_is_noticed_by_both_indexes(guide: Library, tmp_path: Path) -> None:
    guide.embed()
    guide.backup(tmp_path / "backup.db")
    guide.put_many(Draft("note", f"later{n}", body="water") for n in range(30))
    guide.search("water")
    guide.store.restore(tmp_path / "backup.db")
    for mode in ("lexical", "semantic", "hybrid"):
        assert [hit.uri for hit in guide.search("water", mode=mode, limit=2).hits] == ["docs://docs/guide.md"], mode


def test_a_model_changed_by_another_process_is_noticed(guide: Library, backend: str, tmp_path: Path) -> None:
    guide.embed()
    assert guide.search("water", mode="semantic").hits
    with open_library(backend, tmp_path) as other:
        other.store.drawer(StoredSettings).set("model", "hf:somebody/something")
    assert guide.embedding.chosen == "hf:somebody/something"
    page = guide.search("water")
    assert [hit.uri for hit in page.hits] == ["docs://docs/guide.md"]
    assert any(stage.name == "vector" and stage.status == "skipped" for stage in page.stages)


def test_a_model_that_is_not_there_stops_no_status_and_no_search(guide: Library) -> None:
    guide.embed()
    guide.store.drawer(StoredSettings).set("model", "hf:somebody/something")
    assert guide.status().items == {"document": 1}
    (problem,) = guide.doctor()
    assert problem.startswith(f"The model hf:somebody/something is not in {guide.settings.models}.")
    assert guide.search("water").hits


@pytest.mark.parametrize("name", ["", "..", "a/b", "A", "-a", "x" * 65, "a b", ".hidden", "a\n"])
def test_a_space_s_name_is_a_plain_word(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidInput, match="space is named"):
        space_folder(tmp_path, name)


def test_spaces_do_not_see_each_other(tmp_path: Path) -> None:
    settings = library_settings(tmp_path)
    with Library.open(tmp_path, "ann", settings) as ann, Library.open(tmp_path, "bob", settings) as bob:
        ann.put(Draft("note", "secret", body="tea"))
        assert bob.search("tea").hits == ()
        assert bob.status().items == {}
        with pytest.raises(NotFound):
            bob.get("notes://secret")


def test_an_item_of_a_title_alone_is_found_by_it(library: Library) -> None:
    library.put(Draft("note", "t", title="Oolong"))
    (hit,) = library.search("oolong").hits
    assert (hit.uri, hit.snippet) == ("notes://t", "")


def test_nothing_of_a_refused_draft_is_stored(library: Library) -> None:
    with pytest.raises(InvalidInput):
        library.put_many([Draft("note", "fine", body="x"), Draft("note", "bad", body="\0")])
    assert library.status().items == {}
    assert library.store.last_change() == 0


def test_a_deleted_conversation_takes_its_messages_along_and_a_character_leaves_its_conversations(
    library: Library,
) -> None:
    put_record(library.store, {"kind": "character", "name": "Zoë"})
    talk = {"kind": "conversation", "character_id": 1, "messages": [{"role": "user", "content": "gummy bread"}]}
    gone, kept = (put_record(library.store, {**talk, "title": title}).uri for title in ("One", "Two"))
    with pytest.raises(VersionConflict):
        library.delete(gone, expected_version=7)
    library.delete(gone)
    assert library.status().items == {"character": 1, "conversation": 1, "message": 1}
    assert [hit.uri.startswith(f"{kept}/") for hit in library.search("gummy").hits] == [True]
    library.delete("characters://1")
    assert "character" not in library.get(kept).fields


def test_one_pattern_alone_leaves_out_what_it_does_in_a_list(library: Library, tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    for name in ("guide.md", "guide.draft.md"):
        (tmp_path / "docs" / name).write_text(GUIDE, encoding="utf-8")
    library.add_folder(tmp_path / "docs", ignore="*.draft.md")
    assert [item.key for item in library.store.drawer(Listing).scan(Filter(kinds=("document",)))] == ["guide.md"]
    assert library.folders.get("docs").ignore == ("*.draft.md",)
    assert library.folders.change("docs", ignore="*.old.md").ignore == ("*.old.md",)
    assert library.folders.add(tmp_path / "docs", "more", ignore="*.draft.md", pattern="*.md").ignore == ("*.draft.md",)


@pytest.mark.parametrize("by_filter", [False, True])
def test_a_deleted_collection_takes_its_documents_along(library: Library, tmp_path: Path, by_filter: bool) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "guide.md").write_text(GUIDE, encoding="utf-8")
    library.add_folder(tmp_path / "docs")
    assert library.status().items == {"document": 1}
    with pytest.raises(VersionConflict):
        library.delete("collections://docs", expected_version=7)
    if by_filter:
        assert library.delete_where(Filter(kinds=("collection",))) == 1
    else:
        library.delete("collections://docs")
    assert library.status().items == {}
    assert library.folders.all() == []
    assert library.store.check() == []


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"key": 7}, "The key of a note must be text, not int."),
        ({"title": None}, "The title of note 'tea' must be text, not NoneType."),
        ({"body": b"x"}, "The body of note 'tea' must be text, not bytes."),
        ({"parent": None}, "The parent of note 'tea' must be text, not NoneType."),
        ({"format": 1}, "The format of note 'tea' must be text, not int."),
        ({"tags": "abc"}, "The tags of note 'tea' must be a tuple of texts, not str."),
        ({"tags": (tag for tag in "abc")}, "The tags of note 'tea' must be a tuple of texts, not generator."),
        ({"tags": (1,)}, "The tags of note 'tea' must be a tuple of texts, and one is int."),
        ({"tags": None}, "The tags of note 'tea' must be a tuple of texts, not NoneType."),
        ({"fields": [1]}, "The fields of note 'tea' must be an object, not list."),
        ({"metadata": None}, "The metadata of note 'tea' must be an object, not NoneType."),
        ({"metadata": "abc"}, "The metadata of note 'tea' must be an object, not str."),
        ({"created_at": "2020-01-01"}, "A time of note 'tea' must be a datetime, not str."),
        ({"spans": ("x",)}, "A passage of note 'tea' must be a Span, not str."),
    ],
)
def test_a_draft_of_wrong_types_is_refused_in_a_sentence(library: Library, given: dict[str, Any], said: str) -> None:
    draft = Draft(**{"kind": "note", "key": "tea", "body": "x", **given})
    for put in (library.put, lambda draft: library.put_many([draft])):
        with pytest.raises(InvalidInput) as refused:
            put(draft)
        assert str(refused.value) == said
    assert library.status().items == {}


def test_what_is_no_draft_is_refused_in_a_sentence(library: Library) -> None:
    nothing: Any = {"kind": "note"}
    for put in (library.put, lambda given: library.put_many([given])):
        with pytest.raises(InvalidInput, match="What is stored must be a Draft, not dict"):
            put(nothing)


@pytest.mark.parametrize(
    ("key", "fields", "said"),
    [
        ("x", {}, "its key is a number"),
        ("007", {}, "its key is a number"),
        ("٧", {}, "its key is a number"),
        (str(2**63), {}, "its key is a number"),
        ("7", {"source": ["agent"]}, "its source a text"),
        ("7", {"expires_at": "tomorrow"}, "The expiry of memory '7'"),
        ("7", {"expires_at": LAST_MOMENT + 1}, "The expiry of memory '7'"),
        ("7", {"expires_at": 1e18}, "The expiry of memory '7'"),
        ("7", {"supersedes": 3}, "What memory '7' supersedes"),
        ("7", {"supersedes": ["3"]}, "What memory '7' supersedes"),
    ],
)
def test_an_entry_that_could_not_be_exported_is_refused(
    library: Library, key: str, fields: dict[str, JSON], said: str
) -> None:
    with pytest.raises(InvalidInput, match=said):
        library.put(Draft("memory", key, "t", body="x", fields={"source": "agent", **fields}))
    assert list(library.export()) == []


@pytest.mark.parametrize(
    "span",
    [
        Span("world", 6, 99, 1, 1),
        Span("world", -5, 11, 1, 1),
        Span("", 11, 6, 1, 1),
        Span("world", 6, 11, 0, 1),
        Span("world", 6, 11, 1, 2**31),
        Span("world", 6, 11, 1, 1, anchor={"at": float("nan")}),
        Span("world", 6, 11, 1, 1, anchor={"at": b"x"}),
    ],
)
def test_a_passage_that_could_not_be_restored_is_refused(library: Library, span: Span) -> None:
    with pytest.raises(InvalidInput, match="note 'tea'"):
        library.put(Draft("note", "tea", body="hello world", spans=(span,)))
    assert library.status().items == {}


def test_a_filter_of_empty_lists_deletes_nothing(library: Library) -> None:
    library.put(Draft("note", "tea", body="Oolong.", tags=("drink",)))
    empty: Any = []
    for filter in (Filter(kinds=empty), Filter(tags=empty, parents=empty), Filter(where=empty)):
        with pytest.raises(InvalidInput, match="Say what to delete"):
            library.delete_where(filter)
    assert library.status().items == {"note": 1}


def test_lists_and_single_words_filter_as_tuples_do(library: Library) -> None:
    library.put(Draft("note", "tea", body="Oolong.", tags=("drink",)))
    given: Any
    for given in (["drink"], "drink", {"drink"}, (tag for tag in ["drink"])):
        assert [hit.uri for hit in library.search("oolong", filter=Filter(tags=given)).hits] == ["notes://tea"]
