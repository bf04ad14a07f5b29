"""`commonplace install` says what agents may do, asks on a terminal, and is read-only unless told otherwise."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fresh_user import COMMONPLACE, FreshUser


def arguments_of(user: FreshUser, name: str = "commonplace") -> list[str]:
    """Return what the entry of Cursor's file starts our command with."""
    entries = json.loads(Path(user.home, ".cursor", "mcp.json").read_text("utf-8"))["mcpServers"]
    return list(entries[name]["args"])


def test_an_entry_is_read_only_and_says_so_until_writing_is_allowed(user: FreshUser) -> None:
    said = user.run("install", "cursor", "--name", "books").stdout
    assert "It is read-only: agents search and read, but change nothing." in said
    assert "`commonplace install cursor --name books --allow-writes` lets them remember, revise and forget." in said
    said = user.run("install", "cursor", "--name", "books", "--allow-writes").stdout
    assert arguments_of(user, "books") == ["mcp", "--allow-writes"]
    assert "`commonplace install cursor --name books --read-only` takes the writing back." in said
    user.run("install", "cursor", "--name", "books", "--read-only")
    assert arguments_of(user, "books") == ["mcp"]


def test_the_command_that_changes_it_names_the_same_library(user: FreshUser) -> None:
    said = user.run("--home", "my books", "install", "cursor").stdout
    assert "`commonplace --home 'my books' install cursor --allow-writes`" in said


def test_what_a_running_server_allows_is_up_to_it(user: FreshUser) -> None:
    said = user.run("install", "cursor", "--http", "http://127.0.0.1:8377/mcp").stdout
    assert "Whether agents may write is up to that server: `commonplace serve --allow-writes` lets them." in said


def test_on_a_terminal_it_is_asked_and_enter_keeps_what_was_answered_before(user: FreshUser) -> None:
    for typed, arguments in (
        ("\n", ["mcp"]),
        ("y\n", ["mcp", "--allow-writes"]),
        ("\n", ["mcp", "--allow-writes"]),
        ("n\n", ["mcp"]),
    ):
        shown = user.at_terminal(*COMMONPLACE, "install", "cursor", typed=typed)
        assert "May they also write to it: remember, revise and forget?" in shown
        assert arguments_of(user) == arguments
    assert "May they" not in user.at_terminal(*COMMONPLACE, "install", "cursor", "--read-only")


@pytest.mark.parametrize("more", [[], ["--http", "http://127.0.0.1:8377/mcp"]])
@pytest.mark.parametrize(
    ("profile", "said"),
    [
        ("memory", "Agents may search, read and write: the memory profile exists to be written to."),
        ("qmd", "It is read-only: the qmd profile has no tool that writes."),
    ],
)
def test_where_the_profile_decides_that_is_said_and_nothing_asked(
    profile: str, said: str, more: list[str], user: FreshUser
) -> None:
    shown = user.at_terminal(*COMMONPLACE, "install", "cursor", "--profile", profile, *more)
    assert shown.endswith(f"{said}\n")
    assert "May they" not in shown
