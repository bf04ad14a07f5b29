"""The first tools over MCP, spoken to by the official client.

1. A client lists, searches and fetches over stdio and over HTTP, in both protocol eras.
2. Wrong arguments, unknown tools and missing items are answered in words, and the server goes on.
3. Standard output carries nothing but the protocol.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import httpx
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.shared.exceptions import MCPError

from kit.answers import text_of
from kit.forked import forked, forked_server

ERAS = ["legacy", "2026-07-28"]
"""The handshake of 2025-11-25 and before, and the stateless protocol after it."""


@asynccontextmanager
async def over_stdio(environment: dict[str, str], era: str, *more: str) -> AsyncIterator[Client]:
    server = StdioServerParameters(**forked_server("mcp", *more), env=environment)
    async with Client(stdio_client(server), mode=era) as client:
        yield client


async def walk(client: Client) -> None:
    tools = (await client.list_tools()).tools
    assert [tool.name for tool in tools] == ["search", "fetch", "browse", "related", "status"]
    assert len(json.dumps([tool.model_dump(mode="json", by_alias=True) for tool in tools])) < 12_000

    found = await client.call_tool("search", {"query": "how hot for oolong"})
    assert not found.is_error
    assert found.structured_content is not None
    assert found.structured_content["results"][0]["uri"] == "notes://tea"
    assert json.loads(text_of(found)) == found.structured_content

    tagged = await client.call_tool("search", {"query": "bread tea", "tags": ["FOOD"]})
    assert [hit["uri"] for hit in tagged.structured_content["results"]] == ["notes://bread"]

    rest = await client.call_tool("fetch", {"uri": "notes://tea:2"})
    (item,) = rest.structured_content["items"]
    assert (item["text"], item["next_line"]) == ("Green tea does not.", None)

    missing = await client.call_tool("fetch", {"uri": "notes://nothing"})
    assert missing.is_error
    assert missing.structured_content["error"]["code"] == "not_found"
    wrong = await client.call_tool("search", {"query": "x", "limit": 1000, "colour": "red"})
    assert wrong.is_error
    assert text_of(wrong).startswith('search has no argument "colour". It takes: query, limit')
    assert wrong.structured_content["error"] == {
        "code": "unknown_argument",
        "message": text_of(wrong),
        "argument": "colour",
    }
    beyond = await client.call_tool("search", {"query": "x", "limit": 1000})
    assert text_of(beyond) == "limit must be between 1 and 100, not 1000."
    assert beyond.structured_content["error"]["argument"] == "limit"
    with pytest.raises(MCPError, match="There is no tool 'frobnicate'"):
        await client.call_tool("frobnicate", {})


@pytest.mark.parametrize("era", ERAS)
def test_a_client_searches_and_fetches_over_stdio(environment: dict[str, str], era: str) -> None:
    async def main() -> None:
        with anyio.fail_after(60):
            async with over_stdio(environment, era) as client:
                await walk(client)

    anyio.run(main)


@pytest.mark.parametrize("era", ERAS)
def test_a_client_searches_and_fetches_over_http(address: str, era: str) -> None:
    async def main() -> None:
        with anyio.fail_after(60):
            async with Client(address, mode=era) as client:
                await walk(client)

    anyio.run(main)


def test_an_agent_that_may_write_remembers_and_finds_it_at_once(environment: dict[str, str]) -> None:
    async def main() -> None:
        with anyio.fail_after(60):
            async with over_stdio(environment, "auto", "--allow-writes") as client:
                kept = await client.call_tool("remember", {"text": "The kettle leaks.", "tags": ["kitchen"]})
                assert not kept.is_error
                found = await client.call_tool("search", {"query": "leaking kettle"})
                assert found.structured_content["results"][0]["uri"] == kept.structured_content["uri"]
            async with over_stdio(environment, "auto") as client:
                refused = await client.call_tool("forget", {"uri": kept.structured_content["uri"]})
                assert refused.structured_content["error"]["code"] == "writes_disabled"
                assert "--allow-writes" in text_of(refused)

    anyio.run(main)


def test_standard_output_carries_the_protocol_and_the_end_of_input_ends_the_server(environment: dict[str, str]) -> None:
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    request = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}) + "\n"
    command = forked("mcp")
    done = subprocess.run(
        command, env=environment, input=request, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    replies = [json.loads(line) for line in done.stdout.splitlines()]
    assert replies[0]["result"]["protocolVersion"] == "2025-11-25"
    assert "2 notes" in replies[0]["result"]["instructions"]


def test_a_line_that_is_no_message_is_answered_and_a_blank_one_is_none(environment: dict[str, str]) -> None:
    number = '{"jsonrpc": "2.0", "id": 8, "method": "tools/call", "params": {"name": "search", "arguments": {"limit": '
    lines = [
        "",
        "  ",
        "{",
        '{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": {"id": 7}}}',
        '{"jsonrpc": "2.0", "id": 7, "method": "ping", "params": []}',
        r'{"jsonrpc": "2.0", "id": "\ud83d", "method": "ping"}',
        f"{number}{'9' * 5000}}}}}}}",
    ]
    command = forked("mcp")
    done = subprocess.run(
        command, env=environment, input="\n".join(lines), capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    replies = [json.loads(line) for line in done.stdout.splitlines()]
    told = [(reply["id"], reply["error"]["code"]) for reply in replies]
    assert told == [(None, -32700), (7, -32600), (None, -32600), (8, -32602)]


def hello_line() -> str:
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}) + "\n"


def test_a_byte_order_mark_before_the_first_line_is_no_part_of_it(environment: dict[str, str]) -> None:
    done = subprocess.run(
        forked("mcp"),
        env=environment, input=f"\ufeff{hello_line()}", capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert json.loads(done.stdout)["result"]["protocolVersion"] == "2025-11-25"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
@pytest.mark.parametrize(("command", "code"), [("commonplace", 74), ("commonplace.qmd.cli", 1)])
def test_an_output_that_takes_nothing_ends_the_server_with_a_sentence(
    environment: dict[str, str], command: str, code: int
) -> None:
    with (
        Path("/dev/full").open("wb") as full,
        subprocess.Popen(
            [sys.executable, "-m", command, "mcp"],
            env=environment, stdin=subprocess.PIPE, stdout=full, stderr=subprocess.PIPE, text=True,
        ) as server,
    ):  # fmt: skip
        assert server.stdin is not None
        assert server.stderr is not None
        server.stdin.write(hello_line())
        server.stdin.flush()  # and no end of the input
        try:
            assert server.wait(60) == code
        finally:
            server.kill()
        assert server.stderr.read() == "The output could not be written: No space left on device.\n"


def test_an_input_that_nobody_may_wait_for_is_waited_for(environment: dict[str, str]) -> None:
    ours, theirs = os.pipe()
    os.set_blocking(ours, False)
    with (
        os.fdopen(theirs, "w") as client,
        subprocess.Popen(
            forked("mcp"),
            env=environment, stdin=ours, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        ) as server,
    ):  # fmt: skip
        os.close(ours)
        assert server.stdout is not None
        for _ in range(2):
            client.write(hello_line())
            client.flush()
            assert json.loads(server.stdout.readline())["id"] == 1
        client.close()
        assert server.wait(60) == 0


def test_an_input_that_cannot_be_read_ends_the_server_with_a_sentence(
    environment: dict[str, str], tmp_path: Path
) -> None:
    with (tmp_path / "only-written-to").open("wb") as wrong:
        done = subprocess.run(
            forked("mcp"),
            env=environment, stdin=wrong, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
    assert (done.returncode, done.stdout) == (74, "")
    assert done.stderr == "The input could not be read: Bad file descriptor.\n"


TOLD_IN_THE_MIDDLE = """
import anyio
from commonplace.server.stdio import Input

