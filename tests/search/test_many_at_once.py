"""Several searches of one call: each is answered as it would be alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from commonplace.library import Library
from commonplace.model import Condition, Draft, Filter, Page, Stage
from commonplace.search.request import Request
from opening import library_settings

TEXTS = ("oolong wants hot water", "green tea wants less heat", "the kettle boils water", "bread is baked in an oven")
QUERIES = (
    "hot water",
    '"hot water"',
    '"cold bread"',
    "water -kettle",
    "boil*",
    "how is bread baked",
    "oolnog",
    "",
    "?",
)
FILTERS = (
    Filter(),
    Filter(parents=("even",)),
    Filter(tags=("x",)),
    Filter(where=(Condition(("n",), "in", [1, 2, 3]),)),
)


@pytest.fixture(scope="module")
def stocked(tmp_path_factory: pytest.TempPathFactory, index: str) -> Iterator[Library]:
    home: Path = tmp_path_factory.mktemp(f"many-{index}")
    with Library.open(home, settings=library_settings(home)) as library:
        drafts = [
            Draft(
                "document",
                f"{number}.md",
                parent="odd" if number % 2 else "even",
                body=f"{TEXTS[number % 4]}, number {number}",
                metadata={"n": number},
                tags=("x",) if number % 3 else (),
            )
            for number in range(12)
        ]
        library.put_many(drafts)
        library.embed()
        yield library


def requests() -> st.SearchStrategy[Request]:
    return st.builds(
        Request,
        st.sampled_from(QUERIES),
        mode=st.sampled_from(["auto", "lexical", "semantic"]),
        filter=st.sampled_from(FILTERS),
        limit=st.sampled_from([1, 3, 20]),
        offset=st.sampled_from([0, 2]),
        snippet_length=st.sampled_from([0, 20]),
        per_item=st.booleans(),
        explain=st.booleans(),
        exclude=st.sampled_from([frozenset[int](), frozenset({1, 4})]),
        rerank=st.booleans(),
    )


def untimed(page: Page) -> Page:
    return replace(page, stages=tuple(Stage(one.name, one.status, reason=one.reason) for one in page.stages))


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(asked=st.lists(requests(), max_size=6))
def test_each_of_many_is_answered_as_it_is_alone(stocked: Library, asked: list[Request]) -> None:
    together = stocked.engine.search_all(asked)
    assert [untimed(page) for page in together] == [untimed(stocked.engine.search(one)) for one in asked]


def test_many_see_what_was_written_before_them(stocked: Library) -> None:
    uri = stocked.put(Draft("note", "late", body="a samovar keeps water hot")).uri
    asked = [Request("samovar", filter=one, mode="lexical") for one in (Filter(), Filter(kinds=("document",)))]
    everywhere, documents = stocked.engine.search_all(asked)
    stocked.delete(uri)
    assert uri in [hit.uri for hit in everywhere.hits]
    assert uri not in [hit.uri for hit in documents.hits]
