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

from commonplace.errors import AlreadyExists, CommonplaceError, InvalidInput, NotFound, VersionConflict
from commonplace.ingest.prepare import merge
from commonplace.kinds.documents.packages.declarations import Declaration, declare
from commonplace.kinds.documents.packages.package_sync import SyncTarget, sync
from commonplace.kinds.knowledge.records import put_record
from commonplace.library import Library
from commonplace.model import LAST_MOMENT, Draft, Filter
from commonplace.profiles.commonplace import PROFILE, TOOLS, instructions
from commonplace.server.mcp import declared
from commonplace.store.chunks import Chunks
from commonplace.store.stored_settings import StoredSettings
from commonplace.tools.budget import tokens_of
from commonplace.tools.profile import Registry
from commonplace.tools.tool import Call as Visit
from kit.answers import present
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
        Draft202012Validator(present(tool.output)).validate(answer)
        return json.loads(json.dumps(answer))

    return run


def uris(answer: dict[str, Any]) -> list[str]:
    return [result["uri"] for result in answer["results"]]


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({"kinds": ["note"]}, {"notes://tea"}),
        ({"collections": ["docs"]}, {"docs://docs/guide.md", "docs://docs/old.md"}),
        ({"tags": ["DRINK"]}, {"notes://tea"}),
        ({"where": [{"key": "cups", "operator": "gte", "value": 3}]}, {"notes://tea"}),
        ({"where": [{"key": "cups", "operator": "in", "value": [4]}]}, set()),
        ({"created_to": "2001-01-01"}, set()),
        ({"created_from": "2001-01-01"}, {"docs://docs/guide.md", "docs://docs/old.md", "notes://tea"}),
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


def test_a_name_that_nothing_is_kept_under_is_said_also_beside_hits(call: Call, library: Library) -> None:
    said = [{"sender": "Ada", "content": "Is the water warm?"}]
    put_record(library.store, {"kind": "conversation", "id": "3f2a", "title": "Weather", "messages": said})
    library.put(Draft("collection", "bare"))
    call("remember", kind="memory", text="No tea.", collection="home")

    def notes(*names: str) -> list[str]:
        return call("search", query="water", mode="lexical", collections=list(names))["notes"]

    assert notes("docs", "home", "bare", "3f2a") == []
    assert notes("docs", "none") == ['No collection, thread or conversation is called "none".']
    assert notes("weather") == ['"weather" is a title. What is in it goes by "3f2a" in collections.']
    many = notes("docs", *(f"none-{number}" for number in range(900)))
    assert many[-1] == "Nothing is kept under others of these names either: 895."
    assert len(many) == 6


def test_what_is_found_has_a_title_that_people_know_it_by(call: Call, library: Library) -> None:
    said = [{"id": "m1", "sender": "Ada", "content": "Is the water warm?"}]
    put_record(library.store, {"kind": "conversation", "id": "talk", "title": "Weather", "messages": said})
    library.put(Draft("message", "m2", parent="unknown", body="Cold water."))
    call("remember", kind="memory", text="The water\n\nis off. " * 9)
    titles = {
        "chats://talk/m1": "Weather",
        "chats://unknown/m2": "Cold water.",
        "memory://1": ("The water is off. " * 9)[:79] + "…",
        "notes://tea": "Tea",
    }
    for detail in ("ids", "snippets", "passages"):
        found = call("search", query="water", mode="lexical", detail=detail)["results"]
        assert titles.items() <= {result["uri"]: result["title"] for result in found}.items()
    found = call("related", uri="docs://docs/old.md")["results"]
    assert titles.items() <= {result["uri"]: result["title"] for result in found}.items()


def test_a_conversation_that_is_found_by_its_title_shows_how_it_begins(call: Call, library: Library) -> None:
    said = [{"id": "m1", "sender": "Ada", "content": "Is it\n\ncold?"}, {"id": "m2", "sender": "Bo", "content": "No."}]
    put_record(library.store, {"kind": "conversation", "id": "talk", "title": "Weather", "messages": said})
    put_record(library.store, {"kind": "conversation", "id": "silent", "title": "No weather", "messages": []})
    snippets = {result["uri"]: result["snippet"] for result in call("search", query="weather")["results"]}
    assert snippets == {"chats://talk": "Is it\n\ncold?", "chats://silent": ""}
    (found, _) = call("search", query="weather", detail="passages")["results"]
    assert (found["passage"], found["line"], found["lines"]) == ("Is it\n\ncold?", 1, [1, 1])


def test_a_result_quotes_the_lines_from_the_one_it_names_on_and_says_what_they_are_under(call: Call) -> None:
    (found,) = call("search", query="grams", mode="lexical")["results"]
    assert (found["line"], found["headings"], found["snippet"]) == (11, ["Guide", "Leaves"], "Three grams.")
    (found,) = call("search", query="brew guide", mode="lexical")["results"]
    assert (found["line"], found["headings"], found["snippet"]) == (1, ["Guide"], "# Guide\n\nHow to brew.")
    read = call("fetch", uri=f"{found['uri']}:{found['line']}:3")["items"][0]
    assert read["text"].rstrip("\n") == found["snippet"]


def test_search_answers_however_often_it_is_asked(call: Call) -> None:
    assert {tuple(uris(call("search", query="oolong", mode="lexical"))) for _ in range(40)} == {("notes://tea",)}


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


@pytest.mark.parametrize(("name", "asked"), [("search", {"query": "water"}), ("related", {"uri": "notes://tea"})])
def test_why_it_went_by_words_only_is_one_sentence(
    call: Call, library: Library, name: str, asked: dict[str, Any]
) -> None:
    library.embed()
    library.store.drawer(StoredSettings).set("model", "arctic-embed-s")
    (note,) = call(name, **asked)["notes"]
    assert note.startswith("By words only: The model arctic-embed-s is not in ")
    assert note.endswith("or use the model 'static'.")


@pytest.mark.parametrize(
    ("uri", "text", "next_line"),
    [
        ("docs://docs/guide.md#water", "## Water\n\nJust off the boil.\n", None),
        ("docs://docs/guide.md#Leaves", "## Leaves\n\nThree grams.\n", None),
        ("docs://docs/guide.md:7", "Just off the boil.\n\n## Leaves\n\nThree grams.\n", None),
        ("docs://docs/guide.md:7:1", "Just off the boil.", None),
        ("docs://docs/guide.md", GUIDE, None),
    ],
)
def test_fetch_reads_what_an_address_means(call: Call, uri: str, text: str, next_line: int | None) -> None:
    (item,) = call("fetch", uri=uri)["items"]
    assert (item["text"].rstrip("\n"), item["next_line"]) == (text.rstrip("\n"), next_line)


def test_fetch_reads_many_and_names_what_is_missing_or_did_not_fit(call: Call) -> None:
    answer = call("fetch", uri=["notes://tea", "notes://nothing", "docs://docs/old.md"])
    assert [item["uri"] for item in answer["items"]] == ["notes://tea", "docs://docs/old.md"]
    assert answer["missing"][0]["uri"] == "notes://nothing"
    tight = call("fetch", uri=["docs://docs/guide.md", "notes://tea"], max_tokens=100)
    assert tight["items"][0]["next_line"] is not None
    assert tight["left_out"] == ["notes://tea"]
    with pytest.raises(NotFound, match="There is no notes://nothing"):
        call("fetch", uri="notes://nothing")
    with pytest.raises(NotFound, match='no heading "milk"'):
        call("fetch", uri="docs://docs/guide.md#milk")


