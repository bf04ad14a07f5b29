"""The first page: searching and narrowing down, and what is here without a question."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.datastructures import QueryParams

from commonplace.errors import InvalidInput
from commonplace.library import Library
from commonplace.model import Draft
from commonplace.server.principal import OWNER
from commonplace.settings import Settings
from commonplace.web.frame import Sheet, rendered
from commonplace.web.search_screen import HITS, live, search
from commonplace.web.visits import Visit


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    with Library.open(
        tmp_path, settings=Settings(home=tmp_path, models=tmp_path / "models", model="static")
    ) as library:
        yield library


def visit(library: Library, address: str) -> Visit:
    path, _, query = address.partition("?")
    settings = library.settings
    return Visit(path, path, QueryParams(query), "http://127.0.0.1:8377", OWNER, "s" * 43, settings, is_owner=True)


def shown(library: Library, address: str) -> Sheet:
    return search(library, visit(library, address))


def page(library: Library, address: str) -> str:
    asked = visit(library, address)
    return rendered(search(library, asked), asked)


def kettles(library: Library, count: int) -> None:
    library.put_many(
        Draft(
            "note",
            f"kettle-{number}",
            title=f"Kettle {number}",
            body=f"The kettle number {number} boils.\nIt is made of copper.",
            tags=("even" if number % 2 == 0 else "odd",),
        )
        for number in range(count)
    )
    library.embed()


def test_a_new_library_is_told_what_to_do_first(library: Library) -> None:
    html = page(library, "/")
    assert "Nothing is here yet" in html
    assert html.count("commonplace add ~/notes") >= 1
    assert html.count('<div class="copy">') == 3
    assert 'href="/connect"' in html
    assert shown(library, "/").record["counts"] == []


def test_hits_have_their_lines_their_marks_and_what_their_score_means(library: Library) -> None:
    body = "Leases last thirty seconds.\nElection needs fencing tokens, or a paused process writes.\nHold no lock long."
    library.put(Draft("note", "locks", title="Locks", body=body, tags=("ops",)))
    library.embed()
    record = shown(library, "/?q=fencing+tokens").record
    (hit,) = record["results"]
    assert hit["snippet"].count("\n") >= 1
    assert [hit["snippet"][start:end] for start, end in hit["marks"]] == ["fencing", "tokens"]
    assert hit["likelihood"] in ("very likely", "likely")
    assert hit["path"] == f"/i/notes/locks?line={hit['line']}&q=fencing+tokens"
    assert hit["words"] == ["fencing", "tokens"]
    assert record["said"].startswith("1 found by words and by meaning, ")
    assert "Both words stand in 1 of the 1 shown." in record["said"]
    html = page(library, "/?q=fencing+tokens")
    assert "<mark>fencing</mark>" in html
    assert "<mark>tokens</mark>" in html
    json.dumps(record)


def test_a_list_is_paged_without_repeating_anything(library: Library) -> None:
    kettles(library, 2 * HITS + 5)
    seen, address = list[str](), "/?q=kettle"
    while address:
        record = shown(library, address).record
        seen += [hit["uri"] for hit in record["results"]]
        address = record["next"]
    assert len(seen) == len(set(seen)) == 2 * HITS + 5


def test_facets_count_what_narrowing_leaves_and_filters_can_be_dropped(library: Library) -> None:
    kettles(library, 10)
    library.put(Draft("document", "kettle.md", parent="docs", title="A kettle", body="A kettle of a document."))
    facets = {facet["title"]: facet["entries"] for facet in shown(library, "/?q=kettle").record["facets"]}
    assert {(entry["label"], entry["count"]) for entry in facets["Kind"]} == {("Notes", 10), ("Documents", 1)}
    assert {(entry["label"], entry["count"]) for entry in facets["Tags"]} == {("even", 5), ("odd", 5)}
    even = next(entry["path"] for entry in facets["Tags"] if entry["label"] == "even")
    record = shown(library, even).record
    assert len(record["results"]) == 5
    (active,) = record["filters"]
    assert (active["label"], active["without"]) == ("even", "/?q=kettle")
    on = [entry for facet in record["facets"] if facet["title"] == "Tags" for entry in facet["entries"] if entry["on"]]
    assert [entry["label"] for entry in on] == ["even"]


def test_nothing_found_names_the_filters_to_drop(library: Library) -> None:
    kettles(library, 2)
    html = page(library, "/?q=kettle&tag=unheard&kind=note")
    assert "Nothing matches with these filters" in html
    assert 'Drop <a href="/?q=kettle&amp;tag=unheard">Notes</a>, <a href="/?q=kettle&amp;kind=note">unheard</a>' in html


def test_signs_in_a_question_are_told_as_they_were_read(library: Library) -> None:
    kettles(library, 2)
    record = shown(library, "/?q=%22made+of+copper%22+-steel+kett*").record
    assert record["read"] == (
        "Read as: with the phrase “made of copper”, with a word that begins with “kett”, without “steel”."
    )


def test_what_was_forgiven_is_said(library: Library) -> None:
    kettles(library, 2)
    notes = shown(library, "/?q=%22copper+kettle+of+gold%22").record["notes"]
    assert "No passage has the quoted phrase, so its words were looked for." in notes


def test_a_library_that_is_not_embedded_says_so(library: Library) -> None:
    library.put(Draft("note", "tea", title="Tea", body="Oolong wants hot water."))
    notes = shown(library, "/?q=oolong").record["notes"]
    assert any(note.startswith("By words only") for note in notes)


def test_where_dates_and_paths_narrow_a_search(library: Library) -> None:
    for number in range(4):
        library.put(
            Draft(
                "document", f"part-{number}/x.md", parent="docs", title="X", body="copper", metadata={"rating": number}
            )
        )

    def keys(query: str) -> set[str]:
        return {hit["uri"].split("/")[-2] for hit in shown(library, f"/?q=copper&{query}").record["results"]}

    assert keys("where=rating%3E%3D2") == {"part-2", "part-3"}
    assert keys("where=rating%3D1") == {"part-1"}
    assert keys("path=docs/part-3") == {"part-3"}
    assert keys("from=2999-01-01") == set()
    assert len(keys("in=docs")) == 4


@pytest.mark.parametrize(
    "query", ["where=rating", "kind=nonsense", "from=soon", "mode=magic", "cursor=x", "q=&tag=x&cursor=y"]
)
def test_what_cannot_be_read_is_said_in_a_sentence(query: str, library: Library) -> None:
    with pytest.raises(InvalidInput, match=r"\.$"):
        shown(library, f"/?{query}" if query.startswith("q=") else f"/?q=kettle&{query}")


def test_a_filter_alone_lists_what_it_lets_through_page_by_page(library: Library) -> None:
    kettles(library, 2 * HITS + 6)
    seen, address = list[str](), "/?tag=even"
    while address:
        record = shown(library, address).record
        seen += [item["uri"] for item in record["items"]]
        address = record["next"]
    assert len(seen) == len(set(seen)) == HITS + 3


def test_hits_as_one_types_are_eight_and_by_words_alone_below_three_letters(library: Library) -> None:
    kettles(library, 12)
    record = live(library, visit(library, "/live?q=kettle")).record
    assert len(record["results"]) == 8
    assert record["all"] == "/?q=kettle"
    assert live(library, visit(library, "/live?q=")).record["results"] == []
    assert live(library, visit(library, "/live?q=zq")).record["results"] == []


def test_recent_items_and_collections_are_on_the_first_page(library: Library) -> None:
    kettles(library, 12)
    library.put(Draft("document", "a/b.md", parent="docs", title="B", body="b"))
    record = shown(library, "/").record
    assert record["counts"] == ["1 document", "12 notes"] or record["counts"] == ["12 notes", "1 document"]
    assert len(record["recent"]) == 8
    assert record["recent"][0]["title"] == "B"
    assert [(one["name"], one["count"]) for one in record["collections"]] == [("docs", 1)]
