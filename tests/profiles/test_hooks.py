"""What a profile's hooks do at a start: a project's own names of collections hold, and a wrong setting ends it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fresh_user import FreshUser

HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> tuple[FreshUser, Path]:
    """A user with a project, which calls a package of documents by a name of its own."""
    user = FreshUser(tmp_path_factory.mktemp("user"))
    folder = user.home / "project"
    (folder / "pages").mkdir(parents=True)
    (folder / "pages" / "tea.md").write_text("# Tea\n\nOolong wants hot water.\n", "utf-8")
    user.run("collections", "init", cwd=folder)
    user.run("collections", "add", "guide", "./pages", "--no-embed", cwd=folder)
    return user, folder


def called(user: FreshUser, folder: Path, profile: str, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the structured answer of a tool of a profile that is served in a folder."""
    messages: list[dict[str, Any]] = [
        {"id": 1, "method": "initialize", "params": HELLO},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": {"name": tool, "arguments": arguments}},
    ]
    spoken = "".join(json.dumps({"jsonrpc": "2.0", **message}) + "\n" for message in messages)
    answers = user.run("mcp", "--profile", profile, input=spoken, cwd=folder).stdout.splitlines()
    (answer,) = [message for message in map(json.loads, answers) if message.get("id") == 2]
    structured: dict[str, Any] = answer["result"]["structuredContent"]
    return structured


@pytest.mark.parametrize(
    ("profile", "tool", "arguments"),
    [
        ("commonplace", "search", {"query": "oolong", "collections": ["guide"]}),
        ("documents", "documents_search", {"query": "oolong", "collections": ["guide"]}),
        ("all", "documents_search", {"query": "oolong", "collections": ["guide"]}),
    ],
)
def test_a_profile_that_is_served_in_a_project_knows_its_names_of_collections(
    project: tuple[FreshUser, Path], profile: str, tool: str, arguments: dict[str, Any]
) -> None:
    results = called(*project, profile, tool, arguments)["results"]
    assert [result["title"] if profile == "commonplace" else result["documentTitle"] for result in results] == ["Tea"]


@pytest.mark.parametrize("profile", ["commonplace", "memory", "qmd"])
def test_what_is_shown_of_the_documents_is_chosen_for_profiles_of_documents_alone(
    project: tuple[FreshUser, Path], profile: str
) -> None:
    user, folder = project
    refused = user.run("mcp", "--profile", profile, "--collections", "guide", cwd=folder, code=2).stderr
    assert "are for --profile documents" in refused


def test_an_unknown_collection_ends_the_start(project: tuple[FreshUser, Path]) -> None:
    user, folder = project
    refused = user.run("mcp", "--profile", "documents", "--collections", "guid", cwd=folder, code=1).stderr
    assert 'Collection "guid" not found.' in refused
