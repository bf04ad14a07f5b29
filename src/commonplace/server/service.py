"""The service behind every door: the open libraries, the limits, and the execution of calls."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from queue import SimpleQueue
from typing import Any, TypeVar

import anyio

from commonplace.errors import Busy, CommonplaceError, Denied, RateLimited, TooLarge, Unavailable, WritesDisabled
from commonplace.library import Library
from commonplace.model import JSON
from commonplace.profiles.registry import profile
from commonplace.server.background import Background, Watching
from commonplace.server.calls import Failure, run
from commonplace.server.changes import Changes
from commonplace.server.libraries import Libraries
from commonplace.server.limits import Buckets
from commonplace.server.principal import Principal
from commonplace.settings import Settings
from commonplace.space import space_folder
from commonplace.tools.profile import Registry
from commonplace.tools.tool import Answer, Call, Reply, Report, Tool, View

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


Observer = Callable[[str, str, float], None]
"""Called after every call with the tool, `ok` or the error's code, and the seconds."""

CHARS_PER_TOKEN = 4
MOST_CLIENTS = 1000
"""Clients of which a server knows when they last called."""


@dataclass(frozen=True, slots=True)
class Visitor:
    """The caller behind one call or one connection, and what their door knows of them."""

    principal: Principal
    session: str | None = None
    config: Mapping[str, JSON] | str | None = None
    """Soft defaults, as the caller sent them."""
    metered: bool = False
    """Whether the door has already taken this call off the caller's allowance, to answer in its own way."""
    collections: tuple[str, ...] = ()
    """The collections of documents they ask to see, of those they may see."""
    client: str = ""
    """The name their program gives itself."""

    def call(self, library: Library, view: View) -> Call:
        """Return the context of a call on a library; `view` is what the server shows to everybody."""
        shown = view.only(self.principal.collections).only(self.collections)
        return Call(library, self.principal.name, self.session, self.config, view=shown, client=self.client)


