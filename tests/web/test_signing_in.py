"""Signing in, and which forms are carried out.

1. A key becomes a session, hashed on disk; signing out, revoking the key or its end ends it. Five wrong keys a minute.
2. Two users see nothing of each other, and a key that reads changes nothing.
3. A form counts only from our own page: by origin, or by what the browser says of the sender, and with its token.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from commonplace.kinds.memories.entry import New
from commonplace.library import Library
from commonplace.model import Draft
from commonplace.server.auth import OpenGate
from commonplace.settings import Settings
from commonplace.store.accounts import FILE
from commonplace.store.sqlite.accounts import Accounts
from commonplace.web.logins import Failures, TokenLogins, logins_of
from serving import environment_of, process

HTML = {"Accept": "text/html"}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    settings = Settings(home=tmp_path, models=tmp_path / "models", model="static")
    with closing(Accounts(tmp_path / FILE)) as accounts:
        for user in ("alice", "bob"):
            accounts.add_user(user)
            with Library.open(tmp_path, user, settings) as library:
                library.put(Draft("note", "diary", title=f"Diary of {user}", body=f"The diary of {user}."))
    return tmp_path


@pytest.fixture
def accounts(home: Path) -> Iterator[Accounts]:
    with closing(Accounts(home / FILE)) as accounts:
        yield accounts


@pytest.fixture
def base(home: Path) -> Iterator[str]:
    with process(environment_of(home, COMMONPLACE_AUTH="keys")) as server:
        yield server.address.removesuffix("/mcp")


def browser(base: str) -> httpx.Client:
    return httpx.Client(base_url=base, headers=HTML, timeout=30)


def token(page: str) -> str:
    found = re.search(r'name="token" value="([0-9a-f]{64})"', page)
    assert found
    return found[1]


def sign_in(client: httpx.Client, key: str, **fields: str) -> httpx.Response:
    page = client.get("/login").text
    origin = {"Origin": str(client.base_url).rstrip("/")}
    return client.post("/login", data={"key": key, "token": token(page), **fields}, headers=origin)


# 1. Sessions


def test_a_key_is_given_once_and_a_cookie_stands_for_it(base: str, accounts: Accounts) -> None:
    key = accounts.create_key("alice", ("write",))
    with browser(base) as client:
        asked = client.get("/?q=diary")
        assert (asked.status_code, asked.headers["Location"]) == (303, "/login?next=%2F%3Fq%3Ddiary")
        before = client.get("/login").cookies or client.cookies
        anonymous = before["commonplace"]
        done = sign_in(client, key, next="/?q=diary")
        assert (done.status_code, done.headers["Location"]) == (303, "/?q=diary")
        cookie = done.headers["Set-Cookie"]
        assert re.search(r"HttpOnly; Path=/; SameSite=lax$", cookie)
        assert client.cookies["commonplace"] != anonymous
        assert key not in cookie
        page = client.get("/?q=diary")
        assert "Diary of alice" in page.text
        assert "signed in as alice" in page.text
        out = client.post("/logout", data={"token": token(page.text)}, headers={"Origin": base})
        assert out.headers["Location"] == "/login"
        assert client.get("/").headers["Location"] == "/login"


def test_revoking_the_key_ends_its_sessions(base: str, accounts: Accounts) -> None:
    key = accounts.create_key("alice", ("read",))
    with browser(base) as client:
        sign_in(client, key)
        assert client.get("/").status_code == 200
        accounts.revoke(key.split("_")[1])
        assert client.get("/").status_code == 303
        assert "is not valid here" in sign_in(client, key).text


def test_behind_tls_the_cookie_is_for_this_host_and_secure(home: Path, accounts: Accounts) -> None:
    settings = environment_of(home, COMMONPLACE_AUTH="keys", COMMONPLACE_PUBLIC_URL="https://books.example")
    key = accounts.create_key("alice")
    with process(settings) as server:
        host = {"Host": "books.example", **HTML}
        with httpx.Client(base_url=server.address.removesuffix("/mcp"), headers=host, timeout=30) as client:
            page = client.get("/login")
            name, _, value = page.headers["Set-Cookie"].partition(";")[0].partition("=")
            assert name == "__Host-commonplace"
            sent = {"Origin": "https://books.example", "Cookie": f"{name}={value}"}
            done = client.post("/login", data={"key": key, "token": token(page.text)}, headers=sent)
            assert done.status_code == 303
            assert re.search(
                r"^__Host-commonplace=.*; HttpOnly; Path=/; SameSite=lax; Secure$", done.headers["Set-Cookie"]
            )


@pytest.mark.parametrize(
    "target", ["//evil.example", "/\\evil.example", "https://evil.example", "javascript:x", "/a\nb"]
)
def test_signing_in_leads_to_no_other_host(target: str, base: str, accounts: Accounts) -> None:
    with browser(base) as client:
        assert sign_in(client, accounts.create_key("alice"), next=target).headers["Location"] == "/"


def test_the_sixth_wrong_key_within_a_minute_has_to_wait(base: str, accounts: Accounts) -> None:
    with browser(base) as client:
        answers = [sign_in(client, "cp_wrong") for _ in range(6)]
        assert [answer.status_code for answer in answers] == [401] * 5 + [429]
        assert int(answers[-1].headers["Retry-After"]) <= 61
        assert sign_in(client, accounts.create_key("alice")).status_code == 429


def test_failures_are_forgotten_after_a_minute() -> None:
    now = 0.0
    failures = Failures(lambda: now)
    for _ in range(5):
        failures.note("a")
    assert failures.wait("a") == 60
    assert failures.wait("b") == 0
    now = 60.0
    assert failures.wait("a") == 0


async def logins_by_token() -> None:
    gate = OpenGate()
    logins = TokenLogins(gate)
    cookie = await logins.log_in("a token") or ""
    assert await logins.principal(cookie) == await gate.admit(None)
    await logins.log_out(cookie)
    assert await logins.principal(cookie) is None
    assert await logins.principal("x" * 43) is None


def test_a_token_of_another_issuer_lasts_as_long_as_it_is_admitted() -> None:
    import anyio

    anyio.run(logins_by_token)
    assert logins_of(OpenGate()) is None


# 2. Users and scopes


def test_two_users_see_nothing_of_each_other(base: str, accounts: Accounts) -> None:
    with browser(base) as alice, browser(base) as bob:
        sign_in(alice, accounts.create_key("alice", ("write",)))
        sign_in(bob, accounts.create_key("bob", ("write",)))
        for path in ("/", "/?q=diary", "/live?q=diary", "/i/notes/diary", "/i/notes/diary.md", "/.json"):
            mine, theirs = alice.get(path).text, bob.get(path).text
            assert "bob" not in mine, path
            assert "alice" not in theirs, path
            assert "diary" in mine.lower(), path


def test_a_program_reads_with_its_key_and_without_a_cookie(base: str, accounts: Accounts) -> None:
    bearer = {"Authorization": f"Bearer {accounts.create_key('bob')}", "Accept": "application/json"}
    record = httpx.get(f"{base}/?q=diary", headers=bearer, timeout=30).json()
    assert [hit["title"] for hit in record["results"]] == ["Diary of bob"]
    assert httpx.get(f"{base}/?q=diary", headers={"Authorization": "Bearer x"}, timeout=30).status_code == 401


def test_a_key_for_some_collections_is_told_that_the_page_is_not_for_it(base: str, accounts: Accounts) -> None:
    with browser(base) as client:
        sign_in(client, accounts.create_key("alice", collections=["guide"]))
        for path in ("/", "/?q=diary", "/i/notes/diary"):
            refused = client.get(path)
            assert refused.status_code == 403
            assert "limited to collections" in refused.text
            assert "Diary of alice" not in refused.text


FORMS = [
    ("/memories", {"text": "x"}),
    ("/memories/delete", {"only": "1"}),
    ("/memories/delete", {"every": "1", "confirmed": "1"}),
    ("/memories/undo", {"undo": "x"}),
    ("/memories/1/correct", {"text": "x"}),
    ("/memories/1/replace", {"text": "x"}),
    ("/memories/1/delete", {}),
    ("/sources", {"root": "/"}),
    ("/sources/sync", {"name": "x"}),
    ("/sources/context", {"name": "x", "text": "x"}),
    ("/health/check", {}),
]


@pytest.mark.parametrize(("path", "fields"), FORMS)
def test_a_key_that_reads_carries_out_no_form(path: str, fields: dict[str, str], readers: tuple[str, str, str]) -> None:
    base, key, writing = readers
    with browser(base) as client, browser(base) as writer:
        sign_in(client, key)
        page = client.get("/memories").text
        assert "Write a memory" not in page
        answer = client.post(path, data={**fields, "token": token(page)}, headers={"Origin": base})
        assert answer.status_code == 403
        assert "may only read" in answer.text
        sign_in(writer, writing)
        foreign = writer.post(path, data=fields, headers={"Origin": base})
        assert (foreign.status_code, "out of date" in foreign.text) == (403, True)
        assert "One fact." in writer.get("/memories").text


@pytest.fixture(scope="module")
def readers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str, str]]:
    """A server with a library of one memory, a key that reads it and one that writes."""
    home = tmp_path_factory.mktemp("home")
    with closing(Accounts(home / FILE)) as accounts:
        accounts.add_user("alice")
        keys = accounts.create_key("alice", ("read",)), accounts.create_key("alice", ("write",))
    with Library.open(home, "alice", Settings(home=home, models=home / "models", model="static")) as library:
        library.memories.store([New("main", "agent", "One fact.")])
    with process(environment_of(home, COMMONPLACE_AUTH="keys")) as server:
        yield (server.address.removesuffix("/mcp"), *keys)


# 3. Forms

OTHER_PORT, OTHER_HOST = "http://127.0.0.1:1", "http://evil.example"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": "{base}"}, 303),
        ({"Sec-Fetch-Site": "same-origin"}, 303),
        ({"Origin": "{base}", "Sec-Fetch-Site": "cross-site"}, 303),
        ({}, 403),
        ({"Origin": OTHER_PORT}, 403),
        ({"Origin": OTHER_HOST}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "{base}".replace("{base}", "https://127.0.0.1")}, 403),
        ({"Origin": OTHER_PORT, "Sec-Fetch-Site": "same-origin"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "none"}, 403),
        ({"Authorization": "Bearer {key}"}, 403),
        ({"Authorization": "Bearer {key}", "Origin": OTHER_PORT}, 403),
        ({"Authorization": "Bearer {key}", "Origin": "{base}"}, 303),
    ],
)
@pytest.mark.parametrize("with_cookie", [True, False])
@pytest.mark.parametrize("with_token", [True, False])
def test_a_form_counts_only_from_our_own_page(
    headers: dict[str, str], status: int, with_cookie: bool, with_token: bool, shared: tuple[str, str]
) -> None:
    base, key = shared
    sent = {name: value.format(base=base, key=key) for name, value in headers.items()}
    with browser(base) as client:
        sign_in(client, key)
        form = {"token": token(client.get("/").text)} if with_token else {}
        cookies = dict(client.cookies) if with_cookie else {}
    answer = httpx.post(f"{base}/logout", data=form, headers={**HTML, **sent}, cookies=cookies, timeout=30)
    assert answer.status_code == (status if with_cookie and with_token else 403)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """A server for many small questions, and a key of it."""
    home = tmp_path_factory.mktemp("home")
    with closing(Accounts(home / FILE)) as accounts:
        accounts.add_user("alice")
        key = accounts.create_key("alice", ("write",))
    with process(environment_of(home, COMMONPLACE_AUTH="keys")) as server:
        yield server.address.removesuffix("/mcp"), key


def test_the_token_of_another_session_does_not_count(shared: tuple[str, str]) -> None:
    base, key = shared
    with browser(base) as first, browser(base) as second:
        sign_in(first, key)
        sign_in(second, key)
        foreign = token(second.get("/").text)
        answer = first.post("/logout", data={"token": foreign}, headers={"Origin": base})
        assert answer.status_code == 403
        assert "out of date" in answer.text
        assert first.get("/").status_code == 200


@pytest.mark.parametrize("body", [b"token=%FF", b"\xff", b"&".join(b"a=1" for _ in range(5001)), b""])
def test_a_form_that_cannot_be_read_changes_nothing(body: bytes, shared: tuple[str, str]) -> None:
    base, key = shared
    with browser(base) as client:
        sign_in(client, key)
        answer = client.post("/logout", content=body, headers={"Origin": base})
        assert answer.status_code in (400, 403)
        assert client.get("/").status_code == 200
