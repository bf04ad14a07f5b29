"""What every door shares: the open libraries, the limits, and how a call is carried out."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace
from functools import partial
from typing import TypeVar

import anyio

from commonplace.errors import CommonplaceError, Denied, RateLimited, TooLarge, Unavailable, WritesDisabled
from commonplace.lazy_dataclass import dataclass
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
from commonplace.server.workers import Workers
from commonplace.settings import Settings
from commonplace.tools.profile import Registry
from commonplace.tools.tool import Answer, Call, Reply, Report, Tool
from commonplace.tools.view import View

T = TypeVar("T")
Observer = Callable[[str, str, float], None]
"""Told of every call: the tool, `ok` or the code of its error, and its seconds."""

CHARS_PER_TOKEN = 4


@dataclass(frozen=True, slots=True)
class Visitor:
    """Who came through which door, for one call or one connection."""

    principal: Principal
    session: str | None = None
    config: Mapping[str, JSON] | str | None = None
    """Soft defaults as they were sent."""
    metered: bool = False
    """The door has taken this call off the caller's allowance already, to answer in its own way."""
    collections: tuple[str, ...] = ()
    """The collections of documents they ask to be shown, of those they may see."""
    client: str = ""
    """What their program calls itself."""

    def call(self, library: Library, view: View) -> Call:
        """`view` is what the server shows to anybody."""
        shown = view.only(self.principal.collections).only(self.collections)
        return Call(library, self.principal.name, self.session, self.config, view=shown, client=self.client)


class Service:
    """Carries out calls for all doors. Lives on the event loop; libraries work in threads."""

    def __init__(self, settings: Settings, observe: Observer | None = None, view: View = View()) -> None:
        self.settings = settings
        self.view = view
        self.libraries = Libraries(settings)
        self.observe = observe
        self.waiting = 0
        """Calls that have come and not been answered."""
        self._buckets = Buckets()
        self._workers = Workers(settings.concurrency)
        self.changes = Changes(self.work, self.libraries, settings.connections)
        self._background = Background(self.libraries) if settings.background else None
        self._watching = Watching(self.libraries, self.brought) if settings.watch else None

    def registry(self, name: str) -> Registry:
        underscored = self.settings.tool_names == "underscore"
        found = profile(name)
        hidden, aliases = found.hidden(self.settings), self.settings.list_aliases
        return Registry(
            found, writable=self.settings.allow_writes, underscored=underscored, hidden=hidden, aliases=aliases
        )

    def permit(self, principal: Principal, registry: Registry, tool: Tool) -> None:
        """Raise what keeps a caller from a tool altogether."""
        if not registry.allows(tool):
            raise WritesDisabled(tool.name)
        scope = "write" if tool.writes else "read"
        if not principal.may(scope):
            raise Denied(f"{tool.name} needs a key with the {scope} scope.")
        if principal.collections and not tool.within_view:
            raise Denied(f"{tool.name} shows the whole library, and this key is limited to collections of documents.")

    def meter(self, principal: Principal, tool: Tool) -> None:
        """Take one call off the caller's allowance, or raise RateLimited."""
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
        """One call, to its end or to the end of its time. Never raises but when the caller went away."""
        started = time.perf_counter()
        self.waiting += 1
        try:
            self.permit(visitor.principal, registry, tool)
            if not visitor.metered:
                self.meter(visitor.principal, tool)
            with anyio.fail_after(self.settings.call_seconds):
                answer = await self.unhurried(
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

    async def work(self, space: str, task: Callable[[Library], T]) -> T:
        """Do something with a space's library that is no call, and for no longer than one may take."""
        try:
            with anyio.fail_after(self.settings.call_seconds):
                return await self.unhurried(space, task)
        except TimeoutError:
            raise Unavailable(
                f"The library has not answered for {self.settings.call_seconds:g} s. Try again in a minute."
            ) from None

    async def look(self, space: str, task: Callable[[Library], T]) -> T:
        """The same for a plain read: where the library is open and in a file, no thread is needed."""
        if not self.settings.store:
            with self.libraries.borrow_open(space) as library:
                if library is not None:
                    return task(library)
        return await self.work(space, task)

    async def unhurried(self, space: str, task: Callable[[Library], T]) -> T:
        """Do something with a space's library, in a thread. A caller who goes away leaves it to finish on its own.

        As many threads as may be busy at once, so that there is nothing else to count; spaces take turns at them.
        """

        def run() -> T:
            with self.libraries.borrow(space) as library:
                done = task(library)
            self.follow(space)
            return done

        return await self._workers.run(run, whose=space)

    def begin(self) -> None:
        """Watch the folders of the server's own space, if there is one yet: nobody has to call first."""
        if space_folder(self.settings.home, self.view.space).exists():
            self.follow(self.view.space)

    def follow(self, space: str) -> None:
        """Watch the folders of a space from now on, where the settings have them watched."""
        if self._watching:
            self._watching.visit(space)

    def brought(self, space: str) -> None:
        """A folder has brought something: its vectors are made beside the calls."""
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
        return answer if isinstance(answer, Failure) else self._capped(tool, worded(answer))

    def _capped(self, tool: Tool, reply: Reply) -> Reply:
        size = sum(len(block.get("text", "")) for block in reply.content) // CHARS_PER_TOKEN
        most = self.settings.result_tokens
        if size > most:
            raise TooLarge(
                f"The answer of {tool.name} has about {size} tokens, and at most {most} are sent. "
                "Ask for less at once: a smaller limit, fewer addresses or a part of the text."
            )
        return reply


def worded(answer: Answer) -> Reply:
    """An answer with its text: its own JSON, unless it says otherwise."""
    if isinstance(answer, Reply):
        return answer
    compact = json.dumps(answer, ensure_ascii=False, separators=(",", ":"))
    return Reply(({"type": "text", "text": compact},), answer)


def _gave_up(tool: Tool, seconds: float) -> str:
    after = "It may still be carried out: look before you repeat it." if tool.writes else "Ask for less at once."
    return f"{tool.name} took longer than {seconds:g} s and was given up. {after}"
