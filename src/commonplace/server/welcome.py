"""The page for a browser that opens an address of this server: what it is, what it holds, how to connect."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable
from html import escape

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Match
from starlette.types import ASGIApp, Receive, Scope, Send

from commonplace import __version__
from commonplace.errors import CommonplaceError
from commonplace.library import Library
from commonplace.server.auth import Gate, OpenGate, base_address
from commonplace.server.principal import Principal
from commonplace.server.service import Service

_MCP = "/mcp"
_STYLE = """
:root { color-scheme: light dark; --ink: #1d2127; --soft: #5c6672; --line: #d9dee4; --back: #fbfbf9; --box: #f1f2ee;
  --mark: #8a3b12 }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e7e9ea; --soft: #9aa5b1; --line: #343b43; --back: #16191d; --box: #1f242a; --mark: #f0a878 }
}
* { box-sizing: border-box }
body { margin: 0; padding: 8vh 1.25rem 4rem; background: var(--back); color: var(--ink);
  font: 1rem/1.6 system-ui, -apple-system, "Segoe UI", sans-serif }
main { max-width: 42rem; margin: 0 auto }
h1 { margin: 0; font: 600 2.1rem/1.2 Georgia, "Times New Roman", serif; letter-spacing: -0.01em }
h1 small { margin-left: .5rem; font: 400 .85rem system-ui, sans-serif; color: var(--soft) }
h2 { margin: 2.2rem 0 .5rem; font-size: .8rem; font-weight: 600; letter-spacing: .08em; text-transform: uppercase;
  color: var(--soft) }
p { margin: .6rem 0 }
p.miss { padding: .6rem .9rem; border-left: 3px solid var(--mark); background: var(--box) }
ul { display: flex; flex-wrap: wrap; gap: .5rem 2.2rem; margin: .4rem 0; padding: 0; list-style: none }
li b { display: block; font-size: 1.5rem; font-weight: 600; line-height: 1.2 }
li { color: var(--soft) }
li b { color: var(--ink) }
pre { margin: .5rem 0 1rem; padding: .8rem 1rem; white-space: pre-wrap; overflow-wrap: anywhere;
  border: 1px solid var(--line); border-radius: 6px;
  background: var(--box) }
code { font: .9rem/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace }
a { color: var(--mark) }
footer { margin-top: 2.5rem; padding-top: 1rem; border-top: 1px solid var(--line); font-size: .9rem;
  color: var(--soft) }
"""
_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
_HEADERS = {
    "Content-Security-Policy": f"default-src 'none'; style-src 'sha256-{_HASH}'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Vary": "Accept",
}


class Welcome:
    """ASGI middleware: answers a browser that opens `/`, an address of MCP, or one that there is not.

    A request with GET for `text/html` is from a browser; all others go to the app. It comes before authentication, so
    what is in the library is shown only where everyone may see it.
    """

    def __init__(self, app: ASGIApp, service: Service, gate: Gate) -> None:
        self._app, self._service, self._gate = app, service, gate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] not in ("GET", "HEAD") or not _wants_html(scope["headers"]):
            await self._app(scope, receive, send)
            return
        is_known = any(route.matches(scope)[0] is not Match.NONE for route in scope["app"].router.routes)
        path: str = scope["path"]
        if is_known and path != _MCP and not path.startswith(f"{_MCP}/"):
            await self._app(scope, receive, send)
            return
        response = await self._page(Request(scope), missing=not is_known and path != "/")
        await response(scope, receive, send)

    async def _page(self, request: Request, *, missing: bool) -> Response:
        path = request.url.path
        place = path if path.startswith(f"{_MCP}/") and not missing else _MCP
        principal = await self._gate.admit(None) if isinstance(self._gate, OpenGate) else None
        content = _html(
            missing=path if missing else None,
            address=f"{base_address(self._service.settings, request.scope)}{place}",
            inside=await self._inside(principal) if principal else None,
        )
        return HTMLResponse(content, status_code=404 if missing else 200, headers=_HEADERS)

    async def _inside(self, principal: Principal) -> str:
        try:
            counts = await self._service.work(principal.space, _counts)
        except CommonplaceError as error:
            return f"<p>{escape(str(error))}</p>"
        if not counts:
            return "<p>Nothing yet. <code>commonplace add FOLDER</code> makes a folder searchable.</p>"
        return f"<ul>{''.join(f'<li><b>{number:,}</b>{escape(noun)}</li>' for number, noun in counts)}</ul>"


def _counts(library: Library) -> list[tuple[int, str]]:
    """Return what is in the library, with nouns: items by kind, collections, passages. Nothing for an empty one."""
    items = {kind: count for kind, count in library.store.counts().items() if kind != "collection" and count}
    if not items:
        return []
    coverage = library.embedding.coverage()
    counts = [(count, kind if count == 1 else _MANY.get(kind, f"{kind}s")) for kind, count in items.items()]
    folders = len(library.store.parents("document"))
    if folders:
        counts.append((folders, "collection" if folders == 1 else "collections"))
    counts.append((coverage.total, "passage" if coverage.total == 1 else "passages"))
    if coverage.pending:
        counts.append((coverage.pending, "of them found by their words only, for now"))
    return counts


_MANY = {"memory": "memories", "media": "media"}


def _wants_html(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    return any(name == b"accept" and b"text/html" in value.lower() for name, value in headers)


def _html(*, missing: str | None, address: str, inside: str | None) -> str:
    """Return the page; `inside` is markup of what the library holds, None where a key is needed to see it."""
    keyed = inside is None
    header = ' --header "Authorization: Bearer YOUR_KEY"' if keyed else ""
    entry: dict[str, object] = {"type": "http", "url": address}
    if keyed:
        entry["headers"] = {"Authorization": "Bearer YOUR_KEY"}
    config = json.dumps({"mcpServers": {"commonplace": entry}}, indent=2)
    parts = [
        f"<h1>Commonplace<small>{escape(__version__)}</small></h1>",
        f'<p class="miss">There is nothing at <code>{escape(missing)}</code>.</p>' if missing is not None else "",
        "<p>This server keeps what people and their agents look up: notes, documents, chats, memories, data. "
        "Agents search and read it over the Model Context Protocol.</p>",
        "<p>You need a key of this server: ask whoever runs it.</p>" if keyed else f"<h2>In it now</h2>{inside}",
        "<h2>Connect Claude Code</h2>",
        _code(f"claude mcp add --scope user --transport http commonplace {address}{header}"),
        "<h2>Connect another client</h2>",
        "" if keyed else _code(f"commonplace install cursor --http {address}"),
        f"<p>{'Most' if keyed else 'Also vscode, codex and windsurf; most others'} take this:</p>",
        _code(config),
        '<footer>For programs: <a href="/openapi.json">/openapi.json</a> describes the same tools over plain HTTP.'
        "</footer>",
    ]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><title>Commonplace</title>'
        f"<style>{_STYLE}</style></head><body><main>{''.join(parts)}</main></body></html>"
    )


def _code(text: str) -> str:
    return f"<pre><code>{escape(text)}</code></pre>"
