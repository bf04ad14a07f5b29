"""Leaving items out.

1. A search with items left out is the search without, less those items: the same order, the same scores, any page.
2. It says how many were left out, and how many are there without them.
3. A quoted phrase binds where only what is left out has it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commonplace.index.words import lexical_reader
from commonplace.library import Library
from commonplace.model import Draft, Filter, Hit, Mode, Page
from commonplace.store.listing import Listing
from opening import library_settings
from strategies import corpora, field_filters, queries

MODES: tuple[Mode, ...] = ("lexical", "semantic", "hybrid")
ALL = 10_000


def opened(folder: Path) -> Library:
    return Library.open(folder, settings=library_settings(folder))


def said(hits: Collection[Hit]) -> list[tuple[str, int, float]]:
    return [(hit.uri, hit.chunk.id, hit.score) for hit in hits]


def assert_page_of(page: Page, whole: Page, exclude: Collection[str], start: int, stop: int) -> None:
    kept = [hit for hit in whole.hits if hit.uri not in exclude]
    assert said(page.hits) == said(kept[start:stop])
    assert page.more is (len(kept) > stop)
    assert page.found == len(kept) or (page.more and stop < page.found <= len(kept))
    assert page.skipped == len({hit.uri for hit in whole.hits} & set(exclude))


@given(corpus=corpora(least=2), query=queries, quoted=st.booleans(), keep=field_filters, data=st.data())
@settings(max_examples=40)
def test_a_page_without_some_items_is_a_page_of_the_rest(
    tmp_path_factory: pytest.TempPathFactory,
    corpus: list[Draft],
    query: str,
    quoted: bool,
    keep: Filter,
    data: st.DataObject,
) -> None:
    if quoted:
        query = f'"{query}"'
    with opened(tmp_path_factory.mktemp("excluded")) as library:
        library.put_many(corpus)
        library.embed()
        uris = sorted({item.uri for item in library.store.drawer(Listing).scan(Filter())})
        exclude = data.draw(st.sets(st.sampled_from([*uris, "notes://gone", "not an address"])))
        offset, limit = data.draw(st.integers(0, 5)), data.draw(st.integers(1, 5))
        for mode in MODES:
            for filter, per_item in ((Filter(), True), (keep, True), (Filter(), False)):
                asked: dict[str, Any] = {"mode": mode, "filter": filter, "per_item": per_item}
                whole = library.search(query, limit=ALL, **asked)
                page = library.search(query, limit=limit, offset=offset, exclude=exclude, **asked)
                assert_page_of(page, whole, exclude, offset, offset + limit)


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory, index: str) -> Iterator[Library]:
    """More passages than one look takes from a leg, and one item with more matching passages than all the others."""
    topics = ["oolong tea", "green tea leaves", "mountain water", "kettle boil", "garden path", "night train"]
    with opened(tmp_path_factory.mktemp("large")) as library:
        library.put_many(
            Draft("note", str(n), body=f"{topics[n % 6]} {topics[n * 7 % 5]} word{n % 11}", metadata={"n": n % 3})
            for n in range(400)
        )
        library.put(
            Draft("note", "book", body="\n\n".join(f"# Tea {n}\n\n{'oolong tea ' * 40}" for n in range(300)),
                  format="markdown")
        )  # fmt: skip
        library.embed()
        yield library


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("listed", [5_000, 10], ids=["listed", "checked"])
@pytest.mark.parametrize("best", [1, 20, 150, ALL])
def test_what_is_best_can_be_left_out_however_much_it_is(
    large: Library, mode: Mode, listed: int, best: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lexical_reader, "MOST_LISTED", listed)
    for query in ("oolong tea", "the night train and the garden"):
        for filter in (Filter(), Filter(kinds=("note",))):
            whole = large.search(query, mode=mode, filter=filter, limit=ALL)
            exclude = {hit.uri for hit in whole.hits[:best]}
            for offset, limit in ((0, 10), (33, 7), (0, 1)):
                page = large.search(query, mode=mode, filter=filter, limit=limit, offset=offset, exclude=exclude)
                assert_page_of(page, whole, exclude, offset, offset + limit)


def test_one_address_alone_is_left_out_as_one_in_a_list_is(library: Library) -> None:
    library.put_many(Draft("note", name, body="green tea") for name in ("one", "other"))
    page = library.search("tea", exclude="notes://one")
    assert ([hit.uri for hit in page.hits], page.skipped) == (["notes://other"], 1)


def test_a_phrase_that_only_the_excluded_has_still_binds(library: Library) -> None:
    library.put(Draft("note", "both", body="a green tea from the hills"))
    library.put(Draft("note", "apart", body="tea in a green cup"))
    page = library.search('"green tea"', exclude={"notes://both"})
    assert (page.hits, page.found, page.skipped, page.notes) == ((), 0, 1, ())
    assert [hit.uri for hit in library.search('"green tea"').hits] == ["notes://both"]


def test_what_scores_too_little_is_neither_found_nor_skipped(library: Library) -> None:
    library.put(Draft("note", "much", body="tea tea tea"))
    library.put(Draft("note", "little", body="tea " + "and quite another thing " * 30))
    little, much = sorted(hit.score for hit in library.search("tea").hits)
    page = library.search("tea", min_score=(little + much) / 2, exclude={"notes://little"})
    assert (len(page.hits), page.found, page.skipped) == (1, 1, 0)


@pytest.mark.parametrize("mode", MODES)
def test_a_collection_that_is_searched_only_when_named_answers_only_then(
    library: Library, tmp_path: Path, mode: Mode
) -> None:
    for name in ("open", "private"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "tea.md").write_text("Oolong tea.", "utf-8")
        library.add_folder(tmp_path / name)
    library.put(Draft("memory", "1", parent="private", body="Oolong tea.", format="text"))
    library.embed()

    def found(**asked: tuple[str, ...]) -> set[str]:
        return {hit.uri for hit in library.search("oolong tea", mode=mode, filter=Filter(**asked)).hits}  # type: ignore[arg-type]

    everything = found()
    library.folders.change("private", included=False)
    assert everything - found() == {"docs://private/tea.md"}  # not what another kind keeps under that name
    assert found(kinds=("document",)) == {"docs://open/tea.md"}
    assert "docs://private/tea.md" in found(parents=("private",))
    assert found(paths=("Private/tea.md",)) == {"docs://private/tea.md"}
    assert found(paths=("tea.md",)) == {"docs://open/tea.md"}
    (tmp_path / "private" / "more.md").write_text("More oolong tea.", "utf-8")
    library.folders.update("private")
    assert found(kinds=("document",)) == {"docs://open/tea.md"}
    library.folders.change("private", included=True)
    assert everything < found()
