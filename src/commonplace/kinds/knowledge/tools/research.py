"""The research profile: two tools, under the names that deep-research clients call them by."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commonplace.kinds.knowledge import tools as knowledge
from commonplace.kinds.knowledge.tools.research_tools import FETCH, SEARCH
from commonplace.tools.profile import Profile

if TYPE_CHECKING:
    from commonplace.space import Space

_INSTRUCTIONS = """\
The user's own library. search finds notes, media, chats, characters, prompts and documents by their words and returns \
an id, a title, a url and a snippet of each; fetch reads one by its id."""


def instructions(space: Space) -> str:
    """Return the instructions for an agent that has never seen the server."""
    return _INSTRUCTIONS


PROFILE = Profile("research", (SEARCH, FETCH), instructions, unlisted=knowledge.TOOLS)
