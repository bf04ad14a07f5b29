"""`knowledge.search` and `knowledge.get`: the merge of the five, sessions, the safe config, the compact shape."""

from __future__ import annotations

import base64
import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from knowledge_calls import Tools, uris

SOURCES = ("notes", "media", "chats", "characters", "prompts")
WORDS = ["alpha", "beta", "gamma", "delta"]
_TEXT = st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join)


def key(result: dict[str, Any]) -> tuple[Any, ...]:
    return -result["score"], tuple(-ord(sign) for sign in result["last_modified"]), result["uri"]


@settings(max_examples=30)
@given(
    st.lists(st.tuples(st.sampled_from(SOURCES), _TEXT, _TEXT, st.integers(1, 3)), max_size=12),
    _TEXT,
    st.sampled_from(["relevance", "recent"]),
    st.integers(1, 5),
)
def test_everything_is_the_merge_of_the_five(
    tools: Tools, items: list[tuple[str, str, str, int]], query: str, order: str, limit: int
) -> None:
    for number, (source, title, text, day) in enumerate(items):
        when = {"updated_at": f"2024-01-0{day}", "tags": [title.split()[0]]}
        match source:
            case "notes":
                tools.put("note", id=f"n{number}", title=title, body=text, **when)
            case "media":
                tools.put("media", id=f"m{number}", title=title, media_type="video", body=text, **when)
            case "chats":
                said = [{"id": f"x{n}", "sender": "a", "content": word} for n, word in enumerate((text, title))]
                tools.put("conversation", id=f"c{number}", title=title, messages=said, **when)
            case "characters":
                tools.put("character", id=f"h{number}", name=title, description=text, **when)
            case _:
                tools.put("prompt", id=f"p{number}", name=f"{title} {number}", user_prompt=text, **when)
    each = tools.having(config={"order_by": order})
    apart = [hit for source in SOURCES for hit in each(f"{source}.search", query=query, limit=100)["results"]]
    recent = (lambda hit: (key(hit)[1], key(hit)[0], key(hit)[2])) if order == "recent" else key
    merged = sorted(apart, key=recent)
    offset: int | None = 0
    paged: list[dict[str, Any]] = []
    while offset is not None:
        page = tools("knowledge.search", query=query, order_by=order, limit=limit, offset=offset)
        assert page["total_estimated"] == len(merged)
        paged += page["results"]
        offset = page["next_offset"]
    assert paged == merged


def test_filters_constrain_their_own_source_only(filled: Tools) -> None:
    found = filled(
        "knowledge.search",
        query="tea water rum",
        limit=100,
        filters={"notes": {"keywords": ["brewing"]}, "chats": {"sender": "alice"}, "media": {"media_types": ["video"]}},
    )
    assert set(uris(found)) == {"notes://tea", "chats://talk/m1", "media://1", "characters://1", "prompts://1"}


@pytest.mark.parametrize("backend", ["sqlite"])  # the damage is done to a file
def test_a_source_that_fails_leaves_the_others_their_answers(filled: Tools) -> None:
    by_character: Any = {"chats": {"character_id": 1}}
    asked: dict[str, Any] = {"query": "tea water", "filters": by_character}
    before = filled("knowledge.search", **asked)["results"]
    assert {result["source"] for result in before} >= {"chats", "notes"}
    damage = apsw.Connection(str(filled.library.store.path))  # type: ignore[attr-defined]
    for (index,) in list(
        damage.execute("select name from sqlite_master where type = 'index' and sql like '%character%'")
    ):
        damage.execute(f'drop index "{index}"')
    damage.execute("update items set fields = '{' where kind = 'conversation'")
    damage.close()
    after = filled("knowledge.search", **asked)
    assert after["results"] == [result for result in before if result["source"] != "chats"]
    (said,) = after["warnings"]
    assert (said["source"], said["code"]) == ("chats", "source_failed")
    assert said["reason"]
    alone = filled.refused("knowledge.search", **asked, sources=["chats"])
    assert alone.message == said["reason"]


def test_filters_of_a_source_that_is_not_asked_are_ignored_with_a_warning(filled: Tools) -> None:
    found = filled(
        "knowledge.search",
        query="tea",
        sources=["notes"],
        filters={"chats": {"sender": "x", "by": "title"}, "media": {"order_by": "recent"}},
    )
    assert [(warning["source"], warning["code"]) for warning in found["warnings"]] == [
        ("chats", "filter_ignored"), ("media", "filter_ignored"),
    ]  # fmt: skip
    alone = filled("knowledge.search", query="kettle", sources=["media"], filters={"media": {"order_by": "recent"}})
    assert (alone["applied"]["order_by"], alone["warnings"]) == ("recent", [])
    both = filled("knowledge.search", query="kettle", filters={"media": {"order_by": "recent"}})
    assert (both["applied"]["order_by"], both["warnings"][0]["code"]) == ("relevance", "filter_ignored")