class Service:
    """The executor of calls for all doors. Lives on the event loop; libraries work in threads."""

    def __init__(self, settings: Settings, observe: Observer | None = None, view: View = View()) -> None:
        self.settings = settings
        self.view = view
        self.libraries = Libraries(settings)
        self.observe = observe
        self.waiting = 0
        """The number of calls that have come and not been answered."""
        self._clients: dict[tuple[str, str], float] = {}
        """When a client last called, in seconds since 1970, by space and name; the latest comes last."""
        self._buckets = Buckets()
        self._workers = WorkerThreads(settings.concurrency)
        self.changes = Changes(self.work, self.libraries, settings.connections)
        self._background = Background(self.libraries) if settings.background else None
        self._watching = Watching(self.libraries, self.embed_soon) if settings.watch else None

    def registry(self, name: str) -> Registry:
        underscored = self.settings.tool_names == "underscore"
        served = profile(name)
        hidden, aliases = served.hidden(self.settings), self.settings.list_aliases
        return Registry(
            served, writable=self.settings.allow_writes, underscored=underscored, hidden=hidden, aliases=aliases
        )

    def permit(self, principal: Principal, registry: Registry, tool: Tool) -> None:
        """Raise WritesDisabled or Denied if the caller may not use the tool at all."""
        if not registry.allows(tool):
            raise WritesDisabled(tool.name)
        scope = "write" if tool.writes else "read"
        if not principal.may(scope):
            raise Denied(f"{tool.name} needs a key with the {scope} scope.")
        if principal.collections and not tool.within_view:
            raise Denied(f"{tool.name} shows the whole library, and this key is limited to collections of documents.")

    def meter(self, principal: Principal, tool: Tool) -> None:
        """Take one call off the caller's allowance. Raise RateLimited if there is none left."""
        allowances: dict[Hashable, int] = {(principal.name, tool.name): self.settings.rate_limit_per_minute}
        if tool.writes:
            allowances[principal.name, None] = self.settings.write_limit_per_minute
        wait = self._buckets.take_all(allowances)
        if wait > 0:
            raise RateLimited(tool.name, wait)

    async def call(
        self,
        visitor: Visitor,
        registry: Registry,
        tool: Tool,
        arguments: Mapping[str, JSON],
        progress: Report | None = None,
    ) -> Reply | Failure:
        """Run one call until it ends or times out, and return its reply or failure. Raise only if cancelled."""
        started = time.perf_counter()
        self._note_client(visitor)
        self.waiting += 1
        try:
            self.permit(visitor.principal, registry, tool)
            if not visitor.metered:
                self.meter(visitor.principal, tool)
            with anyio.fail_after(self.settings.call_seconds):
                answer = await self.run_in_thread(
                    visitor.principal.space, partial(self._run, visitor, tool, arguments, progress)
                )
        except CommonplaceError as error:
            answer = Failure.of(error)
        except TimeoutError:
            answer = Failure("unavailable", _gave_up(tool, self.settings.call_seconds), 504)
        finally:
            self.waiting -= 1
        if tool.writes:
            self.changes.nudge(visitor.principal.space)
        if self.observe:
            outcome = answer.code if isinstance(answer, Failure) else "ok"
            self.observe(tool.counted_as, outcome, time.perf_counter() - started)
        return answer

    def clients_of(self, space: str) -> dict[str, float]:
        """Return when each client last called in a space, in seconds since 1970, by the name it gives itself."""
        return {client: moment for (where, client), moment in self._clients.items() if where == space}

    def _note_client(self, visitor: Visitor) -> None:
        """Note who calls. Of very many clients those that called last are known."""
        if visitor.client:
            key = visitor.principal.space, visitor.client
            self._clients.pop(key, None)
            self._clients[key] = time.time()
            if len(self._clients) > MOST_CLIENTS:
                del self._clients[next(iter(self._clients))]

    async def work(self, space: str, task: Callable[[Library], T]) -> T:
        """Run a task that is no call on a space's library. Raise Unavailable if it takes longer than a call may."""
        try:
            with anyio.fail_after(self.settings.call_seconds):
                return await self.run_in_thread(space, task)
        except TimeoutError:
            raise Unavailable(
                f"The library has not answered for {self.settings.call_seconds:g} s. Try again in a minute."
            ) from None

    async def look(self, space: str, task: Callable[[Library], T]) -> T:
        """Run a quick read on a space's library, without a thread where the library is open and in a file."""
        if not self.settings.store:
            with self.libraries.borrow_open(space) as library:
                if library is not None:
                    return task(library)
        return await self.work(space, task)

    async def run_in_thread(self, space: str, task: Callable[[Library], T]) -> T:
        """Run a task on a space's library in a thread, without a time limit. If the caller goes, it still finishes.

        There are as many threads as calls may run at once; spaces take turns at them.
        """

        def run() -> T:
            with self.libraries.borrow(space) as library:
                done = task(library)
            self.follow(space)
            return done

        return await self._workers.run(run, whose=space)

    def begin(self) -> None:
        """Watch the folders of the server's own space, if it exists, without waiting for a first call."""
        if space_folder(self.settings.home, self.view.space).exists():
            self.follow(self.view.space)

    def follow(self, space: str) -> None:
        """Watch the folders of a space from now on, if the settings ask for it."""
        if self._watching:
            self._watching.visit(space)

    def embed_soon(self, space: str) -> None:
        """Schedule the vectors of documents that a watched folder has brought."""
        if self._background:
            self._background.nudge(space, wrote=True)

    def close(self) -> None:
        if self._watching:
            self._watching.close()
        if self._background:
            self._background.close()
        self._workers.close()
        self.libraries.close()

    def _run(
        self,
        visitor: Visitor,
        tool: Tool,
        arguments: Mapping[str, JSON],
        progress: Report | None,
        library: Library,
    ) -> Reply | Failure:
        call = visitor.call(library, self.view)
        if progress:
            call = replace(call, progress=progress)
        library.upkeep.tended = self._background is not None
        answer = run(tool, call, arguments)
        if self._background:  # here, where the call has ended: its caller may have gone long before
            self._background.nudge(visitor.principal.space, wrote=tool.writes)
        return answer if isinstance(answer, Failure) else self._capped(tool, with_text(answer))

    def _capped(self, tool: Tool, reply: Reply) -> Reply:
        size = sum(len(block.get("text", "")) for block in reply.content) // CHARS_PER_TOKEN
        most = self.settings.result_tokens
        if size > most:
            raise TooLarge(
                f"The answer of {tool.name} has about {size} tokens, and at most {most} are sent. "
                "Ask for less at once: a smaller limit, fewer addresses or a part of the text."
            )
        return reply


def with_text(answer: Answer) -> Reply:
    """Return an answer as a reply with text: its own content, or else its JSON."""
    if isinstance(answer, Reply):
        return answer
    compact = json.dumps(answer, ensure_ascii=False, separators=(",", ":"))
    return Reply(({"type": "text", "text": compact},), answer)


def _gave_up(tool: Tool, seconds: float) -> str:
    after = "It may still be carried out: look before you repeat it." if tool.writes else "Ask for less at once."
    return f"{tool.name} took longer than {seconds:g} s and was given up. {after}"
