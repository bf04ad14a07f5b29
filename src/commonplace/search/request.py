"""What a search is asked: the request, and its text as what to look for.

Any text is a query; nothing in it is ever a syntax error.
"""

from __future__ import annotations

from dataclasses import field
from typing import get_args

import numpy as np
import regex
from numpy.typing import NDArray

from commonplace.errors import InvalidInput
from commonplace.lazy_dataclass import dataclass
from commonplace.model import Filter, Mode

MOST_HITS = 10_000
MOST_BEFORE = 1_000_000
"""How far a list can be paged through: whoever follows its cursors comes to its end."""


@dataclass(frozen=True, slots=True)
class Request:
    """One search. Everything is optional but the text."""

    text: str
    mode: Mode = "auto"
    filter: Filter = Filter()
    limit: int = 10
    offset: int = 0
    min_score: float = 0.0
    snippet_length: int = 300
    per_item: bool = True
    """One hit per item, at its best passage; otherwise one per passage."""
    explain: bool = False
    exclude: frozenset[int] = frozenset()
    """Ids of items to leave out, before the limit."""
    shown: frozenset[int] = frozenset()
    """Ids of items that pages before had, passed over wherever they are now, like the first `offset`."""
    vector: NDArray[np.float32] | None = field(default=None, compare=False)
    """The vector of the text, where it is known already: then nothing is embedded."""
    least_cosine: float | None = None
    """Only passages whose vectors are this near to the query's; one that has none yet is left out."""
    most_per_item: int = 0
    """Of an item at most so many passages, 0 for all; where `per_item` is off."""
    by_name: bool = True
    """Whether a document answers that has a word of the query in its key alone."""
    rerank: bool = False
    """Whether the best are looked at a second time, more closely."""
    expand: bool = False
    """Whether what the best have in common is looked for, too."""

    @property
    def reach(self) -> int:
        """Return the number of items from the top of the list to the end of the page."""
        return self.offset + len(self.shown) + self.limit

    def __post_init__(self) -> None:
        if self.mode not in get_args(Mode):
            raise InvalidInput(f"mode must be one of {', '.join(get_args(Mode))}, not {self.mode!r}.")
        if not 1 <= self.limit <= MOST_HITS:
            raise InvalidInput(f"limit must be between 1 and {MOST_HITS}, not {self.limit}.")
        if not 0 <= self.offset <= MOST_BEFORE:
            raise InvalidInput(f"offset must be between 0 and {MOST_BEFORE}, not {self.offset}.")


# the text

LONGEST = 100_000  # characters; a longer text has said what it is about by then

NO_WORD = "The query has no word that can be looked for."

_TOKEN = regex.compile(
    r"""
      (?<!\S) (?P<minus>-)? (?: " (?P<phrase>[^"]+) " | [“„] (?P<phrase>[^“”„]+) [”“] | « (?P<phrase>[^«»]+) » )
    | (?<!\S) - (?P<excluded>\w\S*)
    | (?<!\S) [(\[{]* (?P<prefix>\w{2,}) \* [)\]},.;:!?]* (?!\S)
    | (?P<plain>\S+)
    """,
    regex.VERBOSE,
)
_SEARCHABLE = regex.compile(r"\w|\p{Extended_Pictographic}|\p{Regional_Indicator}")
_MARKS = '"“„«-*'
"""Without any of these a query is nothing but words."""


@dataclass(frozen=True, slots=True)
class Parsed:
    """The parts of a query, still as text. Phrases are among the words too: they rank as words and bind as phrases."""

    words: str
    phrases: tuple[str, ...] = ()
    prefixes: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    only_excluded: bool = field(default=False, compare=False)
    """Whether the words were all meant to be left out: whoever wants none of them back has nothing to look for."""


def parse(text: str) -> Parsed:
    """Return the parts of a query. Any text is one.

    `"a phrase"` is required, `-word` and `-"a phrase"` are refused, `pre*` is a beginning; the rest are words.

    Telephones write “a phrase”, and people „so“ or « so ». A quote without a partner, a lone `-` or `*`, `AND`,
    brackets and colons are plain text. A query of nothing but exclusions has nothing to look for: it is plain words.
    """
    text = text[:LONGEST].replace("\0", " ")
    if not any(mark in text for mark in _MARKS):
        return Parsed(" ".join(text.split()))  # most queries by far
    words, phrases, prefixes, excluded = [], [], [], []
    for token in _TOKEN.finditer(text):
        if token["phrase"] is not None and _SEARCHABLE.search(token["phrase"]):
            if token["minus"]:
                excluded.append(token["phrase"])
            else:
                phrases.append(token["phrase"])
                words.append(token["phrase"])
        elif token["excluded"] is not None:
            excluded.append(token["excluded"])
        elif token["prefix"] is not None:
            prefixes.append(token["prefix"])
        elif token["plain"] is not None:
            words.append(token["plain"])
        elif not token["minus"]:  # a sign, such as ½, that is a word by itself all the same
            words.append(token["phrase"])
    if not words and not prefixes:
        return Parsed(" ".join(excluded), only_excluded=bool(excluded))
    return Parsed(" ".join(words), tuple(phrases), tuple(prefixes), tuple(excluded))
