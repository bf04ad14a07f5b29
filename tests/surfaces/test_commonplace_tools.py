"""The eight tools of our own surface, called as a door calls them.

1. search filters, pages, stays within its budget and says what it left out.
2. fetch reads one or many items from any anchor, within one budget.
3. browse goes from kinds to headings; related follows.
4. remember, revise and forget write, guard versions, and are there only where writing is allowed.
5. Wrong arguments are one sentence that names each of them.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from commonplace.errors import CommonplaceError, InvalidInput, NotFound, VersionConflict
from commonplace.ingest.patch import merge
from commonplace.knowledge.records import put_record
from commonplace.library import Library
from commonplace.model import Draft
from commonplace.server.mcp import declared
from commonplace.surfaces.budget import tokens_of
from commonplace.surfaces.commonplace import PROFILE, TOOLS, instructions
from commonplace.surfaces.profile import Registry
from commonplace.surfaces.tool import Call as Visit
from opening import library_settings

Call = Callable[..., dict[str, Any]]
GUIDE = "# Guide\n\nHow to brew.\n\n## Water\n\nJust off the boil.\n\n## Leaves\n\nThree grams.\n"


@pytest.fixture
def call(library: Library) -> Call:
    """A call by name, whose answer must be what the tool's schema promises."""
    registry = Registry(PROFILE, writable=True)
    library.put(Draft("document", "guide.md", parent="docs", title="Guide", body=GUIDE, format="markdown"))
    library.put(Draft("document", "old.md", parent="docs", title="Old", body="Boil the water twice. " * 80))
    library.put(Draft("note", "tea", title="Tea", body="Oolong and water.", tags=("drink",), metadata={"cups": 3}))

    def run(name: str, **arguments: Any) -> dict[str, Any]:
        tool = registry.find(name)
        assert tool is not None
        answer = tool.call(Visit(library), arguments)
        Draft202012Validator(tool.output).validate(answer)
        return json.loads(json.dumps(answer))

    return run


def uris(answer: dict[str, Any]) -> list[str]:
    return [result["uri"] for result in answer["results"]]


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({"kinds": ["note"]}, {"notes://tea"}),
        ({"collections": ["docs"]}, {"qmd://docs/guide.md", "qmd://docs/old.md"}),
        ({"tags": ["DRINK"]}, {"notes://tea"}),
        ({"where": [{"key": "cups", "operator": "gte", "value": 3}]}, {"notes://tea"}),
        ({"where": [{"key": "cups", "operator": "in", "value": [4]}]}, set()),
        ({"created_to": "2001-01-01"}, set()),
        ({"created_from": "2001-01-01"}, {"qmd://docs/guide.md", "qmd://docs/old.md", "notes://tea"}),
    ],
)
def test_search_filters_before_it_ranks(call: Call, filters: dict[str, Any], expected: set[str]) -> None:
    assert set(uris(call("search", query="water", mode="lexical", **filters))) == expected


def test_search_pages_by_cursor_and_a_cursor_belongs_to_its_search(call: Call) -> None:
    everything = uris(call("search", query="water", mode="lexical"))
    first = call("search", query="water", mode="lexical", limit=1)
    rest = call("search", query="water", mode="lexical", limit=5, cursor=first["next_cursor"])
    assert uris(first) + uris(rest) == everything
    assert rest["next_cursor"] is None
    with pytest.raises(InvalidInput, match="cursor does not belong to this call"):
        call("search", query="tea", mode="lexical", cursor=first["next_cursor"])


@pytest.mark.parametrize("detail", ["ids", "snippets", "passages"])
@pytest.mark.parametrize("budget", [200, 400, 4000])
def test_search_never_costs_more_than_its_budget(call: Call, detail: str, budget: int) -> None:
    answer = call("search", query="water boil", mode="lexical", detail=detail, max_tokens=budget)
    assert tokens_of(answer) <= budget
    assert len(answer["results"]) + answer["left_out"] == 3
    if answer["left_out"]:
        following = call("search", query="water boil", mode="lexical", detail=detail, cursor=answer["next_cursor"])
        assert len(following["results"]) == answer["left_out"]


def test_a_second_look_finds_the_same_and_ranks_it_anew(call: Call, library: Library) -> None:
    library.embed()
    once, twice = call("search", query="boil water"), call("search", query="boil water", rerank=True)
    assert sorted(uris(once)) == sorted(uris(twice))
    assert [hit["score"] for hit in once["results"]] != [hit["score"] for hit in twice["results"]]


def test_search_says_that_it_went_by_words_only(call: Call, library: Library) -> None:
    assert "By words only" in call("search", query="water")["notes"][0]
    library.embed()
    assert call("search", query="water")["notes"] == []


