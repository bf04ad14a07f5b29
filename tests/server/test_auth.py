"""Who may come in, over real sockets.

1. A key opens its owner's space and nothing else; without one there is a 401 that says what to do.
2. The token comes from the header or a WebSocket's subprotocol, never from the address.
3. A revocation counts with the next request, whichever process made it.
4. Without users only this machine is served; settings that do not go together end the start with code 78.
5. The challenge and the metadata are those that RFC 6750 and RFC 9728 describe.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.types import Message, Receive, Scope, Send
from starlette.websockets import WebSocket
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from commonplace.errors import StorageBroken
from commonplace.server.auth import (
    Authentication,
    KeyGate,
    OpenGate,
    challenge,
    check_binding,
    make_gate,
    metadata_address,
    metadata_routes,
    token_of,
)
from commonplace.server.principal import OWNER, Principal
from commonplace.settings import BadSetting, Settings
from commonplace.store.sqlite.accounts import Accounts
from kit.forked import forked
from opening import library_settings
from serving import get, served

SECRET = "a secret of more than thirty-two bytes"
JWT = {"auth": "jwt", "jwt_issuer": "https://issuer.example", "jwt_audience": "commonplace"}
HS: dict[str, Any] = {**JWT, "jwt_key": SECRET, "jwt_algorithms": "HS256"}


async def who(request: Request) -> Response:
    principal = request.scope["principal"]
    return JSONResponse({"name": principal.name, "space": principal.space, "scopes": sorted(principal.scopes)})


async def fine(request: Request) -> Response:
    return JSONResponse({"known": "principal" in request.scope})


async def talk(socket: WebSocket) -> None:
    await socket.accept(subprotocol="mcp" if "mcp" in socket.scope["subprotocols"] else None)
    await socket.send_text(socket.scope["principal"].space)
    await socket.close()


def guarded(settings: Settings) -> Authentication:
    routes = [Route("/mcp", who), Route("/healthz", fine), Route("/readyz", fine), WebSocketRoute("/ws", talk)]
    app = Starlette(routes=[*routes, *metadata_routes(settings)])
    return Authentication(app, make_gate(settings), metadata_address(settings))


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return library_settings(tmp_path, auth="keys")


@pytest.fixture
def accounts(tmp_path: Path) -> Iterator[Accounts]:
    accounts = Accounts(tmp_path / "accounts.db")
    accounts.add_user("ann")
    accounts.add_user("bob", "team")
    yield accounts
    accounts.close()


@pytest.fixture
def port(settings: Settings, accounts: Accounts) -> Iterator[int]:
    with served(guarded(settings)) as port:
        yield port


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def test_a_key_opens_its_users_space(port: int, accounts: Accounts) -> None:
    key = accounts.create_key("bob", ["write"])
    said = {"name": "bob", "space": "team", "scopes": ["write"]}
    assert get(port, "/mcp", bearer(key))[:2] == (200, said)
    assert get(port, "/mcp", {"Authorization": f"bEARER   {key} "})[:2] == (200, said)


def test_without_a_key_there_is_a_401_that_says_what_to_do(port: int, accounts: Accounts) -> None:
    status, said, headers = get(port, "/mcp")
    assert (status, said["error"]["code"]) == (401, "unauthorized")
    assert "Authorization: Bearer" in said["error"]["message"]
    assert headers["www-authenticate"] == 'Bearer realm="commonplace"'
    key = accounts.create_key("ann")
    for wrong in (bearer("cp_x"), bearer(key + "x"), bearer(""), {"Authorization": f"Basic {key}"}):
        status, said, headers = get(port, "/mcp", wrong)
        assert (status, said["error"]["code"]) == (401, "unauthorized")
        assert key not in said["error"]["message"]
    assert 'error="invalid_token"' in get(port, "/mcp", bearer("cp_x"))[2]["www-authenticate"]


def test_a_key_in_the_address_is_not_read(port: int, accounts: Accounts) -> None:
    key = accounts.create_key("ann")
    for query in ("access_token", "token", "key", "authorization"):
        assert get(port, f"/mcp?{query}={key}")[0] == 401
    with pytest.raises(InvalidStatus):
        connect(f"ws://127.0.0.1:{port}/ws?access_token={key}", proxy=None).close()


def test_health_and_metadata_are_open_and_nothing_like_them_is(port: int) -> None:
    assert get(port, "/healthz")[:2] == (200, {"known": False})
    assert get(port, "/readyz")[:2] == (200, {"known": False})
    assert get(port, "/.well-known/oauth-protected-resource")[0] == 404
    assert get(port, "/.well-known/oauth-protected-resource/mcp")[1]["error"]["code"] == "not_found"
    for path in ("/healthz/", "/healthz/x", "//healthz", "/mcp/../healthz", "/nothing", "/openapi.json", "/metrics"):
        assert get(port, path)[0] == 401


def test_a_websocket_brings_its_key_in_a_header_or_a_subprotocol(port: int, accounts: Accounts) -> None:
    key, address = accounts.create_key("bob"), f"ws://127.0.0.1:{port}/ws"
    with connect(address, additional_headers=bearer(key), proxy=None) as socket:
        assert socket.recv(timeout=20) == "team"
    with connect(address, subprotocols=["mcp", f"bearer.{key}"], proxy=None) as socket:  # type: ignore[list-item]
        assert (socket.subprotocol, socket.recv(timeout=20)) == ("mcp", "team")
    for offered in (["mcp"], ["mcp", "bearer."], ["bearer.cp_x"], [f"bearer.{key}", "bearer.cp_x"]):
        with pytest.raises(InvalidStatus) as refused:
            connect(address, subprotocols=offered, proxy=None).close()  # type: ignore[arg-type]
        assert refused.value.response.status_code == 401
        assert refused.value.response.headers["WWW-Authenticate"].startswith("Bearer ")
        assert b'"unauthorized"' in refused.value.response.body


def test_a_websocket_is_closed_with_1008_where_the_server_cannot_answer_otherwise(accounts: Accounts) -> None:
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def call() -> None:
        scope = {"type": "websocket", "path": "/ws", "headers": [], "subprotocols": [], "extensions": {}}
        await Authentication(_unreachable, KeyGate(accounts))(scope, _silent, send)

    anyio.run(call)
    assert [(message["type"], message["code"]) for message in sent] == [("websocket.close", 1008)]


async def _unreachable(scope: Scope, receive: Receive, send: Send) -> None:
    raise AssertionError("nobody was admitted")


async def _silent() -> Message:
    return {"type": "websocket.connect"}


def test_a_key_another_process_revokes_is_refused_with_the_next_request(port: int, accounts: Accounts) -> None:
    key = accounts.create_key("ann")
    assert get(port, "/mcp", bearer(key))[0] == 200
    command = forked("keys", "revoke", key.split("_")[1])
    environment = {**os.environ, "COMMONPLACE_HOME": str(accounts.path.parent)}
    subprocess.run(command, env=environment, check=True, capture_output=True, timeout=60)
    assert get(port, "/mcp", bearer(key))[0] == 401


def test_a_gate_that_cannot_tell_says_so_and_lets_nobody_in() -> None:
    class Broken:
        async def admit(self, token: str | None) -> Principal | None:
            raise StorageBroken("accounts.db is damaged. Restore it.")

        def close(self) -> None: ...

    with served(Authentication(_unreachable, Broken())) as port:
        status, said, _ = get(port, "/mcp")
        assert (status, said["error"]["code"]) == (500, "storage_broken")
        with pytest.raises(InvalidStatus) as refused:
            connect(f"ws://127.0.0.1:{port}/ws", proxy=None).close()
        assert refused.value.response.status_code == 500


def test_without_users_everyone_here_is_the_owner(tmp_path: Path) -> None:
    with served(guarded(library_settings(tmp_path))) as port:
        said = {"name": "owner", "space": "default", "scopes": ["admin", "read", "write"]}
        assert get(port, "/mcp")[:2] == (200, said)
        assert get(port, "/mcp", bearer("anything"))[:2] == (200, said)
    assert not (tmp_path / "accounts.db").exists()


def test_where_users_exist_nobody_is_the_owner_by_default(tmp_path: Path, accounts: Accounts) -> None:
    with pytest.raises(BadSetting, match=r"has users, and auth is none\. Set auth to keys"):
        make_gate(library_settings(tmp_path))
    accounts.remove_user("ann")
    accounts.remove_user("bob")
    assert isinstance(make_gate(library_settings(tmp_path)), OpenGate)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.1", "localhost", "::1", "[::1]"])
def test_without_users_this_machine_may_be_bound(host: str) -> None:
    check_binding(Settings(), host)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "", "192.168.1.7", "example.org", "localhost.example.org", "127.1"])
def test_without_users_nothing_else_is_bound(host: str) -> None:
    with pytest.raises(BadSetting, match=r"Set auth to keys or jwt, or bind 127\.0\.0\.1") as refused:
        check_binding(Settings(), host)
    assert refused.value.exit_code == 78
    with pytest.raises(BadSetting):
        check_binding(Settings(auth="key"), host)
    check_binding(Settings(auth="keys"), host)
    check_binding(Settings(**HS), host)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"auth": "jwt"}, "jwt_issuer is not set"),
        ({"auth": "jwt", "jwt_issuer": "https://issuer.example"}, "jwt_audience is not set"),
        (JWT, "exactly one of jwt_jwks_url and jwt_key"),
        ({**HS, "jwt_jwks_url": "https://issuer.example/keys"}, "exactly one of"),
        ({**JWT, "jwt_jwks_url": "http://issuer.example/keys"}, "must be an https address"),
        ({**JWT, "jwt_jwks_url": "file:///etc/passwd"}, "must be an https address"),
        ({**JWT, "jwt_jwks_url": "https://[bad"}, "is no address"),
        ({**JWT, "jwt_jwks_url": "https://issuer.example", "jwt_algorithms": "HS256"}, "published keys are public"),
        ({**HS, "jwt_algorithms": "none"}, "not none"),
        ({**HS, "jwt_algorithms": "HS256,none"}, "not none"),
        ({**HS, "jwt_algorithms": " , "}, "not nothing"),
        ({**HS, "jwt_algorithms": "HS256,RS256"}, "mixes HS… with others"),
        ({**HS, "jwt_algorithms": "RS256"}, "Name one in jwt_algorithms"),
        ({**HS, "jwt_key": "too short"}, "32 bytes or more"),
        ({**HS, "jwt_algorithms": "HS256,HS512"}, "too short for HS512"),
        ({**HS, "jwt_key": "file:/nowhere/key.pem"}, r"/nowhere/key\.pem, which cannot be read"),
        ({**HS, "jwt_key": "-----BEGIN PUBLIC KEY-----\nnonsense"}, "holds no public key"),
        ({**HS, "jwt_key": "-----BEGIN PRIVATE KEY-----\nx"}, "Only its public half"),
        ({**HS, "jwt_key": "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABgQ"}, "a form that is not read here"),
        ({"auth": "keys", "jwt_key": SECRET}, "auth is keys, but settings of jwt are given"),
        ({"jwt_issuer": "https://issuer.example"}, "auth is none, but settings of jwt are given"),
        ({"auth": "key"}, "auth must be one of none, keys, jwt, not 'key'"),
        ({"public_url": "example.org"}, "public_url must be an http or https address"),
        ({"public_url": 'https://example.org/"'}, "public_url must be"),
        ({"public_url": "https://[bad"}, "public_url must be"),
    ],
)
def test_settings_that_do_not_go_together_are_named(tmp_path: Path, given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(BadSetting, match=sentence) as refused:
        make_gate(library_settings(tmp_path, **given))
    assert refused.value.exit_code == 78
    assert SECRET not in str(refused.value)


def test_a_mode_that_does_not_exist_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMMONPLACE_AUTH", "password")
    with pytest.raises(BadSetting, match="COMMONPLACE_AUTH must be one of none, keys, jwt, not 'password'"):
        Settings.load()


def test_a_client_learns_where_tokens_come_from(tmp_path: Path) -> None:
    with served(guarded(library_settings(tmp_path, **HS))) as port:
        here = f"http://127.0.0.1:{port}"
        status, _, headers = get(port, "/mcp")
        told = f'resource_metadata="{here}/.well-known/oauth-protected-resource/mcp"'
        assert (status, headers["www-authenticate"]) == (401, f'Bearer realm="commonplace", {told}')
        for path in ("", "/mcp"):
            status, said, _ = get(port, f"/.well-known/oauth-protected-resource{path}")
            assert (status, said) == (
                200,
                {
                    "resource": f"{here}/mcp",
                    "authorization_servers": ["https://issuer.example"],
                    "scopes_supported": ["read", "write", "admin"],
                    "bearer_methods_supported": ["header"],
                    "resource_name": "Commonplace",
                },
            )
        assert 'evil"' not in get(port, "/mcp", {"Host": 'evil"x'})[2]["www-authenticate"]


def test_behind_a_proxy_the_public_address_is_told(tmp_path: Path) -> None:
    with served(guarded(library_settings(tmp_path, **HS, public_url="https://books.example.org/"))) as port:
        assert get(port, "/.well-known/oauth-protected-resource")[1]["resource"] == "https://books.example.org/mcp"
        told = get(port, "/mcp", bearer("x"))[2]["www-authenticate"]
        assert '"https://books.example.org/.well-known/oauth-protected-resource/mcp"' in told


def test_a_challenge_names_the_scope_that_is_missing() -> None:
    assert challenge(None, error="insufficient_scope", scope="write") == (
        'Bearer realm="commonplace", error="insufficient_scope", scope="write"'
    )


@pytest.mark.parametrize(
    ("held", "allowed"),
    [((), ""), (("read",), "read"), (("write",), "read write"), (("admin",), "read write admin")],
)
def test_a_scope_implies_those_below_it(held: tuple[str, ...], allowed: str) -> None:
    principal = Principal("ann", "ann", frozenset(held))
    assert [scope for scope in ("read", "write", "admin") if principal.may(scope)] == allowed.split()
    assert OWNER.may("admin")


def test_two_credentials_are_none() -> None:
    header = (b"authorization", b"Bearer x")
    assert token_of({"type": "http", "headers": [header]}) == "x"
    assert token_of({"type": "http", "headers": [header, header]}) is None
    assert token_of({"type": "http", "headers": [], "subprotocols": ["bearer.x"]}) is None
    offered = {"type": "websocket", "headers": [(b"authorization", b"Basic x")], "subprotocols": ["bearer.x"]}
    assert token_of(offered) is None


@given(st.lists(st.tuples(st.sampled_from([b"authorization", b"cookie", b"host"]), st.binary(max_size=30)), max_size=3))
def test_no_header_makes_reading_the_token_fail(headers: list[tuple[bytes, bytes]]) -> None:
    token = token_of({"type": "http", "path": "/mcp", "headers": headers})
    assert token is None or len([name for name, _ in headers if name == b"authorization"]) == 1
