"""Fixture tools that speak to the client while they run: log messages, and requests of the handshake era."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import mcp_types as types
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata

from commonplace.model import JSON
from commonplace.server.mcp import Context
from conformance.rounds import said

Tool = Callable[[Context, dict[str, JSON]], Awaitable[dict[str, JSON]]]

LOG_LEVEL_META = "io.modelcontextprotocol/logLevel"


async def _logging(context: Context, arguments: dict[str, JSON]) -> dict[str, JSON]:
    for words in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await _log(context, words)
        await anyio.sleep(0.01)
    return said("Three messages were logged.")


async def _log(context: Context, words: str) -> None:
    """As a server may: since 2026-07-28 only to a client that asked for it with this very request."""
    if context.protocol_version >= "2026" and LOG_LEVEL_META not in ((context.params or {}).get("_meta") or {}):
        return
    params = types.LoggingMessageNotificationParams(level="info", data=words)
    await context.session.send_notification(types.LoggingMessageNotification(params=params), context.request_id)


async def _sampling(context: Context, arguments: dict[str, JSON]) -> dict[str, JSON]:
    content = types.TextContent(type="text", text=arguments["prompt"])
    params = types.CreateMessageRequestParams(
        messages=[types.SamplingMessage(role="user", content=content)], max_tokens=100
    )
    request = types.CreateMessageRequest(params=params)
    answer = await context.session.send_request(request, types.CreateMessageResult, metadata=_within(context))
    return said(f"LLM response: {answer.content}")


async def _missing_capability(context: Context, arguments: dict[str, JSON]) -> dict[str, JSON]:
    able = context.session.client_capabilities
    if able is None or able.sampling is None:
        needed: dict[str, Any] = {"requiredCapabilities": {"sampling": {}}}
        raise MCPError(types.MISSING_REQUIRED_CLIENT_CAPABILITY, "This tool needs a client that can sample.", needed)
    return said("The client can sample.")


def _eliciting(properties: dict[str, Any], required: tuple[str, ...] = ()) -> Tool:
    schema = {"type": "object", "properties": properties, **({"required": list(required)} if required else {})}

    async def tool(context: Context, arguments: dict[str, JSON]) -> dict[str, JSON]:
        message = arguments.get("message", "Please fill this in.")
        answer = await context.session.elicit_form(message, schema, context.request_id)
        return said(f"Elicitation completed: action={answer.action}, content={json.dumps(answer.content)}")

    return tool


def _within(context: Context) -> ServerMessageMetadata:
    return ServerMessageMetadata(related_request_id=context.request_id)


def _options(prefix: str) -> list[str]:
    return [f"{prefix}{number}" for number in (1, 2, 3)]


def _titled(prefix: str) -> list[dict[str, str]]:
    return [{"const": value, "title": f"Choice {value}"} for value in _options(prefix)]


_DEFAULTS = {
    "name": {"type": "string", "default": "John Doe"},
    "age": {"type": "integer", "default": 30},
    "score": {"type": "number", "default": 95.5},
    "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
    "verified": {"type": "boolean", "default": True},
}
_ENUMS = {
    "untitledSingle": {"type": "string", "enum": _options("option")},
    "titledSingle": {"type": "string", "oneOf": _titled("value")},
    "legacyEnum": {"type": "string", "enum": _options("opt"), "enumNames": ["One", "Two", "Three"]},
    "untitledMulti": {"type": "array", "items": {"type": "string", "enum": _options("option")}},
    "titledMulti": {"type": "array", "items": {"anyOf": _titled("value")}},
}
_PERSON = {"username": {"type": "string"}, "email": {"type": "string"}}

ASKING: dict[str, Tool] = {
    "test_tool_with_logging": _logging,
    "test_logging_tool": _logging,
    "test_sampling": _sampling,
    "test_missing_capability": _missing_capability,
    "test_elicitation": _eliciting(_PERSON, ("username", "email")),
    "test_elicitation_sep1034_defaults": _eliciting(_DEFAULTS),
    "test_elicitation_sep1330_enums": _eliciting(_ENUMS),
}
