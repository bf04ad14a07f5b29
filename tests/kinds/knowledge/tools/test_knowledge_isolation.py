"""What one user has is not there for another, by any tool, address or session handle."""

from __future__ import annotations

from pathlib import Path

import pytest
from knowledge_calls import Tools

from commonplace.errors import NotFound
from commonplace.kinds.knowledge.tools.library_resources import RESOURCES
from commonplace.library import Library
from commonplace.tools.tool import Call
from opening import library_settings

READERS = {
    "notes": ("note_id", ("get", "update", "delete")),
    "media": ("media_id", ("get", "transcript", "update", "delete")),
    "chats": ("conversation_id", ("get", "update", "delete")),
    "characters": ("character_id", ("get", "update", "delete")),
    "prompts": ("prompt_id_or_name", ("get", "update", "delete")),
}


def test_every_id_of_another_user_is_not_found(filled: Tools, tmp_path: Path) -> None:
    found = filled("knowledge.search", query="tea water kettle rum greet sea", limit=100, session="s")["results"]
    assert {hit["source"] for hit in found} == set(READERS)
    settings = library_settings(tmp_path)
    with Library.open(tmp_path, space="other", settings=settings) as library:
        other = Tools(library)
        assert other("knowledge.search", query="tea water kettle rum greet sea")["results"] == []
        assert other("knowledge.search", query="tea", session="s")["session"]["seen"] == 0
        for hit in found:
            argument, tools = READERS[hit["source"]]
            for id in (hit["id"], hit["uri"]):
                for tool in tools:
                    assert other.refused(f"{hit['source']}.{tool}", **{argument: id}).code == "not_found"
            assert other.refused("knowledge.get", id=hit["uri"]).code == "not_found"
            assert other.refused("fetch", id=hit["uri"]).code == "not_found"
            with pytest.raises(NotFound):
                RESOURCES.read(Call(library), hit["uri"])
        assert other.refused("notes.get", note_id="tea").message.replace("tea", "x") == (
            filled.refused("notes.get", note_id="x").message
        )
