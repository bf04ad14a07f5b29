"""A profile is a set of tools, resources and prompts that is served together under one name."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from commonplace.model import JSON
from commonplace.settings import Settings
from commonplace.tools.tool import Call, Tool, View

if TYPE_CHECKING:
    from commonplace.space import Space

ListName = Literal["tools", "prompts", "resources"]
Lists = Mapping[ListName, Callable[["Space"], Hashable]]
"""The lists that change while the server runs, each with a function whose value differs once its list has changed."""


@dataclass(frozen=True)
class StartOptions:
    """The choices of whoever starts a server."""

    settings: Mapping[str, JSON] = field(default_factory=dict)
    """Settings by name, beyond those of the environment and of the configuration."""
    space: str = "default"
    project: Path | None = None
    """The folder whose own collections of documents are shown."""
    with_global: bool = True
    collections: tuple[str, ...] = ()
    """The only collections of documents to be shown; all of them where none is named."""


@dataclass(frozen=True)
class Resources:
    """The resources of a profile. Entries and contents are as MCP writes them."""

    read: Callable[[Call, str], Mapping[str, JSON]]
    """Return one content: `uri`, `mimeType`, and `text` or `blob`. Raises NotFound."""
    templates: Sequence[Mapping[str, JSON]] = ()
    entries: Callable[[Call], Sequence[Mapping[str, JSON]]] = lambda call: ()
    missing_by_era: bool = True
    """Whether a missing resource has an error code of its own before 2026-07-28, as those revisions ask."""


@dataclass(frozen=True)
class Prompts:
    """The prompts of a profile, as MCP writes them."""

    page: Callable[[Call, str | None], tuple[Sequence[Mapping[str, JSON]], str | None]]
    """Return the prompts from a cursor on, and the next cursor or None."""
    get: Callable[[Call, str, Mapping[str, str]], Mapping[str, JSON]]
    """Return `description` and `messages` of a prompt with its arguments. Raises NotFound or InvalidInput."""


@dataclass(frozen=True)
class Profile:
    """A set of tools, resources and prompts for one kind of client."""

    name: str
    tools: tuple[Tool, ...]
    instructions: Callable[[Space], str]
    """Return the text a client gets when it connects: what is in the library, for an agent that is new to it."""
    unlisted: tuple[Tool, ...] = ()
    """Tools that can be called but are not listed."""
    aliases: tuple[Tool, ...] = ()
    """More such tools, listed after the others where `list_aliases` is set."""
    always_writes: bool = False
    """Whether its tools that write are listed whatever `allow_writes` says, because writing is its purpose."""
    resources: Resources | None = None
    prompts: Prompts | None = None
    complete: Callable[[Call, Mapping[str, JSON], str, str], Sequence[str]] | None = None
    """Return completions for (call, reference, argument name, typed text)."""
    lists: Lists = field(default_factory=dict)
    """The lists whose changes clients are notified of."""
    exact: bool = False
    """Whether its tools keep JSON exactly as it was sent, so that calls which no JSON reader could keep are refused."""
    brief: bool = False
    """Whether its tool list leaves out titles, output schemas and nested properties: the descriptions say it."""
    variables: Callable[[Mapping[str, str]], Mapping[str, JSON]] = lambda environment: {}
    """Return the settings that an environment made for another program means, by name."""
    prepare: Callable[[Settings, StartOptions], None] = lambda settings, options: None
    """Do what has to be done before its first call. Raise BadSetting for a setting that every call would fail of."""
    view: Callable[[Settings, StartOptions], View] | None = None
    """Return what the server shows of the documents. None: no tool of it names a collection by a project's alias."""
    hidden: Callable[[Settings], Collection[str]] = lambda settings: ()
    """Return the tools that the settings turn off. To callers they are the same as unknown ones."""


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
        """The listed tools, in order."""
        everything = (*offered, *profile.unlisted, *profile.aliases)
        self._by_name = {spelled(name): tool for tool in everything for name in (tool.name, *tool.aliases)}

    def find(self, name: str) -> Tool | None:
        """Return a tool by any of its names, or None; also one that writes where writing is not allowed."""
        return self._by_name.get(spelled(name))

    def allows(self, tool: Tool) -> bool:
        return self._writable or not tool.writes

    def unknown(self, name: str) -> str:
        """Return the sentence for a name that no tool has, with the nearest name."""
        from difflib import get_close_matches

        close = get_close_matches(name, [tool.name for tool in self.tools], n=1)
        hint = f" Did you mean {close[0]}?" if close else ""
        return f"There is no tool {name!r}.{hint} The tools are {', '.join(tool.name for tool in self.tools)}."


def spelled(name: str) -> str:
    """Return the name that all spellings of a tool's name share."""
    return name.replace(".", "_")