# sessions


def fill(tools: Tools, count: int) -> list[str]:
    for number in range(count):
        tools.note(f"N{number:02}", "wanted", updated_at="2024-01-01")
    return [f"notes://n{number:02}" for number in range(count)]


def test_without_a_session_nothing_is_ever_left_out(tools: Tools) -> None:
    everything = fill(tools, 3)
    for _ in range(3):
        assert uris(tools("knowledge.search", query="wanted")) == everything


def test_what_was_returned_is_left_out_and_pages_tile_a_list(tools: Tools) -> None:
    everything = fill(tools, 10)
    first = tools("knowledge.search", query="wanted", limit=4, session="s")
    assert uris(first) == everything[:4]
    assert first["session"] == {"id": "s", "seen": 4, "skipped": 0, "replayed": False}
    second = tools("knowledge.search", query="wanted", limit=4, offset=4, session="s")
    assert uris(second) == everything[4:8]
    other = tools("knowledge.search", query="wanted n0*", limit=4, session="s")
    assert uris(other) == everything[8:]
    assert (other["session"]["skipped"], other["total_estimated"], other["has_more"]) == (8, 2, False)
    third = tools("knowledge.search", query="wanted", limit=4, offset=8, session="s")
    assert uris(third) == everything[8:]
    again = tools("knowledge.search", query="wanted", limit=4, session="s")
    assert (uris(again), again["session"]["replayed"]) == (everything[:4], True)


def test_dedupe_false_leaves_nothing_out_but_marks(tools: Tools) -> None:
    everything = fill(tools, 3)
    tools("knowledge.search", query="wanted", limit=1, session="s")
    assert uris(tools("knowledge.search", query="wanted", limit=2, session="s", dedupe=False)) == everything[:2]
    assert uris(tools("knowledge.search", query="wanted", session="s")) == everything[2:]


def test_other_searches_leave_nothing_out_and_a_session_is_one_callers(tools: Tools) -> None:
    everything = fill(tools, 3)
    tools("knowledge.search", query="wanted", session="s")
    found = tools("notes.search", query="wanted", session="s")
    assert uris(found) == everything
    assert found["session"] == {"id": "s", "seen": 3, "skipped": 0, "replayed": False}
    assert uris(tools.having(owner="eve")("knowledge.search", query="wanted", session="s")) == everything


def test_concurrent_calls_never_return_the_same_item_twice(tools: Tools) -> None:
    everything = fill(tools, 24)

    def ask(_: int) -> list[str]:
        return uris(tools("knowledge.search", query="wanted", limit=3, session="s"))

    with ThreadPoolExecutor(4) as threads:
        returned = [uri for page in threads.map(ask, range(8)) for uri in page]
    assert sorted(returned) == everything


def test_new_mints_a_session(tools: Tools) -> None:
    ids = {tools("knowledge.search", query="x", session="new")["session"]["id"] for _ in range(2)}
    assert len(ids) == 2
    assert all(len(id) > 20 for id in ids)


def test_the_argument_comes_before_the_session_before_the_config_before_the_settings(tools: Tools) -> None:
    tools.note("T", "word " * 300)
    config = tools.having(config={"snippetLength": 200, "chars_per_token": 2})

    def length(tools: Tools, **more: Any) -> int:
        return tools("knowledge.search", query="word", **more)["applied"]["snippet_length"]

    assert length(tools) == 300
    assert length(config) == 200
    assert length(config, session="s", session_defaults={"snippet_length": 100}) == 100
    assert length(config, session="s", snippet_length=50) == 50
    assert length(config, session="s", session_defaults={"snippet_length": None}) == 200
    assert config("notes.get", note_id="t", retrieval={})["applied"]["chars_per_token"] == 2


def test_session_defaults_need_a_session_and_are_clamped(tools: Tools) -> None:
    assert tools.refused("knowledge.search", query="x", session_defaults={"max_tokens": 1}).code == "invalid_argument"
    found = tools("knowledge.search", query="x", session="s", session_defaults={"snippet_length": 1})
    assert found["applied"] == {"snippet_length": 20, "order_by": "relevance", "clamped": ["snippet_length"]}


