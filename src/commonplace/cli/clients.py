"""The MCP clients `commonplace install` knows: where each keeps its servers, and what one looks like there."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import SplitResult, urlsplit

Format = Literal["json", "jsonc", "toml"]
Entry = dict[str, Any]

DISTRIBUTION = "commonplace-mcp"
PROGRAMS = ("commonplace", DISTRIBUTION)
"""The names of our programs; the second is the package's name, so that `uvx` finds it."""

TRANSPORT = ("type", "command", "args", "url", "serverUrl")
"""The keys we write in an entry of any client. All others in one are its user's own."""


@dataclass(frozen=True, slots=True)
class Client:
    """A client's own file. `$NAME` in a path is that environment variable, or its default in `_FOLDERS`."""

    title: str
    format: Format
    key: str
    linux: str
    macos: str
    windows: str
    then: str
    typed: bool = False  # entries say "type": "stdio" or "http"
    url: str = "url"  # the key of an HTTP server's address
    commands_only: bool = False  # the file takes no address
    moved_by: str | None = None  # the environment variable that moves the file into another folder


CLIENTS = {
    "claude-code": Client(
        "Claude Code",
        "json",
        "mcpServers",
        linux="~/.claude.json",
        macos="~/.claude.json",
        windows="~/.claude.json",
        then="New sessions have it; `/mcp` in one shows it.",
        typed=True,
        moved_by="CLAUDE_CONFIG_DIR",
    ),
    "claude-desktop": Client(
        "Claude Desktop",
        "json",
        "mcpServers",
        linux="$XDG_CONFIG_HOME/Claude/claude_desktop_config.json",
        macos="~/Library/Application Support/Claude/claude_desktop_config.json",
        windows="$APPDATA/Claude/claude_desktop_config.json",
        then="Quit Claude Desktop and start it again.",
        commands_only=True,
    ),
    "cursor": Client(
        "Cursor",
        "jsonc",
        "mcpServers",
        linux="~/.cursor/mcp.json",
        macos="~/.cursor/mcp.json",
        windows="~/.cursor/mcp.json",
        then="Restart Cursor, and turn it on in its MCP settings if it asks.",
    ),
    "vscode": Client(
        "VS Code",
        "jsonc",
        "servers",
        linux="$XDG_CONFIG_HOME/Code/User/mcp.json",
        macos="~/Library/Application Support/Code/User/mcp.json",
        windows="$APPDATA/Code/User/mcp.json",
        then="Run `MCP: List Servers` in VS Code and start it.",
        typed=True,
    ),
    "codex": Client(
        "Codex",
        "toml",
        "mcp_servers",
        linux="~/.codex/config.toml",
        macos="~/.codex/config.toml",
        windows="~/.codex/config.toml",
        then="New sessions have it; `/mcp` in one shows it.",
        moved_by="CODEX_HOME",
    ),
    "windsurf": Client(
        "Windsurf",
        "jsonc",
        "mcpServers",
        linux="~/.codeium/windsurf/mcp_config.json",
        macos="~/.codeium/windsurf/mcp_config.json",
        windows="~/.codeium/windsurf/mcp_config.json",
        then="Refresh the MCP servers in Windsurf's Cascade panel.",
        url="serverUrl",
    ),
}
_FOLDERS = {"XDG_CONFIG_HOME": "~/.config", "APPDATA": "~/AppData/Roaming"}
_PLACE = re.compile(r".*/mcp(/i)?(/[\w.-]+)?/?")
"""The paths of MCP on a server: all of it, a profile or an instance, after any prefix of a proxy."""


def config_path(client: Client, platform: str, environment: Mapping[str, str], home: str) -> str:
    """Return the path of the client's file on a platform (as `sys.platform` names it), for the user with this home."""
    path = {"darwin": client.macos, "win32": client.windows}.get(platform, client.linux)
    if client.moved_by and environment.get(client.moved_by):
        return f"{environment[client.moved_by]}/{path.rpartition('/')[2]}"
    for name, default in _FOLDERS.items():
        path = path.replace(f"${name}", environment.get(name) or default)
    return home + path[1:] if path.startswith("~/") else path


def command_entry(client: Client, command: str, arguments: list[str]) -> Entry:
    """Return the entry of a server that the client starts itself and speaks to over stdio."""
    return {**({"type": "stdio"} if client.typed else {}), "command": command, "args": arguments}


def address_entry(client: Client, url: str) -> Entry:
    """Return the entry of a running server that the client speaks to over Streamable HTTP."""
    return {**({"type": "http"} if client.typed else {}), client.url: url}


def is_ours(entry: Any) -> bool:
    """Return whether an entry under our name serves Commonplace: by a command of that name, or an address like ours."""
    if not isinstance(entry, dict):
        return False
    if isinstance(entry.get("command"), str):
        return starts_ours(entry)
    return is_place(parts(_address(entry)).path)


def starts_ours(entry: Any) -> bool:
    """Return whether an entry of any name is a command that starts Commonplace."""
    if not isinstance(entry, dict) or not isinstance(command := entry.get("command"), str):
        return False
    name = re.split(r"[/\\]", command)[-1].removesuffix(".exe")
    arguments = entry["args"] if isinstance(entry.get("args"), list) else []
    fetched = name in ("uvx", "uv", "pipx") and DISTRIBUTION in arguments
    return name in PROGRAMS or fetched or arguments[:2] == ["-m", "commonplace"]


def is_place(path: str) -> bool:
    """Return whether one of our servers would have MCP at this path."""
    return _PLACE.fullmatch(path) is not None


def parts(address: str) -> SplitResult:
    """Return the parts of an address; empty parts for what is none."""
    try:
        return urlsplit(address)
    except ValueError:
        return urlsplit("")


def renewed(old: Entry, new: Entry) -> Entry:
    """Return our entry updated, keeping what its user added unless it was for another server.

    Headers may hold a key, so they follow an address only within one host.
    """
    if _origin(old) != _origin(new):
        return new
    return new | {key: value for key, value in old.items() if key not in TRANSPORT}


def _origin(entry: Entry) -> tuple[str, str]:
    address = parts(_address(entry))
    return address.scheme, address.netloc


def _address(entry: Entry) -> str:
    url = entry.get("url") or entry.get("serverUrl")
    return url if isinstance(url, str) else ""
