"""Resources by address, and the library's prompts as MCP prompts."""

from __future__ import annotations

import base64
import json

import pytest
from knowledge_calls import Tools

from commonplace.errors import InvalidInput, NotFound
from commonplace.kinds.knowledge.tools.library_resources import PROMPTS, RESOURCES, SUGGESTED
from commonplace.tools.tool import Call


def read(tools: Tools, uri: str) -> dict[str, str]:
    return dict(RESOURCES.read(Call(tools.library), uri))


def test_the_types_and_the_latest_media(filled: Tools) -> None:
    filled.put("media", title="Book", media_type="epub", updated_at="2020-01-01")
    assert json.loads(read(filled, "media://types")["text"]) == {
        "media_types": ["epub", "video"], "counts": {"epub": 1, "video": 1}, "suggested": list(SUGGESTED),
    }  # fmt: skip
    recent = json.loads(read(filled, "media://recent")["text"])
    assert [entry["uri"] for entry in recent] == ["media://1", "media://2"]
    assert set(recent[0]) == {"uri", "title", "media_type", "last_modified"}
    assert [entry["uri"] for entry in RESOURCES.entries(Call(filled.library))] == ["media://types", "media://recent"]


def test_every_item_is_a_resource(filled: Tools) -> None:
    assert read(filled, "notes://tea")["text"].startswith("Oolong")
    assert read(filled, "notes://tea")["mimeType"] == "text/markdown"
    assert "Arr, rum" in read(filled, "chats://talk")["text"]
    assert "## User prompt\n\nHi {{who}}" in read(filled, "prompts://1")["text"]
    assert read(filled, "media://1/transcript.srt")["text"].startswith("1\n00:00:00,000")
    assert read(filled, "media://1/transcript.vtt")["text"].startswith("WEBVTT\n\n")


def test_an_avatar_is_a_blob(tools: Tools) -> None:
    data = base64.b64encode(b"\x89PNG....").decode()
    tools.put("character", name="A", avatar={"mime_type": "image/png", "base64": data})
    assert read(tools, "characters://1/avatar") == {
        "uri": "characters://1/avatar",
        "mimeType": "image/png",
        "blob": data,
    }


@pytest.mark.parametrize(
    "uri", ["notes://none", "media://9/transcript.srt", "characters://1/avatar", "memory://1", "x", "chats://talk/m0"]
)
def test_an_unknown_resource_is_not_found(filled: Tools, uri: str) -> None:
    with pytest.raises(NotFound):
        read(filled, uri)


def test_prompts_are_listed_in_pages_and_filled_in(tools: Tools) -> None:
    for number in range(120):
        tools.put("prompt", name=f"P{number:03}", details="d")
    tools.put("prompt", name="Greet", system_prompt="Be {{ mood }}.", user_prompt="Hi {{who}}, {{mood}}!")
    call, names, cursor = Call(tools.library), [], None
    while True:
        page, cursor = PROMPTS.page(call, cursor)
        assert len(page) <= 50
        names += [prompt["name"] for prompt in page]
        if cursor is None:
            break
    assert names == ["Greet", *(f"P{number:03}" for number in range(120))]
    first = PROMPTS.page(call, None)[0][0]
    assert [argument["name"] for argument in first["arguments"]] == ["mood", "who"]
    filled = PROMPTS.get(call, "Greet", {"mood": "kind", "who": "{{mood}}"})
    assert [message["content"]["text"] for message in filled["messages"]] == ["Be kind.", "Hi {{mood}}, kind!"]
    with pytest.raises(InvalidInput, match='needs "mood"'):
        PROMPTS.get(call, "Greet", {"who": "x"})
    with pytest.raises(InvalidInput, match='has no argument "colour"'):
        PROMPTS.get(call, "Greet", {"who": "x", "mood": "y", "colour": "z"})
    with pytest.raises(NotFound):
        PROMPTS.get(call, "None", {})
    with pytest.raises(InvalidInput):
        PROMPTS.page(call, "\x00")


def test_a_placeholder_may_be_named_in_any_script(tools: Tools) -> None:
    names = ["नाम", "ชื่อ", "cafe\u0301", "می\u200cشود", "имя_2", "first name"]
    no_names = "{{😀}} {{}} {{ }} {{a|b}} {{a\nb}} {{\u0301}}"
    tools.put("prompt", name="Greet", user_prompt=" ".join(f"{{{{ {name} }}}}" for name in names) + no_names)
    call = Call(tools.library)
    listed = PROMPTS.page(call, None)[0][0]
    assert [argument["name"] for argument in listed["arguments"]] == names
    filled = PROMPTS.get(call, "Greet", dict.fromkeys(names, "x"))
    assert filled["messages"][0]["content"]["text"] == " ".join("x" for _ in names) + no_names
