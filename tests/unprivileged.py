"""What holds for a user who may not do everything, tried also where the tests run as root."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

NOBODY = 65534


@contextmanager
def unprivileged(tmp_path: Path) -> Iterator[None]:
    """For the block, this process is nobody, to whom everything in the test's folder belongs."""
    if os.geteuid() != 0:
        yield
        return
    for path in (tmp_path, *tmp_path.rglob("*")):
        os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
    for parent in tmp_path.parents:
        if parent.stat().st_mode & 0o777 == 0o700:
            parent.chmod(0o711)
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)
