"""Users and keys, on a real file.

1. A key is shown once; the file holds only a hash of it, and is its owner's alone.
2. What is malformed, unknown, expired or revoked is nobody's key; no text makes `verify` raise.
3. A revocation counts at once, in every process.
4. Bad input is one sentence, and nothing is written.
5. A login stands for its key until it ends, is revoked, expires or is idle for twelve hours; the file has its hash.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace import space
from commonplace.errors import InvalidInput, NotFound, StorageBroken
from commonplace.store import accounts as room
from commonplace.store.postgres import PostgresAccounts
from commonplace.store.sqlite.accounts import Accounts
from kit.answers import present
from opening import space_of
from postgres_server import postgres

ASKED = """
import sys
from pathlib import Path
from commonplace.store.sqlite.accounts import Accounts

if len(sys.argv) == 2:
    accounts = Accounts(Path(sys.argv[1]))
else:
    from commonplace.store.postgres import PostgresAccounts

    accounts = PostgresAccounts(sys.argv[1], space=sys.argv[2])
for line in sys.stdin:
    print(accounts.verify(line.strip()) is not None, flush=True)
accounts.close()
"""


@pytest.fixture
def accounts(backend: str, tmp_path: Path) -> Iterator[Any]:
    if backend == "sqlite":
        accounts: Any = Accounts(tmp_path / "home" / "accounts.db")
    else:
        accounts = PostgresAccounts(postgres().app, space=f"@{space_of(tmp_path)}")
    yield accounts
    accounts.close()


@pytest.fixture
def file(tmp_path: Path) -> Iterator[Accounts]:
    """For what is so of a file only."""
    accounts = Accounts(tmp_path / "home" / "accounts.db")
    yield accounts
    accounts.close()


def test_a_key_stands_for_its_user_their_space_and_its_scopes(accounts: Accounts) -> None:
    accounts.add_user("ann")
    accounts.add_user("bob", "team")
    accounts.add_user("cem", "team")
    assert [(user.name, user.space) for user in accounts.users()] == [("ann", "ann"), ("bob", "team"), ("cem", "team")]
    key = accounts.create_key("bob", ["write", "read"], "laptop", timedelta(hours=1))
    assert accounts.verify(key) == ("bob", "team", {"read", "write"}, ())
    assert accounts.verify(accounts.create_key("ann")) == ("ann", "ann", {"read"}, ())
    limited = accounts.create_key("ann", collections=["guide", "pkg:file:///a,b"])
    assert accounts.verify(limited) == ("ann", "ann", {"read"}, ("guide", "pkg:file:///a,b"))
    (kept,) = accounts.keys("bob")
    assert (kept.user, kept.scopes, kept.label, kept.state) == ("bob", ("read", "write"), "laptop", "active")
    assert kept.expires_at is not None
    assert timedelta(minutes=59) < kept.expires_at - datetime.now(UTC) <= timedelta(hours=1)
    assert len(accounts.keys()) == 3


def test_the_secret_is_nowhere_in_the_file_and_the_file_is_private(file: Accounts) -> None:
    accounts = file
    accounts.add_user("ann")
    key = accounts.create_key("ann")
    public, secret = key.removeprefix("cp_").split("_", 1)
    assert len(secret) == 43  # 256 bits
    files = list(accounts.path.parent.iterdir())
    content = b"".join(file.read_bytes() for file in files)
    assert public.encode() in content
    assert secret.encode() not in content
    assert {file.stat().st_mode & 0o777 for file in files} == {0o600}
    assert len({accounts.create_key("ann") for _ in range(50)}) == 50


def test_a_file_others_could_read_is_made_private(file: Accounts) -> None:
    accounts = file
    accounts.path.chmod(0o644)
    Accounts(accounts.path).close()
    assert accounts.path.stat().st_mode & 0o777 == 0o600


def test_a_key_ends_when_it_expires(accounts: Accounts) -> None:
    accounts.add_user("ann")
    key = accounts.create_key("ann", expires_in=timedelta(milliseconds=200))
    assert accounts.verify(key)
    deadline = time.monotonic() + 20
    while accounts.verify(key):
        assert time.monotonic() < deadline
    assert accounts.keys()[0].state == "expired"


def test_revoking_ends_one_key_for_good(accounts: Accounts) -> None:
    accounts.add_user("ann")
    first, second = accounts.create_key("ann"), accounts.create_key("ann")
    ended = accounts.revoke(first.split("_")[1])
    assert ended.state == "revoked"
    assert accounts.verify(first) is None
    assert accounts.verify(second)
    assert accounts.revoke(ended.id) == ended


def test_the_public_part_of_a_key_with_another_secret_is_nobodys(accounts: Accounts) -> None:
    accounts.add_user("ann")
    first, second = accounts.create_key("ann"), accounts.create_key("ann")
    assert accounts.verify(first[:16] + second[16:]) is None
    assert accounts.verify(first)


def test_a_user_who_comes_back_needs_a_new_key(accounts: Accounts) -> None:
    accounts.add_user("ann")
    key = accounts.create_key("ann")
    assert accounts.remove_user("ann").space == "ann"
    assert accounts.verify(key) is None
    accounts.add_user("ann")
    assert accounts.verify(key) is None
    assert [kept.state for kept in accounts.keys("ann")] == ["revoked"]
    assert accounts.verify(accounts.create_key("ann"))


def test_a_key_revoked_here_is_refused_at_once_by_another_process(accounts: Any, backend: str, tmp_path: Path) -> None:
    accounts.add_user("ann")
    key = accounts.create_key("ann")
    place = [str(accounts.path)] if backend == "sqlite" else [postgres().app, f"@{space_of(tmp_path)}"]
    command = [sys.executable, "-c", ASKED, *place]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdin
        assert other.stdout

        def asked() -> str:
            present(other.stdin).write(key + "\n")
            present(other.stdin).flush()
            return present(other.stdout).readline()

        assert asked() == "True\n"
        accounts.revoke(key.split("_")[1])
        assert asked() == "False\n"
        other.stdin.close()
        assert other.wait(timeout=20) == 0


@given(noise=st.text() | st.from_regex(r"cp_[0-9a-f]{12}_[A-Za-z0-9_-]{43}", fullmatch=True), cut=st.integers(0, 58))
def test_no_other_text_is_a_key(accounts: Accounts, noise: str, cut: int) -> None:
    if not accounts.users():
        accounts.add_user("ann")
    key = accounts.create_key("ann")
    assert len(key) == 59  # so that every cut takes something away
    assert accounts.verify(noise) is None
    assert accounts.verify(key[:cut]) is None
    assert accounts.verify(key + noise) is None or not noise
    changed = key[:cut] + noise[:1] + key[cut + 1 :]
    assert accounts.verify(changed) is None or changed == key


@pytest.mark.parametrize("name", ["", "Ann", "../ann", "a/b", ".ann", "ann\n", "ä", "a" * 65, "a b", "\ud800"])
def test_a_name_that_is_no_space_is_refused(accounts: Accounts, name: str) -> None:
    with pytest.raises(InvalidInput, match="is named with"):
        accounts.add_user(name)
    with pytest.raises(InvalidInput, match="A space is named with"):
        accounts.add_user("ann", name)
    assert accounts.users() == []


def test_users_are_named_as_spaces_are() -> None:
    assert room._NAME.pattern == space._SPACE.pattern


def test_what_cannot_be_done_is_said_and_nothing_is_written(accounts: Accounts) -> None:
    accounts.add_user("ann")
    with pytest.raises(InvalidInput, match="already a user ann"):
        accounts.add_user("ann", "other")
    for scopes in ([], ["root"], ["read", "root"]):
        with pytest.raises(InvalidInput, match="scopes are read, write, admin"):
            accounts.create_key("ann", scopes)
    for life in (timedelta(0), timedelta(seconds=-1), timedelta.max):
        with pytest.raises(InvalidInput, match="expires in the future"):
            accounts.create_key("ann", expires_in=life)
    for label in ("x" * 101, "two\nlines", "\x1b[31m"):
        with pytest.raises(InvalidInput, match="printable"):
            accounts.create_key("ann", label=label)
    with pytest.raises(NotFound, match="no user 'bob'"):
        accounts.create_key("bob")
    with pytest.raises(NotFound, match="no user 'bob'"):
        accounts.remove_user("bob")
    with pytest.raises(NotFound, match="no key beef"):
        accounts.revoke("beef")
    assert ([user.space for user in accounts.users()], accounts.keys()) == (["ann"], [])


def test_many_threads_make_and_check_keys(accounts: Accounts) -> None:
    accounts.add_user("ann")

    def work(_: int) -> bool:
        key = accounts.create_key("ann")
        valid = accounts.verify(key) is not None
        accounts.revoke(key.split("_")[1])
        return valid and accounts.verify(key) is None

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(32)))


def test_a_newer_file_is_refused_with_what_to_do(file: Accounts) -> None:
    accounts = file
    accounts.close()
    with apsw.Connection(str(accounts.path)) as connection:
        connection.execute("pragma user_version = 999")
    with pytest.raises(StorageBroken, match="Upgrade"):
        Accounts(accounts.path)


def test_a_login_stands_for_its_key_until_it_ends(accounts: Any) -> None:
    accounts.add_user("ann")
    key = accounts.create_key("ann", ["write"], collections=["guide"])
    first, second = accounts.log_in(key), accounts.log_in(key)
    assert first != second
    assert accounts.verify_login(first) == accounts.verify(key)
    accounts.log_out(first)
    assert accounts.verify_login(first) is None
    assert accounts.verify_login(second) is not None
    accounts.revoke(key.split("_")[1])
    assert accounts.verify_login(second) is None
    assert accounts.log_in(key) is None


def test_a_login_ends_with_the_life_of_its_key_and_with_its_user(accounts: Any) -> None:
    accounts.add_user("ann")
    short = accounts.log_in(accounts.create_key("ann", expires_in=timedelta(milliseconds=300)))
    long = accounts.log_in(accounts.create_key("ann"))
    deadline = time.monotonic() + 20
    while accounts.verify_login(short):
        assert time.monotonic() < deadline
    assert accounts.verify_login(long)
    accounts.remove_user("ann")
    assert accounts.verify_login(long) is None


def test_a_login_ends_after_twelve_idle_hours_and_a_use_renews_it(
    accounts: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    accounts.add_user("ann")
    start, module = time.time_ns() // 1000, sys.modules[type(accounts).__module__]
    key = accounts.create_key("ann")

    def go_to(hours: float) -> None:
        monkeypatch.setattr(module, "now_micros", lambda: start + int(hours * 3_600_000_000))

    login, other = accounts.log_in(key), accounts.log_in(key)
    go_to(11.9)
    assert accounts.verify_login(login)
    go_to(12.5)
    assert accounts.verify_login(login)
    assert accounts.verify_login(other) is None
    go_to(25)
    assert accounts.verify_login(login) is None


@pytest.mark.parametrize("text", ["", "x", "a" * 43, "é" * 43, "a" * 42 + "\n", "' or 1=1 --"])
def test_no_made_up_text_is_a_login(accounts: Any, text: str) -> None:
    assert accounts.verify_login(text) is None
    accounts.log_out(text)


def test_what_is_stored_of_a_login_is_its_hash(file: Accounts) -> None:
    file.add_user("ann")
    login = file.log_in(file.create_key("ann")) or ""
    assert login.encode() not in b"".join(part.read_bytes() for part in file.path.parent.iterdir())
