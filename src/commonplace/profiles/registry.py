"""Which profiles there are. Each is loaded when it is first served."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from importlib import import_module

from commonplace.errors import InvalidInput
from commonplace.tools.profile import Profile, spelled
from commonplace.tools.tool import Tool

DEFAULT = "commonplace"
PROFILES = {
    "commonplace": "commonplace.profiles.commonplace",
    "memory": "commonplace.kinds.memories.tools",
    "qmd": "commonplace.qmd.tools.profile",
    "knowledge": "commonplace.kinds.knowledge.tools",
    "research": "commonplace.kinds.knowledge.tools.research",
    "tables": "commonplace.kinds.tables.tools",
    "documents": "commonplace.kinds.documents.tools",
}
"""Where each profile is declared. One is loaded when it is served, so that none pays for the others."""


def profile_names() -> tuple[str, ...]:
    return (*PROFILES, "all")


@cache
def profile(name: str) -> Profile:
    """The profile of this name. `all` is everything there is, for inspection."""
    if name == "all":
        return _everything()
    if name not in PROFILES:
        raise InvalidInput(f"There is no profile {name!r}. The profiles are {', '.join(profile_names())}.")
    found: Profile = import_module(PROFILES[name]).PROFILE
    return found


def _everything() -> Profile:
    """Every tool, under its own name where no earlier profile has it, else with its profile's name before it."""
    taken: dict[str, Tool] = {}
    for name in PROFILES:
        for tool in (*profile(name).tools, *profile(name).unlisted):
            if tool in taken.values():
                continue
            plain = tool.name if spelled(tool.name) not in taken else f"{name}.{tool.name}"
            taken[spelled(plain)] = replace(tool, name=plain, aliases=())
    return Profile("all", tuple(taken.values()), profile(DEFAULT).instructions, exact=True)
