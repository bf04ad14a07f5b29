"""The programs that an installed package brings: `commonplace`, and `commonplace-mcp` for `uvx` and MCP clients.

1. There are these two. No `qmd`, which would stand before another program of that name.
2. `commonplace-mcp` is `commonplace mcp` where a client starts it, and help where a person does.
3. `commonplace qmd` is the drop-in; `install qmd-command` puts a `qmd` on the path, never over another one.
4. What the package needs by itself reads every file that it says it reads, PDF and code among them.
"""

from __future__ import annotations

import json
import os
import re
import stat
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pytest

from fresh_user import COMMONPLACE, PROGRAMS, FreshUser

OURS = distribution("commonplace-mcp")
MCP = str(PROGRAMS / "commonplace-mcp")
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}


def tools_of(user: FreshUser, *command: str) -> list[str]:
    """Return the tools that a server lists to a client on standard input and output."""
    messages: list[dict[str, Any]] = [
        {"id": 1, "method": "initialize", "params": HELLO},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/list"},
    ]
    spoken = "".join(json.dumps({"jsonrpc": "2.0", **message}) + "\n" for message in messages)
    answers = [json.loads(line) for line in user.program(*command, input=spoken).stdout.splitlines()]
    (listed,) = [answer["result"]["tools"] for answer in answers if answer.get("id") == 2]
    return [tool["name"] for tool in listed]


@pytest.fixture
def programs(user: FreshUser) -> Path:
    """The user's own folder of programs, which is on their path."""
    folder = user.home / ".local" / "bin"
    folder.mkdir(parents=True)
    user.environment["PATH"] = f"{folder}{os.pathsep}/usr/bin{os.pathsep}/bin"
    return folder


# 1. Two programs


def test_the_package_brings_two_programs_and_no_qmd() -> None:
    programs = {entry.name for entry in OURS.entry_points if entry.group == "console_scripts"}
    assert programs == {"commonplace", "commonplace-mcp"}


# 2. commonplace-mcp


@pytest.mark.parametrize(
    "options",
    [[], ["--allow-writes"], ["--profile", "qmd"], ["--home", "elsewhere", "--space", "work", "--profile", "memory"]],
)
def test_a_client_that_starts_commonplace_mcp_gets_what_the_command_serves(options: list[str], user: FreshUser) -> None:
    before = options[: options.index("--profile")] if "--home" in options else []
    same = [*COMMONPLACE, *before, "mcp", *options[len(before) :]]
    assert (tools := tools_of(user, MCP, *options)) == tools_of(user, *same)
    assert tools
    if before:
        assert (user.home / "elsewhere" / "spaces" / "work" / "library.db").is_file()


def test_commonplace_mcp_takes_every_option_of_the_command(user: FreshUser) -> None:
    def options(*command: str) -> set[str]:
        return set(re.findall(r"--[a-z-]+", user.program(*command, "--help").stdout.partition("Options:")[2]))

    shared = options(*COMMONPLACE, "mcp") | {"--home", "--space"}
    assert shared <= options(MCP)


@pytest.mark.parametrize("arguments", [[], ["--profile", "memory"]])
def test_a_person_who_types_commonplace_mcp_is_told_what_it_is(arguments: list[str], user: FreshUser) -> None:
    shown = user.at_terminal(MCP, *arguments)
    assert shown.startswith("Usage: commonplace-mcp ")
    assert "commonplace add ~/notes" in shown
    assert "claude mcp add" in shown


def test_a_mistake_of_a_client_is_a_sentence_with_its_code(user: FreshUser) -> None:
    assert "No such option" in user.program(MCP, "--frobnicate", code=2).stderr
    assert "no profile 'x'" in user.program(MCP, "--profile", "x", code=2).stderr
    assert user.program(MCP, "--version").stdout.strip().endswith(OURS.version)


# 3. qmd