def test_browse_goes_from_kinds_to_headings(call: Call) -> None:
    assert [(entry["at"], entry["count"]) for entry in call("browse")["entries"]] == [
        ("document", 2), ("note", 1), ("tags", 1),
    ]  # fmt: skip
    assert [entry["at"] for entry in call("browse", at="document")["entries"]] == ["document/docs"]
    page = call("browse", at="document/docs", limit=1)
    rest = call("browse", at="document/docs", limit=1, cursor=page["next_cursor"])
    assert [entry["at"] for entry in page["entries"] + rest["entries"]] == [
        "docs://docs/guide.md",
        "docs://docs/old.md",
    ]
    assert rest["next_cursor"] is None
    assert [entry["at"] for entry in call("browse", at="note")["entries"]] == ["notes://tea"]
    headings = call("browse", at="docs://docs/guide.md")["entries"]
    assert [entry["at"].partition("#")[2] for entry in headings] == ["guide", "water", "leaves"]
    with pytest.raises(InvalidInput, match='There is no kind "cakes"'):
        call("browse", at="cakes")


PATHS = ["readme.md", "ops/locks.md", "ops/archive/2024.md", "ops/archive/2023.md", "opsy.md", "people/ann.md"]


@pytest.fixture
def vault(call: Call, library: Library) -> Call:
    for path in PATHS:
        library.put(Draft("document", path, parent="vault", title=path, body=f"{path} says more.", tags=("Work",)))
    return call


def test_browse_walks_the_folders_of_a_collection(vault: Call) -> None:
    def shown(at: str, **more: Any) -> list[tuple[str, str, int | None]]:
        return [(one["at"], one["name"], one.get("count")) for one in vault("browse", at=at, **more)["entries"]]

    assert shown("document/vault") == [
        ("document/vault/ops", "ops/", 3),
        ("document/vault/people", "people/", 1),
        ("docs://vault/opsy.md", "opsy.md", None),
        ("docs://vault/readme.md", "readme.md", None),
    ]
    assert shown("document/vault/ops") == shown("document/vault/ops/") == [
        ("document/vault/ops/archive", "archive/", 2), ("docs://vault/ops/locks.md", "ops/locks.md", None),
    ]  # fmt: skip
    assert [at for at, _, _ in shown("document/vault/ops/archive")] == [
        "docs://vault/ops/archive/2023.md", "docs://vault/ops/archive/2024.md",
    ]  # fmt: skip
    page, places = vault("browse", at="document/vault", limit=1), []
    while True:
        places += [entry["at"] for entry in page["entries"]]
        if not page["next_cursor"]:
            break
        page = vault("browse", at="document/vault", limit=1, cursor=page["next_cursor"])
    assert places == [at for at, _, _ in shown("document/vault")]


def test_a_folder_is_browsed_by_its_name_in_any_case(vault: Call, library: Library) -> None:
    assert vault("browse", at="document/VAULT/Ops") == vault("browse", at="document/vault/ops")
    assert vault("browse", at="document/vault/OPS/Archive/") == vault("browse", at="document/vault/ops/archive")
    library.put(Draft("document", "Ops/other.md", parent="vault", title="Other", body="Text."))
    assert [one["at"] for one in vault("browse", at="document/vault/Ops")["entries"]] == ["docs://vault/Ops/other.md"]
    with pytest.raises(NotFound, match=r'^There is no folder "OPS" in vault\. Did you mean Ops or ops\?$'):
        vault("browse", at="document/vault/OPS")


def test_a_folder_that_is_not_there_is_said_with_the_nearest(vault: Call) -> None:
    with pytest.raises(NotFound, match=r'^There is no folder "opz" in vault\. Did you mean ops\?$'):
        vault("browse", at="document/vault/opz")
    with pytest.raises(NotFound, match=r'^There is no folder "ops/archives" in vault\. Did you mean ops/archive\?$'):
        vault("browse", at="document/vault/ops/archives")


def test_a_collection_whose_name_has_slashes_has_folders_too(call: Call, library: Library) -> None:
    for path in ("a.md", "deep/b.md"):
        library.put(Draft("document", path, parent="pkg:file:///srv/teas", title=path, body="Text."))
    assert [entry["at"] for entry in call("browse", at="document/pkg:file:///srv/teas")["entries"]] == [
        "document/pkg:file:///srv/teas/deep", "docs://pkg%3Afile%3A%2F%2F%2Fsrv%2Fteas/a.md",
    ]  # fmt: skip
    (entry,) = call("browse", at="document/pkg:file:///srv/teas/deep")["entries"]
    assert entry["name"] == "deep/b.md"


@pytest.mark.parametrize("path", ["https://example.com/a/guide.md", "/etc/motd", "a//b.md", "a/", "//x//y//z"])
def test_every_document_is_reached_by_its_folders_however_its_path_is_written(
    call: Call, library: Library, path: str
) -> None:
    uri = library.put(Draft("document", path, parent="odd", title="Odd", body="Text.")).uri
    at = "document/odd"
    for _ in range(6):
        (entry,) = call("browse", at=at)["entries"]
        at = entry["at"]
        if at == uri:
            break
    assert at == uri


def test_browse_lists_tags_and_what_has_them(vault: Call) -> None:
    vault("remember", text="Lock it.", tags=["work", "ops/locks"])
    assert vault("browse")["entries"][-1] == {"at": "tags", "name": "tags", "count": 3}
    entries = vault("browse", at="tags")["entries"]
    assert [(one["at"].casefold(), one["count"]) for one in entries] == [
        ("tags/work", 7), ("tags/drink", 1), ("tags/ops/locks", 1),
    ]  # fmt: skip
    assert len(vault("browse", at="tags/WORK")["entries"]) == 7
    assert [one["name"] for one in vault("browse", at="tags/ops/locks")["entries"]] == ["Lock it."]
    with pytest.raises(NotFound, match=r'Nothing has the tag "drinks"\. Did you mean drink\? Browse "tags" to see'):
        vault("browse", at="tags/drinks")


def test_a_tag_that_nothing_has_is_said_with_the_nearest(vault: Call) -> None:
    assert (
        vault("search", query="boil", tags=["drinks"])["notes"][-1]
        == 'Nothing has the tag "drinks". Did you mean drink?'
    )
    told = vault("search", query="oolong", tags=["Drink", "wrk", "qqqq"])
    assert uris(told) == ["notes://tea"]
    assert told["notes"][-2:] == ['Nothing has the tag "wrk". Did you mean Work?', 'Nothing has the tag "qqqq".']
    assert not any("tag" in note for note in vault("search", query="nothing at all", tags=["work"])["notes"])


