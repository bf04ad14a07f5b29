"""Outlines are kept with their documents: they come, change and go in the same transactions."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from commonplace.ingest.prepare import prepare
from commonplace.kinds.documents.outlines import Outlines
from commonplace.library import Library
from commonplace.model import Draft
from commonplace.store.base import Store
from commonplace.store.items import Items
from commonplace.text.outline import outline_of
from opening import library_settings

BODY = "intro\n\n# One\n\ntext\n\n## Two\n\nmore\n\n# Three\n"


def document(key: str = "a.md", body: str = BODY, parent: str = "docs", format: str = "markdown") -> Draft:
    return Draft("document", key, parent=parent, title=key, body=body, format=format)


def put(store: Store, *drafts: Draft) -> list[int]:
    return [item.id for item in store.drawer(Items).put([prepare(draft) for draft in drafts])]


def test_an_outline_is_kept_with_its_document(store: Store) -> None:
    (item,) = put(store, document())
    assert store.drawer(Outlines).find(item) == outline_of(BODY, "markdown")
    (note,) = put(store, Draft("note", "n", body=BODY, format="markdown"))
    assert store.drawer(Outlines).find(note) is None
    assert store.check() == []


@given(st.lists(st.sampled_from(["# a", "## b", "", "words", "# \u00e9 > \U0001f375", "===", "```", "#"]), max_size=12))
def test_what_is_kept_is_what_was_parsed(store: Store, lines: list[str]) -> None:
    body = "\n".join(lines)
    (item,) = put(store, document(body=body))
    kept = store.drawer(Outlines).find(item)
    assert kept == outline_of(body, "markdown")
    for heading in kept.headings:
        assert (
            store.drawer(Outlines).text(item, heading.char_start, heading.char_end)
            == body[heading.char_start : heading.char_end]
        )


def test_a_new_version_replaces_the_outline_and_a_delete_takes_it_along(store: Store) -> None:
    (item,) = put(store, document())
    assert put(store, document(body="# Other\n")) == [item]
    kept = store.drawer(Outlines).find(item)
    assert kept is not None
    assert [heading.title for heading in kept.headings] == ["Other"]
    store.drawer(Items).delete([item])
    assert store.drawer(Outlines).find(item) is None
    assert store.check() == []


def test_a_write_without_an_outline_leaves_none_that_is_old(store: Store) -> None:
    (item,) = put(store, document())
    store.drawer(Items).put([replace(prepare(document(body="# Other\n")), outline=None)])
    assert store.drawer(Outlines).find(item) is None
    version = store.drawer(Items).get([item])[0].version
    store.drawer(Outlines).keep([(item, version - 1, outline_of(BODY, "markdown"))])
    assert store.drawer(Outlines).find(item) is None  # it is of a version that is gone
    store.drawer(Outlines).keep([(item, version, outline_of("# Other\n", "markdown"))] * 2)
    kept = store.drawer(Outlines).find(item)
    assert kept is not None
    assert kept.title == "Other"


def test_pages_follow_code_points_and_count_everything(store: Store) -> None:
    names = ["b.md", "B.md", "\u00e9.md", "\uffff.md", "\U0001f375.md", "a/z.md", "a.md"]
    put(store, *(document(name) for name in names), document("x.md", parent="other"))
    rows, total = store.drawer(Outlines).page("docs", limit=100, offset=0)
    assert ([row.key for row in rows], total) == (sorted(names), 7)
    assert {(row.title, row.size) for row in rows} == {("One", len(BODY))}
    pages = [
        row.key for start in range(0, 8, 2) for row in store.drawer(Outlines).page("docs", limit=2, offset=start)[0]
    ]
    assert pages == sorted(names)
    assert store.drawer(Outlines).page("docs", limit=5, offset=99) == ([], 7)
    assert store.drawer(Outlines).counts(["docs", "other", "none"]) == {"docs": 7, "other": 1}


def test_the_heading_at_a_line_is_the_last_at_or_before_it(store: Store) -> None:
    (item,) = put(store, document())
    places = [(item, line) for line in (1, 2, 3, 6, 7, 10, 11, 99)] + [(item + 1, 3)]
    one, two, three = ("One",), ("One", "Two"), ("Three",)
    assert store.drawer(Outlines).headings_at(places) == [(), (), one, one, two, two, three, three, ()]


def test_renaming_a_collection_and_moving_a_file_keep_outlines_right(tmp_path: Path) -> None:
    root = tmp_path / "files"
    root.mkdir()
    (root / "a.md").write_text("# Title\n", encoding="utf-8")
    (root / "plain.md").write_text("words\n", encoding="utf-8")
    with Library.open(tmp_path / "home", settings=library_settings(tmp_path / "home")) as library:
        library.add_folder(root, "old")
        library.folders.rename("old", "new")
        (root / "a.md").rename(root / "b.md")
        library.folders.update("new")
        rows, total = library.store.drawer(Outlines).page("new", limit=10, offset=0)
        assert [(row.key, row.title) for row in rows] == [("b.md", "Title"), ("plain.md", "")]
        assert (total, library.store.drawer(Outlines).page("old", limit=10, offset=0)) == (2, ([], 0))
        assert library.store.check() == []
        library.folders.remove("new")
        assert library.store.check() == []


def test_documents_of_an_older_library_are_outlined_when_first_asked_for(tmp_path: Path) -> None:
    with Library.open(tmp_path, settings=library_settings(tmp_path)) as library:
        library.put(document("b.md"))
        library.put(document("c.md", body="---\ntitle: Given\n---\nwords\n"))
        with library.store._database.writing() as db:  # type: ignore[attr-defined]  # as a library was before it had outlines  # type: ignore[attr-defined]
            db.execute("delete from outlines; delete from headings")
        page = library.store.drawer(Outlines).page("docs", limit=9, offset=0)[0]
        rows = library.documents.reading.with_outlines({row.item_id: row for row in page})
        assert [(row.key, row.title) for row in rows.values()] == [("b.md", "One"), ("c.md", "Given")]
        for row in rows.values():
            kept = library.store.drawer(Outlines).find(row.item_id)
            assert kept is not None
            assert (kept.title, kept.size) == (row.title, row.size)
