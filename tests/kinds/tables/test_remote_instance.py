"""An instance whose index a service holds, called by a real client: it hears what the service says, and no key."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from table_calls import Calls

from commonplace.index.turbopuffer import wire as turbopuffer_wire
from commonplace.library import Library
from commonplace.server.auth import make_gate
from commonplace.server.http import make_app
from commonplace.server.principal import OWNER
from opening import library_settings, serving_index
from serving import served


def test_a_client_is_refused_with_the_code_and_served_again_when_the_service_is_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turbopuffer_wire, "RETRIES", 0)
    monkeypatch.setattr(turbopuffer_wire, "READY_S", 0.2)
    with serving_index("turbopuffer") as service:
        assert service is not None
        settings = library_settings(tmp_path)
        with Library.open(tmp_path, settings=settings) as library:
            calls = Calls(library)
            calls.table({"stock": [{"name": "oolong"}], "secret": "hidden words"})
            calls.tool("search", "/stock", name="find")
            key = calls("instance_create", name="front", tool_ids=["find"])["api_key"]
            calls.settle()

        async def main(port: int) -> None:
            async def find() -> Any:
                answer = await client.call_tool("find", {"query": "oolong"})
                assert service.key not in str(answer)
                return answer.structured_content

            headers = {"Authorization": f"Bearer {key}"}
            with anyio.fail_after(60):
                async with httpx2.AsyncClient(headers=headers, timeout=30) as carrier:
                    streams = streamable_http_client(f"http://127.0.0.1:{port}/mcp/i/front", http_client=carrier)
                    async with Client(streams) as client:
                        found = await find()
                        assert found["results"][0]["chunk"]["turbopuffer_doc_id"] is not None
                        service.fail("query", status=403)
                        refused = await client.call_tool("find", {"query": "oolong"})
                        assert refused.is_error
                        assert refused.structured_content is not None
                        assert refused.structured_content["error"]["code"] == "index_auth"
                        service.fail("query", status=429, headers={"retry-after-ms": "1500"})
                        assert (await find())["error"]["retry_after"] == 1.5
                        service.fail("query", "accepted", times=30)
                        waiting = await find()
                        assert (waiting["results"], waiting["index"]["status"]) == ([], "indexing")
                        service.forgive()
                        service.die()
                        assert (await find())["error"]["code"] == "index_unreachable"
                        service.revive()
                        assert await find() == found

        with served(make_app(settings, make_gate(settings, owner=OWNER))) as port:
            anyio.run(main, port)
