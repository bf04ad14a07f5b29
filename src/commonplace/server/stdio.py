"""Standard input and output of a server, until the input ends or a signal tells the process to end."""

from __future__ import annotations

import asyncio
import codecs
import errno
import os
import select
import signal
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress

import anyio
import anyio.to_thread

from commonplace.errors import CommonplaceError

_READ_BYTES = 65_536
_MOST_LINES = 64
_POLL_S = 0.1
_ENDING = (signal.SIGTERM, signal.SIGINT)


class StreamBroken(CommonplaceError):
    """The error that the input cannot be read, or the output cannot be written, as on a full disk."""

    code, exit_code = "stream_broken", 74


class Ending:
    """The event that a server is to end, with the error if it cannot go on."""

    def __init__(self) -> None:
        self._event = anyio.Event()
        self.why: CommonplaceError | None = None

    def set(self, why: CommonplaceError | None = None) -> None:
        self.why = self.why or why
        self._event.set()

    def is_set(self) -> bool:
        return self._event.is_set()

    async def wait(self) -> None:
        await self._event.wait()


@contextmanager
def note_end_signals() -> Iterator[Sequence[int]]:
    """Collect the SIGTERM and SIGINT that come before `end_signals` listens for them.

    Python would raise wherever the process is, and in the middle of an import that leaves a lock behind.
    """
    signals: list[int] = []
    before = {number: signal.signal(number, lambda number, _: signals.append(number)) for number in _ENDING}
    try:
        yield signals
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@asynccontextmanager
async def end_signals(noted: Sequence[int] = ()) -> AsyncIterator[Ending]:
    """Yield an event that SIGTERM and SIGINT set instead of killing the process, and raise its error at the end."""
    ending = Ending()

    async def hear() -> None:
        with anyio.open_signal_receiver(*_ENDING) as signals:
            heard.set()
            async for _ in signals:
                ending.set()

    heard = anyio.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(hear)
        await heard.wait()
        if noted:
            ending.set()
        yield ending
        tasks.cancel_scope.cancel()
    if ending.why is not None:
        raise ending.why


class Input:
    """The lines of standard input, until it ends or `ending` is set.

    They are read in a thread of their own: a thread that waits for a line cannot be interrupted, and is left waiting
    when the process ends. Children of this process find the null device in place of the input. The byte order mark
    that some programs write first is no part of a line.
    """

    def __init__(self, ending: Ending, each: Callable[[str], str] = str) -> None:
        """Take over standard input; `each` is applied to every line in the reading thread."""
        self._ending, self._each = ending, each
        self._descriptor = _move_descriptor(0, os.open(os.devnull, os.O_RDONLY))
        self._poll = select.poll()
        self._poll.register(self._descriptor, select.POLLIN)
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
        with suppress(RuntimeError):  # nobody listens any more
            while data := self._more(loop):
                begun.append(data)
                if b"\n" in data:
                    *whole, rest = b"".join(begun).split(b"\n")
                    begun = [rest]
                    self._hand_over([self._each(f"{_text(line)}\n") for line in whole], loop)
            rest = b"".join(begun)
            self._hand_over([self._each(_text(rest)), None] if rest else [None], loop)

    def _more(self, loop: asyncio.AbstractEventLoop) -> bytes:
        """Wait for the next bytes and return them; b"" at the end."""
        try:
            self._poll.poll()  # it may be one that says at once that nothing has come yet
            return os.read(self._descriptor, _READ_BYTES)
        except OSError as error:
            if error.errno != errno.EIO:  # a terminal that was closed
                why = StreamBroken(f"The input could not be read: {error.strerror}.")
                loop.call_soon_threadsafe(self._ending.set, why)
            return b""

    def _hand_over(self, lines: Sequence[str | None], loop: asyncio.AbstractEventLoop) -> None:
        for line in lines:
            self._room.acquire()
            loop.call_soon_threadsafe(self._take, line)

    def _take(self, line: str | None) -> None:
        self._lines.append(line)
        self._arrived.set()


class Output:
    """Standard output for messages alone: anything else that prints goes to standard error."""

    def __init__(self, ending: Ending, patience: float) -> None:
        """Take over standard output; `patience` is the seconds a client that reads nothing has once it is `over`."""
        self._ending, self._patience, self._over = ending, patience, False
        self._descriptor = _move_descriptor(1, os.dup(2))
        self._poll = select.poll()
        self._poll.register(self._descriptor, select.POLLOUT)

    async def write(self, text: str) -> None:
        data = text.encode("utf-8", "surrogatepass")
        try:
            if len(data) <= select.PIPE_BUF and self._poll.poll(0):
                # It has room for this much, so nobody waits; a thread would cost twice as much as the call.
                self._write(data)
            else:
                await anyio.to_thread.run_sync(self._write, data)
        except OSError as error:
            self._ending.set(StreamBroken(f"The output could not be written: {error.strerror}."))

    async def flush(self) -> None:
        """Do nothing: nothing is buffered."""

    def over(self) -> None:
        """Note that nothing new will come: from now on a client that does not read no longer delays the end."""
        self._over = True

    def _write(self, data: bytes) -> None:
        left, waited = memoryview(data), 0.0
        with suppress(BrokenPipeError):  # nobody reads any more; the end of the input follows
            while left and not (self._over and waited >= self._patience):
                if self._poll.poll(_POLL_S * 1000):
                    left, waited = left[os.write(self._descriptor, left[: select.PIPE_BUF]) :], 0.0
                else:
                    waited += _POLL_S


def _text(line: bytes) -> str:
    return line.removeprefix(codecs.BOM_UTF8).decode("utf-8", "replace")


def _move_descriptor(descriptor: int, instead: int) -> int:
    """Return a new descriptor for a file, and put another file in its old place."""
    own = os.dup(descriptor)
    os.dup2(instead, descriptor)
    os.close(instead)
    return own
