"""A profile is a set of tools, resources and prompts that is served together under one name."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Literal

from commonplace.lazy_dataclass import dataclass
from commonplace.model import JSON
from commonplace.settings import Settings
from commonplace.tools.tool import Call, Tool

if TYPE_CHECKING:
    from commonplace.library import Library

ListName = Literal["tools", "prompts", "resources"]
Lists = Mapping[ListName, Callable[["Library"], Hashable]]
"""The lists that change while the server runs, each with what is different once it has: a count, a change number."""


@dataclass(frozen=True)
class Resources:
    """What can be read by address. Entries and contents are as MCP writes them."""

    read: Callable[[Call, str], Mapping[str, JSON]]
    """One content: `uri`, `mimeType`, and `text` or `blob`. Raises NotFound."""
    templates: Sequence[Mapping[str, JSON]] = ()
    entries: Callable[[Call], Sequence[Mapping[str, JSON]]] = lambda call: ()
    missing_by_era: bool = True
    """Whether what is missing has a code of its own before 2026-07-28, as those revisions would have it."""


@dataclass(frozen=True)
class Prompts:
    """Texts a person may start from. As MCP writes them."""

    page: Callable[[Call, str | None], tuple[Sequence[Mapping[str, JSON]], str | None]]
    """The prompts from a cursor on, and where the next page begins."""
    get: Callable[[Call, str, Mapping[str, str]], Mapping[str, JSON]]
    """`description` and `messages` of one, its arguments filled in. Raises NotFound or InvalidInput."""


@dataclass(frozen=True)
class Profile:
    """What one kind of client sees."""

    name: str
    tools: tuple[Tool, ...]
    instructions: Callable[[Library], str]
    """What is inside, for an agent that has never seen the server."""
    unlisted: tuple[Tool, ...] = ()
    """Callable here, but not listed."""
    aliases: tuple[Tool, ...] = ()
    """The same, but listed after the others where `list_aliases` is set."""
    always_writes: bool = False
    """Its tools that write are listed whatever `allow_writes` says: writing is what it is for."""
    resources: Resources | None = None
    prompts: Prompts | None = None
    complete: Callable[[Call, Mapping[str, JSON], str, str], Sequence[str]] | None = None
    """(reference, name of the argument, what was typed) -> how it may go on."""
    lists: Lists = field(default_factory=dict)
    """Clients are told when one of these changes."""
    exact: bool = False
    """Whether its tools keep JSON as it was sent, so that a call is refused which no reader of JSON could keep so."""
    brief: bool = False
    """Whether its list leaves out titles, answers, and what objects in arguments are made of: descriptions say it."""
    hidden: Callable[[Settings], Collection[str]] = lambda settings: ()
    """The names of tools that the settings turn off. Callers cannot tell them from unknown ones."""


class Registry:
    """The tools of a profile by every spelling of their names: `notes.search` and `notes_search` are one tool."""

    def __init__(
        self,
        profile: Profile,
        *,
        writable: bool,
        underscored: bool = False,
        hidden: Collection[str] = (),
        aliases: bool = False,
    ) -> None:
        self.profile = profile
        self._writable = writable or profile.always_writes
        offered = [tool for tool in profile.tools if tool.name not in hidden]
        listed = (tool for tool in (*offered, *(profile.aliases if aliases else ())) if self.allows(tool))
        self.tools = tuple(replace(tool, name=spelled(tool.name)) if underscored else tool for tool in listed)
        """What is listed, in order."""
        everything = (*offered, *profile.unlisted, *profile.aliases)
        self._by_name = {spelled(name): tool for tool in everything for name in (tool.name, *tool.aliases)}

    def find(self, name: str) -> Tool | None:
        """A tool by any of its names, also one that writes where that is not allowed."""
        return self._by_name.get(spelled(name))

    def allows(self, tool: Tool) -> bool:
        return self._writable or not tool.writes

    def unknown(self, name: str) -> str:
        """What to say of a name that is no tool's."""
        from difflib import get_close_matches

        close = get_close_matches(name, [tool.name for tool in self.tools], n=1)
        hint = f" Did you mean {close[0]}?" if close else ""
        return f"There is no tool {name!r}.{hint} The tools are {', '.join(tool.name for tool in self.tools)}."


def spelled(name: str) -> str:
    """Return the name that all spellings of a tool's name share."""
    return name.replace(".", "_")
