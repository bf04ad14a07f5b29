"""Variables of mcp-context-server for how it is reached: standard input, or HTTP with one bearer token."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from commonplace.kinds.memories.tools.variables import among, whole
from commonplace.settings import BadSetting

_HTTP = ("http", "streamable-http")


@dataclass(frozen=True, slots=True)
class Door:
    """An address to serve at. An empty token admits everyone, which is allowed on loopback only."""

    host: str
    port: int
    client: str
    token: str = field(default="", repr=False)


def door_of(environment: Mapping[str, str]) -> Door | None:
    """Return the address and the token for HTTP; None for standard input and output. Raise BadSetting."""
    transport_name = environment.get("MCP_TRANSPORT") or "stdio"
    transport = among("stdio", *_HTTP, "sse")("MCP_TRANSPORT", transport_name)
    if transport == "sse":
        raise BadSetting("MCP_TRANSPORT=sse is no longer spoken by clients. Set MCP_TRANSPORT=http.")
    provider = among("none", "simple_token")("MCP_AUTH_PROVIDER", environment.get("MCP_AUTH_PROVIDER") or "none")
    token = environment.get("MCP_AUTH_TOKEN", "").strip()
    if provider == "simple_token" and not token:
        raise BadSetting("MCP_AUTH_PROVIDER=simple_token needs a token. Set MCP_AUTH_TOKEN.")
    port = whole(1, 65_535)("FASTMCP_PORT", environment.get("FASTMCP_PORT") or "8000")
    if transport not in _HTTP:
        return None
    return Door(
        host=environment.get("FASTMCP_HOST") or "127.0.0.1",
        port=port,
        client=environment.get("MCP_AUTH_CLIENT_ID") or "mcp-client",
        token=token if provider == "simple_token" else "",
    )
