"""The workflow files are sound, by the linter made for them, and run the same two commands as a person does."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from needs import NODE, needs_node

ROOT = Path(__file__).parent.parent
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def problems(*files: Path) -> list[dict[str, Any]]:
    """Return what the linter says of the files."""
    command = [str(needs_node() / "node"), str(NODE / "workflows.mjs"), *map(str, files)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def test_the_linter_finds_nothing() -> None:
    assert WORKFLOWS
    assert problems(*WORKFLOWS) == []


def test_the_linter_finds_a_fault(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.yml"
    wrong.write_text("on: push\njobs:\n  test:\n    steps:\n      - run: make ${{ nothing.here }}\n", "utf-8")
    assert problems(wrong)


def test_the_suite_runs_on_every_python_that_the_project_names() -> None:
    text = (ROOT / ".github" / "workflows" / "test.yml").read_text("utf-8")
    assert "run: make test\n" in text
    assert "run: make quick\n" in text
    assert all(f'"{version}"' in text for version in ("3.11", "3.12", "3.13", "3.14"))
