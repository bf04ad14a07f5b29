"""Record what the tools and commands answer on a fixed library, in a form that two trees can be compared by.

Times, generated ids and handles are replaced by a name for what they are. Documents have one scheme, whatever it is
called. Prose of our own surface is left out; sentences of the surfaces that stand for other programs are kept.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from commonplace.library import Library
from commonplace.profiles.registry import profile
from commonplace.server.calls import Failure, run
from commonplace.server.service import with_text
from commonplace.tools.profile import Registry
from commonplace.tools.tool import Call, Tool

DIGITS = 2
"""How many tokens an answer may have more or less: a number that explains a score may print with a digit less."""
TOLERANCE = 2e-3
"""How far a score may be off: vector arithmetic differs in the last digits between processors."""
PROSE = frozenset({"notes", "note", "hint", "instructions", "next", "advice", "model", "summary"})
HANDLES = frozenset({"cursor", "next_cursor", "session", "fingerprint", "digest", "api_key", "key_hint", "job_id"})
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?")
_UUID = re.compile(r"\b[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}\b")
_TABLE_ID = re.compile(r"\b[a-z0-9]{12}\b")
_AGE = re.compile(r"\b(?:\d+[smhd] ago|just now|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d)\b")
_HEX = re.compile(r"\b(?:sha256:)?[0-9a-f]{24,64}\b")
_DOCUMENT = re.compile(r"\b(?:qmd|docs)://")
_MEASURED = re.compile(r"(?:^ms|^uptime|total_queries|_ms|_s|_bytes|seconds|size|mtime|_at|age)$")


class Recorder:
    """Calls tools by profile and name, and keeps what they answered."""

    def __init__(self, library: Library, folder: Path) -> None:
        self.library = library
        self.entries: list[dict[str, Any]] = []
        self.called: set[tuple[str, str]] = set()
        self._folder = str(folder)
        self._ids: dict[str, str] = {}
        self._registries: dict[str, Registry] = {}

    def __call__(self, profile_name: str, tool_name: str, /, **arguments: Any) -> dict[str, Any]:
        """Call a tool; return its structured answer, or `{}` where it refused."""
        registry = self._registries.setdefault(profile_name, Registry(profile(profile_name), writable=True))
        tool = registry.find(tool_name)
        assert tool is not None, tool_name
        self.called.add((profile_name, tool.name))
        return self.carry_out(profile_name, tool, arguments)

    def carry_out(self, profile_name: str, tool: Tool, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Call a tool that is in no profile's list, such as one bound to a table."""
        answer = run(tool, Call(self.library), dict(arguments))
        if isinstance(answer, Failure):
            assert answer.code != "internal", (tool.name, arguments)
            refusal: dict[str, Any] = {"code": answer.code, "status": answer.status}
            if profile_name != "commonplace":
                refusal["message"] = answer.message
            self._keep(profile_name, tool.name, arguments, {"refused": refusal})
            return {}
        reply = with_text(answer)
        kept: dict[str, Any] = {"answer": reply.structured}
        if profile_name == "qmd":
            kept["text"] = [part.get("text") or part.get("resource") for part in reply.content]
        self._keep(profile_name, tool.name, arguments, kept)
        return reply.structured or {}

    def command(self, arguments: list[str], status: int, output: str) -> None:
        """Keep the exit status of a command, and its output where that is JSON or of the drop-in for qmd."""
        kept: dict[str, Any] = {"status": status}
        if "--json" in arguments and output.strip():
            kept["answer"] = json.loads(output)
        elif arguments[0] == "qmd":
            kept["text"] = output.splitlines()
        self._keep("cli", arguments[0], {"arguments": arguments}, kept)

    def request(self, method: str, path: str, body: Any, status: int, answer: Any) -> None:
        """Keep what REST answered; of a refusal the code, of the list of tools their names."""
        if isinstance(answer, dict) and "error" in answer:
            answer = {"code": answer["error"].get("code")} if isinstance(answer["error"], dict) else answer["error"]
        self._keep("rest", f"{method} {path}", {"body": body}, {"status": status, "answer": answer})

    def _keep(self, profile_name: str, name: str, arguments: Mapping[str, Any], kept: Mapping[str, Any]) -> None:
        entry = {"profile": profile_name, "tool": name, "arguments": dict(arguments), **kept}
        self.entries.append(self._normal(json.loads(json.dumps(entry))))

    def _normal(self, value: Any, key: str = "") -> Any:
        if key in PROSE and value:
            return "<words>"
        if key in HANDLES and isinstance(value, str) and value:
            return "<handle>"
        if key.endswith("_id") and isinstance(value, str) and (generated := _TABLE_ID.fullmatch(value)):
            return self._named(generated)
        if isinstance(value, dict):
            return {self._text(name): self._normal(part, name) for name, part in value.items()}
        if isinstance(value, list):
            return [self._normal(part, "") for part in value]
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, int | float) and not isinstance(value, bool) and _MEASURED.search(key):
            return "<measure>"
        return value

    def _named(self, match: re.Match[str]) -> str:
        """Return a name for a generated id: the first met is `<id 1>`."""
        return self._ids.setdefault(match[0], f"<id {len(self._ids) + 1}>")

    def _text(self, text: str) -> str:
        text = text.replace(self._folder, "<folder>")
        text = _TIME.sub("<time>", text)
        text = _TABLE_ID.sub(lambda match: self._ids.get(match[0], match[0]), _UUID.sub(self._named, text))
        text = _AGE.sub("<time>", _HEX.sub("<digest>", text))
        return _DOCUMENT.sub("<documents>://", text)


def differences(expected: Any, actual: Any, place: str = "") -> list[str]:
    """Return where two recordings differ, as `place: expected -> actual`; numbers may be off by `TOLERANCE`."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        names = [*expected, *(name for name in actual if name not in expected)]
        pairs = [(name, expected.get(name, "<absent>"), actual.get(name, "<absent>")) for name in names]
        return [line for name, one, other in pairs for line in differences(one, other, f"{place}.{name}")]
    if isinstance(expected, list) and isinstance(actual, list) and len(expected) == len(actual):
        both = enumerate(zip(expected, actual, strict=True))
        return [line for nr, (one, other) in both for line in differences(one, other, f"{place}[{nr}]")]
    if isinstance(expected, float) and isinstance(actual, int | float):
        return [] if math.isclose(expected, actual, abs_tol=TOLERANCE) else [f"{place}: {expected} -> {actual}"]
    if place.endswith(".tokens") and isinstance(expected, int) and isinstance(actual, int):
        return [] if abs(expected - actual) <= DIGITS else [f"{place}: {expected} -> {actual}"]
    return [] if expected == actual else [f"{place}: {expected!r} -> {actual!r}"]