async def main():
    ending = anyio.Event()
    with anyio.fail_after(20):
        async for line in Input(ending):
            ending.set()  # while a line is at work
            await anyio.sleep(0.05)

anyio.run(main)
"""


def test_being_told_to_end_while_a_line_is_at_work_is_heard() -> None:
    command = [sys.executable, "-c", TOLD_IN_THE_MIDDLE]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as reader:
        assert reader.stdin is not None
        reader.stdin.write(b"a line\n")
        reader.stdin.flush()  # and no end of the input
        assert reader.wait(30) == 0


@pytest.mark.parametrize("end", ["input", "signal"])
def test_a_client_that_reads_nothing_does_not_keep_the_server_from_ending(
    environment: dict[str, str], end: str
) -> None:
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    sent = [{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}]
    sent += [{"jsonrpc": "2.0", "id": id, "method": "tools/list"} for id in range(2, 42)]  # far more than a pipe holds
    command = forked("mcp")
    with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write("".join(f"{json.dumps(one)}\n" for one in sent).encode())
        server.stdin.flush()
        server.stdout.readline()
        if end == "input":
            server.stdin.close()
        else:
            server.terminate()
        try:
            assert server.wait(30) == 0
        finally:
            server.kill()


def test_a_line_of_many_megabytes_is_read_at_once_and_answered(environment: dict[str, str]) -> None:
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    queries = {2: "x" * 40_000_000, 3: "oolong"}
    sent = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        *(
            {
                "jsonrpc": "2.0",
                "id": id,
                "method": "tools/call",
                "params": {"name": "search", "arguments": {"query": q}},
            }
            for id, q in queries.items()
        ),
    ]
    command, lines = forked("mcp"), "\n".join(map(json.dumps, sent))
    done = subprocess.run(
        command, env=environment, input=lines, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    replies = {reply["id"]: reply["result"] for reply in map(json.loads, done.stdout.splitlines())}
    assert replies[2]["content"][0]["text"] == "query must have at most 10000 characters, not 40000000."
    assert replies[3]["structuredContent"]["results"]


def test_a_search_leaves_something_out_only_where_it_is_asked_to(address: str) -> None:
    async def main() -> None:
        with anyio.fail_after(60):
            for era in ERAS:
                async with Client(address, mode=era) as client:
                    twice = [await client.call_tool("search", {"query": "oolong"}) for _ in range(2)]
                    assert twice[0].structured_content == twice[1].structured_content
                    asked = {"query": "oolong bread", "limit": 1, "session": f"mine-{era}"}
                    first, second = [(await client.call_tool("search", asked)).structured_content for _ in range(2)]
                    assert first["results"] != second["results"]
                    assert second["session"]["skipped"] == 1

    anyio.run(main)


def test_a_session_that_a_stateless_client_made_up_is_none(address: str) -> None:
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    place = address.replace("/mcp", "/mcp/research")
    headers = {
        "Accept": "application/json, text/event-stream",
        "Mcp-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/call",
        "Mcp-Name": "search",
        "Mcp-Session-Id": "made-up",
    }
    params = {"name": "search", "arguments": {"query": "oolong"}, "_meta": meta}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    replies = [httpx.post(place, json=call, headers=headers, timeout=30).json() for _ in range(2)]
    assert [len(reply["result"]["structuredContent"]["results"]) for reply in replies] == [1, 1]
    assert all("session" not in reply["result"]["structuredContent"] for reply in replies)


def test_who_wants_to_take_up_a_stream_again_gets_a_new_one(address: str) -> None:
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    asked = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}
    with httpx.Client(timeout=30, headers={"Accept": "application/json, text/event-stream"}) as client:
        session = client.post(address, json=asked).headers["Mcp-Session-Id"]
        headers = {"Mcp-Session-Id": session, "Last-Event-ID": "7"}
        with client.stream("GET", address, headers=headers) as stream:
            assert (stream.status_code, stream.headers["Content-Type"]) == (200, "text/event-stream")