def test_recent_queries_decide_between_equal_windows(tools: Tools) -> None:
    gap = "nothing of note here " * 20
    tools.note("T", f"alpha first {gap} alpha with saffron {gap} alpha")
    plain = tools("knowledge.search", query="alpha", snippet_length=60)["results"][0]
    assert "first" in plain["snippet"]
    tools("notes.search", query="saffron", session="s")
    told = tools("notes.search", query="alpha", snippet_length=60, session="s")["results"][0]
    assert "saffron" in told["snippet"]


@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
def test_a_config_in_base64_is_understood_and_a_bad_one_never_fails(tools: Tools, encode: Any) -> None:
    config = encode(json.dumps({"snippet_length": 40, "api_key": "secret", "wrong": 1}).encode()).decode().rstrip("=")
    found = tools.having(config=config)("notes.search", query="x")
    assert found["applied"]["snippet_length"] == 40
    assert [warning["code"] for warning in found["warnings"]] == ["config_ignored", "config_ignored"]
    assert "secret" not in json.dumps(found)
    assert tools.having(config="%%%")("notes.search", query="x")["warnings"][0]["code"] == "config_ignored"


# reading anything


def test_an_address_is_enough_and_has_to_agree_with_the_source(filled: Tools) -> None:
    assert filled("knowledge.get", id="notes://tea")["meta"]["id"] == "tea"
    assert filled("knowledge.get", source="media", id=1)["meta"]["uri"] == "media://1"
    assert filled.refused("knowledge.get", id="tea").code == "invalid_argument"
    assert filled.refused("knowledge.get", source="media", id="notes://tea").code == "invalid_argument"
    assert filled.refused("knowledge.get", id="memory://1").code == "not_found"


def test_a_source_reads_as_its_own_tool_does_but_a_snippet_unless_asked(filled: Tools) -> None:
    for source, argument, id in (
        ("notes", "note_id", "tea"),
        ("characters", "character_id", 1),
        ("chats", "conversation_id", "talk"),
    ):
        assert filled("knowledge.get", source=source, id=id)["applied"]["mode"] == "snippet"
        for mode in ("chunk", "full"):
            own = filled(f"{source}.get", **{argument: id}, retrieval={"mode": mode})
            assert filled("knowledge.get", source=source, id=id, retrieval={"mode": mode}) == own
    message = filled("knowledge.get", id="chats://talk/m1")
    assert (message["content"], message["applied"]["anchor_by"]) == ("Arr, rum and water.", "loc")


def test_every_loc_leads_back_to_its_match(filled: Tools) -> None:
    for hit in filled("knowledge.search", query="tea water pirate kettle", limit=100)["results"]:
        read = filled("knowledge.get", id=hit["uri"], retrieval={"mode": "chunk", "loc": hit["loc"]})
        if hit["loc"].get("message_id", "") is not None:
            assert read["meta"]["loc"] == hit["loc"]


def test_the_compact_shape_of_both(filled: Tools) -> None:
    found = filled("knowledge.search", query="kettle", shape="compact")
    assert set(found) == {"results"}
    (hit,) = found["results"]
    assert (hit["id"], hit["title"], hit["url"]) == ("media://1", "Kettle film", "https://example.org/kettle")
    assert hit["text"].startswith("A kettle boils.")
    assert set(hit["metadata"]) == {"source", "score", "created_at", "last_modified", "tags", "media_type", "author"}
    read = filled("knowledge.get", id="notes://tea", shape="compact")
    assert (read["url"], read["text"][:6]) == ("notes://tea", "Oolong")
    assert filled.having(config={"compactShape": True})("knowledge.search", query="tea")["results"][0]["text"]


@pytest.mark.parametrize("uri", ["notes://tea", "media://1", "chats://talk", "characters://1", "prompts://1"])
def test_the_whole_of_an_item_in_the_compact_shape_is_counted_and_continued(filled: Tools, uri: str) -> None:
    whole = filled("fetch", id=uri)
    text, offset = "", 0
    while offset is not None:
        retrieval = {"mode": "full", "max_tokens": 5, "offset": offset}
        page = filled("knowledge.get", id=uri, shape="compact", retrieval=retrieval)
        assert page["metadata"]["tokens_estimated"] == -(-len(page["text"]) // 4) <= 5
        text, offset = text + page["text"], page["metadata"]["next_offset"]
        assert page["metadata"]["truncated"] == (offset is not None)
    assert text == whole["text"]
    assert filled("knowledge.get", id=uri, shape="compact", retrieval={"mode": "full"}) == whole


def test_pages_of_messages_are_not_counted_in_the_compact_shape(filled: Tools) -> None:
    read = filled("knowledge.get", id="chats://talk", shape="compact", retrieval={"mode": "full"}, page=2)
    assert "Shall we drink tea?" in read["text"]
    assert [warning["code"] for warning in read["warnings"]] == ["ignored"]