def test_a_collection_kind_or_path_that_is_not_there_is_said_with_the_nearest(vault: Call) -> None:
    (note,) = vault("search", query="boil", mode="lexical", collections=["valt"])["notes"]
    assert note == 'No collection, thread or conversation is called "valt". Did you mean vault?'
    with pytest.raises(InvalidInput, match=r'There is no kind "notes"\. Did you mean note\? The kinds are document, '):
        vault("search", query="boil", kinds=["notes"])
    (note,) = vault("search", query="more", mode="lexical", path="vault/opss/**")["notes"]
    assert note == 'No document is in "vault/opss/**". Did you mean vault/ops?'
    (note,) = vault("search", query="more", mode="lexical", path="archive")["notes"]
    assert note.startswith('No document is in "archive". Did you mean vault/ops/archive?')
    (said,) = vault("search", query="qqqq", mode="lexical", path="ops")["notes"]
    assert said.startswith('No text has "qqqq"'), "the folder is there"


def test_browse_lists_the_definitions_of_code_and_fetch_reads_them(call: Call, library: Library) -> None:
    body = "import tea\n\n\nclass Pot:\n    # With care.\n    def pour(self): pass\n\n\ndef brew():\n    pass\n"
    library.put(Draft("document", "pot.py", parent="docs", title="pot", body=body, format="python"))
    entries = call("browse", at="docs://docs/pot.py")["entries"]
    assert [(entry["name"], entry["level"], entry["line"]) for entry in entries] == [
        ("Pot", 1, 4), ("pour", 2, 5), ("brew", 1, 9),
    ]  # fmt: skip
    (item,) = call("fetch", uri=entries[1]["at"])["items"]
    assert (item["text"], item["from_line"]) == ("    # With care.\n    def pour(self): pass", 5)
    assert [entry["name"] for entry in call("browse", at=entries[0]["at"])["entries"]] == ["pour"]


def test_browse_says_that_a_collection_is_not_there(call: Call, library: Library) -> None:
    library.put(Draft("collection", "bare"))
    assert call("browse", at="document/bare") == {"entries": [], "next_cursor": None}
    with pytest.raises(NotFound, match=r"no collection called .dcos.. Did you mean docs\? Browse"):
        call("browse", at="document/dcos")


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
    assert "docs://docs/guide.md" in found
    assert "notes://tea" not in found


@pytest.mark.parametrize("part", ["#water", "#chunk-0", ":5", ":5:2", ":5@3"])
def test_related_takes_an_address_of_a_part_for_the_item(call: Call, part: str) -> None:
    assert call("related", uri=f"docs://docs/guide.md{part}") == call("related", uri="docs://docs/guide.md")
    with pytest.raises(NotFound, match=r"There is no docs://docs/none\.md\. Did you mean docs/old\.md"):
        call("related", uri=f"docs://docs/none.md{part}")


@pytest.mark.parametrize("embedded", [False, True])
def test_what_is_like_a_conversation_is_like_what_was_said_in_it(
    call: Call, library: Library, *, embedded: bool
) -> None:
    said = [{"id": "m1", "sender": "Ada", "content": "Frost in May kills tomatoes."}]
    said += [{"id": f"m{number}", "sender": "Bo", "content": "Tomatoes, frost, May."} for number in range(2, 20)]
    put_record(library.store, {"kind": "conversation", "id": "talk", "title": "Untitled", "messages": said})
    library.put(Draft("note", "frost", title="Dates", body="Tomatoes go out in May, after the last frost."))
    if embedded:
        library.embed()
    answer = call("related", uri="chats://talk", limit=3)
    assert uris(answer)[0] == "notes://frost"
    assert not any(uri.startswith("chats://talk") for uri in uris(answer))


def test_related_says_as_search_does_that_it_went_by_words_only(call: Call, library: Library) -> None:
    asked = call("search", query="water", mode="auto")
    assert call("related", uri="notes://tea")["notes"] == asked["notes"] != []
    library.embed()
    assert call("related", uri="notes://tea")["notes"] == []


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


@pytest.mark.parametrize(("text", "title"), [("# Tea\n\nGreen.", "Tea"), ("---\ntitle: Tea\n---\n\nGreen.", "Tea")])
def test_a_title_follows_the_text_it_was_taken_from(call: Call, text: str, title: str) -> None:
    kept = call("remember", text=text)
    assert kept["title"] == title
    assert call("revise", uri=kept["uri"], tags=["hot"])["title"] == title
    assert call("revise", uri=kept["uri"], text="# Coffee\n\nBlack.")["title"] == "Coffee"
    assert call("search", query="coffee black")["results"][0]["title"] == "Coffee"
    assert call("revise", uri=kept["uri"], text="# Mate", title="Yerba")["title"] == "Yerba"
    assert call("revise", uri=kept["uri"], text="# Cocoa")["title"] == "Yerba", "somebody gave it"


def test_a_title_that_was_given_stays(call: Call) -> None:
    kept = call("remember", text="# Tea", title="Hot drinks")
    assert call("revise", uri=kept["uri"], text="# Coffee")["title"] == "Hot drinks"


@pytest.mark.parametrize("part", ["#leaves", "#chunk-0", ":1", ":1:2", ":1@3"])
def test_a_part_is_neither_revised_nor_forgotten_and_the_whole_is_named(call: Call, part: str) -> None:
    for name, arguments in (("revise", {"text": "Sencha."}), ("forget", {}), ("forget", {"dry_run": True})):
        with pytest.raises(InvalidInput) as refused:
            call(name, uri=f"notes://tea{part}", **arguments)
        told = f"notes://tea{part} is a part of notes://tea, and {name} takes whole items. Give notes://tea."
        assert str(refused.value) == told
        with pytest.raises(NotFound, match=r"There is no notes://none\. Find it with a search\."):
            call(name, uri=f"notes://none{part}", **arguments)
    assert call("fetch", uri="notes://tea")["items"][0]["text"] == "Oolong and water."


def test_a_key_that_reads_like_a_part_is_a_whole_item(call: Call, library: Library) -> None:
    library.put(Draft("note", "tea:1", title="Odd", body="Water at one."))
    assert "notes://tea%3A1" not in uris(call("related", uri="notes://tea:1"))
    assert call("forget", uri="notes://tea:1")["forgotten"] == ["notes://tea%3A1"]
    assert call("fetch", uri="notes://tea")["items"]


def test_writing_touches_notes_only_and_takes_no_taken_key(call: Call) -> None:
    with pytest.raises(AlreadyExists):
        call("remember", text="another", key="tea")
    for name, more in (("revise", {"text": "x"}), ("forget", {})):
        with pytest.raises(InvalidInput, match="Only notes and memories"):
            call(name, uri="docs://docs/guide.md", **more)
    with pytest.raises(InvalidInput, match="text is empty"):
        call("remember", text="  \n ")


def test_fetch_reads_the_passage_at_a_place_and_its_neighbours(call: Call, library: Library) -> None:
    body = "\n\n".join(f"## Part {n}\n\n" + f"Sentence {n} of part. " * 170 for n in range(6))
    library.put(Draft("document", "long.md", parent="docs", title="Long", body=body, format="markdown"))
    uri = "docs://docs/long.md"
    chunks = library.store.drawer(Chunks).of(library.get(uri).id)
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


