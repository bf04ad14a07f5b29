"""A tool, declared once: its name, its arguments and answer, and its handler. Every door serves it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from commonplace.model import JSON
from commonplace.tools.arguments import Signature, check
from commonplace.tools.schema import Schema

if TYPE_CHECKING:
    from commonplace.space import Space
    from commonplace.tools.sessions import Session


@dataclass(frozen=True, slots=True)
class View:
    """The part of the documents a server was started to show, and how it was narrowed. Narrowing never widens."""

    project: Path | None = None
    with_global: bool = True
    space: str = "default"
    """The server's own space: in any other, its project files declare only collections that exist already."""
    narrowed: tuple[tuple[str, ...], ...] = ()

    def only(self, names: Sequence[str]) -> View:
        """Return the view narrowed to these collections; no names leave it as it is."""
        return replace(self, narrowed=(*self.narrowed, tuple(names))) if names else self


READ_ONLY = {"readOnlyHint": True, "destructiveHint": False, "idempotentHint": True, "openWorldHint": False}
LOOKS = {"readOnlyHint": True, "openWorldHint": False}
"""`READ_ONLY` without the hints that mean nothing for a tool that only reads."""
ADDS = {"readOnlyHint": False, "destructiveHint": False, "idempotentHint": False, "openWorldHint": False}
CHANGES = {"readOnlyHint": False, "destructiveHint": True, "idempotentHint": False, "openWorldHint": False}

Report = Callable[[float, float | None, str], None]
"""Report the progress of a long call to its caller: done, of how many, in words."""


def _no_report(done: float, total: float | None, words: str) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Call:
    """The context of a call: the caller's space, and what the door knows of the caller."""

    space: Space
    owner: str = ""
    """The caller's name, where several may share a library: sessions are theirs alone."""
    session: str | None = None
    """The connection's session; one that an argument names comes before it."""
    config: Mapping[str, JSON] | str | None = None
    """Soft defaults as they were sent with the request; see `soft_config`."""
    progress: Report = _no_report
    view: View = View()
    """The collections of documents that are shown to the caller."""
    client: str = ""
    """The name that the calling program gives itself."""

    def open_session(self, handle: str | None) -> Session | None:
        """Return the session that an argument names, or the connection's; None without either."""
        from commonplace.tools.sessions import Sessions  # most calls have none

        name = handle or self.session
        if not name:
            return None
        return Sessions(self.space.store, self.space.settings, owner=self.owner).open(name, self.client)


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer whose text is not its JSON: explicit content blocks, as MCP writes them."""

    content: Sequence[Mapping[str, JSON]]
    structured: dict[str, JSON] | None = None


Answer = dict[str, JSON] | Reply
Handler = Callable[[Call, Mapping[str, JSON]], Answer]
Check = Callable[[str, Signature, Mapping[str, JSON]], dict[str, JSON]]
"""Return the handler's arguments from what a caller sent, or raise the error for the caller."""


@dataclass(frozen=True)
class Tool:
    """The declaration of a tool. Schemas are JSON Schema 2020-12 with object roots; None: the answer is content."""

    name: str
    title: str
    description: str
    input: Schema
    output: Schema | None
    annotations: Mapping[str, bool]
    handler: Handler
    aliases: tuple[str, ...] = ()
    check: Check = check
    meta: Mapping[str, JSON] = field(default_factory=dict)
    """The tool's `_meta` in a list."""
    within_view: bool = False
    """Whether it shows nothing outside the caller's view: only such tools serve a key limited to collections."""

    @property
    def writes(self) -> bool:
        return not self.annotations["readOnlyHint"]

    @property
    def counted_as(self) -> str:
        """The name its calls are counted under: one of ours, of which there are few."""
        return self.name

    def call(self, call: Call, arguments: Mapping[str, JSON]) -> Answer:
        """Check the arguments, run the handler, and embed what it wrote where that takes only a moment."""
        given = self.check(self.name, self.signature, arguments)
        if not self.writes:
            return self.handler(call, given)
        before = call.space.store.last_change()
        answer = self.handler(call, given)
        call.space.upkeep.on_write.embed(before)
        return answer

    @cached_property
    def signature(self) -> Signature:
        return Signature(self.input)
