"""Our own profile: eight tools over everything a library holds."""

from __future__ import annotations

from commonplace.kinds.documents.visible import view_of
from commonplace.model import number_of
from commonplace.profiles.commonplace.browsing import BROWSE, STATUS, collection_names
from commonplace.profiles.commonplace.fetching import FETCH
from commonplace.profiles.commonplace.search_tools import RELATED, SEARCH
from commonplace.profiles.commonplace.writing import FORGET, REMEMBER, REVISE
from commonplace.space import Space
from commonplace.tools.profile import Profile

TOOLS = (SEARCH, FETCH, BROWSE, RELATED, REMEMBER, REVISE, FORGET, STATUS)
LONGEST = 2000


def instructions(space: Space) -> str:
    """Return what is in the library and which tools there are, for an agent that is new to it."""
    status = space.status()
    counts = ", ".join(number_of(*pair) for pair in status.items.items()) or "nothing yet"
    collections = ", ".join(list(collection_names(space, status.collections).values())[:30])
    lines = [
        f"Commonplace keeps what the user wants found again. It holds {counts}.",
        f"Collections: {collections}." if collections else "",
        "Use search to find passages, fetch to read on, browse to look around, related to follow a thread.",
    ]
    if space.settings.allow_writes:
        lines.append("Use remember for what should be known next time, revise to correct it, forget to remove it.")
    if status.pending:
        lines.append(status.pending.sentence)
    return "\n".join(line for line in lines if line)[:LONGEST]


PROFILE = Profile("commonplace", TOOLS, instructions, brief=True, view=view_of)