@pytest.mark.parametrize("budget", [100, 300, 1000])
@pytest.mark.parametrize("line", ['\tprint("a\\tb", "c\\n", "\\"")', "\x01" * 30, '"' * 5000, "plain words"])
def test_fetch_keeps_to_its_budget_as_it_is_written_out(call: Call, library: Library, line: str, budget: int) -> None:
    library.put(Draft("note", "code", body="\n".join([line] * 400)))
    answer = call("fetch", uri="notes://code", max_tokens=budget)
    assert tokens_of(answer) <= budget
    assert answer["items"][0]["next_line"] == answer["items"][0]["text"].count("\n") + 2


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


@pytest.mark.parametrize("kind", ["note", "memory"])
def test_what_cannot_be_stored_is_told_of_the_argument_it_is_in(call: Call, kind: str) -> None:
    wrong = {"text": "a\0b", "collection": "a\0b", "tags": ["a\0b"], "metadata": {"a": ["a\0b"]}}
    kept = call("remember", kind=kind, text="water")["uri"]
    for name, value in [*wrong.items(), *([("title", "a\0b"), ("key", "a\0b")] if kind == "note" else [])]:
        with pytest.raises(InvalidInput) as refused:
            call("remember", **{"kind": kind, "text": "water", name: value})
        assert str(refused.value) == f"{name} contains U+0000, which cannot be stored. Remove it."
        assert refused.value.details == {"argument": name}
    for name, value in (("text", "a\0b"), ("tags", ["a\0b"]), ("metadata_patch", {"a\0b": 1})):
        with pytest.raises(InvalidInput, match=rf"^{name} contains U\+0000"):
            call("revise", uri=kept, **{name: value})


def test_what_is_wrong_with_a_memory_is_told_as_of_anything_else(call: Call, library: Library) -> None:
    with pytest.raises(NotFound) as missing:
        call("remember", kind="memory", text="water", supersedes=["memory://99999"])
    assert str(missing.value) == "There is no memory://99999. Find it with a search."
    kept = call("remember", kind="memory", text="water")["uri"]
    with pytest.raises(VersionConflict) as changed:
        call("revise", uri=kept, text="ice", expected_version=7)
    assert str(changed.value) == f"{kept} is at version 1, not 7. Fetch it and repeat the change."


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
        ("fetch", {"uri": []}, ["uri must have at least 1 entry"]),
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
    assert len(json.dumps([declared(tool) for tool in TOOLS], separators=(",", ":"))) < 12_300


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


def test_a_passage_of_a_line_that_is_many_passages_is_that_passage(call: Call, library: Library) -> None:
    library.put(Draft("note", "long", title="Long", body=" ".join(f"word{n} lorem ipsum" for n in range(3000))))
    chunks = library.store.drawer(Chunks).of(library.get("notes://long").id)
    assert len(chunks) > 3
    for ordinal, chunk in enumerate(chunks):
        for mode in ("full", "chunk"):
            (item,) = call("fetch", uri=f"notes://long#chunk-{ordinal}", mode=mode)["items"]
            assert item["text"].strip() == chunk.text.strip()
    around = call("fetch", uri="notes://long#chunk-2", mode="siblings", max_tokens=3500)["items"][0]["text"]
    assert chunks[2].text.strip() in around
    assert chunks[1].text.strip() in around
    assert call("fetch", uri="notes://long", mode="chunk")["items"][0]["text"].strip() == chunks[0].text.strip()


def test_a_conversation_has_no_passages_of_its_own(call: Call, library: Library) -> None:
    messages = [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "well"}]
    uri = put_record(library.store, {"kind": "conversation", "title": "C", "messages": messages}).uri
    assert "well" in call("fetch", uri=uri, mode="chunk")["items"][0]["text"]
    with pytest.raises(NotFound, match=r"has no passage 0\. It has none at all\."):
        call("fetch", uri=f"{uri}#chunk-0")


def test_every_entry_of_a_listing_leads_to_what_it_counts(call: Call, library: Library) -> None:
    threads = ("a", "a/", "a//", "/a", "https://example.org/1", " ")
    for thread in threads:
        library.put(Draft("message", "m", parent=thread, body=f"in {thread}"))
    entries = call("browse", at="message")["entries"]
    assert {entry["name"] for entry in entries} == set(threads)
    for entry in entries:
        (item,) = call("browse", at=entry["at"])["entries"]
        assert call("fetch", uri=item["at"])["items"][0]["text"] == f"in {entry['name']}"


@pytest.mark.parametrize(
    "titles",
    [
        ("!!!", "Chunk 7", "Last"),
        ("chunk-0", "chunk-1", "Chunk 0"),
        ("", "", "?"),
        ("Straße", "Strasse", "straße"),
        ("x", "x", "x-1"),
    ],
)
def test_every_heading_that_is_listed_is_reached_whatever_it_is_called(
    call: Call, library: Library, titles: tuple[str, ...]
) -> None:
    body = "".join(f"# {title}\n\ntext {n}\n\n## Below {n}\n\n" for n, title in enumerate(titles))
    library.put(Draft("note", "odd", title="Odd", body=body, format="markdown"))
    listed = call("browse", at="notes://odd")["entries"][::2]
    for n, (entry, title) in enumerate(zip(listed, titles, strict=True)):
        (item,) = call("fetch", uri=entry["at"])["items"]
        assert (entry["name"], item["text"].strip()) == (title, f"# {title}\n\ntext {n}\n\n## Below {n}".strip())
        assert [below["name"] for below in call("browse", at=entry["at"])["entries"]] == [f"Below {n}"]


def test_a_heading_is_browsed_for_those_below_it(call: Call, library: Library) -> None:
    body = "# A\n\n## B\n\n### C\n\nc\n\n## D\n\nd\n\n# E\n"
    library.put(Draft("note", "deep", title="Deep", body=body, format="markdown"))

    def below(at: str) -> dict[str, Any]:
        return {entry["name"]: below(entry["at"]) for entry in call("browse", at=at)["entries"]}

    assert below("notes://deep#a") == {"B": {"C": {}}, "C": {}, "D": {}}
    assert below("notes://deep#e") == {}
    with pytest.raises(NotFound, match='no heading "nothing"'):
        call("browse", at="notes://deep#nothing")


def test_what_has_expired_is_not_listed(call: Call, library: Library) -> None:
    library.put(Draft("memory", "1", parent="t", body="over", fields={"source": "agent", "expires_at": 1}))
    assert call("browse", at="memory/t")["entries"] == []


def test_what_expires_after_the_last_year_of_another_zone_can_be_read_and_exported(
    call: Call, library: Library
) -> None:
    uri = call("remember", kind="memory", text="Never over.", expires_at="9999-12-31T23:59:59-05:00")["uri"]
    (line,) = library.export(Filter(kinds=("memory",)))
    assert json.loads(line)["fields"]["expires_at"] == LAST_MOMENT
    call("revise", uri=uri, text="Still not.", expires_at="9999-12-31T20:00:00-12:00")
    (entry,) = library.memories.entries([1])
    assert entry.row.expires_at == LAST_MOMENT


