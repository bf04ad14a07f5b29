"""The write tools: versions, repeated calls, cascades, limits."""

from __future__ import annotations

from typing import Any

import pytest
from knowledge_calls import Tools, uris

from commonplace.store.listing import Listing

CREATES: list[tuple[str, dict[str, Any], str]] = [
    ("notes", {"title": "N", "content": "zebra"}, "note_id"),
    ("media", {"title": "N", "media_type": "video", "content": "zebra"}, "media_id"),
    ("chats", {"title": "N", "messages": [{"sender": "Me", "content": "zebra"}]}, "conversation_id"),
    ("characters", {"name": "N", "description": "zebra"}, "character_id"),
    ("prompts", {"name": "N", "user_prompt": "zebra"}, "prompt_id_or_name"),
]
UPDATES = {
    "notes": {"content": "giraffe"},
    "media": {"content": "giraffe"},
    "chats": {"title": "giraffe"},
    "characters": {"description": "giraffe"},
    "prompts": {"user_prompt": "giraffe"},
}


@pytest.mark.parametrize(("source", "fields", "argument"), CREATES)
def test_an_item_is_created_updated_and_deleted(
    tools: Tools, source: str, fields: dict[str, Any], argument: str
) -> None:
    made = tools(f"{source}.create", **fields)
    assert (made["changed"], made["meta"]["version"]) == (True, 1)
    assert len(tools("knowledge.search", query="zebra")["results"]) == 1
    id = {argument: made["meta"]["id"]}
    stale = tools.refused(f"{source}.update", **id, **UPDATES[source], expected_version=3)
    assert stale.code == "conflict"
    assert stale.message.endswith("is at version 1, not 3. Read it again and repeat the change.")
    changed = tools(f"{source}.update", **id, **UPDATES[source], expected_version=1)
    assert (changed["changed"], changed["meta"]["version"]) == (True, 2)
    same = tools(f"{source}.update", **id, **UPDATES[source])
    assert (same["changed"], same["meta"]) == (False, changed["meta"])
    assert len(tools("knowledge.search", query="giraffe")["results"]) == 1
    assert tools.refused(f"{source}.delete", **id, expected_version=1).code == "conflict"
    assert tools(f"{source}.delete", **id) == {"deleted": True, "uri": made["meta"]["uri"], "version": 3}
    assert tools("knowledge.search", query="giraffe zebra")["results"] == []
    for tool in ("get", "delete", "update"):
        assert tools.refused(f"{source}.{tool}", **id).code == "not_found"
    again = tools(f"{source}.create", **fields)
    assert again["meta"]["uri"] != made["meta"]["uri"]


@pytest.mark.parametrize(("source", "fields", "argument"), CREATES)
def test_a_repeated_create_is_answered_once(tools: Tools, source: str, fields: dict[str, Any], argument: str) -> None:
    first = tools(f"{source}.create", **fields, idempotency_key="k")
    assert tools(f"{source}.create", **fields, idempotency_key="k") == first
    title = "name" if "name" in fields else "title"
    assert tools.refused(f"{source}.create", **{**fields, title: "other"}, idempotency_key="k").code == "conflict"
    assert tools.library.store.drawer(Listing).counts().get("message", 0) <= 1
    assert len(tools("knowledge.search", query="zebra")["results"]) == 1


def test_two_notes_may_say_the_same_but_not_share_an_id(tools: Tools) -> None:
    tools("notes.create", title="A", content="x", note_id="mine")
    tools("notes.create", title="A", content="x")
    taken = tools.refused("notes.create", title="A", content="x", note_id="mine")
    assert (taken.code, taken.message) == (
        "conflict",
        'There is a note "mine" already. Choose another id, or leave it out.',
    )
    tools("notes.delete", note_id="mine")
    assert tools("notes.create", title="A", content="x", note_id="mine")["meta"]["uri"] == "notes://mine"
    assert tools.refused("notes.create", title="A", content="x", note_id="a b").code == "invalid_argument"


def test_a_prompts_name_is_taken_whatever_its_case(tools: Tools) -> None:
    tools("prompts.create", name="Greet")
    tools("prompts.create", name="Other")
    assert tools.refused("prompts.create", name="gREET").code == "conflict"
    assert tools.refused("prompts.update", prompt_id_or_name="other", name="GREET").code == "conflict"
    assert tools("prompts.update", prompt_id_or_name="Greet", name="GREET")["meta"]["title"] == "GREET"


