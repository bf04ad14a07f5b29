"""What the official conformance suite asks a server to have: tools, resources and prompts with no other use.

Whatever our own profiles can declare is declared like that and served by our own code. What they never do, speaking
to the client in the middle of a call, is laid over it (`asking.py`, `rounds.py`). Never shipped.
"""

from __future__ import annotations

import base64
import json
import re
import struct
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import uuid4

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity

from commonplace.errors import InvalidInput, NotFound
from commonplace.model import JSON, Draft
from commonplace.server.mcp import Context, VisitorOf, make_server
from commonplace.server.service import Service
from commonplace.space import Space
from commonplace.store.listing import Listing
from commonplace.tools.profile import Profile, Prompts, Registry, Resources
from commonplace.tools.schema import Schema, obj
from commonplace.tools.tool import ADDS, READ_ONLY, Answer, Call, Reply, Tool
from conformance.asking import ASKING
from conformance.rounds import ROUNDS, prompt


def make_fixture_server(service: Service, registry: Registry, visitor_of: VisitorOf) -> Server[Any]:
    """Our server of a profile with the fixtures added to it, and before it what no profile can declare."""
    server = make_server(service, Registry(_with_fixtures(registry.profile), writable=True), visitor_of)
    _lay_over(server)
    server.middleware.append(RequestStateBoundary(RequestStateSecurity.ephemeral(), default_audience=server.name))
    return server


def _with_fixtures(profile: Profile) -> Profile:
    return replace(
        profile,
        tools=(*profile.tools, *TOOLS),
        resources=Resources(_content, TEMPLATES, lambda call: ENTRIES),
        prompts=Prompts(lambda call, cursor: (PROMPTS, None), _prompt),
        complete=lambda call, reference, name, typed: [f"{typed} and on"],
        lists={"tools": _count("note"), "prompts": _count("prompt")},
    )


def _png() -> str:
    """One red pixel."""

    def piece(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    body = piece(b"IHDR", header) + piece(b"IDAT", zlib.compress(b"\0\xff\0\0")) + piece(b"IEND", b"")
    return base64.b64encode(b"\x89PNG\r\n\x1a\n" + body).decode()


def _wav() -> str:
    """One silent sample."""
    form = struct.pack("<HHIIHH", 1, 1, 8000, 8000, 1, 8)
    body = b"WAVEfmt " + struct.pack("<I", len(form)) + form + b"data" + struct.pack("<I", 1) + b"\x80\0"
    return base64.b64encode(b"RIFF" + struct.pack("<I", len(body)) + body).decode()


def _text(text: str) -> dict[str, JSON]:
    return {"type": "text", "text": text}


def _document(uri: str, mime: str, text: str) -> dict[str, JSON]:
    return {"type": "resource", "resource": {"uri": uri, "mimeType": mime, "text": text}}


IMAGE: dict[str, JSON] = {"type": "image", "data": _png(), "mimeType": "image/png"}
AUDIO: dict[str, JSON] = {"type": "audio", "data": _wav(), "mimeType": "audio/wav"}


def _tool(name: str, handler: Callable[[Call], Answer], schema: Schema | None = None, *, writes: bool = False) -> Tool:
    annotations = ADDS if writes else READ_ONLY
    return Tool(name, name, "A fixture.", schema or obj(), None, annotations, lambda call, given: handler(call))


def _always(name: str, *content: Mapping[str, JSON], schema: Schema | None = None) -> Tool:
    return _tool(name, lambda call: Reply(content), schema)


def _fail(call: Call) -> Answer:
    raise InvalidInput("This tool intentionally returns an error for testing")


def _work_on(call: Call) -> Answer:
    for done in (0, 50, 100):
        call.progress(done, 100, "working")
        time.sleep(0.11)  # the work: progress is told ten times a second at most
    return Reply([_text("Progress was reported.")])


def _adds(kind: str) -> Callable[[Call], Answer]:
    def add(call: Call) -> Answer:
        call.space.put(Draft(kind, uuid4().hex, body="A fixture."))
        return Reply([_text(f"There is one {kind} more.")])

    return add


def _count(kind: str) -> Callable[[Space], int]:
    return lambda space: space.store.drawer(Listing).counts().get(kind, 0)


SCHEMA_2020_12: Schema = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {"address": {"$anchor": "addressDef", "type": "object", "properties": {"street": {"type": "string"}}}},
    "properties": {"phone": {"type": "string"}, "address": {"$ref": "#/$defs/address"}},
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["address"]}]}],
    "if": {"required": ["phone"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["address"]},
    "additionalProperties": False,
}
IN_HEADER: Schema = {"type": "string", "description": "A value.", "x-mcp-header": "Fixture"}

