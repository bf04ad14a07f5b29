"""The get tools: modes, anchors, budgets, pages; every source."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from knowledge_calls import Tools

ITEMS = [
    ("notes.get", {"note_id": "tea"}, "snippet"),
    ("media.get", {"media_id": 1}, "snippet"),
    ("chats.get", {"conversation_id": "talk"}, "full"),
    ("characters.get", {"character_id": 1}, "full"),
    ("prompts.get", {"prompt_id_or_name": "Greet"}, "full"),
]
LONG = "\n\n".join(
    f"Part {number} tells of thing{number} and more, at some length, in a sentence or two." for number in range(300)
)


@pytest.mark.parametrize(("tool", "id", "otherwise"), ITEMS)
def test_every_mode_works_for_every_source(filled: Tools, tool: str, id: dict[str, Any], otherwise: str) -> None:
    assert filled(tool, **id)["applied"]["mode"] == otherwise
    assert filled(tool, **id, retrieval={})["applied"]["mode"] == "snippet"
    for mode in ("snippet", "chunk", "chunk_with_siblings", "full", "auto"):
        read = filled(tool, **id, retrieval={"mode": mode})
        assert set(read) == {
            "meta", "content", "attachments", "tokens_estimated", "truncated", "next_offset", "warnings", "applied",
        }  # fmt: skip
        assert (read["meta"]["score"], read["meta"]["score_type"]) == (1.0, "exact")
        assert read["content"]
        content = read["content"]
        text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False, separators=(",", ":"))
        assert read["tokens_estimated"] == math.ceil(len(text) / 4)
        assert (read["meta"]["snippet"] is None) == (read["applied"]["mode"] != "snippet")
        assert read["applied"]["mode"] == ("snippet" if mode == "auto" else mode)


def test_auto_is_a_window_where_max_tokens_comes_from_the_call_session_or_config(filled: Tools) -> None:
    assert filled("notes.get", note_id="tea", retrieval={"max_tokens": 50})["applied"]["mode"] == "chunk_with_siblings"
    config = filled.having(config={"max_tokens": 50})
    assert config("notes.get", note_id="tea", retrieval={"mode": "auto"})["applied"]["mode"] == "chunk_with_siblings"
    assert config("notes.get", note_id="tea", retrieval={})["applied"]["mode"] == "snippet"
    filled("knowledge.search", query="tea", session="s", session_defaults={"max_tokens": 60})
    read = filled("notes.get", note_id="tea", session="s", retrieval={"mode": "auto"})
    assert (read["applied"]["mode"], read["applied"]["max_tokens"]) == ("chunk_with_siblings", 60)


def test_knobs_are_clamped_openly(filled: Tools) -> None:
    wild = {
        "snippet_length": 5, "max_tokens": 0, "sibling_window": 99, "chars_per_token": 0.5,
        "chunk_size_tokens": 1, "chunk_overlap_tokens": 99,
    }  # fmt: skip
    applied = filled("notes.get", note_id="tea", retrieval=wild)["applied"]
    assert set(applied["clamped"]) == set(wild)
    assert {name: applied[name] for name in ("snippet_length", "max_tokens", "sibling_window", "chars_per_token")} == {
        "snippet_length": 20, "max_tokens": 1, "sibling_window": 10, "chars_per_token": 1,
    }  # fmt: skip
    assert filled("chats.get", conversation_id="talk", page_size=1000)["content"]["page_size"] == 200
    assert filled("notes.search", query="tea", snippet_length=5000)["applied"] == {
        "snippet_length": 1000, "order_by": "relevance", "clamped": ["snippet_length"],
    }  # fmt: skip


@settings(max_examples=60)
@given(
    st.integers(1, 400),
    st.floats(1, 20),
    st.integers(0, 10),
    st.sampled_from(["chunk", "chunk_with_siblings"]),
    st.none() | st.integers(10, 200),
    st.integers(0, 299),
)
def test_no_window_of_any_source_passes_its_budget(
    filled: Tools, budget: int, chars: float, window: int, mode: str, size: int | None, word: int
) -> None:
    filled.note("Long", LONG)
    filled.put("prompt", name="Long", system_prompt=LONG)
    asked: dict[str, Any] = {
        "mode": mode, "max_tokens": budget, "chars_per_token": chars, "sibling_window": window,
        "query": f"thing{word} tea rum kettle pirate",
    }  # fmt: skip
    if size:
        asked["chunk_size_tokens"] = size
    for id in ("notes://long", "prompts://2", "notes://tea", "media://1", "chats://talk", "characters://1"):
        read = filled("knowledge.get", id=id, retrieval=asked)
        assert math.ceil(len(read["content"]) / chars) <= budget
        assert read["tokens_estimated"] <= budget


def test_pages_of_full_concatenate_to_the_body(filled: Tools) -> None:
    filled.note("Long", LONG)
    whole, offset = "", 0
    while offset is not None:
        page = filled("notes.get", note_id="long", retrieval={"mode": "full", "max_tokens": 700, "offset": offset})
        assert page["tokens_estimated"] <= 700
        whole, offset = whole + page["content"], page["next_offset"]
    assert whole == LONG
    assert filled("notes.get", note_id="long", retrieval={"mode": "full"})["content"] == LONG


def test_anchors_come_from_loc_then_query_then_session_then_the_start(filled: Tools) -> None:
    filled.note("Long", LONG)
    asked = {"mode": "chunk", "max_tokens": 30}

    def read(**more: Any) -> tuple[str, str]:
        session = more.pop("session", None)
        found = filled(
            "notes.get", note_id="long", retrieval={**asked, **more}, **({"session": session} if session else {})
        )
        return found["applied"]["anchor_by"], found["content"]

    by, text = read(loc={"approx_offset": LONG.index("thing200")}, query="thing3")
    assert (by, "thing200" in text) == ("loc", True)
    by, text = read(query="thing150")
    assert (by, "thing150" in text) == ("query", True)
    filled("notes.search", query="thing77", session="s")
    filled("notes.search", query="nothinglikethis", session="s")
    by, text = read(session="s")
    assert (by, "thing77" in text) == ("session", True)
    assert read(session="s", query="unmatched")[0] == "session"
    by, text = read()
    assert (by, text[:6]) == ("start", "Part 0")


def test_places_that_do_not_exist_are_errors_with_the_valid_range(filled: Tools) -> None:
    filled.note("Long", LONG)
    second = filled("notes.get", note_id="long", retrieval={"mode": "chunk", "loc": {"chunk_index": 1}})
    assert second["meta"]["loc"]["chunk_index"] == 1
    refused = filled.refused("notes.get", note_id="long", retrieval={"loc": {"chunk_index": 999}})
    assert refused.code == "invalid_argument"
    assert "must be between 0 and " in refused.message
    assert filled.refused("chats.get", conversation_id="talk", retrieval={"loc": {"message_index": 3}}).message == (
        "retrieval.loc.message_index must be between 0 and 2, not 3."
    )
    assert (
        "0 to 2" in filled.refused("chats.get", conversation_id="talk", retrieval={"loc": {"message_id": "zz"}}).message
    )
    other = filled.refused("media.get", media_id=1, retrieval={"loc": {"media_id": 2, "chunk_index": 0}})
    assert other.code == "invalid_argument"
    assert (
        filled.refused("notes.get", note_id="tea", retrieval={"loc": {"message_id": "m0"}}).code == "invalid_argument"
    )
    last = filled("notes.get", note_id="long", retrieval={"mode": "chunk", "loc": {"approx_offset": 10**9}})
    assert last["content"].endswith(LONG[-30:])


def test_chunks_a_record_brought_along_are_kept_and_counted(tools: Tools) -> None:
    chunks = [{"start": 0, "end": 10, "uuid": "a"}, {"start": 5, "end": 20}, {"start": 25, "end": 30, "uuid": "c"}]
    body = "0123456789abcdefghijklmnopqrstuvwxyz"
    tools.put("media", title="P", media_type="pdf", body=body, chunks=chunks)

    def read(**asked: Any) -> dict[str, Any]:
        return tools("media.get", media_id=1, retrieval={"mode": "chunk", **asked})

    assert read(loc={"chunk_index": 1})["content"] == body[5:20]
    assert read(loc={"chunk_uuid": "c"})["content"] == body[25:30]
    around = {"mode": "chunk_with_siblings", "sibling_window": 1, "chars_per_token": 1}
    assert read(**around, max_tokens=20, loc={"chunk_index": 1})["content"] == body[0:20]
    assert read(**around, max_tokens=20, loc={"chunk_index": 1})["truncated"] is True
    assert read(**around, max_tokens=30, loc={"chunk_index": 1})["content"] == body[0:30]
    assert read(**around, max_tokens=30, loc={"chunk_index": 1})["truncated"] is False
    fresh = read(prefer_prechunked=False, chunk_size_tokens=10, chars_per_token=1, loc={"approx_offset": 12})
    assert fresh["content"] == body[10:20]


def test_start_ms_is_an_anchor_of_media(filled: Tools) -> None:
    read = filled(
        "media.get", media_id="1", retrieval={"mode": "snippet", "snippet_length": 20, "loc": {"start_ms": 2000}}
    )
    assert "Water" in read["content"]
    assert (read["meta"]["loc"]["start_ms"], read["applied"]["anchor_by"]) == (1500, "loc")
    assert read["attachments"] == [{"type": "transcript", "cues": 2, "duration_ms": 4000}]


def test_a_conversation_is_read_in_pages(filled: Tools) -> None:
    page = filled("chats.get", conversation_id="talk", page=2, page_size=2)
    assert page["content"] == {"title": "Tea talk", "page": 2, "page_size": 2, "pages": 2, "total_messages": 3}
    assert page["attachments"] == [
        {
            "type": "message", "message_id": "m2", "message_index": 2, "sender": "Me", "role": "user",
            "timestamp": None, "chars": 15, "content": "Then rum it is.",
        }
    ]  # fmt: skip
    assert filled("chats.get", conversation_id="talk", page=9)["attachments"] == []


def test_a_window_of_a_conversation_labels_its_messages_and_says_each_once(filled: Tools) -> None:
    read = filled(
        "chats.get",
        conversation_id="talk",
        page=2,
        retrieval={"mode": "chunk_with_siblings", "sibling_window": 1, "loc": {"message_id": "m2"}},
    )
    assert read["content"] == "Alice: Arr, rum and water.\n\nMe: Then rum it is."
    assert [(message["message_id"], "content" in message) for message in read["attachments"]] == [
        ("m1", False),
        ("m2", False),
    ]
    assert [warning["code"] for warning in read["warnings"]] == ["ignored"]
    trimmed = filled("chats.get", conversation_id="chats://talk/m1", retrieval={"mode": "chunk", "max_tokens": 2})
    assert (trimmed["content"], trimmed["truncated"]) == ("Arr, rum", True)


def test_characters_and_prompts_are_whole_objects(filled: Tools) -> None:
    card = filled("characters.get", character_id="1")["content"]
    assert list(card) == [
        "name", "nickname", "description", "personality", "scenario", "first_message", "alternate_greetings",
        "group_only_greetings", "message_example", "system_prompt", "post_history_instructions", "creator_notes",
        "creator", "character_version", "tags", "lorebook", "extensions", "spec",
    ]  # fmt: skip
    prompt = filled("prompts.get", prompt_id_or_name=1)["content"]
    assert prompt == {
        "name": "Greet", "details": "For tea parties.", "system_prompt": "", "user_prompt": "Hi {{who}}", "author": "",
        "keywords": ["polite"], "variables": ["who"],
    }  # fmt: skip


def test_a_prompts_name_wins_over_an_id(filled: Tools) -> None:
    filled.put("prompt", name="1", details="the second")
    assert filled("prompts.get", prompt_id_or_name="1")["meta"]["id"] == 2
    assert filled("prompts.get", prompt_id_or_name=1)["meta"]["id"] == 2
    assert filled("prompts.get", prompt_id_or_name="prompts://1")["meta"]["id"] == 1
    assert filled("prompts.get", prompt_id_or_name="gREET")["meta"]["id"] == 1


def test_an_avatar_is_an_attachment(tools: Tools) -> None:
    tools.put("character", name="A", avatar={"mime_type": "image/png", "base64": "iVBORw0KGgo="})
    assert tools("characters.get", character_id=1)["attachments"] == [
        {"type": "image", "mime_type": "image/png", "bytes": 8, "uri": "characters://1/avatar"}
    ]


@pytest.mark.parametrize(
    ("tool", "argument", "label"),
    [
        ("notes.get", "note_id", "note"),
        ("media.get", "media_id", "media item"),
        ("chats.get", "conversation_id", "conversation"),
        ("characters.get", "character_id", "character"),
        ("prompts.get", "prompt_id_or_name", "prompt"),
        ("media.transcript", "media_id", "media item"),
    ],
)
def test_what_is_not_there_is_not_found(filled: Tools, tool: str, argument: str, label: str) -> None:
    source = tool.partition(".")[0]
    for wrong in ("abc", f"{source}://abc", "memory://1", "chats://talk/none", "://", f"{source}://"):
        refused = filled.refused(tool, **{argument: wrong})
        assert refused.code == "not_found"
        assert refused.message == f'There is no {label} "{wrong}". Find one with {source}.search.'


WALRUSES = "\n\n".join(f"Walrus number {number} lies on the ice." for number in range(60))


@pytest.mark.parametrize("mode", ["chunk", "chunk_with_siblings"])
def test_the_chunk_that_has_most_of_the_words_is_read_and_not_the_first_that_has_some(tools: Tools, mode: str) -> None:
    tools.note("Ice", WALRUSES)
    small = {"chunk_size_tokens": 10, "chars_per_token": 4, "sibling_window": 0}
    read = tools("notes.get", note_id="ice", retrieval={"mode": mode, "query": "walrus number 20", **small})
    assert "Walrus number 20 lies" in read["content"]
    assert WALRUSES[read["meta"]["loc"]["approx_offset"] :].startswith("Walrus number 20")


def test_the_chunk_of_a_record_that_has_most_of_the_words_is_read(tools: Tools) -> None:
    texts = ["Tides and currents.", "Currents of the bay.", "Boats.", "Tides.", "Tides, currents and dogfish."]
    tools.put("media", title="Sea", media_type="document", chunks=[{"text": text} for text in texts])
    read = tools("media.get", media_id=1, retrieval={"mode": "chunk", "query": "tides currents dogfish"})
    assert (read["content"], read["meta"]["loc"]["chunk_index"]) == (texts[4], 4)
    rare = tools("media.get", media_id=1, retrieval={"mode": "chunk", "query": "boats tides"})
    assert rare["meta"]["loc"]["chunk_index"] == 2


def test_a_chat_is_read_at_the_message_that_has_the_rare_word(tools: Tools) -> None:
    said = ["Where is the ship?", "The ship is in the harbour.", "And the quetzal?", "The ship again.", "In harbour."]
    messages = [{"id": f"m{number}", "sender": "Me", "content": text} for number, text in enumerate(said)]
    tools.put("conversation", id="sea", title="Sea", messages=messages)
    for query, number in (("ship quetzal", 2), ("ship harbour", 1), ("harbour ship quetzal", 2), ("again", 3)):
        read = tools("chats.get", conversation_id="sea", retrieval={"mode": "chunk", "query": query})
        assert (read["content"], read["applied"]["anchor_by"]) == (f"Me: {said[number]}", "query"), query


def test_a_rare_word_far_behind_thousands_of_common_ones_is_found(tools: Tools) -> None:
    body = "\n\n".join(f"Walrus number {number} lies on the ice." for number in range(3000))
    tools.note("Ice", body)
    read = tools("notes.get", note_id="ice", retrieval={"mode": "chunk", "query": "walrus number 2999"})
    assert "Walrus number 2999" in read["content"]


@pytest.mark.parametrize("budget", [2, 3, 4, 6])
def test_a_match_that_fits_the_budget_is_whole(tools: Tools, budget: int) -> None:
    text = "The shoals of dogfish came in with the tide, and went out again before the evening was over."
    tools.note("Sea", text)
    tools.put("conversation", id="sea", title="Sea", messages=[{"id": "m", "sender": "Me", "content": text}])
    for tool, id in (("notes.get", {"note_id": "sea"}), ("chats.get", {"conversation_id": "sea"})):
        for mode in ("chunk", "chunk_with_siblings"):
            for query, words in (("dogfish", ["dogfish"]), ("evening", ["evening"]), ("shoals", ["shoals"])):
                read = tools(tool, **id, retrieval={"mode": mode, "max_tokens": budget, "query": query})
                assert all(word in read["content"] for word in words), (mode, query, read["content"])
                assert (read["truncated"], len(read["content"])) == (True, 4 * budget)
    both = tools("notes.get", note_id="sea", retrieval={"mode": "chunk", "max_tokens": 6, "query": "shoals dogfish"})
    assert {"shoals", "dogfish"} <= set(both["content"].split())
    tools.note("Tide", "The tide.")
    tools.note("Tides", "More of the tide.")
    rare = tools("notes.get", note_id="sea", retrieval={"mode": "chunk", "max_tokens": budget, "query": "tide evening"})
    assert "evening" in rare["content"]  # which says more than a word that many notes have
    at = {"approx_offset": text.index("dogfish")}
    read = tools("notes.get", note_id="sea", retrieval={"mode": "chunk", "max_tokens": budget, "loc": at})
    assert "dogfish" in read["content"]
