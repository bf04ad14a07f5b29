"""The service behind every door: the open libraries, the limits, and the execution of calls."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

import anyio

from commonplace.errors import CommonplaceError, Denied, RateLimited, TooLarge, Unavailable, WritesDisabled
from commonplace.library import Library, space_folder
from commonplace.model import JSON
from commonplace.profiles.registry import profile
from commonplace.server.background import Background
from commonplace.server.calls import Failure, run
from commonplace.server.changes import Changes
from commonplace.server.libraries import Libraries
from commonplace.server.limits import Buckets
from commonplace.server.principal import Principal
from commonplace.server.watching import Watching
from commonplace.server.workers import WorkerThreads
from commonplace.settings import Settings
from commonplace.tools.profile import Registry
from commonplace.tools.tool import Answer, Call, Reply, Report, Tool
from commonplace.tools.view import View

T = TypeVar("T")
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
