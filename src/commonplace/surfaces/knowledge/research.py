"""The research profile: two tools, under the names that deep-research clients call them by."""

from __future__ import annotations

from commonplace.library import Library
from commonplace.surfaces import knowledge
from commonplace.surfaces.knowledge.research_tools import FETCH, SEARCH
from commonplace.surfaces.profile import Profile

_INSTRUCTIONS = """\
The user's own library. search finds notes, media, chats, characters, prompts and documents by their words and returns \
an id, a title, a url and a snippet of each; fetch reads one by its id."""


def instructions(library: Library) -> str:
    """What an agent that has never seen the server is told."""
    return _INSTRUCTIONS


PROFILE = Profile("research", (SEARCH, FETCH), instructions, unlisted=knowledge.TOOLS)
