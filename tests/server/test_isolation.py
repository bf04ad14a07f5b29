"""Nobody reaches another's library.

1. Whatever a caller sends to whatever tool, nothing of another space comes back and nothing of it changes.
2. Over HTTP the key alone decides: no header, query, path or argument names a space.
3. The same session handle of two callers is two sessions.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from commonplace.kinds.knowledge.records import put_record
from commonplace.library import Library
from commonplace.model import Draft
from commonplace.profiles.registry import profile
from commonplace.server.calls import Failure
from commonplace.server.principal import Principal
from commonplace.server.service import Service, Visitor
from commonplace.settings import Settings
from schemas import arguments

SECRET = "zanzibarite"
ALICE = Principal("alice", "alice", frozenset({"read", "write"}))
BOB = Principal("bob", "bob", frozenset({"read", "write"}))

RECORDS: list[dict[str, Any]] = [
    {"kind": "media", "id": "talk", "title": SECRET, "media_type": "video", "body": f"The {SECRET} is under the bed."},
    {"kind": "character", "id": "ada", "name": SECRET, "description": f"I hid the {SECRET}."},
    {"kind": "prompt", "id": "ask", "name": SECRET, "user_prompt": f"I hid the {SECRET}."},
    {"kind": "conversation", "id": "chat", "title": SECRET,
     "messages": [{"id": "m1", "sender": "Ada", "content": f"I hid the {SECRET}."}]},
]  # fmt: skip

reaching = st.sampled_from(
    [
        "media://talk",
        "chats://chat",
        "chats://chat/m1",
        "characters://ada",
        "prompts://ask",
        "talk",
        "chat",
        "ada",
        "ask",
        "notes://plan",
        "docs://papers/plan.md",
        "memory://1",
        "alice",
        "../alice",
        "../../spaces/alice/library.db",
        "spaces/alice",
        "/etc/passwd",
        "papers",
        "papers/plan.md",
        "plan",
        "1",
        SECRET,
        f'"{SECRET}"',
        "*",
        "notes://../alice/plan",
        "%2e%2e%2falice",
        "alice/notes://plan",
        "note:papers",
    ]
)
texts = reaching | st.text(max_size=12)


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    config = Settings(home=tmp_path, models=tmp_path / "models", model="static", allow_writes=True)
    with Library.open(tmp_path, "alice", config) as library:
        library.put(
            Draft("note", "plan", title=f"Plan {SECRET}", body=f"The {SECRET} is under the bed.", tags=(SECRET,))
        )
        library.put(Draft("document", "plan.md", parent="papers", title="Plan", body=f"# Plan\n\n{SECRET}\n"))
        library.put(Draft("memory", "1", parent="papers", body=f"I hid the {SECRET}.", fields={"source": "user"}))
        for record in RECORDS:
            put_record(library.store, record)
        library.embed()
    service = Service(config)
    yield service
    service.close()


TOOLS = [tool.name for tool in profile("all").tools]


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
@pytest.mark.parametrize("name", TOOLS)
def test_no_argument_of_any_tool_reaches_another_space(service: Service, name: str, data: st.DataObject) -> None:
    registry = service.registry("all")
    tool = registry.find(name)
    assert tool is not None
    sent = data.draw(arguments(tool.input, texts, wild=True))
    session = data.draw(st.none() | st.just("alices-session"))

    async def main() -> tuple[Any, int, int]:
        before = await service.work("alice", lambda library: library.store.last_change())
        answer = await service.call(Visitor(BOB, session), registry, tool, sent)
        return answer, before, await service.work("alice", lambda library: library.store.last_change())

    answer, before, after = anyio.run(main)
    assert before == after
    if isinstance(answer, Failure):
        assert answer.code != "internal", answer.message
        return
    said = json.dumps([list(answer.content), answer.structured], ensure_ascii=False)
    assert SECRET not in said or SECRET in json.dumps(sent, ensure_ascii=False)
    assert "under the bed" not in said
    assert "I hid" not in said
