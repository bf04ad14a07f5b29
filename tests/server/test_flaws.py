"""Arguments that no reader could keep as they were sent are refused at every door, in one sentence, and change nothing.

1. A key twice in one object, a number that cannot be held, nesting without end: the sentence names the argument.
   Half of a surrogate pair is told of whatever profile is asked.
2. What is well formed passes as it is, and what is no message at all is the SDK's to refuse.
3. However long a message is, others go on while it is read.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from websockets.sync.client import connect

from commonplace.kinds.tables.data_drawer import DataDrawer
from commonplace.library import Library
from commonplace.qmd import http_server as qmd_http
from commonplace.server import rest, transport, websocket
from commonplace.server.auth import make_gate
from commonplace.server.flaws import FLAW_META, envelope_of, flaw_of, mark_flaw, mark_flaw_in_body
from commonplace.server.http import make_app
from commonplace.server.principal import OWNER
from commonplace.settings import Settings
from kit.forked import forked
from opening import library_settings
from serving import environment_of, served

HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
FLAWED = {
    "twice": ('{"a": 1, "b": {"c": 1, "c": 2}}', 'has the key "c" twice in one object at /b'),
    "digits": ('{"a": ' + "1" * 5000 + "}", "has a whole number of more than 4300 digits; use a string at /a"),
    "half": (r'{"a": ["x\ud83d"]}', "has a lone surrogate, which is no character at /a/0"),
    "half a key": (r'{"a": {"\ud83d": 1}}', "has a lone surrogate, which is no character at /a"),
    "constant": ('{"a": [NaN]}', "has NaN, which JSON cannot hold at /a/0"),
    "deep": ('{"a": ' + "[" * 400 + "]" * 400 + "}", "is nested more than 100 deep at /a/0"),
    "without end": ('{"a": ' + "[" * 5000 + "]" * 5000 + "}", "is nested more than 100 deep at /a/0"),
}


def arguments(data: str, name: str = "data") -> str:
    return f'{{"table_id": "t", "{name}": {data}}}'


def message(text: str, tool: str = "table_update", meta: str = "{}") -> str:
    return (
        f'{{"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {{"name": "{tool}", "_meta": {meta}, '
        f'"arguments": {text}}}}}'
    )


class World:
    """A space with a table and an instance, and a server of it."""

    def __init__(self, home: Path) -> None:
        self.home, self.settings, self.port = home, library_settings(home, allow_writes=True), 0
        with self.open() as library:
            tables = library.tables
            tables.catalog.create_project("p")
            table = tables.catalog.create_table("p", "t", data={"a": 0})
            tables.catalog.create_tool(table, "create", "add", {})
            _, self.key = tables.instances.create("front", tool_ids=["add"])

    def open(self) -> Library:
        settings: Settings = self.settings
        return Library.open(self.home, settings=settings)

    def post(self, path: str, body: str, **headers: str) -> tuple[dict[str, str], str]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        kinds = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        connection.request("POST", path, body.encode("utf-8", "surrogatepass"), {**kinds, **headers})
        reply = connection.getresponse()
        said = reply.read().decode("utf-8")
        connection.close()
        return {name.lower(): value for name, value in reply.getheaders()}, said

    def over_http(self, path: str, body: str, **headers: str) -> dict[str, Any]:
        hello = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO})
        session = self.post(path, hello, **headers)[0]["mcp-session-id"]
        return result_of(self.post(path, body, **headers, **{"Mcp-Session-Id": session})[1])


def result_of(reply: str) -> dict[str, Any]:
    lines = [line for line in reply.splitlines() if line.startswith(("data: {", "{"))]
    answered = json.loads(lines[-1].removeprefix("data: "))
    assert answered["id"] == 7, answered
    result: dict[str, Any] = answered["result"]
    assert result["isError"]
    return dict(result["structuredContent"])


def over_rest(world: World, data: str) -> dict[str, Any]:
    return dict(json.loads(world.post("/api/v1/tools/table_update", arguments(data))[1]))


def over_handshake(world: World, data: str) -> dict[str, Any]:
    return world.over_http("/mcp/tables", message(arguments(data)))


def over_stateless(world: World, data: str) -> dict[str, Any]:
    body = message(arguments(data), meta=json.dumps(ENVELOPE))
    headers = {"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "table_update"}
    return result_of(world.post("/mcp/all", body, **headers)[1])


def over_instance(world: World, data: str) -> dict[str, Any]:
    body = message(f'{{"elements": [{{"key": "n", "content": {data}}}]}}', "add")
    return world.over_http("/mcp/i/front", body, Authorization=f"Bearer {world.key}")


def over_websocket(world: World, data: str) -> dict[str, Any]:
    with connect(f"ws://127.0.0.1:{world.port}/ws/tables") as socket:
        socket.send(message(arguments(data), meta=json.dumps(ENVELOPE)))
        return result_of(str(socket.recv(timeout=30)))


def over_stdio(world: World, data: str) -> dict[str, Any]:
    return result_of(spoken(world, "tables", message(arguments(data), meta=json.dumps(ENVELOPE))))


def spoken(world: World, profile: str, line: str) -> str:
    """What a server on standard input and output answers to a line."""
    server = subprocess.run(
        forked("mcp", "--profile", profile, "--allow-writes"),
        input=f"{line}\n".encode(),
        env=environment_of(world.home),
        capture_output=True,
        timeout=60,
        check=True,
    )
    return server.stdout.decode()


def heard(world: World, door: str, profile: str, asked: str) -> str:
    """What is answered to a message over stdio or WebSocket."""
    if door == "stdio":
        return spoken(world, profile, asked)
    with connect(f"ws://127.0.0.1:{world.port}/ws/{profile}") as socket:
        socket.send(asked)
        return str(socket.recv(timeout=30))


DOORS: dict[str, Callable[[World, str], dict[str, Any]]] = {
    "rest": over_rest,
    "handshake": over_handshake,
    "stateless": over_stateless,
    "instance": over_instance,
    "websocket": over_websocket,
    "stdio": over_stdio,
}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    world = World(tmp_path_factory.mktemp("home"))
    with served(make_app(world.settings, make_gate(world.settings, owner=OWNER))) as port:
        world.port = port
        yield world


@pytest.mark.parametrize("flaw", FLAWED)
@pytest.mark.parametrize("door", DOORS)
def test_what_cannot_be_kept_is_refused_at_every_door_and_changes_nothing(world: World, door: str, flaw: str) -> None:
    data, sentence = FLAWED[flaw]
    error = DOORS[door](world, data)["error"]
    argument = "elements" if door == "instance" else "data"
    assert (error["code"], error["argument"].partition("[")[0]) == ("invalid_argument", argument)
    expected = sentence.replace(" at /", " at /0/content/") if door == "instance" else sentence
    assert error["message"].startswith(f"{argument} {expected}"), error["message"]
    with world.open() as library:
        table = library.tables.table("t")
        assert (table.version, library.store.drawer(DataDrawer).value(table.number)) == (1, {"a": 0})


def test_a_key_twice_among_the_arguments_themselves_is_told_of_the_whole(world: World) -> None:
    body = '{"table_id": "t", "data": 1, "data": 2}'
    (said,) = json.loads(world.post("/api/v1/tools/table_update", body)[1]).values()
    assert said["message"] == 'The body has the key "data" twice in one object at line 1.'
    assert "The message has the key" in world.over_http("/mcp/tables", message(body))["error"]["message"]


@pytest.mark.parametrize("profile", ["tables", "qmd"])
@pytest.mark.parametrize("door", ["stdio", "websocket"])
def test_half_of_a_surrogate_pair_is_refused_in_a_sentence(world: World, door: str, profile: str) -> None:
    tool = {"tables": "table_list", "qmd": "search"}[profile]
    asked = message(r'{"query": "a\ud83d b"}', tool, meta=json.dumps(ENVELOPE))
    said = heard(world, door, profile, asked)
    assert "query has a lone surrogate, which is no character at line 1." in said


@pytest.mark.parametrize("flaw", ["digits", "deep", "without end"])
@pytest.mark.parametrize("door", ["stdio", "websocket"])
def test_what_no_reader_can_hold_is_told_of_by_its_id_whatever_profile_is_asked(
    world: World, door: str, flaw: str
) -> None:
    data, sentence = FLAWED[flaw]
    said = heard(world, door, "qmd", message(arguments(data), "search", meta=json.dumps(ENVELOPE)))
    assert result_of(said)["error"]["message"].startswith(f"data {sentence}")


@pytest.mark.parametrize("flaw", ["digits", "deep", "without end"])
@pytest.mark.parametrize("door", ["stdio", "websocket"])
def test_where_it_is_no_call_the_id_is_answered_too(world: World, door: str, flaw: str) -> None:
    params = f'{{"name": "}}", "id": 9, "arguments": {FLAWED[flaw][0]}}}'
    asked = f'{{"jsonrpc": "2.0", "method": "prompts/get", "params": {params}, "id": 7}}'
    said = json.loads(heard(world, door, "qmd", asked))
    assert (said["id"], said["error"]["code"]) == (7, -32600)
    assert said["error"]["message"].startswith("This is nested too deep, or has a number too long, to be read.")


@pytest.mark.parametrize("half", [r"\ud83d", "\ud83d"], ids=["escaped", "in bytes"])
@pytest.mark.parametrize(
    ("path", "argument"),
    [("/api/v1/tools/table_get", "json_path"), ("/api/v1/tools/search", "text"), ("/qmd/search", "query")],
)
def test_plain_http_refuses_it_as_well(world: World, path: str, argument: str, half: str) -> None:
    body = f'{{"table_id": "t", "{argument}": "/{half}"}}'
    said = world.post(path, body)[1]
    assert f"{argument} has a lone surrogate, which is no character at line 1." in said


@pytest.mark.parametrize("body", ["5", "true", "null", '"a"', "[]", "0.5"])
def test_a_body_that_is_no_object_is_told_so(world: World, body: str) -> None:
    said = json.loads(world.post("/api/v1/tools/table_list", body)[1])
    assert said["error"]["message"] == "The body is not an object. Send one JSON object with the tool's arguments."


@pytest.mark.parametrize("text", [r"\ud83c\udf75", r"\\ud83c", "🍵", r"\u00e9"])
def test_a_character_that_was_escaped_is_none_of_them(text: str) -> None:
    whole = message(f'{{"query": "{text}"}}', "search")
    assert mark_flaw(whole, exact=False) is whole


def test_a_well_formed_call_passes_as_it_is(world: World) -> None:
    text = message(arguments('{"big": ' + "9" * 4000 + ', "deep": ' + "[" * 90 + "]" * 90 + "}"))
    assert mark_flaw(text) is text
    raw = text.encode()
    assert mark_flaw_in_body(raw) is raw


@pytest.mark.parametrize(
    "text",
    [
        "",
        "call",
        '{"method": "tools/call"',
        '"call"',
        '{"call": 1, "call": 2}',
        '{"method": "x", "call": 1, "call": 2}',
    ],
)
def test_what_is_no_call_is_left_to_others(text: str) -> None:
    assert mark_flaw(text) is text
    assert mark_flaw_in_body(b"\xff call") == b"\xff call"


@pytest.mark.parametrize(
    ("read", "flaw"),
    [(mark_flaw, '{"a": 1, "a": 2}'), (envelope_of, "[" * 200_000)],
    ids=["a key twice", "without end"],
)
def test_a_string_without_an_end_behind_a_flaw_takes_no_time(read: Callable[[str], Any], flaw: str) -> None:
    text = f'{{"method": "tools/call", "x": {flaw}, "y": "' + r"\"" * 40_000
    begun = time.process_time()
    assert read(text) == {mark_flaw: text, envelope_of: None}[read]
    assert time.process_time() - begun < 5  # half a minute where each quote is taken for a beginning


@given(
    st.recursive(
        st.none() | st.text() | st.integers(), lambda inner: st.dictionaries(st.text(), inner) | st.lists(inner)
    )
)
def test_the_id_and_the_envelope_of_a_flawed_call_are_kept(value: Any) -> None:
    meta = json.dumps({"kept": value})
    read = json.loads(mark_flaw(message(arguments('{"c": 1, "c": 2}'), meta=meta)))
    assert (read["id"], read["method"], read["params"]["name"]) == (7, "tools/call", "table_update")
    assert read["params"]["_meta"]["kept"] == value
    failure = flaw_of(read["params"]["_meta"])
    assert failure is not None
    assert failure.message == 'data has the key "c" twice in one object at line 1.'


@pytest.mark.parametrize("meta", [None, {}, {FLAW_META: "x"}, {FLAW_META: None}])
def test_a_call_without_a_flaw_has_none(meta: Any) -> None:
    assert flaw_of(meta) is None


@pytest.mark.parametrize("door", ["rest", "qmd", "http", "websocket"])
@pytest.mark.parametrize("size", [10, 100_000])
def test_a_long_message_is_read_where_it_holds_nobody_up(
    world: World, door: str, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, name = {
        "rest": (rest, "read_object"),
        "qmd": (qmd_http, "read_object"),
        "http": (transport, "mark_flaw_in_body"),
        "websocket": (websocket, "mark_flaw"),
    }[door]
    reads, readers = getattr(module, name), list[bool]()

    def noted(message: Any, **named: Any) -> Any:
        readers.append(asyncio._get_running_loop() is not None)
        return reads(message, **named)

    monkeypatch.setattr(module, name, noted)
    words = "a" * size
    if door == "websocket":
        heard(world, door, "tables", message(f'{{"table_id": "{words}"}}', "table_get", meta=json.dumps(ENVELOPE)))
    elif door == "http":
        world.over_http("/mcp/tables", message(f'{{"table_id": "{words}"}}', "table_get"))
    else:
        path, argument = {"rest": ("/api/v1/tools/search", "query"), "qmd": ("/qmd/search", "query")}[door]
        world.post(path, json.dumps({argument: words}))
    assert readers[-1] == (size == 10)
