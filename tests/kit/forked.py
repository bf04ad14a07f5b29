"""`commonplace` in a process of its own that need not import it again.

Starting Python and importing a command costs more CPU than most commands do. So each test worker has one process that
imported them all (`fork_server.py`), and a program is a fork of it: a real process with its own environment, folder,
standard streams, signals and exit status. What is started in place of it, `fork_client.py`, hands over its streams and
ends as the program does. Tests about the start itself, or about the number of the process, use `PROGRAM`.
"""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

PROGRAM = (sys.executable, "-m", "commonplace")
"""The command of `commonplace` as it is."""
_HERE = Path(__file__).parent
_ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "ORT_DISABLE_TELEMETRY": "1"}
"""A process with threads cannot be forked safely, and numpy starts some when it is imported."""


def forked(*arguments: str, module: str = "commonplace") -> list[str]:
    """Return the command that runs a module of ours with these arguments, for `subprocess` or a client."""
    if sys.platform != "linux":
        return [sys.executable, "-m", module, *arguments]
    return [sys.executable, "-I", "-S", str(_HERE / "fork_client.py"), _address(), module, *arguments]


def forked_server(*arguments: str) -> dict[str, Any]:
    """Return the command as the parameters of an MCP client over standard input and output take it."""
    command, *rest = forked(*arguments)
    return {"command": command, "args": rest}


@cache
def _address() -> str:
    """Return the socket of this worker's fork server, which ends with the worker."""
    folder = tempfile.TemporaryDirectory(prefix="forks-")
    address = f"{folder.name}/s"
    command = [sys.executable, str(_HERE / "fork_server.py"), address]
    environment = {**os.environ, **_ONE_THREAD}
    server = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    atexit.register(folder.cleanup)
    atexit.register(server.kill)
    assert server.stdout is not None
    assert server.stdout.readline() == b"ready\n", "the fork server did not start"
    return address
