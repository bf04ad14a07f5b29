"""Two users of one server, over real sockets: whatever one has is for the other as if it had never been.

1. Every tool and resource with every id and address of the other: not found, in the words used for what nobody has.
2. The time it takes tells nothing: an id of the other's and one of nobody's are answered equally fast.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from commonplace.kinds.knowledge.records import put_record
from commonplace.library import Library
from commonplace.profiles.registry import profile
from commonplace.store.accounts import FILE
from commonplace.store.sqlite.accounts import Accounts
from commonplace.tools.profile import Registry
from opening import library_settings

KEYS = {"COMMONPLACE_AUTH": "keys", "COMMONPLACE_ALLOW_WRITES": "1", "COMMONPLACE_RATE_LIMIT": "0"}
pytestmark = pytest.mark.parametrize("settings", [KEYS], indirect=True)

ROUNDS = 150
"""Calls of each sort that are timed, taking turns: enough that of two equal sorts each wins 35 to 65 % of the pairs."""

RECORDS: list[dict[str, Any]] = [
    {"kind": "note", "id": "plan", "title": "Plan", "body": "Dig under the oak.", "tags": ["deep"]},
    {"kind": "media", "id": "film", "title": "Film", "media_type": "video",
     "cues": [{"start_ms": 0, "end_ms": 9, "text": "Dig."}]},
    {"kind": "character", "id": "ada", "name": "Ada", "description": "Digs at night."},
    {"kind": "conversation", "id": "talk", "title": "Talk", "character_id": "ada",
     "messages": [{"id": "m1", "sender": "Ada", "content": "We dig at night."}]},
    {"kind": "prompt", "id": "ask", "name": "Ask", "user_prompt": "Where shall we dig?"},
]  # fmt: skip
ADDRESSES = ["notes://{}", "media://{}", "chats://{}", "characters://{}", "prompts://{}", "media://{}/transcript.srt",
             "media://{}/transcript.vtt", "characters://{}/avatar", "chats://talk/{}"]  # fmt: skip
IDS = ["plan", "film", "ada", "talk", "m1", "ask", "Ask"]
NOBODYS = "nobodys"
TAKING = {"note_id", "media_id", "conversation_id", "character_id", "prompt_id_or_name", "id"}
"""What ids are called where a tool needs one."""


@pytest.fixture
def home(home: Path) -> Path:
    """Alice has something of everything, Bob has one note of his own."""
    with closing(Accounts(home / FILE)) as accounts:
        accounts.add_user("alice")
        accounts.add_user("bob")
    settings = library_settings(home)
    with Library.open(home, "alice", settings) as library:
        for record in RECORDS:
            put_record(library.store, record)
    with Library.open(home, "bob", settings) as library:
        put_record(library.store, {"kind": "note", "id": "own", "title": "Own", "body": "Bob's own note."})
    return home


class Caller:
    """Somebody with a key."""

    def __init__(self, client: httpx.Client, address: str, key: str) -> None:
        self._client, self._base = client, address.removesuffix("/mcp")
        self._headers = {"Authorization": f"Bearer {key}"}

    def tool(self, tool_name: str, /, **arguments: Any) -> httpx.Response:
        return self._client.post(f"{self._base}/api/v1/tools/{tool_name}", json=arguments, headers=self._headers)

    def resource(self, uri: str) -> dict[str, Any]:
        asked = {"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": {"uri": uri, "_meta": META}}
        headers = {**self._headers, "Accept": "application/json, text/event-stream", "Mcp-Method": "resources/read"}
        headers |= {"Mcp-Protocol-Version": "2026-07-28", "Mcp-Name": uri}
        answer: dict[str, Any] = self._client.post(f"{self._base}/mcp/knowledge", json=asked, headers=headers).json()
        return answer


META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


@pytest.fixture
def callers(address: str, home: Path) -> Iterator[tuple[Caller, Caller]]:
    with closing(Accounts(home / FILE)) as accounts, httpx.Client(timeout=60) as client:
        alice, bob = (Caller(client, address, accounts.create_key(user, ("write",))) for user in ("alice", "bob"))
        yield alice, bob


def calls(id: str) -> list[tuple[str, dict[str, Any]]]:
    """Every tool that takes an id, with this one and with every address made of it."""
    made: list[tuple[str, dict[str, Any]]] = []
    for tool in Registry(profile("knowledge"), writable=True).tools:
        for argument in set(tool.input.get("required", ())) & TAKING:
            given: dict[str, Any] = {"title": "x"} if "title" in tool.input["properties"] else {}
            if tool.name == "chats.append":
                given = {"messages": [{"sender": "x", "content": "x"}]}
            made += [(tool.name, {**given, argument: form}) for form in (id, *(form.format(id) for form in ADDRESSES))]
    return made


def test_every_id_of_another_is_one_of_nobody(callers: tuple[Caller, Caller]) -> None:
    alice, bob = callers
    assert alice.tool("notes.get", note_id="plan").status_code == 200
    assert alice.resource("notes://plan")["result"]["contents"]
    refused = set()
    tried = (pair for id in IDS for pair in zip(calls(id), calls(NOBODYS), strict=True))
    for (tool, arguments), (_, made_up) in tried:
        answer, answered = bob.tool(tool, **arguments), bob.tool(tool, **made_up)
        assert answer.status_code == answered.status_code >= 400, (tool, arguments, answer.text)
        said, same = answer.json()["error"], answered.json()["error"]
        assert said["code"] == same["code"], (tool, arguments)
        (argument,) = (name for name in arguments if arguments[name] != made_up.get(name))
        assert said["message"].replace(str(arguments[argument]), "?") == same["message"].replace(
            str(made_up[argument]), "?"
        )
        refused.add((tool, said["code"]))
    assert {tool for tool, code in refused if code == "not_found"} == {tool for tool, _ in refused}
    assert {code for _, code in refused} <= {"not_found", "invalid_argument"}
    for id in IDS:
        for form in ADDRESSES:
            one, other = form.format(id), form.format(NOBODYS)
            theirs, nobodys = bob.resource(one)["error"], bob.resource(other)["error"]
            assert theirs["code"] == nobodys["code"] == -32602
            assert theirs["message"].replace(one, "?") == nobodys["message"].replace(other, "?")
    assert bob.tool("knowledge.search", query="dig night oak plan talk ask film ada").json()["results"] == []
    untouched = [alice.resource(uri) for uri in ("notes://plan", "media://film", "chats://talk", "prompts://ask")]
    assert all("result" in answer for answer in untouched)


@pytest.mark.parametrize(
    ("tool", "argument", "theirs"),
    [("notes.get", "note_id", "plan"), ("knowledge.get", "id", "chats://talk"), ("media.get", "media_id", "film")],
)
def test_the_time_it_takes_tells_nothing(callers: tuple[Caller, Caller], tool: str, argument: str, theirs: str) -> None:
    _, bob = callers
    nobodys = theirs[:-4] + "zzzz"  # as long, so that it costs as much to read

    def seconds(id: str) -> float:
        started = time.perf_counter()
        assert bob.tool(tool, **{argument: id}).status_code == 404
        return time.perf_counter() - started

    for _ in range(10):
        seconds(theirs), seconds(nobodys)
    pairs = [(seconds(theirs), seconds(nobodys)) for _ in range(ROUNDS)]
    slower = sum(one > other for one, _ in pairs for _, other in pairs) / ROUNDS**2
    assert 0.35 < slower < 0.65
