"""The profiles by name. Each is loaded when it is first served."""

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
    "qmd": "commonplace.qmd.tools.tools",
    "knowledge": "commonplace.kinds.knowledge.tools",
    "research": "commonplace.kinds.knowledge.tools.research",
    "tables": "commonplace.kinds.tables.tools",
    "documents": "commonplace.kinds.documents.tools",
}
"""The module that declares each profile, loaded only when the profile is served."""


def profile_names() -> tuple[str, ...]:
    return (*PROFILES, "all")


@cache
def profile(name: str) -> Profile:
    """Return the profile of this name; `all` has every tool, for inspection. Raise InvalidInput for an unknown name."""
    if name == "all":
        return _everything()
    if name not in PROFILES:
        raise InvalidInput(f"There is no profile {name!r}. The profiles are {', '.join(profile_names())}.")
    declared: Profile = import_module(PROFILES[name]).PROFILE
    return declared


def _everything() -> Profile:
    """Return the profile of every tool; a name that an earlier profile has gets its profile's name as a prefix."""
    taken: dict[str, Tool] = {}
    for name in PROFILES:
        for tool in (*profile(name).tools, *profile(name).unlisted):
            if tool in taken.values():
                continue
            plain = tool.name if spelled(tool.name) not in taken else f"{name}.{tool.name}"
            taken[spelled(plain)] = replace(tool, name=plain, aliases=())
    return Profile(
        "all", tuple(taken.values()), profile(DEFAULT).instructions, exact=True, view=profile("documents").view
    )
