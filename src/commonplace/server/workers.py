"""Threads that work for an event loop: as many as may be busy at once, started when needed.

The standard library's pool does the same at twice the cost (bench/doors.py): it makes a second future for every call,
and it keeps a process from ending while one of its threads is busy.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Hashable
from contextlib import suppress
from itertools import chain
from queue import SimpleQueue
from typing import Any, TypeVar

from commonplace.errors import Busy

T = TypeVar("T")
Job = tuple[asyncio.AbstractEventLoop, "asyncio.Future[Any]", Callable[[], Any]]


class WorkerThreads:
    """A pool of threads with a fair queue. Lives on the event loop."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._given = 0
        """The number of jobs that threads have and that are not done."""
        self._waiting: dict[Hashable, deque[Job]] = {}
        """The waiting jobs by owner; the owner whose turn is next comes first."""
        self._threads = 0
        self._idle = 0
        self._closed = False

    async def run(self, task: Callable[[], T], whose: Hashable = None) -> T:
        """Run a task in a thread and return its result. If the caller is cancelled, a task that has begun still ends.

        While all threads are busy, owners take turns: one with a thousand tasks delays nobody by more than one of them.
        """
        if self._closed:
            raise RuntimeError("the workers have been sent home")
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        if self._given < self._most:
            self._give((loop, future, task))
        else:
            self._waiting.setdefault(whose, deque()).append((loop, future, task))
        return await future

    def _give(self, job: Job) -> None:
        if self._jobs.qsize() >= self._idle and self._threads < self._most:
            self._start()
        self._given += 1
        self._jobs.put(job)

    def _done(self, future: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
        self._given -= 1
        _deliver(future, result, error)
        while self._waiting and self._given < self._most:
            whose = next(iter(self._waiting))
            jobs = self._waiting.pop(whose)
            job = jobs.popleft()
            if jobs:
                self._waiting[whose] = jobs  # behind everybody else
            if not job[1].cancelled():
                self._give(job)

    def _start(self) -> None:
        """Start one more thread. Where the system has none to give, the others do the work; raise Busy without any."""
        try:
            threading.Thread(target=self._work, name=f"call-{self._threads + 1}", daemon=True).start()
        except RuntimeError as error:
            if not self._threads:
                raise Busy(
                    "The system lets this process start no thread. Allow it more, and repeat: nothing was done."
                ) from error
        else:
            self._threads += 1

    def close(self) -> None:
        """Begin nothing new; running tasks end by themselves."""
        self._closed = True
        for job in chain.from_iterable(self._waiting.values()):
            self._jobs.put(job)
        self._waiting.clear()
        for _ in range(self._threads):
            self._jobs.put(None)

    def _work(self) -> None:
        self._idle += 1  # a count that is off for a moment starts a thread too many, or one call later
        while True:
            job = self._jobs.get()
            self._idle -= 1
            if job is None:
                return
            loop, future, task = job
            result: Any = None
            error: BaseException | None = None
            try:
                if not future.cancelled():
                    result = task()
            except BaseException as raised:  # noqa: BLE001 - whatever it is, it is the caller's
                error = raised
            self._idle += 1  # before anybody hears of it: who answers at once finds this thread, not a new one
            with suppress(RuntimeError):  # the loop has ended, and with it whoever waited
                loop.call_soon_threadsafe(self._done, future, result, error)
            del job, future, task, result, error  # nothing is kept alive while the thread waits


def _deliver(future: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(result)
    elif isinstance(error, StopIteration):  # no future takes it before Python 3.12, and who waits would wait for ever
        told = RuntimeError("a task ran out of what it goes through")
        told.__cause__ = error
        future.set_exception(told)
    else:
        future.set_exception(error)
