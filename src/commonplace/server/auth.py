"""Authentication for the HTTP and WebSocket doors."""

from __future__ import annotations

import hmac
import ipaddress
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from anyio import fail_after, to_thread
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from commonplace.errors import CommonplaceError, Unavailable
from commonplace.server.principal import OWNER, Principal
from commonplace.settings import BadSetting, Settings
from commonplace.store.accounts import SCOPES, Grant
from commonplace.store.opening import AnyAccounts, has_accounts, open_accounts
from commonplace.store.sqlite.accounts import Accounts

OPEN_PATHS = ("/healthz", "/readyz")
INSTANCES = "/mcp/i/"
OPEN_FOLDERS = ("/.well-known/", INSTANCES)
"""Paths that need no key of this server: instances have keys of their own (`server.instances`)."""
METADATA = "/.well-known/oauth-protected-resource"
SUBPROTOCOL = "bearer."
RETRY_S = 15
ANSWER_S = 20
"""The seconds a database has to look up a key: more than it takes to find another connection."""
_HOST = re.compile(rb"[A-Za-z0-9.:\[\]_-]{1,255}")

Address = Callable[[Scope], str]


class Gate(Protocol):
    """The decision who a caller is."""

    async def admit(self, token: str | None) -> Principal | None:
        """Return the principal of a token, or None. Raise only errors for the caller, where it cannot tell now."""
        ...

    def close(self) -> None: ...


class OpenGate:
    """A gate to which everyone is the owner: for a server that only this machine reaches."""

    def __init__(self, owner: Principal = OWNER) -> None:
        self._owner = owner

    async def admit(self, token: str | None) -> Principal | None:
        return self._owner

    def close(self) -> None:
        """Do nothing: nothing is held open."""


class KeyGate:
    """A gate that admits the bearers of this home's keys."""

    def __init__(self, accounts: AnyAccounts) -> None:
        self.accounts = accounts

    async def admit(self, token: str | None) -> Principal | None:
        if not token:
            return None
        if isinstance(self.accounts, Accounts):
            # On the event loop: one indexed read of a local file takes less than handing it to a thread.
            grant = self.accounts.verify(token)
        else:
            grant = await self._verify_aside(token)
        return Principal(*grant) if grant else None

    async def _verify_aside(self, token: str) -> Grant | None:
        """Return the grant of a key from a shared database. Raise Unavailable if it does not answer in time."""
        try:
            with fail_after(ANSWER_S):
                return await to_thread.run_sync(self.accounts.verify, token, abandon_on_cancel=True)
        except TimeoutError:
            raise Unavailable(
                f"Who calls cannot be told: the database has not answered for {ANSWER_S} s. Try again in a minute."
            ) from None

    def close(self) -> None:
        self.accounts.close()


class TokenGate:
    """A gate that admits the bearers of one token."""

    def __init__(self, token: str, owner: Principal) -> None:
        self._token, self._owner = token.encode(), owner

    async def admit(self, token: str | None) -> Principal | None:
        return self._owner if token and hmac.compare_digest(token.encode(), self._token) else None

    def close(self) -> None:
        """Do nothing: nothing is held open."""


def make_gate(settings: Settings, accounts_path: Path | None = None, owner: Principal = OWNER) -> Gate:
    """Return the gate that the settings ask for. Raise BadSetting for settings that do not go together."""
    public = settings.public_url
    if public and not _is_address(public):
        raise BadSetting(f"public_url must be an http or https address, not {public!r}.")
    if settings.auth == "jwt":
        from commonplace.server.tokens import make_jwt_gate  # cryptography, which only this mode needs

        return make_jwt_gate(settings)
    if settings.jwt_issuer or settings.jwt_audience or settings.jwt_jwks_url or settings.jwt_key:
        raise BadSetting(f"auth is {settings.auth}, but settings of jwt are given. Set auth to jwt or remove them.")
    if settings.auth == "keys":
        return KeyGate(open_accounts(settings, accounts_path))
    if settings.auth != "none":
        raise BadSetting(f"auth must be one of none, keys, jwt, not {settings.auth!r}.")
    if has_accounts(settings, accounts_path):
        raise BadSetting("This home has users, and auth is none. Set auth to keys, or remove the users.")
    return OpenGate(owner)


def check_binding(settings: Settings, host: str) -> None:
    """Raise BadSetting if a library without users would be reachable from other machines."""
    if settings.auth not in ("keys", "jwt") and not _is_loopback(host):
        raise BadSetting(
            f"Without users only this machine is served, and {host or 'every address'} is reached from others. "
            "Set auth to keys or jwt, or bind 127.0.0.1."
        )