TOOLS = (
    _always("test_simple_text", _text("This is a simple text response for testing.")),
    _always("test_image_content", IMAGE),
    _always("test_audio_content", AUDIO),
    _always("test_embedded_resource", _document("test://embedded-resource", "text/plain", "An embedded resource.")),
    _always(
        "test_multiple_content_types",
        _text("Multiple content types test:"),
        IMAGE,
        _document("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
    ),
    _tool("test_error_handling", _fail),
    _tool("test_tool_with_progress", _work_on),
    _always("json_schema_2020_12_tool", _text("Nothing was done."), schema=SCHEMA_2020_12),
    _always("test_custom_header", _text("Nothing was done."), schema=obj(required=("value",), value=IN_HEADER)),
    _tool("test_trigger_tool_change", _adds("note"), writes=True),
    _tool("test_trigger_prompt_change", _adds("prompt"), writes=True),
)

TEXT, BINARY = "test://static-text", "test://static-binary"
ENTRIES = [{"uri": uri, "name": uri.partition("://")[2], "description": "A fixture."} for uri in (TEXT, BINARY)]
TEMPLATES = [{"uriTemplate": "test://template/{id}/data", "name": "template", "description": "A fixture."}]
_TEMPLATE = re.compile(r"test://template/([^/]+)/data")


def _content(call: Call, uri: str) -> Mapping[str, JSON]:
    if uri == TEXT:
        return {"uri": uri, "mimeType": "text/plain", "text": "This is the content of the static text resource."}
    if uri == BINARY:
        return {"uri": uri, "mimeType": "image/png", "blob": IMAGE["data"]}
    if found := _TEMPLATE.fullmatch(uri):
        data = {"id": found[1], "templateTest": True, "data": f"Data for ID: {found[1]}"}
        return {"uri": uri, "mimeType": "application/json", "text": json.dumps(data)}
    raise NotFound(f"There is no resource {uri}.")


_PROMPTED: dict[str, tuple[str, ...]] = {
    "test_simple_prompt": (),
    "test_prompt_with_arguments": ("arg1", "arg2"),
    "test_prompt_with_embedded_resource": ("resourceUri",),
    "test_prompt_with_image": (),
    "test_input_required_result_prompt": (),
}
PROMPTS = [
    {
        "name": name,
        "description": "A fixture.",
        "arguments": [{"name": taken, "description": "A value.", "required": True} for taken in arguments],
    }
    for name, arguments in _PROMPTED.items()
]


def _prompt(call: Call, name: str, given: Mapping[str, str]) -> Mapping[str, JSON]:
    if name not in _PROMPTED:
        raise NotFound(f"There is no prompt {name!r}.")
    return {"messages": [{"role": "user", "content": block} for block in _blocks(name, given)]}


def _blocks(name: str, given: Mapping[str, str]) -> Sequence[Mapping[str, JSON]]:
    if name == "test_prompt_with_arguments":
        return [_text(f"Prompt with arguments: arg1='{given['arg1']}', arg2='{given['arg2']}'")]
    if name == "test_prompt_with_embedded_resource":
        document = _document(given["resourceUri"], "text/plain", "Embedded resource content for testing.")
        return [document, _text("Please process the embedded resource above.")]
    if name == "test_prompt_with_image":
        return [IMAGE, _text("Please analyze the image above.")]
    return [_text("This is a simple prompt for testing.")]


def _lay_over(server: Server[Any]) -> None:
    ours, call_ours, get_ours = (_handler(server, method) for method in ("tools/list", "tools/call", "prompts/get"))
    more = [
        {"name": name, "description": "A fixture.", "inputSchema": {"type": "object"}} for name in (*ASKING, *ROUNDS)
    ]

    async def list_tools(context: Context, params: Any) -> dict[str, JSON]:
        result = await ours(context, params)
        return {**result, "tools": [*result["tools"], *more]}

    async def call_tool(context: Context, params: types.CallToolRequestParams) -> dict[str, JSON]:
        if params.name in ROUNDS:
            return ROUNDS[params.name](context, params.input_responses or {}, params.request_state)
        if params.name in ASKING:
            return await ASKING[params.name](context, params.arguments or {})
        result: dict[str, JSON] = await call_ours(context, params)
        return result

    async def get_prompt(context: Context, params: types.GetPromptRequestParams) -> dict[str, JSON]:
        if params.name == "test_input_required_result_prompt":
            return prompt(context, params.input_responses or {}, params.request_state)
        result: dict[str, JSON] = await get_ours(context, params)
        return result

    async def nothing(context: Context, params: Any) -> dict[str, JSON]:
        return {}

    server.add_request_handler("tools/list", types.PaginatedRequestParams, list_tools)
    server.add_request_handler("tools/call", types.CallToolRequestParams, call_tool)
    server.add_request_handler("prompts/get", types.GetPromptRequestParams, get_prompt)
    server.add_request_handler("logging/setLevel", types.SetLevelRequestParams, nothing)
    server.add_request_handler("resources/subscribe", types.SubscribeRequestParams, nothing)
    server.add_request_handler("resources/unsubscribe", types.UnsubscribeRequestParams, nothing)


def _handler(server: Server[Any], method: str) -> Any:
    entry = server.get_request_handler(method)
    assert entry is not None
    return entry.handler
