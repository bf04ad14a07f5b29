"""A disk that can be filled: a tmpfs, which needs root. Who may not mount one skips the test."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def mounted(place: Path, options: str) -> Iterator[Path]:
    """A tmpfs with these options in a new folder, unmounted whatever happens."""
    place.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "commonplace-test", str(place)], capture_output=True, text=True
    )
    if made.returncode:
        reason = f"a tmpfs cannot be mounted here: {made.stderr.strip()}"
        if os.environ.get("CI") and os.geteuid() == 0:
            pytest.fail(reason)
        pytest.skip(reason)
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


class Disk:
    """A disk that can be filled up to a few bytes, and emptied again."""

    def __init__(self, root: Path) -> None:
        self.root, self._ballast = root, root / "ballast"

    def left(self) -> int:
        found = os.statvfs(self.root)
        return found.f_bavail * found.f_frsize

    def leave(self, free: int) -> None:
        """Fill it up until only this much is left."""
        with self._ballast.open("ab") as file:
            file.write(b"\0" * max(0, self.left() - free))

    def relieve(self) -> None:
        self._ballast.unlink(missing_ok=True)