def test_a_key_is_taken_by_a_note_of_any_notebook(call: Call, library: Library) -> None:
    call("remember", text="one", key="plan", collection="work")
    for notebook in ("home", "work"):
        with pytest.raises(AlreadyExists, match=r'^There is a note "plan" already\.'):
            call("remember", text="two", key="plan", collection=notebook)
    assert call("fetch", uri="notes://plan")["items"][0]["text"] == "one"


@pytest.mark.parametrize("kind", ["note", "memory"])
def test_nothing_is_revised_to_nothing(kind: str, call: Call) -> None:
    uri = call("remember", text="kept", kind=kind)["uri"]
    with pytest.raises(InvalidInput, match="text is empty"):
        call("revise", uri=uri, text=" \n")
    assert call("fetch", uri=uri)["items"][0]["text"] == "kept"


@pytest.mark.parametrize("of", ["created", "updated"])
def test_a_range_whose_ends_are_swapped_is_refused(of: str, call: Call) -> None:
    with pytest.raises(InvalidInput, match=rf"^{of}_from 2026-05-02 is after {of}_to 2026-05-01\. Swap") as said:
        call("search", query="tea", **{f"{of}_from": "2026-05-02", f"{of}_to": "2026-05-01"})
    assert said.value.details == {"argument": f"{of}_from"}
    call("search", query="tea", **{f"{of}_from": "2026-05-01", f"{of}_to": "2026-05-01"})


@pytest.mark.parametrize("kind", ["note", "memory"])
@pytest.mark.parametrize("nothing", [{}, {"text": None}, {"expected_version": 1}])
def test_a_revision_that_changes_nothing_is_told_so(kind: str, nothing: dict[str, Any], call: Call) -> None:
    uri = call("remember", text="kept", kind=kind)["uri"]
    with pytest.raises(InvalidInput, match=r"nothing to change\. Give one at least of text, title"):
        call("revise", uri=uri, **nothing)
    assert call("fetch", uri=uri)["items"][0]["version"] == 1


@pytest.mark.parametrize("day", ["2026-05-01", "20260501", "2026-W18-5", "2026W185"])
def test_a_day_that_ends_a_range_is_in_it_however_it_is_written(day: str, call: Call, library: Library) -> None:
    library.put(Draft("note", "noon", body="noon walk", created_at=datetime(2026, 5, 1, 12, tzinfo=UTC)))
    assert uris(call("search", query="noon", created_from=day, created_to=day)) == ["notes://noon"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([], "uri must have at least 1 entry."),
        (["notes://tea"] * 51, "uri must have at most 50 entries, not 51."),
        ("", "uri must not be empty."),
        (5, "uri must be a string or a list of strings."),
        ([5], "uri must be a string or a list of strings."),
    ],
)
def test_what_is_wrong_with_one_or_many_addresses_is_said(given: object, said: str, call: Call) -> None:
    with pytest.raises(InvalidInput) as caught:
        call("fetch", uri=given)
    assert str(caught.value) == said


@pytest.mark.parametrize("name", ["kinds", "collections", "tags"])
def test_a_search_names_a_thousand_of_anything_at_most(call: Call, name: str) -> None:
    with pytest.raises(InvalidInput, match=f"{name} must have at most 1000 entries, not 100000"):
        call("search", query="tea", **{name: [f"note{number}" for number in range(100_000)]})


def test_a_kind_that_is_none_is_told(call: Call) -> None:
    with pytest.raises(InvalidInput, match=r'There is no kind "notes"\. Did you mean note\? The kinds'):
        call("search", query="tea", kinds=["notes"])


def walked(call: Call, between: Callable[[int], object], **asked: Any) -> list[str]:
    """Everything a search shows, page by page, with something done after each."""
    page, seen = call("search", **asked), list[str]()
    for number in range(100):
        seen += uris(page)
        if page["next_cursor"] is None:
            return seen
        between(number)
        page = call("search", **asked, cursor=page["next_cursor"])
    raise AssertionError("it never ends")


@pytest.mark.parametrize("session", [{}, {"session": "walk"}])
def test_what_comes_to_the_top_between_pages_is_shown_next_and_nothing_twice(
    session: dict[str, str], call: Call, library: Library
) -> None:
    notes = [Draft("note", f"n{number}", body="zither " + "and more of it " * number) for number in range(40)]
    library.put_many(notes)

    def another(number: int) -> None:
        library.put(Draft("note", f"late{number}", body="zither"))

    seen = walked(call, another, query="zither", mode="lexical", detail="ids", limit=7, **session)
    assert len(seen) == len(set(seen))
    assert {f"notes://n{number}" for number in range(40)} < set(seen)
    assert {f"notes://late{number}" for number in range(6)} < set(seen)


def test_what_goes_between_pages_takes_nobody_else_with_it(call: Call, library: Library) -> None:
    library.put_many(Draft("note", f"n{number}", body="zither " + "and more of it " * number) for number in range(40))
    gone = set[str]()

    def remove(number: int) -> None:
        gone.add(f"notes://n{number}")
        library.delete(f"notes://n{number}")

    seen = walked(call, remove, query="zither", mode="lexical", detail="ids", limit=7)
    assert len(seen) == len(set(seen))
    assert {f"notes://n{number}" for number in range(40)} == set(seen) | gone


@pytest.mark.parametrize(
    "cursor",
    [
        "",
        "5",
        "-1.{digest}",
        "5.{digest}.",
        "5.{digest}.x",
        "5.{digest}.-1",
        "5.{digest}.0.0.g",
        "{digest}",
        "½.{digest}",
        "5.{digest}" + 101 * ".1",
    ],
)
def test_a_cursor_that_nobody_made_is_refused(cursor: str, call: Call) -> None:
    first = call("search", query="water", mode="lexical", limit=1)
    digest = first["next_cursor"].split(".")[1]
    with pytest.raises(InvalidInput, match="cursor does not belong to this call"):
        call("search", query="water", mode="lexical", cursor=cursor.format(digest=digest))


def test_a_list_of_more_than_ten_thousand_is_walked_to_its_end(call: Call, library: Library) -> None:
    library.put_many(Draft("note", f"n{number}", body="zither") for number in range(10_120))
    first = call("search", query="zither", mode="lexical", detail="ids", limit=1)
    _, digest, *_ = first["next_cursor"].split(".")
    cursor = f"9980.{digest}"  # as if all before had been walked
    seen: list[str] = []
    while cursor:
        page = call(
            "search", query="zither", mode="lexical", detail="ids", limit=100, max_tokens=100_000, cursor=cursor
        )
        seen += uris(page)
        cursor = page["next_cursor"]
    assert len(seen) == len(set(seen)) == 140