@pytest.mark.parametrize(
    ("uri", "text", "next_line"),
    [
        ("qmd://docs/guide.md#water", "## Water\n\nJust off the boil.\n", None),
        ("qmd://docs/guide.md#Leaves", "## Leaves\n\nThree grams.\n", None),
        ("qmd://docs/guide.md:7", "Just off the boil.\n\n## Leaves\n\nThree grams.\n", None),
        ("qmd://docs/guide.md:7:1", "Just off the boil.", None),
        ("qmd://docs/guide.md", GUIDE, None),
    ],
)
def test_fetch_reads_what_an_address_means(call: Call, uri: str, text: str, next_line: int | None) -> None:
    (item,) = call("fetch", uri=uri)["items"]
    assert (item["text"].rstrip("\n"), item["next_line"]) == (text.rstrip("\n"), next_line)


def test_fetch_reads_many_and_names_what_is_missing_or_did_not_fit(call: Call) -> None:
    answer = call("fetch", uri=["notes://tea", "notes://nothing", "qmd://docs/old.md"])
    assert [item["uri"] for item in answer["items"]] == ["notes://tea", "qmd://docs/old.md"]
    assert answer["missing"][0]["uri"] == "notes://nothing"
    tight = call("fetch", uri=["qmd://docs/guide.md", "notes://tea"], max_tokens=100)
    assert tight["items"][0]["next_line"] is not None
    assert tight["left_out"] == ["notes://tea"]
    with pytest.raises(NotFound, match="There is no notes://nothing"):
        call("fetch", uri="notes://nothing")
    with pytest.raises(NotFound, match='no heading "milk"'):
        call("fetch", uri="qmd://docs/guide.md#milk")


def test_browse_goes_from_kinds_to_headings(call: Call) -> None:
    assert [(entry["at"], entry["count"]) for entry in call("browse")["entries"]] == [("document", 2), ("note", 1)]
    assert [entry["at"] for entry in call("browse", at="document")["entries"]] == ["document/docs"]
    page = call("browse", at="document/docs", limit=1)
    rest = call("browse", at="document/docs", limit=1, cursor=page["next_cursor"])
    assert [entry["at"] for entry in page["entries"] + rest["entries"]] == ["qmd://docs/guide.md", "qmd://docs/old.md"]
    assert rest["next_cursor"] is None
    assert [entry["at"] for entry in call("browse", at="note")["entries"]] == ["notes://tea"]
    headings = call("browse", at="qmd://docs/guide.md")["entries"]
    assert [entry["at"].partition("#")[2] for entry in headings] == ["guide", "water", "leaves"]
    with pytest.raises(InvalidInput, match='There is no kind "cakes"'):
        call("browse", at="cakes")


def test_browse_reaches_what_is_in_no_notebook_beside_what_is_in_one(call: Call) -> None:
    call("remember", text="In a notebook.", key="inside", collection="diary")
    places = [entry["at"] for entry in call("browse", at="note")["entries"]]
    assert places == ["note/", "note/diary"]
    assert [[entry["at"] for entry in call("browse", at=place)["entries"]] for place in places] == [
        ["notes://tea"],
        ["notes://inside"],
    ]


def test_related_finds_what_is_like_an_item_but_not_itself(call: Call) -> None:
    found = uris(call("related", uri="notes://tea"))
    assert "qmd://docs/guide.md" in found
    assert "notes://tea" not in found


def test_what_is_remembered_is_found_revised_and_forgotten(call: Call) -> None:
    kept = call("remember", text="# Kettle\n\nThe kettle leaks.", tags=["kitchen"], metadata={"room": {"floor": 1}})
    assert (kept["title"], kept["version"]) == ("Kettle", 1)
    assert uris(call("search", query="leaks", mode="lexical")) == [kept["uri"]]
    revised = call("revise", uri=kept["uri"], text="The kettle is mended.", metadata_patch={"room": {"floor": None}})
    assert revised["version"] == 2
    assert uris(call("search", query="leaks", mode="lexical")) == []
    (item,) = call("fetch", uri=kept["uri"])["items"]
    assert (item["tags"], item["metadata"]) == (["kitchen"], {"room": {}})
    with pytest.raises(VersionConflict):
        call("revise", uri=kept["uri"], text="x", expected_version=1)
    with pytest.raises(VersionConflict):
        call("forget", uri=kept["uri"], expected_version=1)
    assert call("forget", uri=kept["uri"], dry_run=True) == {"forgotten": [], "found": [kept["uri"]]}
    assert call("forget", uri=[kept["uri"], "notes://tea"])["forgotten"] == [kept["uri"], "notes://tea"]
    with pytest.raises(NotFound):
        call("fetch", uri=kept["uri"])


