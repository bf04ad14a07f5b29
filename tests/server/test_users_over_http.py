"""A server with users, over real sockets.

1. Without a key nobody gets anywhere; with one, everybody gets to their own library through every door.
2. Scopes: a key that only reads cannot write, and only an admin sees the metrics.
3. Sessions belong to their principal: another's id is a 404 over HTTP, a 1008 over WebSocket.
4. A revoked key ends even a connection that is open.
5. Without users the server refuses to be reached from elsewhere.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from test_websocket import HELLO, opened, search
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect
from websockets.typing import Subprotocol

from commonplace.library import Library
from commonplace.model import Draft
from commonplace.store.accounts import FILE
from commonplace.store.sqlite.accounts import Accounts
from kit.forked import forked

KEYS = {"COMMONPLACE_AUTH": "keys", "COMMONPLACE_ALLOW_WRITES": "1"}
pytestmark = pytest.mark.parametrize("settings", [KEYS], indirect=True)
MCP: dict[str, Any] = {"Accept": "application/json, text/event-stream"}


@pytest.fixture
def home(home: Path) -> Path:
    """The shared home of the other tests, with two users beside its own library."""
    with closing(Accounts(home / FILE)) as accounts:
        accounts.add_user("alice")
        accounts.add_user("bob")
        accounts.add_user("carol", "alice")
    for user in ("alice", "bob"):
        with Library.open(home, user) as library:
            library.put(Draft("note", "diary", title="Diary", body=f"The diary of {user}."))
    return home


@pytest.fixture
def accounts(home: Path) -> Iterator[Accounts]:
    with closing(Accounts(home / FILE)) as accounts:
        yield accounts


def key(accounts: Accounts, user: str, *scopes: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {accounts.create_key(user, scopes or ('write',))}"}


def rpc(method: str, id: int = 1, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


def base(address: str) -> str:
    return address.removesuffix("/mcp")


def diary(address: str, headers: dict[str, str], **query: str) -> Any:
    asked = {"query": "diary", "detail": "passages"}
    found = httpx.post(f"{base(address)}/api/v1/tools/search", json=asked, headers=headers, params=query)
    return [result["passage"] for result in found.json()["results"]]


def session_of(address: str, headers: dict[str, str]) -> str:
    hello = httpx.post(address, json=rpc("initialize", **HELLO), headers={**MCP, **headers})  # type: ignore[arg-type]
    assert hello.status_code == 200
    return str(hello.headers["mcp-session-id"])


def listed(address: str, session: str, headers: dict[str, str]) -> int:
    sent = {**MCP, **headers, "Mcp-Session-Id": session, "Mcp-Protocol-Version": "2025-11-25"}
    return httpx.post(address, json=rpc("tools/list"), headers=sent).status_code


def test_the_key_decides_whose_library_it_is(address: str, accounts: Accounts) -> None:
    for method, path in (
        ("POST", "/mcp"),
        ("POST", "/api/v1/tools/search"),
        ("GET", "/openapi.json"),
        ("GET", "/metrics"),
    ):
        refused = httpx.request(method, base(address) + path, json={})
        assert refused.status_code == 401
        assert refused.headers["www-authenticate"].startswith("Bearer")
    assert httpx.get(f"{base(address)}/healthz").status_code == 200
    assert diary(address, key(accounts, "alice")) == ["The diary of alice."]
    assert diary(address, key(accounts, "bob")) == ["The diary of bob."]
    tricks = {"X-User": "alice", "X-Space": "alice", "X-Forwarded-User": "alice"}
    assert diary(address, {**key(accounts, "bob"), **tricks}, space="alice", user_id="alice") == ["The diary of bob."]


def test_a_key_does_what_its_scopes_say(address: str, accounts: Accounts) -> None:
    place = f"{base(address)}/api/v1/tools/remember"
    denied = httpx.post(place, json={"text": "x"}, headers=key(accounts, "bob", "read"))
    assert (denied.status_code, denied.json()["error"]["code"]) == (403, "denied")
    assert httpx.post(place, json={"text": "x"}, headers=key(accounts, "bob", "write")).status_code == 200
    assert httpx.get(f"{base(address)}/metrics", headers=key(accounts, "bob", "write")).status_code == 403
    assert httpx.get(f"{base(address)}/metrics", headers=key(accounts, "bob", "admin")).status_code == 200


def test_a_session_belongs_to_its_principal(address: str, accounts: Accounts) -> None:
    alice, bob, carol = (key(accounts, name) for name in ("alice", "bob", "carol"))
    session = session_of(address, alice)
    assert listed(address, session, alice) == 200
    assert listed(address, session, bob) == 404
    assert listed(address, session, carol) == 404  # though she shares the library
    assert listed(address, "made-up", alice) == 404
    place = address.replace("http:", "ws:").replace("/mcp", "/ws")
    with connect(place, additional_headers={**bob, "Mcp-Session-Id": session}) as socket:
        with pytest.raises(ConnectionClosed):
            socket.recv(timeout=30)
        assert socket.close_code == 1008
    ended = httpx.delete(address, headers={**alice, "Mcp-Session-Id": session, "Mcp-Protocol-Version": "2025-11-25"})
    assert ended.status_code == 200
    assert listed(address, session, alice) == 404


def test_naming_a_session_after_anothers_does_not_lead_into_it(address: str, accounts: Accounts) -> None:
    alice = key(accounts, "alice")
    session = session_of(address, alice)
    for other in (key(accounts, "bob"), key(accounts, "carol")):
        named = {"query": "diary", "session": session}  # makes one of that name which is theirs
        assert httpx.post(f"{base(address)}/api/v1/tools/search", json=named, headers=other).status_code == 200
        assert listed(address, session, other) == 404
        ended = httpx.delete(address, headers={**other, "Mcp-Session-Id": session})
        assert ended.status_code == 404
    assert listed(address, session, alice) == 200


def test_another_process_serves_a_session_and_its_end_counts_there(
    address: str, second_address: str, accounts: Accounts
) -> None:
    alice = key(accounts, "alice")
    session = session_of(address, alice)
    assert listed(second_address, session, alice) == 200
    assert listed(second_address, session, key(accounts, "bob")) == 404
    ended = httpx.delete(
        second_address, headers={**alice, "Mcp-Session-Id": session, "Mcp-Protocol-Version": "2025-11-25"}
    )
    assert ended.status_code == 200
    assert listed(address, session, alice) == 404


def test_a_websocket_is_opened_with_a_key_and_closed_with_it(address: str, accounts: Accounts) -> None:
    place = address.replace("http:", "ws:").replace("/mcp", "/ws")
    with pytest.raises(InvalidStatus) as refused, connect(place):
        pass
    assert refused.value.response.status_code == 401
    secret = accounts.create_key("bob", ("read",))
    with pytest.raises(InvalidStatus), connect(f"{place}?key={secret}&token={secret}"):
        pass
    with connect(place, subprotocols=[Subprotocol("mcp"), Subprotocol(f"bearer.{secret}")]) as socket:
        assert socket.subprotocol == "mcp"
        opened(socket)
        assert search(socket)["result"]["isError"] is False
        (kept,) = accounts.keys("bob")
        accounts.revoke(kept.id)
        with pytest.raises(ConnectionClosed):
            search(socket, 3)
        assert socket.close_code == 1008


def test_a_server_without_users_stays_on_this_machine(environment: dict[str, str], tmp_path: Path) -> None:
    alone = {**environment, "COMMONPLACE_AUTH": "none", "COMMONPLACE_HOME": str(tmp_path / "other")}
    command = forked("serve", "--host", "0.0.0.0", "--port", "0")
    done = subprocess.run(command, env=alone, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 78
    assert len(done.stderr.splitlines()) == 1
    assert "keys" in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("port", ["-1", "65536", "99999"])
def test_a_port_that_is_none_is_wrong_usage(environment: dict[str, str], port: str) -> None:
    command = forked("serve", "--port", port)
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert f"{port} is not in the range" in done.stderr
