"""What every tool and the commands answer on a fixed library is what was recorded.

1. Ids, order, scores, shapes, codes, exit statuses and contracts' sentences stay the same.
2. Every tool of every profile is among the recorded calls.

After a change that is meant to alter answers: `SNAPSHOTS=write pytest tests/snapshots`, then read the difference.
"""

from __future__ import annotations

import json
import os
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from click import ClickException
from click.testing import CliRunner
from contents import write_files
from recorder import Recorder, differences
from scripts import BOUND_CALLS, COMMANDS, REQUESTS, SCRIPTS

from commonplace.cli.main import cli
from commonplace.errors import CommonplaceError
from commonplace.library import Library
from commonplace.profiles.registry import PROFILES, profile
from commonplace.settings import Settings
from serving import environment_of, process

KEPT = Path(__file__).parent / "kept"
WRITE = os.environ.get("SNAPSHOTS") == "write"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Recorder, dict[str, list[Any]]]:
    """Every call, made once."""
    folder = tmp_path_factory.mktemp("snapshots")
    home, vault = folder / "home", write_files(folder / "vault")
    settings = Settings(home=home, models=folder / "models", model="static", allow_writes=True)
    with Library.open(home, settings=settings) as library:
        library.add_folder(vault, "vault")
        library.embed()
        recorder = Recorder(library, folder)
        parts = {}
        for name, script in SCRIPTS.items():
            recorder.entries.clear()
            script(recorder)
            library.embed()
            parts[name] = list(recorder.entries)
    recorder.entries.clear()
    _run_commands(recorder, home, folder)
    parts["cli"] = list(recorder.entries)
    recorder.entries.clear()
    _send_requests(recorder, home, folder)
    parts["rest"] = list(recorder.entries)
    return recorder, parts


def _run_commands(recorder: Recorder, home: Path, folder: Path) -> None:
    variables = {
        "COMMONPLACE_HOME": str(home), "COMMONPLACE_MODELS": str(folder / "models"), "COMMONPLACE_MODEL": "static",
    }  # fmt: skip
    for arguments in COMMANDS:
        outcome = CliRunner().invoke(cli, list(arguments), env=variables, standalone_mode=False)
        error = outcome.exception
        assert error is None or isinstance(error, CommonplaceError | SystemExit | ClickException), (arguments, error)
        status = getattr(error, "exit_code", None) if error else outcome.return_value
        recorder.command(list(arguments), status if status is not None else outcome.exit_code, outcome.stdout)


def _send_requests(recorder: Recorder, home: Path, folder: Path) -> None:
    environment = environment_of(home, COMMONPLACE_MODELS=str(folder / "models"))
    with process(environment) as server:
        for method, path, body in REQUESTS:
            place = urlsplit(server.address)
            connection = HTTPConnection(place.hostname or "", place.port, timeout=30)
            data = None if body is None else json.dumps(body)
            connection.request(method, path, data, {"Content-Type": "application/json"})
            reply = connection.getresponse()
            content = reply.read().decode()
            connection.close()
            recorder.request(method, path, body, reply.status, json.loads(content) if content else None)


@pytest.mark.parametrize("name", [*SCRIPTS, "cli", "rest"])
def test_answers_are_what_was_recorded(name: str, recorded: tuple[Recorder, dict[str, list[Any]]]) -> None:
    actual = recorded[1][name]
    path = KEPT / f"{name}.json"
    if WRITE:
        KEPT.mkdir(exist_ok=True)
        path.write_text(
            "[\n" + ",\n".join(json.dumps(entry, ensure_ascii=False) for entry in actual) + "\n]\n", "utf-8"
        )
    expected = json.loads(path.read_text("utf-8"))
    assert [entry["arguments"] for entry in actual] == [entry["arguments"] for entry in expected]
    found = [
        f"{one['tool']} {json.dumps(one['arguments'], ensure_ascii=False)} {line}"
        for one, other in zip(expected, actual, strict=True)
        for line in differences(one, other)
    ]
    assert not found, "\n".join(found[:40])


def test_every_tool_of_every_profile_is_recorded(recorded: tuple[Recorder, dict[str, list[Any]]]) -> None:
    called = recorded[0].called
    twins = {"research": "knowledge"}  # the same tools, declared once
    missing = {
        (name, tool.name)
        for name in PROFILES
        for tool in profile(name).tools
        if (name, tool.name) not in called and (twins.get(name, name), tool.name) not in called
    }
    assert missing == set()
    assert len(BOUND_CALLS) == 9
