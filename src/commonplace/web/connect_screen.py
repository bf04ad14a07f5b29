"""How to connect a client: for each a command or an entry of its settings, and when it was last here."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from commonplace.errors import InvalidInput
from commonplace.library import Library
from commonplace.model import JSON
from commonplace.profiles.registry import DEFAULT, profile, profile_names
from commonplace.web.frame import Sheet
from commonplace.web.visits import Visit

_NAME = "commonplace"
_KEY = "Bearer YOUR_KEY"


def connect(library: Library | None, visit: Visit) -> Sheet:
    """Return what to give each client. A stranger is shown the same, without a word about any library."""
    wanted = visit.query.get("profile", "") or DEFAULT
    if wanted not in profile_names():
        raise InvalidInput(f"There is no profile {wanted!r}. The profiles are {', '.join(profile_names())}.")
    address = f"{visit.base}/mcp{'' if wanted == DEFAULT else f'/{wanted}'}"
    is_keyed = not visit.is_owner
    tools = [tool.name for tool in profile(wanted).tools]
    record: dict[str, JSON] = {
        "address": address,
        "profile": wanted,
        "needs_key": is_keyed,
        "tools": tools,
        "profiles": [
            {"name": name, "path": f"/connect?profile={name}", "on": name == wanted} for name in profile_names()
        ],
        "clients": [
            {**client, "seen": _last_seen(client["known_as"], visit.seen)}
            for client in _clients(address, keyed=is_keyed)
        ],
        "seen": [
            {"client": name, "at": datetime.fromtimestamp(moment, UTC).isoformat()}
            for name, moment in sorted(visit.seen.items(), key=lambda pair: -pair[1])[:10]
        ],
    }
    return Sheet("connect.html", "Connect", record, "connect")


def _clients(address: str, *, keyed: bool) -> list[dict[str, Any]]:
    headers = {"Authorization": _KEY} if keyed else {}
    entry = {"url": address, **({"headers": headers} if keyed else {})}
    typed = {"type": "http", **entry}
    cursor = base64.b64encode(json.dumps(entry).encode()).decode()
    vscode = quote(json.dumps({"name": _NAME, **typed}))
    header = f' --header "Authorization: {_KEY}"' if keyed else ""
    codex = f'[mcp_servers.{_NAME}]\nurl = "{address}"'
    if keyed:
        codex += f'\nhttp_headers = {{ "Authorization" = "{_KEY}" }}'
    return [
        _client(
            "Claude Code",
            "claude-code claude",
            command=f"claude mcp add --scope user --transport http {_NAME} {address}{header}",
        ),
        _client(
            "Cursor",
            "cursor",
            link=f"cursor://anysphere.cursor-deeplink/mcp/install?name={_NAME}&config={quote(cursor)}",
            file="~/.cursor/mcp.json",
            entry=_json({"mcpServers": {_NAME: entry}}),
        ),
        _client(
            "VS Code",
            "visual studio code vscode",
            link=f"vscode:mcp/install?{vscode}",
            file=".vscode/mcp.json",
            entry=_json({"servers": {_NAME: typed}}),
        ),
        _client("Codex", "codex", file="~/.codex/config.toml", entry=codex),
        _client(
            "Windsurf",
            "windsurf",
            file="~/.codeium/windsurf/mcp_config.json",
            entry=_json({"mcpServers": {_NAME: {"serverUrl": address, **({"headers": headers} if keyed else {})}}}),
        ),
        _client("Any other client", "", file="its settings", entry=_json({"mcpServers": {_NAME: typed}})),
    ]


def _client(
    name: str, known_as: str, *, command: str = "", link: str = "", file: str = "", entry: str = ""
) -> dict[str, Any]:
    return {"name": name, "known_as": known_as, "command": command, "link": link, "file": file, "entry": entry}


def _json(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


def _last_seen(names: str, seen: Mapping[str, float]) -> str | None:
    """Return when a client with one of these names last called, as far as this server knows."""
    known = names.split()
    moments = [moment for client, moment in seen.items() if any(client.lower().startswith(name) for name in known)]
    return datetime.fromtimestamp(max(moments), UTC).isoformat() if moments else None