@pytest.mark.parametrize("detail", ["snippets", "ids", "passages"])
def test_a_result_larger_than_the_budget_does_not_keep_the_cursor_where_it_is(
    detail: str, call: Call, library: Library
) -> None:
    library.put(Draft("note", "titled", title="zither " * 300, body="zither"))
    library.put(Draft("document", "目錄/" * 30 + "檔案.md", parent="docs", title="D", body="zither zither"))
    body = f"# {'zither ' * 90}\n\n## {'long ' * 90}\n\nzither"
    library.put(Draft("note", "deep", title="T", body=body, format="markdown"))
    library.put(Draft("note", "quoted", title="Q", body='zither "\\\n' * 90))
    seen: list[str] = []
    asked = {"query": "zither", "mode": "lexical", "detail": detail, "max_tokens": 200}
    page = call("search", **asked)
    while True:
        assert page["results"]
        seen += uris(page)
        if "docs" not in seen[-1]:  # an address is never cut
            assert tokens_of(page) <= 200
        if page["next_cursor"] is None:
            break
        page = call("search", **asked, cursor=page["next_cursor"])
    assert len(seen) == len(set(seen)) == 4


def test_metadata_that_does_not_fit_is_not_fetched(call: Call, library: Library) -> None:
    library.put(Draft("note", "much", title="M", body="short", metadata={"k": "v " * 5000}))
    answer = call("fetch", uri="notes://much", max_tokens=300)
    assert tokens_of(answer) <= 300
    assert answer["items"][0]["text"] == "short"
    assert call("fetch", uri="notes://much", max_tokens=9000)["items"][0]["metadata"] == {"k": "v " * 5000}


@pytest.mark.parametrize("budget", [100, 200, 1000])
def test_what_is_said_of_an_item_leaves_room_for_its_text(call: Call, library: Library, budget: int) -> None:
    tags = tuple(f"{number} {'t' * 60}" for number in range(9))
    library.put(Draft("note", "named", title="Long " * 500, body="Rain.\nSnow.\n", tags=tags))
    answer = call("fetch", uri="notes://named", max_tokens=budget)
    assert tokens_of(answer) <= budget
    assert answer["items"][0]["text"].startswith("Rain.\nSnow.")


@pytest.mark.parametrize(("body", "count"), [("one\ntwo\n", 2), ("one\ntwo", 2), ("one\n\n", 2), ("\n", 1)])
def test_fetch_counts_lines_as_everything_does(call: Call, library: Library, body: str, count: int) -> None:
    library.put(Draft("note", "lines", title="L", body=body))
    (item,) = call("fetch", uri="notes://lines")["items"]
    assert (item["text"], item["lines"], item["next_line"]) == (body, count, None)
    (last,) = call("fetch", uri=f"notes://lines:{count}")["items"]
    assert (last["from_line"], last["text"].strip(), last["next_line"]) == (count, body.split("\n")[count - 1], None)


@pytest.mark.parametrize("budget", [100, 101, 102, 103, 150, 4000])
def test_what_goes_on_at_the_next_line_is_the_whole_text(call: Call, library: Library, budget: int) -> None:
    body = "\n".join(["Rain.", "", "Snow and wind.", "Hail.", ""] * 8) + "\n"
    library.put(Draft("note", "weather", title="W", body=body))
    parts: list[str] = []
    line: int | None = 1
    while line is not None:
        (item,) = call("fetch", uri=f"notes://weather:{line}", max_tokens=budget)["items"]
        assert item["from_line"] == line <= item["lines"] == 40
        parts.append(item["text"])
        line = item["next_line"]
    assert "\n".join(parts) == body


@pytest.mark.parametrize("budget", [100, 101, 150, 4000])
@pytest.mark.parametrize("uri", ["notes://long", "notes://long#snow", "notes://long:3:3", "notes://long#chunk-1"])
def test_a_line_that_was_cut_goes_on_where_its_rest_begins(call: Call, library: Library, uri: str, budget: int) -> None:
    long, wide = 'Wind "and" rain. ' * 250, "雪が降る。" * 400
    body = f"# Rain\n\n## Snow\n\n{long}\n{wide}\n\n# Hail\n\n{'👩‍👩‍👧‍👦' * 300}\n"
    library.put(Draft("note", "long", title="L", body=body, format="markdown"))
    whole = call("fetch", uri=uri, max_tokens=200_000)["items"][0]["text"]
    text, at, line = "", uri, 1
    for _ in range(3 * len(body)):
        answer = call("fetch", uri=at, from_line=line, max_tokens=budget)
        assert tokens_of(answer) <= budget
        (item,) = answer["items"]
        if rest := item.get("rest_of_line"):
            text, at, line = text + item["text"].removesuffix("…"), rest, 1
        elif item["next_line"]:
            text, line = text + item["text"] + "\n", item["next_line"]
        else:
            break
    assert (text + item["text"]).startswith(whole)  # a passage may end inside a line, whose rest is read to its end
    assert "chunk" in uri or text + item["text"] == whole


@pytest.mark.parametrize("budget", [500, 1000, 4000])
def test_what_is_left_out_is_named_within_the_budget(call: Call, library: Library, budget: int) -> None:
    keys = [f"a-note-with-a-name-of-some-length-{number}" for number in range(40)]
    for key in keys:
        library.put(Draft("note", key, body="Rain and wind.\n" * 40))
    wanted, read = [f"notes://{key}" for key in keys], 0
    while wanted:
        answer = call("fetch", uri=wanted, max_tokens=budget)
        assert tokens_of(answer) <= max(budget, 900)  # forty addresses alone are 500
        wanted, read = answer["left_out"], read + len(answer["items"])
    assert read == 40


@pytest.mark.parametrize("budget", [100, 500, 1000, 4000])
def test_what_is_missing_is_told_within_the_budget(call: Call, library: Library, budget: int) -> None:
    library.put(Draft("note", "long", body="Rain and wind.\n" * 2000))
    nowhere = [f"notes://nothing-{number}" for number in range(49)]
    for wanted in (["notes://long", *nowhere], [*nowhere, "notes://long"]):
        answer = call("fetch", uri=wanted, max_tokens=budget)
        assert tokens_of(answer) <= max(budget, 600)  # fifty addresses alone are 500
        assert [entry["uri"] for entry in answer["missing"]] == nowhere
        assert answer["items"][0]["text"][0] == "R"
    (missing,) = call("fetch", uri=["notes://long", "notes://nothing"], max_tokens=budget)["missing"]
    assert missing.get("message") == ("There is no notes://nothing. Find it with a search." if budget > 100 else None)
    with pytest.raises(NotFound) as refused:
        call("fetch", uri=nowhere, max_tokens=budget)
    assert tokens_of(str(refused.value)) <= budget
    assert str(refused.value).startswith("There is no notes://nothing-0. Find it with a search. ")
    assert ("More of these addresses lead nowhere: " in str(refused.value)) == (budget < 4000)


@pytest.mark.parametrize("budget", [1200, 2000, 2800, 4000])
def test_a_passage_is_not_cut_for_its_neighbours(call: Call, library: Library, budget: int) -> None:
    library.put(Draft("note", "list", body="\n".join(f"- item {number}" for number in range(1200))))
    chunks = library.store.drawer(Chunks).of(library.get("notes://list").id)
    assert len(chunks) > 3
    for ordinal, chunk in enumerate(chunks):
        answer = call("fetch", uri=f"notes://list#chunk-{ordinal}", mode="siblings", max_tokens=budget)
        assert tokens_of(answer) <= budget
        whole = call("fetch", uri=f"notes://list#chunk-{ordinal}", max_tokens=budget)["items"][0]["next_line"] is None
        assert not whole or chunk.text.strip() in answer["items"][0]["text"]


