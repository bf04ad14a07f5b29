"""The list of prompts is another one exactly when a prompt has come, changed or gone; and clients are told so."""

from __future__ import annotations

from pathlib import Path

import anyio
from mcp import Client

from commonplace.kinds.knowledge.tools.library_resources import prompts_state
from commonplace.library import Library
from commonplace.model import Draft
from commonplace.server.mcp import make_server
from commonplace.server.principal import OWNER
from commonplace.server.service import Service, Visitor
from commonplace.settings import Settings


def test_only_prompts_make_another_list(library: Library) -> None:
    empty = prompts_state(library)
    library.put(Draft("note", "tea", body="Not a prompt."))
    assert prompts_state(library) == empty
    library.put(Draft("prompt", "1", title="Greet", body="Hello"))
    one = prompts_state(library)
    assert one != empty
    library.put(Draft("prompt", "1", title="Greet warmly", body="Hello"))
    assert prompts_state(library) not in (empty, one)
    library.delete("prompts://1")
    assert prompts_state(library) == empty


def test_a_client_hears_that_a_prompt_was_created(tmp_path: Path) -> None:
    service = Service(Settings(home=tmp_path, model="static", allow_writes=True))
    server = make_server(service, service.registry("knowledge"), lambda context: Visitor(OWNER))
    heard = anyio.Event()

    async def hear(message: object) -> None:
        if "prompts/list_changed" in str(getattr(message, "method", "")):
            heard.set()

    async def main() -> None:
        async with Client(server, mode="legacy", message_handler=hear) as client:
            assert (await client.list_prompts()).prompts == []
            made = await client.call_tool("prompts.create", {"name": "Greet", "user_prompt": "Hello {{who}}"})
            assert not made.is_error
            with anyio.fail_after(20):
                await heard.wait()
            assert [prompt.name for prompt in (await client.list_prompts()).prompts] == ["Greet"]

    try:
        anyio.run(main)
    finally:
        service.close()
