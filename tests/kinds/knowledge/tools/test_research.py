"""The research profile: `search` and `fetch`, and how they are reached from the other one."""

from __future__ import annotations

from pathlib import Path

import pytest
from knowledge_calls import Tools

from commonplace.library import Library
from commonplace.model import Draft
from commonplace.profiles.registry import profile
from commonplace.tools.profile import Registry
from opening import library_settings


@pytest.fixture
def research(filled: Tools) -> Tools:
    return Tools(filled.library, "research")


def test_two_tools_are_listed_and_all_are_callable_on_both_profiles(research: Tools) -> None:
    assert [tool.name for tool in research.registry.tools] == ["search", "fetch"]
    knowledge = Registry(profile("knowledge"), writable=False)
    assert len(knowledge.tools) == 13
    for name in ("search", "fetch", "knowledge.search", "knowledge_get", "notes.search", "notes_create"):
        assert research.registry.find(name) is knowledge.find(name) is not None
    listed = Registry(profile("knowledge"), writable=False, aliases=True)
    assert [tool.name for tool in listed.tools][13:] == ["search", "fetch"]
    spelled = Registry(profile("knowledge"), writable=False, underscored=True)
    assert spelled.tools[0].name == "notes_search"


def test_search_answers_in_five_members(research: Tools) -> None:
    found = research("search", query="kettle")
    assert set(found) == {"results"}
    (hit,) = found["results"]
    assert set(hit) == {"id", "title", "url", "text", "metadata"}
    assert hit["metadata"]["source"] == "media"
    assert 0 < hit["metadata"]["score"] <= 1
    page = research("search", query="tea", limit=1, session="s")
    assert (page["next_offset"], page["session"]["seen"]) == (1, 1)
    assert research("search", query=";;;")["warnings"][0]["code"] == "no_terms"
    assert "applied" in research("search", query="tea", shape="full")


def test_fetch_reads_everything_rendered(research: Tools) -> None:
    note = research("fetch", id="notes://tea")
    assert set(note) == {"id", "title", "text", "url", "metadata"}
    assert note["text"].startswith("Oolong")
    assert note["metadata"]["truncated"] is False
    assert "## Description\n\nA pirate" in research("fetch", id="characters://1")["text"]
    assert research("fetch", id="chats://talk")["text"].startswith("# Tea talk\n\n**Me:** Shall we")
    assert research("fetch", id="notes://tea", shape="full")["applied"]["mode"] == "full"
    assert research("fetch", id="chats://talk", shape="full")["content"]["total_messages"] == 3


def test_fetch_of_a_message_is_its_window(research: Tools) -> None:
    message = research("fetch", id="chats://talk/m1")
    assert message["text"] == "Me: Shall we drink tea?\n\nAlice: Arr, rum and water.\n\nMe: Then rum it is."
    assert (message["id"], message["metadata"]["conversation_uri"]) == ("chats://talk/m1", "chats://talk")
    (hit,) = [hit for hit in research("search", query="rum")["results"] if hit["id"] == message["id"]]
    of_the_hit = {name: value for name, value in hit["metadata"].items() if name != "score"}
    assert message["url"] == hit["url"]
    assert of_the_hit.items() <= message["metadata"].items()


def test_a_long_text_is_continued(tmp_path: Path) -> None:
    with Library.open(tmp_path, settings=library_settings(tmp_path, full_max_chars=1000)) as library:
        tools = Tools(library, "research")
        body = "".join(f"line {number}\n" for number in range(500))
        tools.note("Long", body)
        whole, offset = "", 0
        while offset is not None:
            page = tools("fetch", id="notes://long", offset=offset)
            assert len(page["text"]) <= 1000
            whole, offset = whole + page["text"], page["metadata"]["next_offset"]
        assert whole == body


@pytest.mark.parametrize(
    "id", ["x", "notes://none", "chats://talk/none", "memory://1", "http://example.org", "docs://a/b"]
)
def test_what_is_no_known_address_is_not_found(research: Tools, id: str) -> None:
    refused = research.refused("fetch", id=id)
    assert refused.code == "not_found"
    assert refused.message == f'There is no item "{id}". Pass an id from search, such as notes://…'


def test_documents_are_searched_too_where_there_are_any(research: Tools) -> None:
    assert research("search", query="oolong", sources=["documents"])["results"] == []
    research.library.put(Draft("document", "tea.md", parent="docs", title="Tea", body="Oolong in a file."))
    found = research("search", query="oolong")
    assert {hit["id"] for hit in found["results"]} == {"notes://tea", "docs://docs/tea.md"}
    (hit,) = research("search", query="oolong", sources=["documents"])["results"]
    assert hit["metadata"]["source"] == "documents"
    for scheme in ("docs", "qmd"):
        assert research("fetch", id=f"{scheme}://docs/tea.md")["text"] == "Oolong in a file."


def test_an_items_address_is_its_own_or_on_the_public_server(tmp_path: Path) -> None:
    with Library.open(tmp_path, settings=library_settings(tmp_path, public_url="https://me.example/")) as library:
        tools = Tools(library, "research")
        tools.note("Tea", "oolong")
        (hit,) = tools("search", query="oolong")["results"]
        assert hit["url"] == "https://me.example/item?uri=notes%3A%2F%2Ftea"