def test_writing_touches_notes_only_and_takes_no_taken_key(call: Call) -> None:
    with pytest.raises(VersionConflict):
        call("remember", text="another", key="tea")
    for name, more in (("revise", {"text": "x"}), ("forget", {})):
        with pytest.raises(InvalidInput, match="only notes and memories"):
            call(name, uri="qmd://docs/guide.md", **more)
    with pytest.raises(InvalidInput, match="nothing in it"):
        call("remember", text="  \n ")


def test_fetch_reads_the_passage_at_a_place_and_its_neighbours(call: Call, library: Library) -> None:
    body = "\n\n".join(f"## Part {n}\n\n" + f"Sentence {n} of part. " * 170 for n in range(6))
    library.put(Draft("document", "long.md", parent="docs", title="Long", body=body, format="markdown"))
    uri = "qmd://docs/long.md"
    chunks = library.store.chunks_of(library.get(uri).id)
    assert len(chunks) > 3
    whole = call("fetch", uri=uri, max_tokens=100_000)["items"][0]["text"]
    assert whole == body
    second = call("fetch", uri=f"{uri}#chunk-1", max_tokens=100_000)["items"][0]
    assert second["text"].strip() == chunks[1].text.strip()
    at_line = call("fetch", uri=f"{uri}:{chunks[2].line_start}", mode="chunk", max_tokens=100_000)["items"][0]
    assert at_line["text"].strip() == chunks[2].text.strip()
    around = call("fetch", uri=f"{uri}#chunk-2", mode="siblings", max_tokens=3500)["items"][0]
    assert chunks[2].text.strip() in around["text"]
    assert chunks[1].text.strip() in around["text"]
    assert len(around["text"]) < len(whole)
    assert call("fetch", uri=uri, mode="siblings", max_tokens=100_000)["items"][0]["text"] == body
    with pytest.raises(NotFound, match="has no passage 99"):
        call("fetch", uri=f"{uri}#chunk-99")


def test_a_line_that_is_longer_than_the_budget_is_cut(call: Call, library: Library) -> None:
    library.put(Draft("note", "blob", title="Blob", body="x" * 100_000))
    answer = call("fetch", uri="notes://blob", max_tokens=500)
    assert tokens_of(answer) <= 500
    assert answer["items"][0]["text"].endswith("…")


def test_fetch_reads_a_conversation_and_one_message_of_it(call: Call, library: Library) -> None:
    said = [{"id": "m1", "sender": "Ada", "content": "Is it warm?"}, {"id": "m2", "sender": "Bo", "content": "Very."}]
    put_record(library.store, {"kind": "conversation", "id": "talk", "title": "Weather", "messages": said})
    text = call("fetch", uri="chats://talk")["items"][0]["text"]
    assert text.index("Is it warm?") < text.index("Very.")
    assert call("fetch", uri="chats://talk/m2")["items"][0]["text"] == "Very."


