"""A library and its knowledge tools."""

from __future__ import annotations

import pytest
from knowledge_calls import Tools

from commonplace.library import Library


@pytest.fixture
def tools(library: Library) -> Tools:
    return Tools(library)


@pytest.fixture
def filled(tools: Tools) -> Tools:
    """A few items of every kind."""
    tools.note("Tea", "Oolong wants water just off the boil.\n\nGreen tea less.", tags=["Brewing", "drinks"])
    tools.note("Coffee", "Coffee wants water at the boil.", tags=["drinks"])
    tools.put("character", name="Alice", description="A pirate who drinks tea.", tags=["Sea Captain"])
    tools.put("character", name="Bob", description="A sea captain, every inch a sea captain.", tags=["x"])
    tools.put(
        "conversation",
        id="talk",
        title="Tea talk",
        character_id=1,
        tags=["harbour"],
        messages=[
            {"id": "m0", "sender": "Me", "content": "Shall we drink tea?"},
            {"id": "m1", "sender": "Alice", "content": "Arr, rum and water.", "timestamp": "2024-01-01T10:00:00Z"},
            {"id": "m2", "sender": "Me", "content": "Then rum it is."},
        ],
    )
    tools.put(
        "media",
        title="Kettle film",
        media_type="video",
        author="Brewster",
        url="https://example.org/kettle",
        created_at="2024-05-01T12:00:00Z",
        cues=[
            {"start_ms": 0, "end_ms": 1500, "text": "A kettle boils.", "speaker": "Ann"},
            {"start_ms": 1500, "end_ms": 4000, "text": "Water & steam <rise>."},
        ],
    )
    tools.put("prompt", name="Greet", details="For tea parties.", user_prompt="Hi {{who}}", tags=["polite"])
    return tools
