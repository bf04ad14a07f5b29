"""A tool is declared once: what it is called, what it takes and gives, and what does it. Every door serves it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from typing import TYPE_CHECKING

from commonplace.lazy_dataclass import dataclass
from commonplace.model import JSON
from commonplace.tools.arguments import Signature, check
from commonplace.tools.schema import Schema
from commonplace.tools.view import View

if TYPE_CHECKING:
    from commonplace.library import Library
    from commonplace.tools.sessions import Session

READ_ONLY = {"readOnlyHint": True, "destructiveHint": False, "idempotentHint": True, "openWorldHint": False}
LOOKS = {"readOnlyHint": True, "openWorldHint": False}
"""The same without the hints that mean nothing for a tool that only reads."""
ADDS = {"readOnlyHint": False, "destructiveHint": False, "idempotentHint": False, "openWorldHint": False}
CHANGES = {"readOnlyHint": False, "destructiveHint": True, "idempotentHint": False, "openWorldHint": False}

Report = Callable[[float, float | None, str], None]
"""Tells whoever waits how far a long call is: done, of how many, in words."""


def _untold(done: float, total: float | None, words: str) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Call:
    """Who is served by a call: their library, and what the door they came through knows of them."""

    library: Library
    owner: str = ""
    """Who calls, where several may share a library: sessions are theirs alone."""
    session: str | None = None
    """The session the connection stands for; one that an argument names comes before it."""
    config: Mapping[str, JSON] | str | None = None
    """Soft defaults as they were sent with the request; see `soft_config`."""
    progress: Report = _untold
    view: View = View()
    """Which collections of documents are shown to them."""
    client: str = ""
    """What the program that calls is called, as it says itself."""

    def open_session(self, handle: str | None) -> Session | None:
        """The session an argument names, or else the connection's; None where there is neither."""
        wanted = handle or self.session
        return self.library.sessions.of(self.owner).open(wanted, self.client) if wanted else None


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer whose text is not simply its JSON: explicit content blocks, as MCP writes them."""

    content: Sequence[Mapping[str, JSON]]
    structured: dict[str, JSON] | None = None


Answer = dict[str, JSON] | Reply
Handler = Callable[[Call, Mapping[str, JSON]], Answer]
Check = Callable[[str, Signature, Mapping[str, JSON]], dict[str, JSON]]
"""Turns what a caller sent into what a handler takes, or raises what to say instead."""


@dataclass(frozen=True)
class Tool:
    """A declaration. Schemas are JSON Schema 2020-12 with object roots; `output` is None where content says it all."""

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
    """What is listed under `_meta`."""
    within_view: bool = False
    """Whether it shows nothing beyond the caller's view: only such tools serve a key that is limited to collections."""

    @property
    def writes(self) -> bool:
        return not self.annotations["readOnlyHint"]

    @property
    def counted_as(self) -> str:
        """What its calls are counted under: a name of ours, of which there are few."""
        return self.name

    def call(self, call: Call, arguments: Mapping[str, JSON]) -> Answer:
        """Check the arguments, then do it. What was written is found by meaning, too, where that takes a moment."""
        given = self.check(self.name, self.signature, arguments)
        if not self.writes:
            return self.handler(call, given)
        before = call.library.store.last_change()
        answer = self.handler(call, given)
        call.library.upkeep.on_write.embed(before)
        return answer

    @cached_property
    def signature(self) -> Signature:
        return Signature(self.input)
