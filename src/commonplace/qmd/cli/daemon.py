"""The daemon: one server per index, known by a lock that it holds and a file that names it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, NamedTuple

from commonplace.errors import Busy, Command, CommonplaceError
from commonplace.index.sealed_files import write_atomically
from commonplace.settings import PREFIX

PID_FILE, LOG_FILE, LOCK_FILE = "mcp.pid", "mcp.log", "mcp.lock"
START_S, STOP_S = 60.0, 20.0
_LOOK_S = 0.05
_TAIL = 2000


class DaemonFailed(CommonplaceError):
    """The error that a daemon did not start or did not end."""

    code, status, exit_code = "daemon_failed", 500, 1


class Daemon(NamedTuple):
    """A running daemon."""

    pid: int
    address: str
    started: str
    """The start time of the process as the system has it, which with the pid tells it from every other."""


@contextmanager
def held(folder: Path, address: str) -> Iterator[None]:
    """Hold the lock and the file of this index's daemon. The system releases the lock however the process ends."""
    from filelock import FileLock, Timeout

    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / LOCK_FILE, timeout=0)
    try:
        lock.acquire()
    except Timeout:
        raise Busy("Another daemon serves this index already. `", Command("mcp stop", "qmd"), "` ends it.") from None
    pid_file = folder / PID_FILE
    try:
        said = {"pid": os.getpid(), "address": address, "started": _started(os.getpid())}
        write_atomically(pid_file, json.dumps(said).encode())
        yield
    finally:
        pid_file.unlink(missing_ok=True)
        lock.release()


def running(folder: Path) -> Daemon | None:
    """Return the daemon of an index if it is alive: the lock is held, and the file names the very process."""
    if not _is_held(folder):
        return None
    try:
        said: dict[str, Any] = json.loads((folder / PID_FILE).read_text("utf-8"))
        daemon = Daemon(int(said["pid"]), str(said["address"]), str(said["started"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return daemon if daemon.started and daemon.started == _started(daemon.pid) else None


def start(folder: Path, arguments: Sequence[str], home: Path) -> Daemon:
    """Start `qmd` on this home as a daemon, and return it once it serves. Raise DaemonFailed."""
    log = folder / LOG_FILE
    with _opened(log) as output:
        from_here = output.tell()
        process = subprocess.Popen(  # noqa: S603 - ourselves
            [sys.executable, "-P", "-m", "commonplace.qmd.cli", *arguments],
            stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True,
            env={**os.environ, f"{PREFIX}HOME": str(home)},
        )  # fmt: skip
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        daemon = running(folder)
        if daemon is not None and daemon.pid == process.pid:
            process.returncode = 0  # it is to outlive this process, which must not complain of that
            return daemon
        if process.poll() is not None:
            break
        time.sleep(_LOOK_S)
    else:
        process.terminate()
        process.wait(STOP_S)
    said = log.read_bytes()[from_here:][-_TAIL:].decode("utf-8", "replace").strip()
    raise DaemonFailed(f"The daemon did not start. {log} says: {said or 'nothing'}")


def _opened(log: Path) -> IO[bytes]:
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        return log.open("ab")
    except OSError as error:
        said = f"{log.parent} cannot be used: {error.strerror}. Check that path and its permissions."
        raise DaemonFailed(said) from error


def stop(folder: Path) -> Daemon | None:
    """End the daemon, wait until it has ended, and return it; None if none was running. Raise DaemonFailed."""
    daemon = running(folder)
    if daemon is None:
        return None
    with suppress(ProcessLookupError):
        os.kill(daemon.pid, signal.SIGTERM)
    deadline = time.monotonic() + STOP_S
    while _is_held(folder):
        if time.monotonic() > deadline:
            raise DaemonFailed(f"The daemon (PID {daemon.pid}) was told to end {STOP_S:.0f} s ago and still runs.")
        time.sleep(_LOOK_S)
    return daemon


def _is_held(folder: Path) -> bool:
    from filelock import FileLock, Timeout

    if not (folder / LOCK_FILE).exists():
        return False
    lock = FileLock(folder / LOCK_FILE, timeout=0)
    try:
        lock.acquire()
    except Timeout:
        return True
    lock.release()
    return False


def _started(pid: int) -> str:
    """Return the start time of a process as the system has it; "" for no such process."""
    record = Path(f"/proc/{pid}/stat")
    if Path("/proc/self/stat").exists():
        try:
            return record.read_text("ascii", "replace").rpartition(")")[2].split()[19]
        except (OSError, IndexError):
            return ""
    command = ["/bin/ps", "-o", "lstart=", "-p", str(pid)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - digits only
    return done.stdout.strip()