def test_commonplace_qmd_is_the_drop_in_on_the_library_that_is_chosen(user: FreshUser) -> None:
    (user.home / "notes").mkdir()
    (user.home / "notes" / "tea.md").write_text("# Tea\n\nOolong wants water just off the boil.\n", "utf-8")
    user.run("--home", "books", "--space", "work", "qmd", "collection", "add", "notes")
    found = user.run("--home", "books", "--space", "work", "qmd", "search", "oolong", "--json").stdout
    assert [hit["file"] for hit in json.loads(found)] == ["qmd://notes/tea.md"]
    assert json.loads(user.run("qmd", "search", "oolong", "--json").stdout) == []
    assert user.run("qmd", "--help").stdout.startswith("Usage: commonplace qmd ")


def test_a_qmd_of_ours_comes_onto_the_path_and_goes_again(user: FreshUser, programs: Path) -> None:
    assert f"qmd is {programs / 'qmd'} now" in user.run("install", "qmd-command").stdout
    assert stat.S_IMODE((programs / "qmd").stat().st_mode) == 0o755
    assert user.program("qmd", "--help").stdout.startswith("Usage: qmd ")
    assert "is there already" in user.run("install", "qmd-command").stdout
    assert f"Removed {programs / 'qmd'}" in user.run("uninstall", "qmd-command").stdout
    assert list(programs.iterdir()) == []
    assert "Nothing was changed" in user.run("uninstall", "qmd-command").stdout


def test_a_qmd_of_ours_keeps_to_the_library_it_was_made_for(user: FreshUser, programs: Path) -> None:
    (user.home / "notes").mkdir()
    (user.home / "notes" / "tea.md").write_text("# Tea\n\nOolong.\n", "utf-8")
    user.run("--home", "my books", "install", "qmd-command")
    user.program("qmd", "collection", "add", "notes")
    assert (user.home / "my books" / "spaces" / "default" / "library.db").is_file()
    printed = user.run("--home", "my books", "install", "qmd-command", "--print").stdout
    assert printed == (programs / "qmd").read_text("utf-8")


@pytest.mark.parametrize("which", ["program", "dangling link", "folder"])
def test_a_qmd_of_others_stays_as_it_is(which: str, user: FreshUser, programs: Path) -> None:
    other = user.home / "theirs" / "qmd"
    other.parent.mkdir()
    user.environment["PATH"] += f"{os.pathsep}{other.parent}"
    if which == "program":
        other.write_text("#!/bin/sh\necho theirs\n", "utf-8")
    elif which == "folder":
        other.mkdir()
    else:
        other.symlink_to("nowhere")
    said = user.run("install", "qmd-command", code=1).stderr
    assert f"{other} is another program called qmd" in said
    assert "commonplace qmd" in said
    assert list(programs.iterdir()) == []
    assert "Nothing was changed" in user.run("uninstall", "qmd-command").stdout
    assert os.path.lexists(other)


def test_a_path_without_a_folder_for_programs_is_told_how_to_get_one(user: FreshUser) -> None:
    said = user.run("install", "qmd-command", code=2, PATH="/usr/bin:/bin").stderr
    assert f'export PATH="{user.home}/.local/bin:$PATH"' in said


@pytest.mark.parametrize("option", [["--allow-writes"], ["--name", "x"], ["--http", "http://127.0.0.1:1/mcp"]])
def test_what_is_for_clients_is_refused_for_the_command(option: list[str], user: FreshUser, programs: Path) -> None:
    assert f"{option[0]} is for MCP clients" in user.run("install", "qmd-command", *option, code=2).stderr
    assert list(programs.iterdir()) == []


# 4. What is read without extras


@pytest.mark.parametrize("name", ["pypdf", "tree-sitter", "tree-sitter-python", "tree-sitter-typescript"])
def test_the_package_alone_needs_what_reads_pdf_and_code(name: str) -> None:
    alone = {re.split(r"[<>=!~;\[ ]", need)[0].lower() for need in OURS.requires or () if "extra ==" not in need}
    assert name in alone