def test_messages_are_appended_in_order_and_raise_the_version_once(tools: Tools) -> None:
    made = tools("chats.create", title="T", messages=[{"sender": "Ann", "content": "one"}])
    id = made["meta"]["id"]
    said = [{"sender": "Bot", "content": "two"}, {"sender": "Ann", "content": "three", "id": "x"}]
    added = tools("chats.append", conversation_id=id, messages=said, idempotency_key="k")
    assert added["meta"]["version"] == 2
    assert tools("chats.append", conversation_id=id, messages=said, idempotency_key="k") == added
    page = tools("chats.get", conversation_id=id)
    assert [(m["content"], m["role"]) for m in page["attachments"]] == [
        ("one", "user"), ("two", "assistant"), ("three", "user"),
    ]  # fmt: skip
    twice = tools.refused("chats.append", conversation_id=id, messages=[{"sender": "a", "content": "b", "id": "x"}])
    assert twice.code == "conflict"
    assert tools("chats.update", conversation_id=id, title="T2")["meta"]["version"] == 3
    assert [m["content"] for m in tools("chats.get", conversation_id=id)["attachments"]] == ["one", "two", "three"]


def test_deleting_a_character_leaves_its_conversations(filled: Tools) -> None:
    filled("characters.delete", character_id=1)
    assert filled("chats.get", conversation_id="talk")["meta"]["character_id"] is None
    assert filled.refused("chats.update", conversation_id="talk", character_id=1).code == "not_found"
    assert filled("chats.update", conversation_id="talk", character_id=2)["meta"]["character_id"] == 2


def test_an_update_keeps_what_it_does_not_name(filled: Tools) -> None:
    before = filled("media.transcript", media_id=1, format="json")["content"]["cues"]
    meta = filled("media.update", media_id=1, tags=["a", " A", "b"], author="New")["meta"]
    assert (meta["tags"], meta["author"], meta["media_type"]) == (["a", "b"], "New", "video")
    assert filled("media.transcript", media_id=1, format="json")["content"]["cues"] == before
    filled("media.update", media_id=1, cues=[{"start_ms": 1, "end_ms": 2, "text": "new"}])
    assert filled("media.get", media_id=1, retrieval={"mode": "full"})["content"] == "new"
    filled("media.update", media_id=1, content="plain")
    assert filled("media.transcript", media_id=1)["timed"] is False
    card = filled("characters.update", character_id=1, nickname="Al")
    assert card["meta"]["tags"] == ["Sea Captain"]
    assert filled("characters.get", character_id=1)["content"]["description"] == "A pirate who drinks tea."


def test_what_is_too_much_is_refused(tools: Tools) -> None:
    note = {"title": "N", "content": "x"}
    assert tools.refused("notes.create", **note, tags=["a"] * 65).code == "invalid_argument"
    assert tools.refused("notes.create", **note, tags=["a" * 101]).code == "invalid_argument"
    assert tools.refused("notes.create", **note, metadata={"a": "b" * 70_000}).code == "too_large"
    assert tools.refused("notes.create", title="N", content="x" * 500_001).code == "invalid_argument"
    assert tools.refused("notes.create", title="N" * 513, content="x").code == "invalid_argument"
    assert tools.library.store.drawer(Listing).counts() == {}


def test_created_at_is_kept_and_last_modified_is_now(tools: Tools) -> None:
    meta = tools("notes.create", title="N", content="x", created_at="2020-01-01")["meta"]
    assert meta["created_at"] == "2020-01-01T00:00:00Z"
    assert meta["last_modified"] > "2025"


def test_write_tools_are_listed_after_the_others_with_their_annotations(tools: Tools) -> None:
    names = [tool.name for tool in tools.registry.tools]
    assert names[:13] == [
        "notes.search", "notes.get", "media.search", "media.get", "media.transcript", "chats.search", "chats.get",
        "characters.search", "characters.get", "prompts.search", "prompts.get", "knowledge.search", "knowledge.get",
    ]  # fmt: skip
    assert len(names) == 29
    for tool in tools.registry.tools:
        hints = dict(tool.annotations)
        assert hints["openWorldHint"] is False
        assert hints["readOnlyHint"] is (tool.name in names[:13])
        assert tool.meta.get("readOnlyHint", False) is (tool.name in names[:13])
        last = tool.name.partition(".")[2]
        assert hints["destructiveHint"] is (last in ("update", "delete"))
        assert hints["idempotentHint"] is (last not in ("create", "append"))


def test_a_deleted_conversations_messages_are_found_and_read_by_nothing(filled: Tools) -> None:
    filled("chats.delete", conversation_id="talk")
    assert uris(filled("chats.search", query="rum tea talk harbour")) == []
    assert filled.refused("knowledge.get", id="chats://talk/m1").code == "not_found"
    assert filled.library.store.check() == []


def test_an_id_that_cannot_be_one_is_told_by_the_name_of_its_argument(tools: Tools) -> None:
    refused = tools.refused("notes.create", title="T", content="x", note_id="two words")
    assert (refused.code, refused.details["argument"]) == ("invalid_argument", "note_id")
