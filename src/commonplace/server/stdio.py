"""Standard input and output as a server uses them: until the input ends, or somebody tells the process to end."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress

import anyio
import anyio.to_thread

_READ_BYTES = 65_536
_MOST_LINES = 64
_POLL_S = 0.1


@asynccontextmanager
async def told_to_end() -> AsyncIterator[anyio.Event]:
    """An event that SIGTERM and SIGINT set, instead of what they do otherwise."""
    ending = anyio.Event()

    async def hear() -> None:
        with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
            heard.set()
            async for _ in signals:
                ending.set()

    heard = anyio.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(hear)
        await heard.wait()
        yield ending
        tasks.cancel_scope.cancel()


class Input:
    """The lines of standard input, which end when it does or when `ending` is set, whichever comes first.

    They are read in a thread of their own: one that waits for a line cannot be called back, and is left waiting when
    the process ends. Children of this process find the null device where the input was.
    """

    def __init__(self, ending: anyio.Event, each: Callable[[str], str] = str) -> None:
        """`each`: what a line is made into, in that thread."""
        self._ending, self._each = ending, each
        self._descriptor = _taken(0, os.open(os.devnull, os.O_RDONLY))
        self._lines: deque[str | None] = deque()
        self._room = threading.Semaphore(_MOST_LINES)  # a client that writes without end fills its own pipe
        self._arrived = asyncio.Event()

    async def __aiter__(self) -> AsyncIterator[str]:
        loop = asyncio.get_running_loop()
        threading.Thread(target=self._read, args=(loop,), name="stdin", daemon=True).start()
        watching = loop.create_task(self._watch())
        try:
            while not self._ending.is_set():
                self._arrived.clear()  # before it is looked: what comes while a line is at work is not forgotten
                while self._lines and not self._ending.is_set():
                    line = self._lines.popleft()
                    self._room.release()
                    if line is None:
                        return
                    yield line
                await self._arrived.wait()
        finally:
            watching.cancel()

    async def _watch(self) -> None:
        await self._ending.wait()
        self._arrived.set()

    def _read(self, loop: asyncio.AbstractEventLoop) -> None:
        begun: list[bytes] = []  # a line may be a hundred megabytes long: its pieces are joined once
        with suppress(RuntimeError, OSError):  # nobody listens any more
            while data := os.read(self._descriptor, _READ_BYTES):
                begun.append(data)
                if b"\n" in data:
                    *whole, rest = b"".join(begun).split(b"\n")
                    begun = [rest]
                    self._hand_over([self._each(f"{line.decode('utf-8', 'replace')}\n") for line in whole], loop)
            rest = b"".join(begun)
            self._hand_over([self._each(rest.decode("utf-8", "replace")), None] if rest else [None], loop)

    def _hand_over(self, lines: Sequence[str | None], loop: asyncio.AbstractEventLoop) -> None:
        for line in lines:
            self._room.acquire()
            loop.call_soon_threadsafe(self._take, line)

    def _take(self, line: str | None) -> None:
        self._lines.append(line)
        self._arrived.set()


class Output:
    """Standard output, for messages alone: what anything else prints goes to standard error."""

    def __init__(self, patience: float) -> None:
        """`patience`: for how many seconds a client that reads nothing is waited for once it is `over`."""
        self._patience, self._over = patience, False
        self._descriptor = _taken(1, os.dup(2))
        self._poll = select.poll()
        self._poll.register(self._descriptor, select.POLLOUT)

    async def write(self, text: str) -> None:
        data = text.encode("utf-8", "surrogatepass")
        if len(data) <= select.PIPE_BUF and self._poll.poll(0):
            self._write(
                data
            )  # it has room for this much, so nobody waits; a thread would cost twice as much as the call
        else:
            await anyio.to_thread.run_sync(self._write, data)

    async def flush(self) -> None:
        """Nothing is held back."""

    def over(self) -> None:
        """Nothing new is to come: from now on a client that does not read keeps the process from ending no longer."""
        self._over = True

    def _write(self, data: bytes) -> None:
        left, waited = memoryview(data), 0.0
        with suppress(BrokenPipeError):  # nobody reads any more; the end of the input follows
            while left and not (self._over and waited >= self._patience):
                if self._poll.poll(_POLL_S * 1000):
                    left, waited = left[os.write(self._descriptor, left[: select.PIPE_BUF]) :], 0.0
                else:
                    waited += _POLL_S


def _taken(descriptor: int, instead: int) -> int:
    """A descriptor of our own for what this one is, with something else in its place."""
    own = os.dup(descriptor)
    os.dup2(instead, descriptor)
    os.close(instead)
    return own
