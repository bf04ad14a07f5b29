"""Notifications about lists that change: who listens, and how they are notified in both protocol eras."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import anyio
import mcp_types as types
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    PromptsListChanged,
    ResourcesListChanged,
    ServerEvent,
    ToolsListChanged,
)
from mcp.shared.subscriptions import event_to_notification

from commonplace.errors import CommonplaceError
from commonplace.kinds.tables import LISTED
from commonplace.library import Library
from commonplace.server.libraries import Libraries
from commonplace.store.stored_settings import StoredSettings
from commonplace.tools.profile import ListName, Lists, Profile

log = logging.getLogger(__name__)

Context = ServerRequestContext[Any, Any]
Work = Callable[[str, Callable[[Library], Any]], Awaitable[Any]]
SpaceOf = Callable[[Context], str]

POLL_S = 1.0
"""The seconds that a change by another process may go unnoticed."""
PATIENCE_S = 5.0
"""The seconds that a client of the handshake era has to take a notification before it is dropped."""
_CONNECTED = "commonplace/changes"
_EVENTS: dict[ListName, ServerEvent] = {
    "tools": ToolsListChanged(),
    "prompts": PromptsListChanged(),
    "resources": ResourcesListChanged(),
}


class Changes:
    """The lists that somebody listens to, by space and profile. Lives on the event loop."""

    def __init__(self, work: Work, libraries: Libraries, most: int) -> None:
        self._work = work
        self._libraries = libraries
        self._most = most
        """The largest number of listeners to one profile of one space."""
        self._watches: dict[tuple[str, str], _Watch] = {}

    @property
    def watched(self) -> int:
        """The number of (space, profile) pairs that somebody listens to."""
        return len(self._watches)

    def nudge(self, space: str) -> None:
        """Look at the lists of a space at once rather than at the next turn, after a write."""
        for (watched, _), watch in self._watches.items():
            if watched == space:
                watch.wake.set()

    def close(self) -> None:
        """End every stream of changes and notify its clients."""
        for watch in self._watches.values():
            watch.listen.close()

    @asynccontextmanager
    async def watch(self, space: str, profile: Profile) -> AsyncIterator[_Watch]:
        """Watch a profile's lists during the block: subscribers to the watch hear of changes since it began."""
        key = (space, profile.name)
        watch = self._watches.get(key)
        if watch is None:
            watch = _Watch(space, profile.lists, self._work, self._libraries, self._most)
            self._watches[key] = watch
        watch.watchers += 1
        try:
            await watch.ready()
            yield watch
        finally:
            watch.watchers -= 1
            if not watch.watchers:
                del self._watches[key]
                watch.stop()


class _Watch:
    """The watch over the lists of one profile in one space, shared by all who listen."""

    def __init__(self, space: str, lists: Lists, work: Work, libraries: Libraries, most: int) -> None:
        self.bus = InMemorySubscriptionBus()
        self.listen = ListenHandler(self.bus, max_subscriptions=most)
        self.wake = anyio.Event()
        self.watchers = 0
        self._space = space
        self._lists = lists
        self._work = work
        self._libraries = libraries
        self._number = (-1, -1)
        self._seen: dict[ListName, Hashable] = {}
        self._task: asyncio.Task[None] | None = None
        self._starting = anyio.Lock()

    async def ready(self) -> None:
        """Take the state of the lists, before anybody is promised to hear of changes."""
        async with self._starting:
            if self._task is None:
                await self._work(self._space, self._look)
                self._task = asyncio.get_running_loop().create_task(self._run())

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        while True:
            with anyio.move_on_after(POLL_S):
                await self.wake.wait()
            self.wake = anyio.Event()
            if self._libraries.peek(self._space) is None:
                continue  # closed, as others are used more; whoever writes here opens it again
            try:
                changed = await self._work(self._space, self._look)
            except CommonplaceError:
                continue  # such as a busy store: the next turn looks again
            except Exception:
                log.exception("the lists of %s could not be compared", self._space)
                continue
            for name in changed:
                await self.bus.publish(_EVENTS[name])

    def _look(self, library: Library) -> list[ListName]:
        """Return the lists that changed since the last look. The log tells first whether anything can have."""
        number = (library.store.last_change(), int(library.store.drawer(StoredSettings).get(LISTED) or 0))
        if number == self._number:
            return []
        now = {name: fingerprint(library) for name, fingerprint in self._lists.items()}
        changed = [name for name in now if self._seen and now[name] != self._seen[name]]
        self._number, self._seen = number, now
        return changed


