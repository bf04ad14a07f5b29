"""The knowledge tools as a test calls them: through their declarations, every answer held against its schema."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jsonschema

from commonplace.kinds.knowledge.records import put_record
from commonplace.library import Library
from commonplace.profiles.registry import profile
from commonplace.server.calls import Failure, run
from commonplace.tools.profile import Registry
from commonplace.tools.tool import Call


class Tools:
    def __init__(self, library: Library, name: str = "knowledge", **call: Any) -> None:
        self.library = library
        self.registry = Registry(profile(name), writable=True)
        self._call = Call(library, **call)

    def having(self, **call: Any) -> Tools:
        """The same tools for a caller who comes with something else."""
        made = Tools(self.library, self.registry.profile.name)
        made._call = replace(self._call, **call)
        return made

    def __call__(self, tool_name: str, **arguments: Any) -> dict[str, Any]:
        tool = self.registry.find(tool_name)
        assert tool is not None, tool_name
        answer = run(tool, self._call, arguments)
        assert not isinstance(answer, Failure), answer
        jsonschema.validate(answer, tool.output)  # type: ignore[arg-type]
        return answer  # type: ignore[return-value]

    def refused(self, tool_name: str, **arguments: Any) -> Failure:
        tool = self.registry.find(tool_name)
        assert tool is not None, tool_name
        answer = run(tool, self._call, arguments)
        assert isinstance(answer, Failure), answer
        assert answer.code != "internal"
        return answer

    def put(self, kind: str, **record: Any) -> str:
        return put_record(self.library.store, {"kind": kind, **record}).uri

    def note(self, title: str, body: str = "", **more: Any) -> str:
        return self.put("note", id=more.pop("id", title.lower().replace(" ", "-")), title=title, body=body, **more)


def uris(response: dict[str, Any]) -> list[str]:
    return [result["uri"] for result in response["results"]]
