"""The table of screens: which function shows or changes what, by method and path."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from commonplace.profiles.commonplace.search_tools import SEARCH
from commonplace.tools.tool import Tool
from commonplace.web import (
    connect_screen,
    health_screen,
    memories_screen,
    memory_screen,
    reader_screen,
    search_screen,
    sources_screen,
)
from commonplace.web.frame import Answer

Run = Callable[[Any, Any], Answer]


@dataclass(frozen=True, slots=True)
class Screen:
    """An address of the page."""

    method: str
    pattern: str
    run: Run
    """Takes a library and a visit. An open screen gets neither from a stranger."""
    is_open: bool = False
    """Whether it is shown to those who are not signed in."""
    meter: Tool | None = None
    """The tool whose allowance it is taken off."""


class Screens:
    """All addresses of the page."""

    def __init__(self, *screens: Screen) -> None:
        self._screens = [(screen, re.compile(screen.pattern, re.DOTALL)) for screen in screens]

    def find(self, method: str, path: str) -> Screen | None:
        """Return the screen at a path, or None."""
        return next((one for one, pattern in self._screens if one.method == method and pattern.fullmatch(path)), None)


SCREENS = Screens(
    Screen("GET", "/", search_screen.search, meter=SEARCH),
    Screen("GET", "/live", search_screen.live, meter=SEARCH),
    Screen("GET", "/i/.+", reader_screen.read),
    Screen("GET", "/item", reader_screen.read_by_address),
    Screen("GET", "/memories", memories_screen.memories),
    Screen("POST", "/memories", memory_screen.write),
    Screen("GET", "/memories/export", memories_screen.export),
    Screen("POST", "/memories/delete", memories_screen.delete),
    Screen("POST", "/memories/undo", memories_screen.undo),
    Screen("GET", "/memories/[0-9]+", memory_screen.memory),
    Screen("GET", "/memories/[0-9]+/images/[0-9]+", memory_screen.image),
    Screen("POST", "/memories/[0-9]+/correct", memory_screen.correct),
    Screen("POST", "/memories/[0-9]+/replace", memory_screen.replace),
    Screen("POST", "/memories/[0-9]+/delete", memory_screen.delete_one),
    Screen("GET", "/sources", sources_screen.sources),
    Screen("POST", "/sources", sources_screen.add),
    Screen("GET", sources_screen.ONE, sources_screen.source),
    Screen("POST", "/sources/sync", sources_screen.sync),
    Screen("POST", "/sources/context", sources_screen.describe),
    Screen("GET", "/health", health_screen.health),
    Screen("POST", "/health/check", health_screen.check),
    Screen("GET", "/connect", connect_screen.connect, is_open=True),
)