ProfileOf = Profile | Callable[[Context], Profile]
"""A profile, or a function that returns the profile of a request."""


def _profile(of: ProfileOf, context: Context) -> Profile:
    return of if isinstance(of, Profile) else of(context)


def listen_handler(changes: Changes, of: ProfileOf, space_of: SpaceOf) -> Any:
    """Return the handler of `subscriptions/listen`: clients of 2026-07-28 hear of the lists of their own space."""

    async def listen(
        context: Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        profile = _profile(of, context)
        async with changes.watch(space_of(context), profile) as watch:
            return await watch.listen(context, _without_constant_lists(params, profile.lists))

    return listen


def _without_constant_lists(
    params: types.SubscriptionsListenRequestParams, lists: Lists
) -> types.SubscriptionsListenRequestParams:
    """Return the request without lists that never change, so that these are not acknowledged either."""
    wanted = params.notifications
    supported = types.SubscriptionFilter(
        tools_list_changed=wanted.tools_list_changed if "tools" in lists else None,
        prompts_list_changed=wanted.prompts_list_changed if "prompts" in lists else None,
        resources_list_changed=wanted.resources_list_changed if "resources" in lists else None,
    )
    return params.model_copy(update={"notifications": supported})


def announce_changes(changes: Changes, of: ProfileOf, space_of: SpaceOf) -> Any:
    """Return middleware that announces the lists that change, and connects clients of the handshake era to them."""

    async def announce(ctx: Context, call_next: CallNext) -> HandlerResult:
        result = await call_next(ctx)
        if ctx.method in ("initialize", "server/discover") and isinstance(result, dict):
            profile = _profile(of, ctx)
            _announce(result.get("capabilities", {}), profile.lists, modern=ctx.method == "server/discover")
            if ctx.method == "initialize":
                await _connect(changes, profile, space_of(ctx), ctx)
        return result

    return announce


def _announce(capabilities: dict[str, Any], lists: Lists, *, modern: bool) -> None:
    """Set `listChanged` for each list: the SDK sets it for all or none, and only the profile knows which change."""
    for name in _EVENTS:
        if name in capabilities:
            capabilities[name]["listChanged"] = name in lists
    if modern and "resources" in capabilities:
        capabilities["resources"]["subscribe"] = False


async def _connect(changes: Changes, profile: Profile, space: str, context: Context) -> None:
    """Forward changes to this connection until it ends, but none before the client is ready."""
    connection = context.session._connection  # where the SDK keeps what is to be done when a client leaves
    if connection.state.setdefault(_CONNECTED, context) is not context:
        return  # it has said hello before
    inbox, outbox = anyio.create_memory_object_stream[ServerEvent](len(_EVENTS))
    waiting: set[ServerEvent] = set()

    def hear(event: ServerEvent) -> None:
        if connection.initialized.is_set() and event not in waiting:
            waiting.add(event)
            inbox.send_nowait(event)

    async def forward() -> None:
        async for event in outbox:
            waiting.discard(event)
            with anyio.move_on_after(PATIENCE_S):
                await connection.notify(event_to_notification(event, {}).method, None)

    async with AsyncExitStack() as stack:
        stack.callback(outbox.close)
        stack.callback(inbox.close)
        watch = await stack.enter_async_context(changes.watch(space, profile))
        stack.callback(watch.bus.subscribe(hear))
        task = asyncio.get_running_loop().create_task(forward())
        stack.callback(task.cancel)
        await connection.exit_stack.enter_async_context(stack.pop_all())
