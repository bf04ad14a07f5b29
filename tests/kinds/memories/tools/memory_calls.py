"""The memory tools, called as a door calls them."""

from __future__ import annotations

from typing import Any

from commonplace.kinds.memories.entry import Entry
from commonplace.kinds.memories.tools import PROFILE
from commonplace.library import Library
from commonplace.server.calls import Failure, run
from commonplace.tools.tool import Call, Reply

TOOLS = {tool.name: tool for tool in PROFILE.tools}


class Tools:
    """Call a tool by its name. What comes back is its structured answer, or `{"error": …}`."""

    def __init__(self, library: Library) -> None:
        self.library = library

    def __call__(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        answer = run(TOOLS[name], Call(self.library), arguments)
        if isinstance(answer, Failure):
            assert answer.code != "internal", answer.message
            return answer.record()
        if isinstance(answer, Reply):
            return dict(answer.structured or {})
        return answer


def refused(answer: dict[str, Any]) -> str:
    """The sentence of an error."""
    assert "error" in answer, answer
    return str(answer["error"]["message"])


def stored(tools: Tools, **arguments: Any) -> int:
    """Store an entry and return its id."""
    answer = tools("store_context", **{"thread_id": "t", "source": "user", "text": "text", **arguments})
    assert answer.get("success"), answer
    return int(answer["context_id"])


def entry(tools: Tools, number: int, *, history: bool = False) -> Entry:
    return tools.library.memories.entries([number], history=history)[0]


def there(tools: Tools) -> list[int]:
    """The ids of all entries."""
    return tools.library.memories.find()
