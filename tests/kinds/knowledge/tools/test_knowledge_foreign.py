"""Items that came in by another way than a record: put by the Python API, or remembered by the default profile."""

from __future__ import annotations

from knowledge_calls import Tools, uris

from commonplace.model import Draft
from commonplace.profiles.commonplace.writing import REMEMBER
from commonplace.tools.tool import Call


def test_a_remembered_note_is_found_read_and_updated(tools: Tools) -> None:
    made = REMEMBER.call(Call(tools.library), {"text": "Quaggas are extinct.", "key": "q", "collection": "animals"})
    assert made["uri"] == "notes://q"  # type: ignore[index]
    assert uris(tools("notes.search", query="quagga")) == ["notes://q"]
    changed = tools("notes.update", note_id="q", content="Quaggas were striped.", expected_version=1)
    assert changed["meta"]["version"] == 2
    assert tools.library.get("notes://q").parent == "animals"


def test_items_without_fields_of_their_own_are_read_all_the_same(tools: Tools) -> None:
    for kind in ("note", "media", "character", "prompt", "conversation"):
        tools.library.put(Draft(kind, "x", title="Zebra", body="" if kind == "conversation" else "Zebra text."))
    tools.library.put(Draft("message", "m", parent="x", body="A zebra spoke."))
    found = tools("knowledge.search", query="zebra")
    assert len(found["results"]) == 6
    for hit in found["results"]:
        for mode in ("snippet", "chunk", "chunk_with_siblings", "full"):
            tools("knowledge.get", id=hit["uri"], retrieval={"mode": mode})
        assert tools("fetch", id=hit["uri"])["text"]
    assert tools.library.doctor() == []


def test_indexes_are_rebuilt_with_the_others(filled: Tools) -> None:
    before = filled("knowledge.search", query="tea water")
    filled.library.rebuild()
    assert filled("knowledge.search", query="tea water") == before
