"""What a profile may declare beside tools, spoken to by the official client in memory, in both eras.

1. Resources, templates, prompts and completions are listed, read and filled in; what is missing is an error in words.
2. Progress of a long call reaches a client that asked for it.
3. A cancelled call leaves the server ready for the next.
4. A bug in a handler is a sentence with a reference; the traceback is in the log alone.
5. Lists say how long they stay fresh.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

import anyio
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from commonplace.errors import InvalidInput, NotFound
from commonplace.model import JSON
from commonplace.server.mcp import make_server
from commonplace.server.principal import OWNER
from commonplace.server.service import Service, Visitor
from commonplace.settings import Settings
from commonplace.tools.profile import Profile, Prompts, Registry, Resources
from commonplace.tools.schema import obj
from commonplace.tools.tool import READ_ONLY, Call, Reply, Tool
from kit.answers import said, text_of

ERAS = ["legacy", "2026-07-28"]
STARTED, GO_ON = threading.Event(), threading.Event()


def count(call: Call, given: Mapping[str, JSON]) -> dict[str, JSON]:
    for done in range(1, 4):
        call.progress(done, 3, f"{done} of 3")
        GO_ON.wait(0.15)  # longer than the pause between two reports
    return {"counted": 3}


def hold(call: Call, given: Mapping[str, JSON]) -> dict[str, JSON]:
    STARTED.set()
    assert GO_ON.wait(30)
    return {}


def broken(call: Call, given: Mapping[str, JSON]) -> dict[str, JSON]:
    raise KeyError("the secret of the handler")


def document(call: Call, given: Mapping[str, JSON]) -> Reply:
    inside = {"uri": "test://a", "name": "a.md", "title": "A", "mimeType": "text/markdown", "text": "# A"}
    return Reply(({"type": "resource", "resource": inside},))


def read(call: Call, uri: str) -> Mapping[str, JSON]:
    if uri != "test://a":
        raise NotFound(f"There is no {uri}.", suggestions=["test://a"])
    return {"uri": uri, "name": "a.md", "title": "A", "mimeType": "text/markdown", "text": "# A"}


def get(call: Call, name: str, given: Mapping[str, str]) -> Mapping[str, JSON]:
    if name != "greet":
        raise InvalidInput(f"There is no prompt {name}.")
    return {"messages": [{"role": "user", "content": {"type": "text", "text": f"Hello {given['who']}"}}]}


GREET = {"name": "greet", "arguments": [{"name": "who", "required": True}]}
TEMPLATE = {"uriTemplate": "test://{name}", "name": "document"}
HANDLERS = {"count": count, "hold": hold, "broken": broken, "document": document}
PROFILE = Profile(
    "test",
    tuple(Tool(name, name, "A test.", obj(), None, READ_ONLY, handler) for name, handler in HANDLERS.items()),  # type: ignore[arg-type]
    lambda library: "A test.",
    resources=Resources(read, (TEMPLATE,), lambda call: [{"uri": "test://a", "name": "a.md"}]),
    prompts=Prompts(lambda call, cursor: ([GREET], None), get),
    complete=lambda call, reference, name, typed: [word for word in ("world", "woods") if word.startswith(typed)],
)


@pytest.fixture
def client(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Client]:
    STARTED.clear()
    GO_ON.clear()
    service = Service(Settings(home=tmp_path, model="static"))
    server = make_server(service, Registry(PROFILE, writable=False), lambda context: Visitor(OWNER))
    yield Client(server, mode=request.param)
    GO_ON.set()
    service.close()


both_eras = pytest.mark.parametrize("client", ERAS, indirect=True)


@both_eras
def test_resources_prompts_and_completions_are_served(client: Client) -> None:
    async def main() -> None:
        async with client:
            listed = await client.list_resources()
            assert [entry.name for entry in listed.resources] == ["a.md"]
            templates = await client.list_resource_templates()
            assert [entry.uri_template for entry in templates.resource_templates] == ["test://{name}"]
            contents = (await client.read_resource("test://a")).contents
            assert said(contents[0]) == "# A"
            with pytest.raises(MCPError, match=r"There is no test://b\.") as missing:
                await client.read_resource("test://b")
            assert missing.value.error.code == (-32002 if client.protocol_version < "2026" else -32602)
            assert missing.value.error.data == {"uri": "test://b", "suggestions": ["test://a"]}
            assert [entry.name for entry in (await client.list_prompts()).prompts] == ["greet"]
            filled = await client.get_prompt("greet", {"who": "you"})
            assert said(filled.messages[0].content) == "Hello you"
            with pytest.raises(MCPError, match="There is no prompt nobody"):
                await client.get_prompt("nobody")
            completed = await client.complete({"type": "ref/prompt", "name": "greet"}, {"name": "who", "value": "wor"})  # type: ignore[arg-type]
            assert completed.completion.values == ["world"]

    anyio.run(main)


@pytest.mark.parametrize("client", ["legacy", "auto"], indirect=True)
def test_a_client_is_told_what_is_inside(client: Client) -> None:
    async def main() -> None:
        async with client:
            assert client.instructions == "A test."

    anyio.run(main)


@both_eras
def test_progress_is_told_to_who_asked(client: Client) -> None:
    told: list[tuple[float, float | None, str | None]] = []

    async def note(done: float, total: float | None, words: str | None) -> None:
        told.append((done, total, words))

    async def main() -> None:
        async with client:
            assert (await client.call_tool("count", {}, progress_callback=note)).structured_content == {"counted": 3}  # type: ignore[arg-type]
            await client.call_tool("count", {})

    anyio.run(main)
    assert told == [(1, 3, "1 of 3"), (2, 3, "2 of 3"), (3, 3, "3 of 3")]


@both_eras
def test_a_cancelled_call_leaves_the_server_ready(client: Client) -> None:
    async def main() -> None:
        async with client:
            with anyio.move_on_after(0.3):
                await client.call_tool("hold", {})
            assert STARTED.is_set()
            with anyio.fail_after(20):
                assert not (await client.call_tool("document", {})).is_error

    anyio.run(main)


@both_eras
def test_a_bug_is_a_sentence_with_a_reference(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with client:
            with caplog.at_level(logging.ERROR):
                failed = await client.call_tool("broken", {})
            assert failed.is_error
            error = failed.structured_content["error"]
            assert error["code"] == "internal"
            assert error["reference"] in text_of(failed)
            assert "secret" not in text_of(failed)
            assert error["reference"] in caplog.text
            assert "the secret of the handler" in caplog.text

    anyio.run(main)


@both_eras
def test_lists_say_how_long_they_stay_fresh(client: Client) -> None:
    async def main() -> None:
        async with client:
            listed = await client.list_tools()
            assert [tool.name for tool in listed.tools] == list(HANDLERS)
            if client.protocol_version >= "2026":
                assert listed.ttl_ms > 0

    anyio.run(main)
