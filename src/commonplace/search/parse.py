"""What a person typed, as what to look for. Any text is a query; nothing in it is ever a syntax error."""

from __future__ import annotations

from dataclasses import field

import regex

from commonplace.lazy_dataclass import dataclass

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