@pytest.mark.parametrize("mode", ["chunk", "siblings"])
@pytest.mark.parametrize("line", ["- item {}", "a long line about item {} and others " * 60])
def test_a_passage_too_long_is_read_from_the_line_asked_for(call: Call, library: Library, mode: str, line: str) -> None:
    library.put(Draft("note", "list", body="\n".join(line.replace("{}", str(number)) for number in range(400))))
    chunk = library.store.drawer(Chunks).of(library.get("notes://list").id)[0]
    text, at, first = "", "notes://list", chunk.line_start
    for _ in range(400):
        (item,) = call("fetch", uri=at, from_line=first, mode=mode, max_tokens=250)["items"]
        text += item["text"].removesuffix("…")
        if rest := item.get("rest_of_line"):
            at, first = rest, 1
        elif item["next_line"]:
            text, at, first = text + "\n", "notes://list", item["next_line"]
        else:
            break
    assert text.startswith(chunk.text.strip())
    assert len(text) < 2 * len(chunk.text)


@pytest.mark.parametrize("mode", ["full", "chunk", "siblings"])
def test_a_passage_goes_on_after_a_line_that_was_cut(call: Call, library: Library, mode: str) -> None:
    """Passages share lines: what was left of one is not taken for what the one before it has of these."""
    lines = [f"Line {number} says {'much ' * (60 if number % 3 else 2)}" for number in range(80)]
    library.put(Draft("note", "list", body="\n".join(lines)))
    for chunk in library.store.drawer(Chunks).of(library.get("notes://list").id):
        text, at, first = "", f"notes://list#chunk-{chunk.ordinal}", 1
        for _ in range(400):
            (item,) = call("fetch", uri=at, from_line=first, mode=mode, max_tokens=120)["items"]
            text += item["text"].removesuffix("…")
            if rest := item.get("rest_of_line"):
                at, first = rest, 1
            elif item["next_line"]:
                text, first = text + "\n", item["next_line"]
            else:
                break
        assert text.strip() == chunk.text.strip()


def test_the_neighbours_of_a_message_are_what_others_said(call: Call, library: Library) -> None:
    said = [{"id": f"m{n}", "sender": "Ada" if n % 2 else "Bo", "content": f"Word {n}.\n\nMore."} for n in range(30)]
    put_record(library.store, {"kind": "conversation", "id": "talk", "title": "Weather", "messages": said})
    (item,) = call("fetch", uri="chats://talk/m15", mode="siblings", max_tokens=200)["items"]
    assert item["uri"] == "chats://talk"
    assert "**Bo:** Word 14.\n\nMore.\n\n**Ada:** Word 15.\n\nMore.\n\n**Bo:** Word 16.\n\nMore." in item["text"]
    assert not any(f"Word {far}." in item["text"] for far in (2, 28))
    lines = call("fetch", uri="chats://talk")["items"][0]["text"].split("\n")
    count = item["text"].count("\n") + 1
    assert item["text"].split("\n") == lines[item["from_line"] - 1 : item["from_line"] - 1 + count]
    (last,) = call("fetch", uri="chats://talk/m29", mode="siblings", max_tokens=4000)["items"]
    assert last["text"] == "\n".join(lines)


def test_a_message_too_long_for_neighbours_is_read_to_its_end(call: Call, library: Library) -> None:
    long = "\n".join(f"Word {number}." for number in range(300))
    said = [{"id": f"m{n}", "sender": "Ada " * 9, "content": long if n == 1 else "Yes."} for n in range(3)]
    put_record(library.store, {"kind": "conversation", "id": "talk", "title": "Weather", "messages": said})
    whole = call("fetch", uri="chats://talk/m1", mode="siblings", max_tokens=4000)["items"][0]["text"]
    for budget in (100, 500, *range(tokens_of(whole) + 100, tokens_of(whole) + 200, 7)):
        text, line = "", 1
        for _ in range(400):
            (item,) = call("fetch", uri="chats://talk/m1", from_line=line, mode="siblings", max_tokens=budget)["items"]
            text, line = text + item["text"] + "\n", item["next_line"]
            if line is None:
                break
        assert line is None
        assert long in text


def test_what_is_held_is_counted_in_words(call: Call, library: Library) -> None:
    library.delete_where(Filter(kinds=("note", "document")))
    assert "It holds nothing yet." in instructions(library)
    library.put(Draft("note", "n", body="One."))
    for number in range(2):
        library.put(Draft("media", str(number), body="Heard."))
        call("remember", kind="memory", text=f"Fact {number}")
    assert "It holds 2 media, 2 memories, 1 note." in instructions(library)
    library.tables.catalog.create_project("shop")
    library.tables.catalog.create_table("shop", "stock", data=[{"tea": "green"}, {"tea": "black"}])
    assert "1 note, 2 places in tables." in instructions(library)


def test_a_memory_is_in_a_thread_that_every_tool_can_name(call: Call, library: Library) -> None:
    made = [
        call("remember", kind="memory", text=f"Fact {n}", collection=name)["uri"]
        for n, name in enumerate((" home\n", "  "))
    ]
    assert [library.get(uri).parent for uri in made] == ["home", "main"]
    with pytest.raises(InvalidInput, match="collection must have at most 1000 characters for a memory, not 1001"):
        call("remember", kind="memory", text="Fact", collection="x" * 1001)
    for name, more in (("remember", {"kind": "memory", "text": "Fact"}), ("revise", {"uri": made[0]})):
        with pytest.raises(InvalidInput, match="tags of a memory must have at most 200 characters each, not 201"):
            call(name, **more, tags=["tea", "x" * 201])


def test_browse_keeps_to_its_limit_at_every_level(call: Call, library: Library) -> None:
    body = "".join(f"# Part {number}\n\nWords.\n\n" for number in range(7))
    library.put(Draft("document", "parts.md", parent="more", body=body, format="markdown"))
    for number in range(7):
        call("remember", kind="memory", text=f"Fact {number}", collection=f"thread-{number}")
    for at in ("memory", "docs://more/parts.md"):
        whole = call("browse", at=at)
        assert (len(whole["entries"]), whole["next_cursor"]) == (7, None)
        pages = [call("browse", at=at, limit=3)]
        while cursor := pages[-1]["next_cursor"]:
            pages.append(call("browse", at=at, limit=3, cursor=cursor))
        assert [len(page["entries"]) for page in pages] == [3, 3, 1]
        assert [entry for page in pages for entry in page["entries"]] == whole["entries"]


def test_browse_calls_conversations_and_tables_as_people_do(call: Call, library: Library) -> None:
    said = [{"sender": "Ada", "content": "Is it warm?"}]
    put_record(library.store, {"kind": "conversation", "id": "3f2a", "title": "Weather", "messages": said})
    library.tables.catalog.create_project("shop")
    table = library.tables.catalog.create_table("shop", "stock", data={"tea": "green"})
    (talk,) = call("browse", at="message")["entries"]
    assert talk == {"at": "message/3f2a", "name": "Weather", "count": 1}
    (kept,) = call("browse", at="table")["entries"]
    assert kept == {"at": f"table/{table.id}", "name": "stock", "count": 1}


