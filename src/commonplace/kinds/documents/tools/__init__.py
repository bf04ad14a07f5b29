"""The documents profile: eight tools that read, and none that writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commonplace.kinds.documents.tools.tools import TOOLS
from commonplace.kinds.documents.visible import view_of
from commonplace.tools.profile import Profile

if TYPE_CHECKING:
    from commonplace.space import Space

_INSTRUCTIONS = """\
Documentation, in collections. documents_list_collections shows which there are and documents_list_documents what is in
one. Ask documents_search in plain words, or documents_search_batch several questions at once; a hit names its section
(sectionHeading, matchHeading). Read that with documents_get_section instead of the whole document, look over a long one
with documents_get_outline, and follow it to its like with documents_find_related."""


def instructions(space: Space) -> str:
    """Return what the tools are for. No collection is named, since not every caller sees all of them."""
    return _INSTRUCTIONS.replace("\n", " ")


PROFILE = Profile("documents", TOOLS, instructions, view=view_of)
