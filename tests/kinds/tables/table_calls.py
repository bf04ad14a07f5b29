"""The tables of a library, called as a door calls them."""

from __future__ import annotations

import json
from typing import Any

from commonplace.errors import CommonplaceError
from commonplace.kinds.tables.drawer import TableDrawer
from commonplace.kinds.tables.tools import PROFILE
from commonplace.kinds.tables.tools.types import run_tool
from commonplace.library import Library
from commonplace.server.calls import Failure, run
from commonplace.tools.tool import Call, Reply

TOOLS = {tool.name: tool for tool in PROFILE.tools}


class Calls:
    """Management tools by their names, bound tools by `run`. Answers are structured, or `{"error": …}`."""

    def __init__(self, library: Library) -> None:
        self.library = library

    def __call__(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        answer = run(TOOLS[tool], Call(self.library), arguments)
        if isinstance(answer, Failure):
            assert answer.code != "internal", answer.message
            return answer.record()
        assert not isinstance(answer, Reply)
        return answer

    def run(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        try:
            return run_tool(self.library, self.library.tables.tool(tool), arguments)
        except CommonplaceError as error:
            return Failure.of(error).record()

    def table(self, data: Any, name: str = "t", **more: Any) -> str:
        """A table of some data; returns its id."""
        if not self.library.store.drawer(TableDrawer).projects():
            self("project_create", name="p")
        answer = self("table_create", project_id="p", name=name, data=data, **more)
        assert "table" in answer, answer
        return str(answer["table"]["table_id"])

    def tool(self, type: str, at: str = "", name: str | None = None, table: str = "t") -> str:
        """A tool bound to a place; returns its id."""
        answer = self("tool_create", table_id=table, type=type, name=name or type, json_path=at)
        assert "tool" in answer, answer
        return str(answer["tool"]["tool_id"])

    def data(self, table: str = "t", at: str = "") -> Any:
        return self("table_get", table_id=table, json_path=at)["data"]

    def settle(self) -> None:
        """Do all that is left to do."""
        while self.library.tables.jobs.step():
            pass

    def hits(self, query: str, tool: str = "search", top_k: int = 20) -> list[dict[str, Any]]:
        answer = self.run(tool, query=query, top_k=top_k)
        assert "results" in answer, answer
        results: list[dict[str, Any]] = answer["results"]
        return results


def refused(answer: dict[str, Any]) -> str:
    """The sentence of a refusal."""
    assert "error" in answer, answer
    return str(answer["error"]["message"])


def code(answer: dict[str, Any]) -> str:
    assert "error" in answer, answer
    return str(answer["error"]["code"])


def at(data: Any, pointer: str) -> Any:
    """What is at a pointer, in plain Python: the judge of everything fast."""
    for part in pointer.split("/")[1:]:
        token = part.replace("~1", "/").replace("~0", "~")
        data = data[int(token)] if isinstance(data, list) else data[token]
    return data


def check_hit(data: Any, hit: dict[str, Any], path: str) -> None:
    """A hit is inside its tool's place and says exactly what the data says there."""
    chunk = hit["chunk"]
    pointer = chunk["json_pointer"]
    assert pointer == path + hit["json_path"]
    assert pointer == path or pointer.startswith(f"{path}/")
    assert 0 <= chunk["chunk_index"] < chunk["total_chunks"]
    value = at(data, pointer)
    if chunk["kind"] == "text":
        text = value if isinstance(value, str) else json.dumps(value)
        assert text[chunk["char_start"] : chunk["char_end"]] == chunk["chunk_text"]
        return
    assert isinstance(value, dict | list)
    assert len(chunk["chunk_text"]) == chunk["char_end"] - chunk["char_start"]
    for member in chunk["members"]:
        shown = chunk["chunk_text"][member["start"] : member["end"]]
        own = at(data, member["json_pointer"])
        assert shown == (own if isinstance(own, str) else json.dumps(own))
