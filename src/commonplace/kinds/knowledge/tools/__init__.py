"""The knowledge profile: notes, media, chats, characters and prompts, one by one and all together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commonplace.kinds.knowledge.tools.everything import READING
from commonplace.kinds.knowledge.tools.library_resources import PROMPTS, RESOURCES, prompts_state
from commonplace.kinds.knowledge.tools.research import FETCH, SEARCH
from commonplace.kinds.knowledge.tools.write_tools import WRITING
from commonplace.store.listing import Listing
from commonplace.tools.profile import Profile

if TYPE_CHECKING:
    from commonplace.space import Space

TOOLS = (*READING, *WRITING)

_INSTRUCTIONS = """\
Personal material of the user: {counts}. Search all of it with knowledge.search, or one source with notes.search, \
media.search, chats.search, characters.search, prompts.search. Any word may match; items with all words come first; \
"quotes" require a phrase, -word excludes, word* is a beginning. Results have a snippet, a score from 0 to 1, a uri \
and a loc. Read on with knowledge.get or the source's get tool: pass the loc in retrieval with mode \
chunk_with_siblings and max_tokens to read around the match, mode full for everything (next_offset continues). \
media.transcript gives what is said when. Give every call the same session to have results you have seen left out of \
knowledge.search and to set defaults."""


def instructions(space: Space) -> str:
    """Return the instructions for an agent that has never seen the server."""
    counts = space.store.drawer(Listing).counts()
    kinds = {"note": "notes", "media": "media", "conversation": "chats", "character": "characters", "prompt": "prompts"}
    summary = ", ".join(f"{counts[kind]} {name}" for kind, name in kinds.items() if counts.get(kind)) or "nothing yet"
    return _INSTRUCTIONS.format(counts=summary)


PROFILE = Profile(
    "knowledge",
    TOOLS,
    instructions,
    aliases=(SEARCH, FETCH),
    resources=RESOURCES,
    prompts=PROMPTS,
    lists={"prompts": prompts_state},
)
