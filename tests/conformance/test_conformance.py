"""The official conformance suite against the real app.

1. With the suite's fixtures every scenario that a revision requires passes, without a warning.
2. Without them every scenario that needs none passes, and the others are those that docs/conformance.md names.
3. No message of ours is invalid against the protocol's schema, whatever the scenario.
"""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from needs import needs_node

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "conformance.md"
REVISIONS = {"2025-11-25": 30, "2026-07-28": 37}
"""How many scenarios each requires."""
OF_THE_DIAGNOSTIC_TOOLS = {
    "sep-2575-server-rejects-undeclared-capability",
    "sep-2575-missing-capability-http-400",
    "sep-2575-http-server-no-independent-requests-on-stream",
    "sep-2575-server-no-log-without-loglevel",
}
"""The checks of server-stateless that call tools of its own."""

Checks = dict[str, list[dict[str, Any]]]
"""What the suite found, by scenario."""


@contextmanager
def serving(home: Path, *options: str) -> Iterator[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, str(HERE / "serve.py"), str(port), str(home), *options]
    server = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 60
        while not _answers(port):
            assert server.poll() is None, "the server ended before it began"
            assert time.monotonic() < deadline, "the server did not start"
            time.sleep(0.05)  # the bound of a wait for another process, not a guess at its speed
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        server.terminate()
        server.wait(timeout=20)


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], tuple[int, Checks]]:
    programs = needs_node()

    def run(address: str, revision: str) -> tuple[int, Checks]:
        found = tmp_path_factory.mktemp(f"results-{revision}")
        arguments = ["server", "--url", address, "--requirements", revision, "-o", str(found)]
        done = subprocess.run(
            [programs / "node", programs / "conformance", *arguments],
            env={**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"},
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        assert any(found.iterdir()), done.stdout + done.stderr
        return done.returncode, {_scenario(place): _read(place) for place in found.iterdir()}

    return run


def _scenario(place: Path) -> str:
    named = re.fullmatch(r"server-(.+)-\d{4}-\d\d-\d\dT[\d-]+Z", place.name)
    assert named is not None, place
    return named[1]


def _read(place: Path) -> list[dict[str, Any]]:
    checks: list[dict[str, Any]] = json.loads((place / "checks.json").read_text(encoding="utf-8"))
    return checks


@pytest.fixture(scope="module")
def with_fixtures(tmp_path_factory: pytest.TempPathFactory, suite: object) -> Iterator[str]:
    with serving(tmp_path_factory.mktemp("home"), "--fixtures") as address:
        yield address


@pytest.fixture(scope="module")
def as_it_is(tmp_path_factory: pytest.TempPathFactory, suite: object) -> Iterator[str]:
    with serving(tmp_path_factory.mktemp("home")) as address:
        yield address


def documented(revision: str) -> dict[str, tuple[str, str]]:
    """Scenario -> `required` or `not scored`, and what it needs, as the docs have it."""
    column = list(REVISIONS).index(revision)
    rows = re.findall(r"^\| `(.+?)` \| (.+?) \| (.+?) \| (.+?) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    return {row[0]: (row[1 + column], row[3]) for row in rows if row[1 + column] != "–"}


def troubles(found: Checks, *statuses: str) -> dict[str, list[str]]:
    """What the suite said where a check ended like this, by scenario."""
    return {
        scenario: said
        for scenario, checks in found.items()
        if (said := [f"{check['id']}: {check.get('errorMessage')}" for check in checks if check["status"] in statuses])
    }


@pytest.mark.parametrize("revision", REVISIONS)
def test_with_fixtures_all_that_a_revision_requires_passes(
    suite: Callable[[str, str], tuple[int, Checks]], with_fixtures: str, revision: str
) -> None:
    code, found = suite(with_fixtures, revision)
    required = [scenario for scenario, (status, _) in documented(revision).items() if status == "required"]
    scored = {scenario: found[scenario] for scenario in required}
    assert len(scored) == REVISIONS[revision]
    assert troubles(scored, "FAILURE", "WARNING") == {}
    assert code == 0
    assert {
        scenario for scenario in set(found) - set(documented(revision)) if not scenario.startswith("tasks-")
    } == set()
    unscored = {scenario: found[scenario] for scenario in documented(revision) if scenario not in required}
    assert troubles(unscored, "FAILURE") == {}


@pytest.mark.parametrize("revision", REVISIONS)
def test_without_fixtures_all_that_needs_none_passes(
    suite: Callable[[str, str], tuple[int, Checks]], as_it_is: str, revision: str
) -> None:
    _, found = suite(as_it_is, revision)
    needs = {scenario: need for scenario, (_, need) in documented(revision).items()}
    unaided = {scenario: found[scenario] for scenario, need in needs.items() if need == "nothing"}
    assert unaided
    assert troubles(unaided, "FAILURE", "WARNING") == {}
    failing = {scenario for scenario in troubles(found, "FAILURE") if not scenario.startswith("tasks-")}
    assert failing == {scenario for scenario, need in needs.items() if need in ("fixture", "list")}
    stateless = {check["id"] for check in found.get("server-stateless", []) if check["status"] == "FAILURE"}
    assert stateless <= OF_THE_DIAGNOSTIC_TOOLS
    valid = [check for checks in found.values() for check in checks if check["id"] == "wire-schema-valid"]
    assert len(valid) > len(found) / 2  # a few scenarios use no client that checks messages
    assert [check.get("errorMessage") for check in valid if check["status"] != "SUCCESS"] == []
