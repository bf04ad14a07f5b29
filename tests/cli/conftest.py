"""What tests of the command line share: a user who has never run it."""

from __future__ import annotations

from pathlib import Path

import pytest

from fresh_user import FreshUser


@pytest.fixture
def user(tmp_path: Path) -> FreshUser:
    return FreshUser(tmp_path / "user")