def token_of(scope: Scope) -> str | None:
    """Return the bearer token of the Authorization header or of a WebSocket's `bearer.…` subprotocol, or None."""
    values = [value for name, value in scope["headers"] if name == b"authorization"]
    if values:
        kind, _, token = values[0].decode("latin-1").strip().partition(" ")
        return token.strip() or None if len(values) == 1 and kind.lower() == "bearer" else None
    offered = [name for name in scope.get("subprotocols") or () if name.startswith(SUBPROTOCOL)]
    if scope["type"] == "websocket" and len(offered) == 1:
        return str(offered[0]).removeprefix(SUBPROTOCOL) or None
    return None


class Authentication:
    """ASGI middleware that sets `scope["principal"]` to the caller, and refuses whoever has no valid key."""

    def __init__(
        self, app: ASGIApp, gate: Gate, metadata_url: Address | str | None = None, also_open: Sequence[str] = ()
    ) -> None:
        """Take the app; `also_open` are its paths that need no key."""
        self._app, self._gate, self._metadata_url = app, gate, metadata_url
        self._open = (*OPEN_PATHS, *also_open)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan" or _is_open(scope, self._open):
            await self._app(scope, receive, send)
            return
        token = token_of(scope)
        try:
            principal = await self._gate.admit(token)
        except CommonplaceError as error:
            headers = {"Retry-After": str(RETRY_S)} if error.status == 503 else {}
            await _refuse(_said(error.code, str(error), error.status, headers), 1013, scope, receive, send)
            return
        if principal is None:
            await _refuse(self._unauthorized(scope, token), 1008, scope, receive, send)
            return
        scope["principal"] = principal
        await self._app(scope, receive, send)

    def _unauthorized(self, scope: Scope, token: str | None) -> Response:
        metadata = self._metadata_url(scope) if callable(self._metadata_url) else self._metadata_url
        message = (
            "Who calls is not known. Send a key or token as `Authorization: Bearer …`."
            if token is None
            else "The key or token is not valid here: it is unknown, expired or revoked. Get a new one."
        )
        header = challenge(metadata, error=None if token is None else "invalid_token")
        return _said("unauthorized", message, 401, {"WWW-Authenticate": header, "Cache-Control": "no-store"})


def challenge(metadata_url: str | None, *, error: str | None = None, scope: str | None = None) -> str:
    """Return a `WWW-Authenticate` value by RFC 6750 and RFC 9728; a 403 has `insufficient_scope` and a scope."""
    parts = {"realm": "commonplace", "error": error, "scope": scope, "resource_metadata": metadata_url}
    return "Bearer " + ", ".join(f'{name}="{value}"' for name, value in parts.items() if value)


def metadata_address(settings: Settings) -> Address | None:
    """Return the function that gives the address of the resource metadata; None where nobody issues tokens."""
    if settings.auth != "jwt":
        return None
    return lambda scope: f"{base_address(settings, scope)}{METADATA}/mcp"


def metadata_routes(settings: Settings) -> list[Route]:
    """Return the routes of the protected-resource metadata (RFC 9728); 404 where no authorization server is set."""

    async def describe(request: Request) -> Response:
        if settings.auth != "jwt":
            return _said("not_found", "This server has no authorization server.", 404)
        servers = [settings.jwt_issuer] if _is_address(settings.jwt_issuer) else []
        return JSONResponse(
            {
                "resource": f"{base_address(settings, request.scope)}/mcp",
                **({"authorization_servers": servers} if servers else {}),
                "scopes_supported": list(SCOPES),
                "bearer_methods_supported": ["header"],
                "resource_name": "Commonplace",
            }
        )

    return [Route(path, describe, methods=["GET"]) for path in (METADATA, f"{METADATA}/mcp")]


def base_address(settings: Settings, scope: Scope) -> str:
    """Return this server's address for the client. A Host that the client sent is used only if it is a plain host."""
    if settings.public_url:
        return settings.public_url.rstrip("/")
    scheme = "https" if scope.get("scheme") in ("https", "wss") else "http"
    host = dict(scope["headers"]).get(b"host", b"")
    if _HOST.fullmatch(host):
        return f"{scheme}://{host.decode('ascii')}"
    name, port = scope.get("server") or ("127.0.0.1", None)
    return f"{scheme}://{name}" + (f":{port}" if port else "")


def _is_open(scope: Scope, paths: Sequence[str]) -> bool:
    return scope["type"] == "http" and (scope["path"] in paths or scope["path"].startswith(OPEN_FOLDERS))


async def _refuse(response: Response, close_code: int, scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "http" or "websocket.http.response" in scope.get("extensions", {}):
        await response(scope, receive, send)
    else:
        await send({"type": "websocket.close", "code": close_code, "reason": "Not admitted."})


def _said(code: str, message: str, status: int, headers: dict[str, str] | None = None) -> Response:
    return JSONResponse({"error": {"code": code, "message": message}}, status_code=status, headers=headers)


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        plain = not parts.query and not parts.fragment and not re.search(r'[\s"\\]', url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and plain
    except ValueError:
        return False


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