def test_memories_are_listed_by_what_they_say_and_name_what_replaced_them(call: Call, library: Library) -> None:
    old = call("remember", kind="memory", text="The key is\n\nunder the mat.", collection="home")["uri"]
    new = call("remember", kind="memory", text="The key is in the drawer. " * 9, collection="home", supersedes=old)[
        "uri"
    ]
    told = [(entry["name"], entry.get("superseded_by")) for entry in call("browse", at="memory/home")["entries"]]
    assert told == [("The key is under the mat.", new), (f"{'The key is in the drawer. ' * 9}"[:79] + "…", None)]
    items = call("fetch", uri=[old, new, "notes://tea"])["items"]
    assert [item.get("superseded_by") for item in items] == [new, None, None]
    said = [{"id": "m1", "sender": "Ada", "content": "Is it warm?"}]
    put_record(library.store, {"kind": "conversation", "id": "talk", "title": "Weather", "messages": said})
    for place in ("message/talk", "chats://talk"):
        (entry,) = call("browse", at=place)["entries"]
        assert (entry["at"], entry["name"], entry["sender"]) == ("chats://talk/m1", "Is it warm?", "Ada")
    assert call("fetch", uri="chats://talk/m1")["items"][0]["sender"] == "Ada"
    call("forget", uri=new)
    assert "superseded_by" not in call("fetch", uri=old)["items"][0]


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("---\ntags: [tea]\ntitle: Oolong\n---\nSteep it.", "Oolong"),
        ("+++\ntitle = 'Oolong'\n+++\n\nSteep it.", "Oolong"),
        ("* * *\n\n## Oolong\n", "Oolong"),
        ("- Oolong\n- Sencha", "- Oolong"),
        ("🫖\nOolong", "🫖"),
        ("---", "Note"),
    ],
)
def test_a_note_is_called_by_what_it_says_first(call: Call, text: str, title: str) -> None:
    assert call("remember", text=text)["title"] == title


def test_a_section_is_read_on_inside_its_bounds(call: Call) -> None:
    for uri in ("docs://docs/guide.md#water", "docs://docs/guide.md:5:4"):
        (item,) = call("fetch", uri=uri, from_line=7)["items"]
        assert (item["from_line"], item["text"], item["next_line"]) == (7, "Just off the boil.\n", None)
        assert call("fetch", uri=uri, from_line=9)["items"][0]["text"] == ""
    (passage,) = call("fetch", uri="docs://docs/guide.md#chunk-0", from_line=9)["items"]
    assert (passage["from_line"], passage["text"]) == (9, "## Leaves\n\nThree grams.")


def test_an_item_that_is_named_twice_is_forgotten_once(call: Call) -> None:
    assert call("forget", uri=["notes://tea", "notes://tea"])["forgotten"] == ["notes://tea"]
    call("remember", text="Sencha.", key="green tea")
    spellings = ["notes://green tea", "notes://green%20tea"]
    assert call("forget", uri=spellings) == {"forgotten": ["notes://green%20tea"], "found": ["notes://green%20tea"]}


def test_a_package_is_known_by_the_name_that_people_gave_it(call: Call, library: Library, tmp_path: Path) -> None:
    source = tmp_path / "teas"
    source.mkdir()
    (source / "manifest.json").write_text('{"name": "All teas", "version": "1", "sources": {"glob": ["*.md"]}}')
    (source / "sencha.md").write_text("# Sencha\n\nSteamed leaves.\n")
    declaration = Declaration("teas", str(source), scope="global", folder=library.settings.home)
    declare(library.settings.home, declaration)
    sync(SyncTarget(library.store, library.folder, library.settings), declaration)
    assert "Collections: docs, All teas." in instructions(library)
    assert call("status")["collections"] == {"All teas": 1, "docs": 2}
    (entry,) = [entry for entry in call("browse", at="document")["entries"] if entry["name"] == "All teas"]
    listed = call("browse", at=entry["at"])["entries"]
    assert [one["name"] for one in listed] == ["Sencha"]
    for name in ("teas", "All teas"):
        assert call("browse", at=f"document/{name}")["entries"] == listed
        assert uris(call("search", query="leaves", collections=[name])) == [listed[0]["at"]]


def test_a_message_is_not_cut_for_its_neighbours_however_long_the_title_is(call: Call, library: Library) -> None:
    said = [{"id": f"m{n}", "sender": "Bob the builder", "content": f"word {n}"} for n in range(30)]
    put_record(library.store, {"kind": "conversation", "id": "talk", "title": "Long " * 40, "messages": said})
    for budget in range(120, 240):
        (read,) = call("fetch", uri="chats://talk/m29", mode="siblings", max_tokens=budget)["items"]
        assert read["text"].endswith("word 29"), budget


def filed(library: Library, *paths: str, parent: str = "vault") -> None:
    library.put_many([Draft("document", path, parent=parent, title=path, body=f"Kelp in {path}.") for path in paths])


def keys(answer: dict[str, Any]) -> set[str]:
    return {record["uri"].removeprefix("docs://") for record in answer["results"]}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("ops", {"vault/ops/a.md", "vault/ops/archive/b.md"}),
        ("ops/archive/**", {"vault/ops/archive/b.md"}),
        ("vault/ops/archive", {"vault/ops/archive/b.md"}),
        ("docs://vault/my%20ops", {"vault/my%20ops/c.md"}),
        ("qmd://vault/my%20ops", {"vault/my%20ops/c.md"}),
        ("OPS/*.md", {"vault/ops/a.md"}),
        ("else", {"vault/else/d.md", "else/e.md"}),  # a folder in one collection, and the name of another
        ("nowhere", set()),
    ],
)
def test_a_path_narrows_a_search_down(call: Call, library: Library, path: str, found: set[str]) -> None:
    filed(library, "ops/a.md", "ops/archive/b.md", "my ops/c.md", "else/d.md")
    filed(library, "e.md", parent="else")
    for mode in ("lexical", "auto"):
        assert keys(call("search", query="kelp", path=path, mode=mode)) == found


def test_a_path_is_applied_before_every_limit(call: Call, library: Library) -> None:
    filed(library, *(f"many/{number}.md" for number in range(400)), "few/last.md")
    library.put(Draft("document", "few/long.md", parent="vault", body="Kelp. " + "Nothing of the kind. " * 400))
    for mode in ("lexical", "auto"):
        answer = call("search", query="kelp", path="few", mode=mode, limit=1)
        assert keys(answer) == {"vault/few/last.md"}
        assert answer["next_cursor"]
        following = call("search", query="kelp", path="few", mode=mode, limit=1, cursor=answer["next_cursor"])
        assert keys(following) == {"vault/few/long.md"}


def test_a_path_that_names_nothing_is_refused(call: Call) -> None:
    with pytest.raises(InvalidInput, match="A path names a folder, a file or a glob"):
        call("search", query="kelp", path="/")
