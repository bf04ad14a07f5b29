"""What a test needs beyond Python: it is skipped where that is missing, and fails where it must not be (CI=true)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NoReturn

import pytest

NODE = Path(__file__).parent / "node"


def needs_node() -> Path:
    """The folder of Node 22 (`node`) and the commands of the packages in tests/node, as `make node` installs them."""
    if not (NODE / "node_modules" / ".ready").exists():
        missing("The clients written for Node are not installed. Run `make node`.")
    return NODE / "node_modules" / ".bin"


def missing(sentence: str) -> NoReturn:
    if os.environ.get("CI", "").lower() in ("1", "true", "yes"):
        pytest.fail(f"{sentence} With CI set this is a failure.", pytrace=False)
    pytest.skip(sentence)
