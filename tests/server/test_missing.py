"""What is not there is said with the code that each revision of the protocol has for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import anyio
import growing
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from commonplace.profiles.registry import profile
from commonplace.server.mcp import make_server
from commonplace.server.principal import OWNER
from commonplace.server.service import Service, Visitor
from commonplace.tools.profile import Registry
from opening import library_settings


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    service = Service(library_settings(tmp_path))
    yield service
    service.close()


@pytest.mark.parametrize(("era", "code"), [("legacy", -32002), ("2026-07-28", -32602)])
def test_a_missing_resource_is_named_in_the_error(service: Service, era: str, code: int) -> None:
    async def main() -> None:
        server = make_server(service, Registry(growing.PROFILE, writable=True), lambda context: Visitor(OWNER))
        with anyio.fail_after(30):
            async with Client(server, mode=era) as client:
                with pytest.raises(MCPError) as failed:
                    await client.read_resource("notes://nothing")
                assert failed.value.error.code == code
                assert failed.value.error.data == {"uri": "notes://nothing"}

    anyio.run(main)


@pytest.mark.parametrize("era", ["legacy", "2026-07-28"])
def test_a_missing_resource_of_knowledge_is_a_wrong_parameter_in_every_era(service: Service, era: str) -> None:
    async def main() -> None:
        server = make_server(service, Registry(profile("knowledge"), writable=True), lambda context: Visitor(OWNER))
        with anyio.fail_after(30):
            async with Client(server, mode=era) as client:
                with pytest.raises(MCPError) as failed:
                    await client.read_resource("notes://nothing")
                assert failed.value.error.code == -32602

    anyio.run(main)


@pytest.mark.parametrize("era", ["legacy", "2026-07-28"])
def test_a_missing_prompt_is_a_wrong_parameter_in_every_era(service: Service, era: str) -> None:
    async def main() -> None:
        server = make_server(service, Registry(growing.PROFILE, writable=True), lambda context: Visitor(OWNER))
        with anyio.fail_after(30):
            async with Client(server, mode=era) as client:
                with pytest.raises(MCPError, match="There is no prompt called so") as failed:
                    await client.get_prompt("prompt called so")
                assert failed.value.error.code == -32602

    anyio.run(main)
