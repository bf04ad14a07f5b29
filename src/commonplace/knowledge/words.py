"""What a query asks for, as terms of the library; and the window of a text that shows them."""

from __future__ import annotations

from collections.abc import Sequence

from commonplace.index.base import WordReader
from commonplace.index.lexical_query import LexicalQuery
from commonplace.lazy_dataclass import dataclass
from commonplace.search.parse import Parsed, parse
from commonplace.search.plan import understood
from commonplace.text.matches import Matcher
from commonplace.text.snippet import Match, snippet
from commonplace.text.terms import Term, beginning, phrase_terms, phrases_of

MOST_MATCHES = 2000
"""Places that decide where a window is; a text with more says the same thing everywhere."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A query, analysed."""

    query: LexicalQuery
    missing: int
    """How many of its words no item has."""
    languages: tuple[str, ...]

    @property
    def empty(self) -> bool:
        return not self.query.terms and not self.missing


def ask(text: str, reader: WordReader) -> Asked:
    """The terms of a query that the library has. Words are taken as they are: none is guessed at."""
    return _planned(parse(text), reader)


def _planned(parsed: Parsed, reader: WordReader) -> Asked:
    begun = tuple(Term((form,), 1.0, "prefix") for prefix in parsed.prefixes if (form := beginning(prefix)))
    whole = " ".join((parsed.words, *(prefix for prefix in parsed.prefixes if beginning(prefix) is None)))
    languages, words = understood(whole, reader)
    known = [term for term in words if term.match == "prefix" or any(map(reader.idf, term.forms))]
    phrases = tuple(terms for phrase in parsed.phrases for terms in phrases_of(phrase))
    excluded = tuple(filter(None, map(phrase_terms, parsed.excluded)))
    return Asked(LexicalQuery((*known, *begun), phrases, excluded), len(words) - len(known), languages)


@dataclass(frozen=True, slots=True)
class Window:
    """A snippet, and where in the text the match that it shows is; -1 where it shows none."""

    text: str
    at: int


class Snippets:
    """Windows on texts for one query, and the ones before it, which decide between equals."""

    def __init__(self, asked: Asked, recent: Sequence[Term] = ()) -> None:
        content = [term for term in asked.query.terms if term.weight >= 1 or term.match == "prefix"]
        others = [term for term in asked.query.terms if term not in content]
        self._content = Matcher(content, asked.languages)
        self._others = Matcher(others, asked.languages)
        self._recent = Matcher(recent, asked.languages) if recent else None

    def matches(self, text: str) -> list[Match]:
        """Where the query's words stand; its function words only where no other does."""
        return (self._content.find(text) or self._others.find(text))[:MOST_MATCHES]

    def window(self, text: str, length: int) -> Window:
        """The best window."""
        matches = self.matches(text)
        if self._recent is not None and matches:
            matches = self._preferred(text, matches, length)
        shown = snippet(text, matches, length)
        at = next((start for start, _, _ in matches if start >= shown.start), -1)
        return Window(shown.text, at if at < shown.end else -1)

    def _preferred(self, text: str, matches: Sequence[Match], length: int) -> list[Match]:
        """The matches of the window with the most distinct words, of equals the one with most of earlier queries."""
        room = max(1, length - 2)
        stretches = list(_stretches(matches, room))
        most = max(count for count, _, _ in stretches)
        recent = self._recent.find(text) if self._recent else []
        best, chosen = -1, (0, len(matches))
        for count, first, last in stretches:
            if count < most:
                continue
            middle = (matches[first][0] + matches[last - 1][1]) // 2
            low, high = middle - room // 2, middle + room // 2
            worth = len({term for start, end, term in recent if low <= start and end <= high})
            if worth > best:
                best, chosen = worth, (first, last)
        return list(matches[chosen[0] : chosen[1]])


def _stretches(matches: Sequence[Match], room: int) -> list[tuple[int, int, int]]:
    """For every match: how many distinct words stand within reach of it, and from which match to which."""
    found = []
    last = 0
    for first, (start, _, _) in enumerate(matches):
        last = max(last, first + 1)
        while last < len(matches) and matches[last][1] - start <= room:
            last += 1
        found.append((len({term for _, _, term in matches[first:last]}), first, last))
    return found