def test_a_memory_is_remembered_replaced_revised_and_forgotten(call: Call, library: Library) -> None:
    old = call("remember", kind="memory", text="The kettle leaks.", collection="kitchen", tags=["Kettle"])
    assert old["uri"].startswith("memory://")
    assert uris(call("search", query="kettle leaks", collections=["kitchen"], mode="lexical")) == [old["uri"]]
    new = call("remember", kind="memory", text="The kettle is mended.", collection="kitchen", supersedes=old["uri"])
    assert uris(call("search", query="kettle", kinds=["memory"], mode="lexical")) == [new["uri"]]
    assert uris(call("search", query="kettle", mode="lexical")) == [new["uri"]]
    revised = call("revise", uri=new["uri"], text="The kettle is new.", expires_at="2999-01-01", expected_version=1)
    assert revised["version"] == 2
    assert call("fetch", uri=new["uri"])["items"][0]["text"] == "The kettle is new."
    with pytest.raises(VersionConflict):
        call("revise", uri=new["uri"], text="Again.", expected_version=1)
    assert call("forget", uri=[new["uri"]], dry_run=True) == {"forgotten": [], "found": [new["uri"]]}
    assert call("forget", uri=new["uri"])["forgotten"] == [new["uri"]]
    assert uris(call("search", query="kettle", mode="lexical")) == [old["uri"]]  # what it replaced is back


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"kind": "memory", "text": "x", "title": "T"}, "title goes with kind note"),
        ({"text": "x", "expires_at": "2999-01-01"}, "expires_at goes with kind memory"),
        ({"kind": "memory", "text": "x", "expires_at": "2001-01-01"}, "expires_at must be in the future"),
        ({"kind": "memory", "text": "x", "expires_at": "soon"}, 'expires_at "soon" is not an ISO 8601 date'),
        ({"kind": "memory", "text": "x", "supersedes": "notes://tea"}, "notes://tea is no memory"),
    ],
)
def test_what_does_not_go_together_is_said(call: Call, arguments: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        call("remember", **arguments)


def test_an_expired_memory_is_seen_by_nothing(call: Call, library: Library) -> None:
    soon = datetime.now(UTC) + timedelta(seconds=1)
    kept = call("remember", kind="memory", text="Parking is free today.", expires_at=soon.isoformat())
    assert uris(call("search", query="parking", mode="lexical")) == [kept["uri"]]
    while datetime.now(UTC) <= soon:
        time.sleep(0.05)  # the clock is what is waited for
    assert uris(call("search", query="parking", mode="lexical")) == []
    with pytest.raises(NotFound):
        call("fetch", uri=kept["uri"])


def test_tools_that_write_are_there_only_where_writing_is_allowed(library: Library) -> None:
    reading = Registry(PROFILE, writable=False)
    assert [tool.name for tool in reading.tools] == ["search", "fetch", "browse", "related", "status"]
    remember = reading.find("remember")
    assert remember is not None
    assert not reading.allows(remember)
    assert "remember" not in instructions(library)


def test_both_spellings_of_a_name_are_one_tool() -> None:
    dotted = replace(TOOLS[0], name="notes.search")
    registry = Registry(replace(PROFILE, tools=(*TOOLS, dotted)), writable=True)
    assert registry.find("notes.search") is registry.find("notes_search") is dotted
    assert registry.find("search") is TOOLS[0]
    assert registry.find("no.such") is None
    underscored = Registry(replace(PROFILE, tools=(dotted,)), writable=True, underscored=True)
    assert [tool.name for tool in underscored.tools] == ["notes_search"]
    assert underscored.find("notes.search") is dotted
    known = replace(dotted, aliases=("notes.find",))
    assert Registry(replace(PROFILE, tools=(known,)), writable=True).find("notes_find") is known


@pytest.mark.parametrize(
    ("name", "arguments", "sentences"),
    [
        ("search", {}, ['search needs "query".']),
        ("search", {"query": ""}, ["query must not be empty"]),
        (
            "search",
            {"query": "x", "limit": 0, "kind": ["note"]},
            ['search has no argument "kind". Did you mean "kinds"? It takes: query, limit,'],
        ),
        ("search", {"query": "x", "limit": 0}, ["limit must be between 1 and 100, not 0."]),
        ("search", {"query": 7}, ["query must be a string, not 7."]),
        ("search", {"query": "x", "mode": "psychic"}, ["mode must be one of auto, lexical, semantic, hybrid"]),
        ("search", {"query": "x", "where": [{"operator": "eq"}]}, ['search needs "where.0.key".']),
        ("search", {"query": "x", "where": [{"key": "k", "operator": "in", "value": []}]}, ["non-empty list"]),
        ("search", {"query": "x", "created_from": "last week"}, ['created_from "last week" is not an ISO 8601 date']),
        ("fetch", {"uri": []}, ["uri must be a string or a list of strings"]),
        ("forget", {"uri": ["a", "b"], "expected_version": 1}, ["goes with one address"]),
        ("revise", {"uri": "notes://tea", "metadata": {}, "metadata_patch": {}}, ["not both"]),
    ],
)
def test_a_wrong_argument_is_named(call: Call, name: str, arguments: dict[str, Any], sentences: list[str]) -> None:
    with pytest.raises(InvalidInput) as refused:
        call(name, **arguments)
    for sentence in sentences:
        assert sentence in str(refused.value)


def test_null_means_not_given(call: Call) -> None:
    assert call("search", query="water", limit=None, tags=None, mode="lexical")["results"]


def test_a_whole_number_may_be_written_with_a_point(call: Call) -> None:
    assert len(call("search", query="water", limit=1.0, mode="lexical")["results"]) == 1
    with pytest.raises(InvalidInput, match=r"limit must be a whole number, not 1\.5"):
        call("search", query="water", limit=1.5)


def test_the_default_list_is_small_and_the_instructions_are_short(tmp_path: Path) -> None:
    with Library.open(tmp_path, settings=library_settings(tmp_path, allow_writes=True)) as library:
        for number in range(60):
            library.put(Draft("document", "a.md", parent=f"collection-{number}-" + "x" * 60, body="words"))
        assert len(instructions(library).encode()) <= 2048
    assert len(json.dumps([declared(tool) for tool in TOOLS], separators=(",", ":"))) < 12_000


@given(st.text(max_size=60), st.sampled_from([tool.name for tool in TOOLS]))
def test_any_text_in_any_place_is_answered_or_refused_in_words(call: Call, words: str, name: str) -> None:
    argument = {"search": "query", "browse": "at", "remember": "text"}.get(name, "uri")
    with contextlib.suppress(CommonplaceError):  # anything else fails the test
        call(name, **({} if name == "status" else {argument: words}))


def test_a_merge_patch_does_what_rfc_7396_says() -> None:
    cases = [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
        (["a"], {"a": 1}, {"a": 1}),
    ]
    for target, patch, merged in cases:
        assert merge(target, patch) == merged
