"""Users and keys from the shell: real processes, one home.

1. A key is alone on standard output, works, and is never shown again.
2. Lists are readable, and JSON where asked for.
3. Errors are one sentence on stderr with the right exit code.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pytest

from commonplace.store.sqlite.accounts import Accounts
from kit.forked import forked

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    environment = {**os.environ, "COMMONPLACE_HOME": str(tmp_path)}

    def call(*arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        command = forked(*arguments)
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == code, done.stderr
        assert "Traceback" not in done.stderr
        return done

    return call


def test_a_user_gets_a_key_uses_it_and_loses_it(run: Run, tmp_path: Path) -> None:
    assert run("users", "list").stdout == "No users.\n"
    assert run("users", "add", "ann").stdout == "Added: ann, in the space ann\n"
    run("users", "add", "bob", "--space", "ann")
    assert [user["space"] for user in json.loads(run("users", "list", "--json").stdout)] == ["ann", "ann"]
    assert "bob  space ann" in run("users", "list").stdout

    made = run("keys", "create", "ann", "--scope", "write", "--scope", "read", "--expires", "90d", "--label", "laptop")
    key = made.stdout.strip()
    accounts = Accounts(tmp_path / "accounts.db")
    assert accounts.verify(key) == ("ann", "ann", {"read", "write"}, ())
    assert "not shown again" in made.stderr
    (listed,) = json.loads(run("keys", "list", "ann", "--json").stdout)
    assert (listed["scopes"], listed["label"], listed["state"]) == (["read", "write"], "laptop", "active")
    assert (datetime.fromisoformat(listed["expires_at"]) - datetime.fromisoformat(listed["created_at"])).days == 90
    shown = run("keys", "list")
    assert key.split("_", 2)[2] not in shown.stdout + shown.stderr
    assert "read write  active" in shown.stdout

    assert run("keys", "revoke", listed["id"]).stdout == f"Revoked: {listed['id']} of ann\n"
    assert accounts.verify(key) is None
    second = run("keys", "create", "ann").stdout.strip()
    assert accounts.verify(second) == ("ann", "ann", {"read"}, ())
    assert "bob still use it" in run("users", "remove", "ann").stderr
    assert accounts.verify(second) is None
    assert str(tmp_path / "spaces" / "ann") in run("users", "remove", "bob").stderr
    accounts.close()


def test_mistakes_are_one_sentence_each(run: Run) -> None:
    run("users", "add", "ann")
    assert "already a user ann" in run("users", "add", "ann", code=2).stderr
    assert "is named with a-z" in run("users", "add", "../ann", code=2).stderr
    assert "no user 'bob'" in run("users", "remove", "bob", code=1).stderr
    assert "no user 'bob'" in run("keys", "create", "bob", code=1).stderr
    for life in ("tomorrow", "0d", "999999y"):
        stderr = run("keys", "create", "ann", f"--expires={life}", code=2).stderr
        assert "such as 90d" in stderr or "expires in the future" in stderr
    assert "root" in run("keys", "create", "ann", "--scope", "root", code=2).stderr
    for names in ("", " , "):
        refused = run("keys", "create", "ann", "--collections", "docs", "--collections", names, code=2)
        assert "names no collection" in refused.stderr
        assert refused.stdout == ""
    assert "no key beef" in run("keys", "revoke", "beef", code=1).stderr
    assert run("keys", "list").stdout == "No keys.\n"
