"""Threads that work for an event loop.

1. What a task returns or raises is what its caller gets.
2. No more than the bound are busy at once, and every task is done, also where the system has few threads to give.
3. A cancelled caller leaves what has begun to end, and what has not begun is never done.
4. Those who wait take turns, however much each has asked for.
"""

from __future__ import annotations

import threading
from functools import partial

import anyio
import anyio.lowlevel
import pytest

from commonplace.errors import Busy
from commonplace.server.service import WorkerThreads


def test_what_a_task_gives_is_what_its_caller_gets() -> None:
    async def main() -> None:
        workers = WorkerThreads(2)
        assert await workers.run(lambda: 7) == 7
        with pytest.raises(KeyError):
            await workers.run(lambda: {}["nothing"])  # type: ignore[index]
        assert await workers.run(threading.get_ident) != threading.get_ident()
        workers.close()
        with pytest.raises(RuntimeError):
            await workers.run(lambda: 7)

    anyio.run(main)


def test_nobody_waits_for_a_task_that_ran_out_of_what_it_goes_through() -> None:
    async def main() -> None:
        workers = WorkerThreads(1)
        with anyio.fail_after(10), pytest.raises(RuntimeError) as told:
            await workers.run(lambda: next(iter(())))
        assert isinstance(told.value.__cause__, StopIteration)
        workers.close()

    anyio.run(main)


def test_no_more_than_the_bound_are_busy_and_all_is_done() -> None:
    busy, most, done = 0, 0, 0
    lock = threading.Lock()

    def task() -> None:
        nonlocal busy, most, done
        with lock:
            busy += 1
            most = max(most, busy)
        threading.Event().wait(0.01)
        with lock:
            busy -= 1
            done += 1

    async def main() -> None:
        workers = WorkerThreads(3)
        async with anyio.create_task_group() as tasks:
            for _ in range(40):
                tasks.start_soon(workers.run, task)
        workers.close()

    anyio.run(main)
    assert (most, done) == (3, 40)


def test_a_system_without_threads_to_give_keeps_nobody_waiting_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[int] = []

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    async def main() -> None:
        workers = WorkerThreads(2)
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", refuse)
            for number in range(3):
                with anyio.fail_after(10), pytest.raises(Busy, match="nothing was done"):
                    await workers.run(lambda number=number: done.append(number))  # type: ignore[misc]
        with anyio.fail_after(10):
            await workers.run(lambda: done.append(7))
        monkeypatch.setattr(threading.Thread, "start", refuse)
        with anyio.fail_after(10):
            async with anyio.create_task_group() as tasks:
                for _ in range(3):
                    tasks.start_soon(workers.run, lambda: done.append(8))
        workers.close()

    anyio.run(main)
    assert done == [7, 8, 8, 8]


def test_a_cancelled_caller_leaves_what_has_begun_and_nothing_else() -> None:
    begun, go_on, ended, never = (threading.Event() for _ in range(4))

    def held() -> None:
        begun.set()
        assert go_on.wait(30)
        ended.set()

    async def main() -> None:
        workers = WorkerThreads(1)
        with anyio.move_on_after(0.2):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(workers.run, held)
                await anyio.sleep(0.05)
                tasks.start_soon(workers.run, never.set)
        assert begun.is_set()
        go_on.set()
        with anyio.fail_after(20):
            assert await workers.run(lambda: 7) == 7
        workers.close()

    anyio.run(main)
    assert ended.is_set()
    assert not never.is_set()


def test_one_caller_after_another_needs_one_thread() -> None:
    async def main() -> set[int]:
        workers = WorkerThreads(4)
        threads = {await workers.run(threading.get_ident) for _ in range(200)}
        workers.close()
        return threads

    assert len(anyio.run(main)) == 1


def test_who_asks_for_much_keeps_nobody_waiting_for_all_of_it() -> None:
    go_on, done = threading.Event(), list[str]()

    async def main() -> None:
        workers = WorkerThreads(1)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(workers.run, lambda: go_on.wait(30), "ann")
            await anyio.lowlevel.checkpoint()
            for who in ("ann", "ann", "ann", "bob", "bob", "cem"):
                tasks.start_soon(workers.run, partial(done.append, who), who)
            await anyio.lowlevel.checkpoint()
            go_on.set()
        workers.close()

    anyio.run(main)
    assert done == ["ann", "bob", "cem", "ann", "bob", "ann"]


def test_what_waits_when_the_workers_are_sent_home_is_done_all_the_same() -> None:
    go_on, done = threading.Event(), list[int]()

    async def main() -> None:
        workers = WorkerThreads(1)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(workers.run, lambda: go_on.wait(30))
            for number in range(3):
                tasks.start_soon(workers.run, partial(done.append, number))
            await anyio.lowlevel.checkpoint()
            workers.close()
            go_on.set()

    anyio.run(main)
    assert done == [0, 1, 2]
