"""docs/start.md is what a new user does in two minutes: every command in it runs, in its order, in an empty home."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import sqlite3
import tomllib
from pathlib import Path

import pytest

from commonplace.cli.main import _COMMANDS
from commonplace.cli.uninstall import DISTRIBUTION  # type: ignore[attr-defined]
from fresh_user import PROGRAMS, FreshUser

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "start.md").read_text("utf-8")
LINES = [line[2:] for block in re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL) for line in block.splitlines()]
SAID = {
    "query": ["Sourdough", "orchard"],
    "search": ["PostgreSQL notes", "Sourdough", "Bread", "Garden"],
    "get": ["lid on for twenty-five minutes", "Tomatoes"],
    "status": ["7 documents"],
    "where": ["library.db"],
    "doctor": ["Everything is in order."],
}
"""What commands print that their place in the page promises, in turn."""


@pytest.fixture
def user(tmp_path: Path) -> FreshUser:
    """A user with notes, a vault and code, in the places that the page speaks of."""
    user = FreshUser(tmp_path / "user", COMMONPLACE_MODEL="static")
    user.environment["PATH"] = f"{PROGRAMS}{os.pathsep}{user.environment['PATH']}"
    shutil.copytree(ROOT / "sample", user.home / "notes")
    (user.home / "Vault" / "Areas").mkdir(parents=True)
    (user.home / "Vault" / ".obsidian").mkdir()
    (user.home / "Vault" / ".obsidian" / "secret.md").write_text("# cold proof tomatoes\n", "utf-8")
    (user.home / "Vault" / "Bread.md").write_text("---\ntags: [baking]\n---\n# Bread\n\nA long cold proof.\n", "utf-8")
    (user.home / "Vault" / "Areas" / "Garden.md").write_text("# Garden\n\nTomatoes want sun.\n", "utf-8")
    (user.home / "code").mkdir()
    (user.home / "code" / "locks.py").write_text("def lock_table(name):\n    return name\n", "utf-8")
    return user


def test_every_command_of_the_page_does_what_the_page_says(user: FreshUser) -> None:
    said = {name: list(words) for name, words in SAID.items()}
    for line in LINES:
        arguments = [word.replace("~", str(user.home), 1) for word in shlex.split(line)]
        program, name = arguments[:2]
        assert program == "commonplace"
        if name == "remember" and name not in _COMMANDS:  # the tool of that name, as long as there is no command
            arguments = [program, "call", name, json.dumps({"text": arguments[2]})]
        printed = user.program(*arguments).stdout
        if words := said.get(name):
            assert words.pop(0) in printed, line
        assert "secret" not in printed
    assert not any(said.values())
    assert (user.home / "notes" / "sourdough.md").read_bytes() == (ROOT / "sample" / "sourdough.md").read_bytes()


def test_what_installs_names_the_package_and_its_programs() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["name"] == DISTRIBUTION
    for page in (PAGE, (ROOT / "README.md").read_text("utf-8")):
        commands = re.findall(r"(?:uv tool install|uv tool upgrade|uvx|pipx install|pipx upgrade) ([^\s`=]+)", page)
        assert len(commands) >= 3
        assert set(commands) == {DISTRIBUTION, "."}
        for program in re.findall(r"claude mcp add [^`\n]*-- ([a-z-]+)", page):
            assert program in project["scripts"]


def test_an_older_version_leaves_a_newer_library_alone_and_restores_a_backup_of_before(user: FreshUser) -> None:
    user.run("add", "notes")
    user.run("backup", "library.backup")
    paths = {row["what"]: Path(row["path"]) for row in json.loads(user.run("where", "--json").stdout)}
    with sqlite3.connect(paths["library"]) as newer:
        newer.execute("pragma user_version = 999")
    newer.close()
    content = paths["library"].read_bytes()
    for command in (["search", "oolong"], ["restore", "library.backup", "--yes"]):
        refused = user.run(*command, code=74).stderr
        assert "was written by a newer Commonplace" in refused
        assert "move it away" in refused
    assert paths["library"].read_bytes() == content
    assert str(paths["library"]) in user.run("where").stdout
    for path in paths["library"].parent.glob("library.db*"):
        path.rename(user.home / path.name)
    user.run("restore", "library.backup", "--yes")
    assert "Tea" in user.run("search", "oolong").stdout
