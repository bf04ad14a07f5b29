"""The table of screens: which function shows or changes what, by method and path."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from commonplace.profiles.commonplace.search_tools import SEARCH
from commonplace.tools.tool import Tool
from commonplace.web import connect_screen, reader_screen, search_screen
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
    Screen("GET", "/connect", connect_screen.connect, is_open=True),
)
