"""What a search promises whatever it is asked.

1. A filtered search is the whole search, filtered: the same items, the same order, the same scores.
2. Pages tile: `limit=a+b` is `limit=a` followed by `offset=a, limit=b`.
3. One hit per item, at its best passage; without that, every passage once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commonplace.index.words import lexical_reader
from commonplace.library import Library
from commonplace.model import Draft, Filter, Hit, Mode
from opening import library_settings
from strategies import allows, corpora, field_filters, queries

MODES: tuple[Mode, ...] = ("lexical", "semantic", "hybrid")
ALL = 10_000


@contextmanager
def filled(folder: Path, drafts: Sequence[Draft], *, embedded: bool = True) -> Iterator[Library]:
    with Library.open(folder, settings=library_settings(folder)) as library:
        library.put_many(drafts)
        if embedded:
            library.embed()
        yield library


def said(hits: Sequence[Hit]) -> list[tuple[str, int, float]]:
    return [(hit.uri, hit.chunk.id, hit.score) for hit in hits]


def assert_same(found: Sequence[Hit], expected: Sequence[Hit]) -> None:
    """The same hits in the same order, but for what floating point leaves open: scores equal to 1e-5."""
    assert sorted((hit.uri, hit.chunk.id) for hit in found) == sorted((hit.uri, hit.chunk.id) for hit in expected)
    scores = {hit.chunk.id: hit.score for hit in expected}
    assert [hit.score for hit in found] == pytest.approx([scores[hit.chunk.id] for hit in found], abs=1.1e-4)
    assert [hit.uri for hit in found] == [hit.uri for hit in expected]


@given(corpus=corpora(least=2), asked=st.lists(st.tuples(queries, field_filters), min_size=4, max_size=4))
@settings(max_examples=25)
def test_a_filter_loses_nothing_and_changes_nothing(
    tmp_path_factory: pytest.TempPathFactory, corpus: list[Draft], asked: list[tuple[str, Filter]]
) -> None:
    with filled(tmp_path_factory.mktemp("filtered"), corpus) as library:
        for query, keep in asked:
            for mode in MODES:
                everything = library.search(query, mode=mode, limit=ALL).hits
                filtered = library.search(query, mode=mode, filter=keep, limit=ALL).hits
                assert_same(filtered, [hit for hit in everything if allows(keep, hit.item)])


@given(corpus=corpora(least=2), query=queries, first=st.integers(1, 6), second=st.integers(1, 6))
@settings(max_examples=15)
def test_pages_tile(
    tmp_path_factory: pytest.TempPathFactory, corpus: list[Draft], query: str, first: int, second: int
) -> None:
    with filled(tmp_path_factory.mktemp("pages"), corpus) as library:
        for mode in MODES:
            for per_item in (True, False):
                whole = library.search(query, mode=mode, limit=first + second, per_item=per_item)
                a = library.search(query, mode=mode, limit=first, per_item=per_item)
                b = library.search(query, mode=mode, limit=second, offset=first, per_item=per_item)
                assert said(whole.hits) == said([*a.hits, *b.hits])
                assert a.more is bool(b.hits)


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory, index: str) -> Iterator[Library]:
    """More passages than one look takes from a leg, many of them alike, some without a vector."""
    topics = ["oolong tea", "green tea leaves", "mountain water", "kettle boil", "garden path", "night train"]
    drafts = [
        Draft(
            "note",
            str(n),
            title=topics[n % 6] if n % 4 == 0 else "",
            body=f"{topics[n % 6]} {topics[n * 7 % 5]} " * (1 + n % 3) + f"word{n % 11} and {topics[n // 50 % 6]}",
            parent=f"p{n % 3}",
            metadata={"n": n, "even": n % 2 == 0},
            tags=(f"t{n % 5}",),
        )
        for n in range(420)
    ]
    with filled(tmp_path_factory.mktemp("large"), drafts[:400]) as library:
        library.put_many(replace(draft, body=draft.body + f" late{n}") for n, draft in enumerate(drafts[400:]))
        yield library


QUERIES = [
    "oolong tea water",
    "kettle",
    "the night train and the garden",
    "word3 mountain",
    "steep leaves in hot water",
]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("query", QUERIES)
def test_pages_tile_far_beyond_the_first_look(large: Library, query: str, mode: Mode) -> None:
    whole = said(large.search(query, mode=mode, limit=ALL).hits)
    assert whole
    for limit in (1, 10, 60):
        assert said(large.search(query, mode=mode, limit=limit).hits) == whole[:limit]
    assert said(large.search(query, mode=mode, limit=7, offset=33).hits) == whole[33:40]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("query", QUERIES[:3])
@pytest.mark.parametrize(
    "keep",
    [Filter(parents=("p1",)), Filter(tags=("t3", "t4")), Filter(kinds=("memory",))],
    ids=["parents", "tags", "nothing"],
)
@pytest.mark.parametrize("listed", [5_000, 10], ids=["listed", "checked"])
def test_a_page_of_a_filtered_search_is_a_page_of_the_whole_one_filtered(
    large: Library, query: str, mode: Mode, keep: Filter, listed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lexical_reader, "MOST_LISTED", listed)
    whole = [hit for hit in large.search(query, mode=mode, limit=ALL).hits if allows(keep, hit.item)]
    assert_same(large.search(query, mode=mode, filter=keep, limit=15).hits, whole[:15])


def test_one_hit_per_item_is_its_best_passage(library: Library) -> None:
    body = (
        "# Tea\n\ntea and cake\n\n# Water\n\n"
        + "Only water here, and a lot of it.\n\n" * 200
        + "# Both\n\ntea tea tea\n"
    )
    library.put(Draft("note", "long", body=body, format="markdown"))
    library.put(Draft("note", "short", body="tea"))
    passages = library.search("tea", per_item=False).hits
    items = library.search("tea").hits
    assert len(passages) > len(items) == 2
    for hit in items:
        assert hit.score == max(passage.score for passage in passages if passage.uri == hit.uri)
