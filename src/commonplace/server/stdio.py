"""Standard input as a server reads it: until it ends, or until somebody tells the process to end."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import AsyncIterator
from concurrent.futures import CancelledError
from contextlib import asynccontextmanager, suppress

import anyio

_READ_BYTES = 65_536


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

    def __init__(self, ending: anyio.Event) -> None:
        self._ending = ending
        self._descriptor = os.dup(0)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)

    def __aiter__(self) -> AsyncIterator[str]:
        return self._lines()

    async def _lines(self) -> AsyncIterator[str]:
        lines: asyncio.Queue[str | None] = asyncio.Queue(1)
        reader = threading.Thread(
            target=self._read, args=(lines, asyncio.get_running_loop()), name="stdin", daemon=True
        )
        reader.start()
        ended = asyncio.ensure_future(self._ending.wait())
        try:
            while not ended.done():
                following = asyncio.ensure_future(lines.get())
                await asyncio.wait((following, ended), return_when=asyncio.FIRST_COMPLETED)
                if not following.done():
                    following.cancel()
                    return
                line = following.result()
                if line is None:
                    return
                yield line
        finally:
            ended.cancel()

    def _read(self, lines: asyncio.Queue[str | None], loop: asyncio.AbstractEventLoop) -> None:
        rest = b""
        with suppress(RuntimeError, OSError, CancelledError):  # nobody listens any more
            while data := os.read(self._descriptor, _READ_BYTES):
                *whole, rest = (rest + data).split(b"\n")
                for line in whole:
                    _hand_over(f"{line.decode('utf-8', 'replace')}\n", lines, loop)
            if rest:
                _hand_over(rest.decode("utf-8", "replace"), lines, loop)
            _hand_over(None, lines, loop)


def _hand_over(line: str | None, lines: asyncio.Queue[str | None], loop: asyncio.AbstractEventLoop) -> None:
    """Waits until it is taken, so that a client that writes without end fills its own pipe and not our memory."""
    handing = lines.put(line)
    try:
        asyncio.run_coroutine_threadsafe(handing, loop).result()
    finally:
        handing.close()
