"""Searches of one source: what is found, in which order, with which score, snippet and loc."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from knowledge_calls import Tools, uris

SOURCES = ("notes", "media", "chats", "characters", "prompts")
COMMON = {
    "id", "source", "uri", "title", "snippet", "score", "score_type", "created_at", "last_modified", "version",
    "tags", "loc",
}  # fmt: skip
OWN = {
    "media": {"media_type", "url", "author"},
    "chats": {"conversation_id", "message_id", "sender", "character_id"},
}


@pytest.mark.parametrize("source", SOURCES)
def test_every_key_of_a_result_is_there_and_no_other(filled: Tools, source: str) -> None:
    found = filled(f"{source}.search", query="tea water sea")
    assert found["results"]
    for result in found["results"]:
        assert set(result) == COMMON | OWN.get(source, set())
        assert result["source"] == source
        assert 0 < result["score"] <= 1
        assert round(result["score"], 4) == result["score"]
        assert result["score_type"] == "fts"
        assert result["created_at"].endswith("Z")
    assert set(found) == {
        "results", "has_more", "next_offset", "total_estimated", "warnings", "applied", "session",
    }  # fmt: skip
    assert found["applied"] == {"snippet_length": 300, "order_by": "relevance", "clamped": []}
    assert found["session"] is None


def test_notes_are_found_by_title_tags_and_body(filled: Tools) -> None:
    assert uris(filled("notes.search", query="coffee")) == ["notes://coffee"]
    assert uris(filled("notes.search", query="brewing")) == ["notes://tea"]
    assert uris(filled("notes.search", query="oolong")) == ["notes://tea"]


def test_media_are_found_by_title_author_and_body_and_tell_the_cue(filled: Tools) -> None:
    assert uris(filled("media.search", query="brewster")) == ["media://1"]
    (hit,) = filled("media.search", query="steam")["results"]
    assert hit["loc"] == {
        "media_id": 1, "chunk_index": 0, "chunk_uuid": None, "approx_offset": 24, "start_ms": 1500, "end_ms": 4000,
    }  # fmt: skip
    assert (hit["media_type"], hit["author"], hit["url"]) == ("video", "Brewster", "https://example.org/kettle")


def test_pages_of_a_document_appear_in_the_loc(tools: Tools) -> None:
    chunks = [{"text": "alpha text", "page": 1, "uuid": "one"}, {"text": "beta text", "page": 2, "uuid": "two"}]
    tools.put("media", title="Paper", media_type="pdf", chunks=chunks)
    (hit,) = tools("media.search", query="beta")["results"]
    assert hit["loc"] == {"media_id": 1, "chunk_index": 1, "chunk_uuid": "two", "approx_offset": 12, "page": 2}


def test_a_title_hit_of_a_chat_is_the_conversation_and_does_not_make_its_messages_match(filled: Tools) -> None:
    (hit,) = filled("chats.search", query="talk")["results"]
    assert hit["uri"] == "chats://talk"
    assert (hit["message_id"], hit["sender"]) == (None, None)
    assert hit["snippet"] == "Tea talk: Shall we drink tea?"
    assert hit["loc"] == {"conversation_id": "talk", "message_id": None, "message_index": None}
    assert uris(filled("chats.search", query="harbour")) == ["chats://talk"]


def test_a_message_hit_carries_its_own_time_else_the_conversations(filled: Tools) -> None:
    (rum, later) = filled("chats.search", query="rum", by="message")["results"]
    timed = next(hit for hit in (rum, later) if hit["message_id"] == "m1")
    untimed = next(hit for hit in (rum, later) if hit["message_id"] == "m2")
    assert timed["created_at"] == timed["last_modified"] == "2024-01-01T10:00:00Z"
    assert (timed["title"], timed["sender"], timed["character_id"], timed["id"]) == ("Tea talk", "Alice", 1, "talk")
    meta = filled("chats.get", conversation_id="talk")["meta"]
    assert (untimed["created_at"], untimed["last_modified"]) == (meta["created_at"], meta["last_modified"])


def test_senders_are_not_searched_but_filter(filled: Tools) -> None:
    assert uris(filled("chats.search", query="alice")) == []
    assert uris(filled("chats.search", query="rum", sender="ALICE")) == ["chats://talk/m1"]
    assert set(uris(filled("chats.search", query="rum tea", sender="human"))) == {"chats://talk/m0", "chats://talk/m2"}
    refused = filled.refused("chats.search", query="rum", sender="Me", by="title")
    assert refused.code == "invalid_argument"


def test_by_chooses_messages_or_titles(filled: Tools) -> None:
    assert uris(filled("chats.search", query="tea", by="title")) == ["chats://talk"]
    assert uris(filled("chats.search", query="tea", by="message")) == ["chats://talk/m0"]
    assert set(uris(filled("chats.search", query="tea"))) == {"chats://talk", "chats://talk/m0"}


def test_a_character_filters_titles_and_messages_and_an_unknown_one_warns(filled: Tools) -> None:
    filled.put("conversation", id="other", title="Tea alone", messages=[{"sender": "Me", "content": "tea"}])
    assert set(uris(filled("chats.search", query="tea", character_id=1))) == {"chats://talk", "chats://talk/m0"}
    assert uris(filled("chats.search", query="tea", character_id="characters://2")) == []
    unknown = filled("chats.search", query="tea", character_id=99)
    assert (unknown["results"], unknown["warnings"][0]["code"]) == ([], "unknown_character")


def test_a_whole_tag_of_a_character_comes_before_text(filled: Tools) -> None:
    assert uris(filled("characters.search", query="sea captain")) == ["characters://1", "characters://2"]
    assert uris(filled("characters.search", query="nothing, SEA CAPTAIN")) == ["characters://1", "characters://2"]
    assert uris(filled("characters.search", query=["sea captain", "bob"]))[0] == "characters://1"
    both = filled("characters.search", query="x, pirate")
    assert uris(both) == ["characters://2", "characters://1"]


def test_characters_are_found_by_every_field_and_lorebook_entry(tools: Tools) -> None:
    book = {
        "name": "lorename",
        "entries": [{"name": "en", "keys": ["keyword"], "content": "entrytext", "enabled": False}],
    }
    tools.put(
        "character", name="Nora", nickname="nick", personality="person", scenario="scene", first_message="firsty",
        alternate_greetings=["altgreet"], group_only_greetings=["groupgreet"], message_example="example",
        system_prompt="systemy", post_history_instructions="posthist", creator_notes="notey", creator="maker",
        character_version="versiony", tags=["taggy"], lorebook=book, extensions={"deep": ["extval"]},
    )  # fmt: skip
    fields = {
        "Nora": "name", "nick": "nickname", "person": "personality", "scene": "scenario", "firsty": "first_message",
        "altgreet": "alternate_greetings[0]", "groupgreet": "group_only_greetings[0]", "example": "message_example",
        "systemy": "system_prompt", "posthist": "post_history_instructions", "notey": "creator_notes",
        "maker": "creator", "versiony": "character_version", "taggy": "tags", "lorename": "lorebook",
        "keyword": "lorebook[0]", "entrytext": "lorebook[0]", "extval": "extensions",
    }  # fmt: skip
    for word, field in fields.items():
        (hit,) = tools("characters.search", query=word)["results"]
        assert hit["loc"]["field"] == field, word
        body = tools("characters.get", character_id=1, retrieval={"mode": "chunk", "loc": hit["loc"]})["content"]
        assert word in body
    assert tools("characters.search", query="description")["results"] == []


def test_prompts_match_in_the_named_fields_only(filled: Tools) -> None:
    assert uris(filled("prompts.search", query="tea", fields=["details"])) == ["prompts://1"]
    assert uris(filled("prompts.search", query="tea", fields=["name", "user_prompt", "keywords"])) == []
    assert uris(filled("prompts.search", query="greet", fields=["details"])) == []
    assert uris(filled("prompts.search", query="polite", fields=["keywords"])) == ["prompts://1"]
    (hit,) = filled("prompts.search", query="greet tea", fields=["details"])["results"]
    (free,) = filled("prompts.search", query="greet tea", fields=[])["results"]
    assert hit["loc"]["field"] == "details"
    assert hit["snippet"] == "For tea parties."
    assert hit["score"] == free["score"]


def test_an_item_with_all_words_comes_before_one_with_some_wherever_they_stand(tools: Tools) -> None:
    filler = "\n\n".join(f"Paragraph {number} says nothing of interest at all." for number in range(400))
    tools.note("Long", f"alpha\n\n{filler}\n\nbeta")
    tools.note("Some", "alpha alpha alpha")
    tools.note("Both", "alpha and something and beta")
    tools.put("character", name="alpha", description="beta")
    assert set(uris(tools("knowledge.search", query="alpha beta"))[:3]) == {
        "notes://long", "notes://both", "characters://1",
    }  # fmt: skip
    assert tools("notes.search", query="alpha beta")["total_estimated"] == 3


def test_phrases_exclusions_and_beginnings_hold_for_whole_items(tools: Tools) -> None:
    filler = "\n\n".join(f"Paragraph {number} says nothing of interest at all." for number in range(400))
    tools.note("Far", f"zebra stands first\n\n{filler}\n\nred wine")
    tools.note("Near", "zebra with wine, red")
    assert uris(tools("notes.search", query='zebra "red wine"')) == ["notes://far"]
    assert uris(tools("notes.search", query="zebra -stands")) == ["notes://near"]
    assert uris(tools("notes.search", query='zebra -"red wine"')) == ["notes://near"]
    assert set(uris(tools("notes.search", query="zeb*"))) == {"notes://far", "notes://near"}
    assert uris(tools("notes.search", query='"wine red zebra"')) == []
    assert set(uris(tools("notes.search", query="-zebra"))) == {"notes://far", "notes://near"}
    tools.note("Joined", "red-wine glasses")
    assert set(uris(tools("notes.search", query='"red wine"'))) == {"notes://far", "notes://joined"}


@pytest.mark.parametrize("query", ["kett*", "kettl*", "kettle*", "kettles*"])
def test_a_beginning_in_a_title_comes_before_one_in_a_text(tools: Tools, query: str) -> None:
    tools.note("Kettles", "They boil.", updated_at="2023-01-01T00:00:00Z")
    tools.note("Pots", "Kettles boil.", updated_at="2024-01-01T00:00:00Z")
    tools.put("prompt", name="Kettles", user_prompt="Boil.", updated_at="2022-01-01T00:00:00Z")
    tools.put("prompt", name="Boil", user_prompt="Kettles.", updated_at="2025-01-01T00:00:00Z")
    found = tools("knowledge.search", query=query)["results"]
    assert [hit["title"] for hit in found] == ["Kettles", "Kettles", "Boil", "Pots"]
    assert 1 > found[0]["score"] == found[1]["score"] > found[2]["score"] == found[3]["score"]


@pytest.mark.parametrize(
    "query", ['"', "*", ":", "(", "AND", "a AND (", 'zebra "', "NEAR/3", "title:zebra", "\\", "{}^~"]
)
def test_any_text_is_a_query(tools: Tools, query: str) -> None:
    tools.note("Zebra", "zebra")
    tools("notes.search", query=query)
    tools("knowledge.search", query=query)


def test_text_without_a_searchable_character_warns(filled: Tools) -> None:
    found = filled("notes.search", query=";;;")
    assert found["results"] == []
    assert [warning["code"] for warning in found["warnings"]] == ["no_terms"]
    assert filled("notes.search", query="xyzzy")["warnings"] == []


@pytest.mark.parametrize(
    ("written", "part"),
    [("C#", "C is older"), ("log4j-core", "core things"), ("key: value", "key only"), ("getUserName", "user")],
)
def test_a_term_as_written_comes_before_a_part_of_it(tools: Tools, written: str, part: str) -> None:
    tools.note("Part", part)
    tools.note("Whole", f"about {written} in some more words than the other has")
    assert uris(tools("notes.search", query=written))[0] == "notes://whole"


def test_words_are_compared_by_stem_case_and_width_and_cjk_by_pairs(tools: Tools) -> None:
    tools.note("One", "The runners were running in Zürich, 東京都庁で。")
    for query in ("RUN", "zurich", "都庁", "ｒｕｎｎｉｎｇ"):
        assert uris(tools("notes.search", query=query)) == ["notes://one"]


def test_filters_run_before_the_limit(tools: Tools) -> None:
    for number in range(60):
        tools.note(f"N{number}", "wanted wanted wanted", tags=["common"])
    tools.note("Last", "wanted and a good deal of other words that make it score less", tags=["Rare One"])
    assert uris(tools("notes.search", query="wanted", keywords=["rare one"], limit=1)) == ["notes://last"]
    assert tools("notes.search", query="wanted", keywords=["rare"])["results"] == []
    assert tools("notes.search", query="wanted", keywords=[])["total_estimated"] == 61


def test_media_filter_by_type_and_date(tools: Tools) -> None:
    for day in (1, 2, 3):
        tools.put("media", title=f"Film {day}", media_type="Video", created_at=f"2024-05-0{day}T23:30:00Z")
    tools.put("media", title="Film book", media_type="epub", created_at="2024-05-02T10:00:00")
    found = tools("media.search", query="film", media_types=["VIDEO"], date_from="2024-05-02", date_to="2024-05-02")
    assert uris(found) == ["media://2"]
    for day in ("2024-05-02", "20240502", "2024-W18-4", "2024W184"):  # type: ignore[assignment]
        assert tools("media.search", query="film", date_to=day)["total_estimated"] == 3
    unknown = tools("media.search", query="film", media_types=["vinyl", "epub"])
    assert uris(unknown) == ["media://4"]
    assert unknown["warnings"] == [
        {
            "source": "media",
            "code": "unknown_media_type",
            "reason": 'There is no media of type "vinyl". The types are: Video, epub.',
        }
    ]
    assert (
        tools.refused("media.search", query="x", date_from="2024-05-02", date_to="2024-05-01").code
        == "invalid_argument"
    )


def test_recent_comes_by_last_change_then_score_then_address(tools: Tools) -> None:
    for number, day in enumerate((3, 1, 2, 3)):
        tools.put("media", title=f"Film {number}", media_type="video", updated_at=f"2024-05-0{day}")
    found = tools("media.search", query="film", order_by="recent")
    assert uris(found) == ["media://1", "media://4", "media://3", "media://2"]
    assert found["applied"]["order_by"] == "recent"


def test_pages_tile_without_gap_or_repeat(tools: Tools) -> None:
    for number in range(57):
        tools.note(f"N{number}", "same words here", id=f"n{number}", updated_at="2024-01-01")
    seen: list[str] = []
    offset: int | None = 0
    while offset is not None:
        page = tools("notes.search", query="words", limit=10, offset=offset)
        seen += uris(page)
        assert page["total_estimated"] == 57
        assert page["has_more"] == (page["next_offset"] is not None)
        offset = page["next_offset"]
    assert seen == sorted(f"notes://n{number}" for number in range(57))
    beyond = tools("notes.search", query="words", offset=57)
    assert (beyond["results"], beyond["has_more"], beyond["next_offset"]) == ([], False, None)


def test_a_score_does_not_depend_on_limit_offset_sources_or_filters(filled: Tools) -> None:
    scores = {hit["uri"]: hit["score"] for hit in filled("knowledge.search", query="tea water", limit=100)["results"]}
    for source in SOURCES:
        for hit in filled(f"{source}.search", query="tea water")["results"]:
            assert hit["score"] == scores[hit["uri"]]
    for offset in range(len(scores)):
        for hit in filled("knowledge.search", query="tea water", limit=1, offset=offset)["results"]:
            assert hit["score"] == scores[hit["uri"]]
    assert (
        filled("notes.search", query="tea water", keywords=["drinks"])["results"][0]["score"] == scores["notes://tea"]
    )


def test_a_search_sees_every_write_and_forgets_old_words(filled: Tools) -> None:
    filled.note("Tea", "Only mate now.")
    assert uris(filled("notes.search", query="oolong")) == []
    assert uris(filled("notes.search", query="mate")) == ["notes://tea"]


_WORDS = st.lists(st.sampled_from(["alpha", "beta", "gamma", "the", "Ωmega", "x\ny", "  ", "long" * 9]), max_size=120)


@settings(max_examples=60)
@given(_WORDS, st.integers(20, 120), st.sampled_from(["alpha", "gamma beta", "Ωmega the"]))
def test_snippets_are_verbatim_and_as_long_as_asked(tools: Tools, words: list[str], length: int, query: str) -> None:
    body = " ".join(words)
    tools.note("T", body, id="t")
    for hit in tools("notes.search", query=query, snippet_length=length)["results"]:
        flat = " ".join(body.split())
        if not flat:
            assert hit["snippet"] is None
            continue
        assert len(hit["snippet"]) <= length
        assert hit["snippet"].strip("…") in flat
        if len(flat) > length:
            assert len(hit["snippet"]) >= length - 40
        else:
            assert hit["snippet"] == flat


def test_the_window_holds_the_most_words_and_of_equals_is_the_first(tools: Tools) -> None:
    gap = "nothing of note here " * 30
    tools.note("T", f"alpha {gap} beta {gap} alpha beta {gap} alpha")
    (both,) = tools("notes.search", query="alpha beta", snippet_length=60)["results"]
    assert "alpha beta" in both["snippet"]
    (one,) = tools("notes.search", query="beta", snippet_length=60)["results"]
    body = f"alpha {gap} beta"
    assert one["loc"]["approx_offset"] == len(body) - 4
    tools.note("Only title", gap)
    (start,) = tools("notes.search", query="only", snippet_length=60)["results"]
    assert start["snippet"].startswith("nothing of note")
    assert tools.note("Empty words")
    assert tools("notes.search", query="empty")["results"][0]["snippet"] is None


def test_the_offset_of_a_match_is_true_in_every_source(filled: Tools) -> None:
    for source, name in (("notes", "note_id"), ("media", "media_id"), ("characters", "character_id")):
        word: Any = {"notes": "boil", "media": "steam", "characters": "pirate"}[source]
        (hit, *_) = filled(f"{source}.search", query=word)["results"]
        whole = filled(
            f"{source}.get", **{name: hit["id"]}, retrieval={"mode": "chunk_with_siblings", "sibling_window": 10}
        )
        if source != "characters":
            assert whole["content"][hit["loc"]["approx_offset"] :].lower().startswith(word)
        chunk = filled(
            f"{source}.get", **{name: hit["id"]}, retrieval={"mode": "chunk", "loc": hit["loc"], "max_tokens": 4}
        )
        assert word in chunk["content"].lower()
        assert chunk["applied"]["anchor_by"] == "loc"
