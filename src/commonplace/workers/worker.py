"""Processes for what has no bounds of its own: they are given so much memory, and stopped when they take too long.

A `Program` says what a process answers with. `Workers` keeps those that are idle, so that many requests cost one start.
"""

from __future__ import annotations

import os
import select
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_PROCESS = Path(__file__).with_name("process.py")
_REUSED_S = 0.5
"""The part of its idle time in which a process is still used again: one about to end might not hear a request."""


class Late(Exception):
    """A worker has not answered in time."""


class Gone(Exception):
    """A worker has ended before it answered: it takes too much memory or time, or the code it runs has failed."""

    def __init__(self, signal: int = 0) -> None:
        super().__init__(f"the process ended with signal {signal}")
        self.signal = signal
        """The signal that ended it, or 0."""


@dataclass(frozen=True, slots=True)
class Program:
    """A program of a process: a file with `answers`, and the files of packages that it imports."""

    module: Path
    packages: tuple[str, ...]
    memory: int
    """Bytes of address space."""
    idle_s: float = 0
    """Seconds without a request after which the process ends; 0: never."""


class Worker:
    """A process that answers requests. Whoever gets Late or Gone from it ends it; another takes its place."""

    def __init__(self, program: Program) -> None:
        # -I: nothing of the folder it is started in is imported, nor what the environment names: so it is told where.
        folders = dict.fromkeys(str(Path(package).parents[1]) for package in program.packages)
        options = [str(program.module), str(program.memory), str(program.idle_s), *folders]
        self._process = subprocess.Popen(  # noqa: S603 - our own module
            [sys.executable, "-I", str(_PROCESS), *options],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0,
        )  # fmt: skip
        self._idle_s = program.idle_s
        self.rest()

    @property
    def lives(self) -> bool:
        """Return whether it can be asked."""
        return self._process.poll() is None and not (self._idle_s and time.monotonic() > self._expires_at)

    def rest(self) -> None:
        """Begin its idle time."""
        self._expires_at = time.monotonic() + self._idle_s * _REUSED_S

    def ask(self, *blocks: bytes) -> None:
        """Send a request. Raise Gone where the process has ended."""
        sink = self._process.stdin
        assert sink is not None  # noqa: S101
        try:
            sink.write(bytes([len(blocks)]))
            for block in blocks:
                sink.write(len(block).to_bytes(8, "big"))
                whole = memoryview(block)
                while whole:
                    whole = whole[sink.write(whole) or 0 :]
        except BrokenPipeError:
            raise self._gone() from None

    def answer(self, deadline: float) -> tuple[bytes, bytes]:
        """Return the next mark and block. Raises Late after `deadline` (of `time.monotonic`), or Gone."""
        head = self._read(9, deadline)
        return head[:1], self._read(int.from_bytes(head[1:], "big"), deadline)

    def end(self) -> None:
        """End the process, whatever it does."""
        self._process.kill()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()
        self._process.wait()

    def _read(self, length: int, deadline: float) -> bytes:
        source = self._process.stdout
        assert source is not None  # noqa: S101
        block, waiting = bytearray(), select.poll()  # not `select`, which knows no more than 1,024 files
        waiting.register(source, select.POLLIN)
        while len(block) < length:
            if not waiting.poll(max(0.0, deadline - time.monotonic()) * 1000):
                raise Late
            piece = os.read(source.fileno(), length - len(block))
            if not piece:
                raise self._gone()
            block += piece
        return bytes(block)

    def _gone(self) -> Gone:
        return Gone(max(0, -self._process.wait()))


class WorkerPool:
    """The processes of one program: at most `most` at a time, of which the idle are kept until `close`."""

    def __init__(self, program: Callable[[], Program], most: int) -> None:
        self._program = program
        self._idle: list[Worker] = []
        self._lock = threading.Lock()
        self._slots = threading.Semaphore(most)
        self._closed = False

    @contextmanager
    def lent(self, timeout: float | None = None) -> Iterator[Worker | None]:
        """Yield a worker, or None where none is free in time. One that an exception leaves is ended."""
        if not self._slots.acquire(timeout=timeout):
            yield None
            return
        try:
            worker = self._take()
            try:
                yield worker
            except BaseException:
                worker.end()
                raise
            self._give_back(worker)
        finally:
            self._slots.release()

    def close(self) -> None:
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for worker in idle:
            worker.end()

    def _take(self) -> Worker:
        with self._lock:
            while self._idle:
                worker = self._idle.pop()
                if worker.lives:
                    return worker
                worker.end()
        return Worker(self._program())

    def _give_back(self, worker: Worker) -> None:
        worker.rest()
        with self._lock:
            if not self._closed and worker.lives:
                self._idle.append(worker)
                return
        worker.end()
