"""Analyze a query into the terms the library has, and choose the window of a text that shows them."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

from commonplace.index.base import WordReader
from commonplace.index.words.items import Scoring
from commonplace.index.words.query import LexicalQuery
from commonplace.kinds.knowledge.scoring import scoring_of
from commonplace.search.plan import refused, required, understood
from commonplace.search.request import Parsed, parse
from commonplace.text.analyze import stems
from commonplace.text.matches import Matcher
from commonplace.text.snippet import Match, snippet
from commonplace.text.terms import Term, beginning

MOST_MATCHES = 2000
"""Matches that decide where a window is; a text with more has the query's words everywhere."""
STRETCH = 100_000
"""Characters that are searched at a time: of a long text no more than it takes to find these matches."""
_BLANK = re.compile(r"\s")
_MARGIN = 64  # around a window, so that no word at its edge is taken for another


@dataclass(frozen=True, slots=True)
class AnalyzedQuery:
    """A query as terms of the library, with its scoring."""

    query: LexicalQuery
    missing: int
    """Number of its words that no item has."""
    languages: tuple[str, ...]
    scoring: Scoring
    """A function from an item's words to a score."""
    rarity: Mapping[Term, float] = field(default_factory=dict)
    """How rare a term is in this library; 1 for a term that is not here."""

    @property
    def empty(self) -> bool:
        return not self.query.terms and not self.missing


def ask(text: str, reader: WordReader) -> AnalyzedQuery:
    """Return the terms of a query that the library has. Words are taken as they are, without spelling correction."""
    return _planned(parse(text), reader)


def _planned(parsed: Parsed, reader: WordReader) -> AnalyzedQuery:
    whole = " ".join((parsed.words, *(prefix for prefix in parsed.prefixes if beginning(prefix) is None)))
    languages, words = understood(whole, reader)
    prefix_terms = [_begun(form, languages) for prefix in parsed.prefixes if (form := beginning(prefix))]
    known_terms = [term for term in words if term.match == "prefix" or any(map(reader.idf, term.forms))]
    query = LexicalQuery((*known_terms, *prefix_terms), required(parsed, reader), refused(parsed, reader))
    rarity = {term: min(filter(None, map(reader.idf, term.forms))) for term in known_terms if term.match == "word"}
    missing = len(words) - len(known_terms)
    return AnalyzedQuery(query, missing, languages, scoring_of(query, missing, reader), rarity)


def _begun(form: str, languages: Sequence[str]) -> Term:
    """Return the term of a prefix, with its stems in case it is a whole word: titles are indexed as stems."""
    whole = (stems(form, language).split()[-1] for language in languages)
    return Term(tuple(dict.fromkeys((form, *whole))), 1.0, "prefix")


@dataclass(frozen=True, slots=True)
class Window:
    """A snippet, and the place in the text of the match that it shows; -1 where it shows none."""

    text: str
    at: int


class Snippets:
    """A chooser of windows on texts, for one query. Words of earlier queries decide between equals."""

    def __init__(self, asked: AnalyzedQuery, recent: Sequence[Term] = ()) -> None:
        content = [term for term in asked.query.terms if term.weight >= 1 or term.match == "prefix"]
        others = [term for term in asked.query.terms if term not in content]
        self._content = Matcher(content, asked.languages)
        self._others = Matcher(others, asked.languages)
        self._sides = (
            (self._content, [asked.rarity.get(term, 1.0) for term in content]),
            (self._others, [asked.rarity.get(term, 1.0) for term in others]),
        )
        self._recent = Matcher(recent, asked.languages) if recent else None

    def matches(self, text: str) -> list[Match]:
        """Return where the query's words stand; its function words only where no other word does."""
        return _first_matches(self._content, text) or _first_matches(self._others, text)

    def best(self, texts: Sequence[str]) -> int | None:
        """Return the index of the text with most of the query's words, rare ones first; None where none has any.

        Rare is what few of these texts have, and few passages of the library. Of equals it is the first.
        """
        for matcher, rarity in self._sides:
            terms_of_texts = [{term for _, _, term in matcher.find(text)} for text in texts]
            spread = Counter(chain.from_iterable(terms_of_texts))
            if spread:
                weights = {term: rarity[term] * math.log((len(texts) + 1) / spread[term]) for term in spread}
                worth = [sum(sorted(weights[term] for term in terms)) for terms in terms_of_texts]
                return worth.index(max(worth))
        return None

    def stretch(self, text: str, room: int) -> tuple[int, int]:
        """Return where the rarest words stand together within `room` characters; the first of equals."""
        for matcher, rarity in self._sides:
            if matches := _first_matches(matcher, text):
                terms = [term for _, _, term in matches]
                together = _stretches(matches, room)
                worth = [sum(rarity[term] for term in set(terms[first:last])) for _, first, last in together]
                _, first, last = together[worth.index(max(worth))]
                return matches[first][0], max(end for _, end, _ in matches[first:last])
        return 0, 0

    def window(self, text: str, length: int) -> Window:
        """Return the best window of at most `length` characters."""
        matches = self.matches(text)
        if self._recent is not None and matches:
            matches = self._preferred(text, matches, length)
        shown = snippet(text, matches, length)
        at = next((start for start, _, _ in matches if start >= shown.start), -1)
        return Window(shown.text, at if at < shown.end else -1)

    def _preferred(self, text: str, matches: Sequence[Match], length: int) -> list[Match]:
        """Return the matches of the window with most distinct words, of equals the one with most of earlier queries."""
        room = max(1, length - 2)
        stretches = list(_stretches(matches, room))
        most = max(count for count, _, _ in stretches)
        best, chosen = -1, (0, len(matches))
        for count, first, last in stretches:
            if count < most:
                continue
            middle = (matches[first][0] + matches[last - 1][1]) // 2
            low, high = middle - room // 2, middle + room // 2
            worth = self._recent_words(text, low, high)
            if worth > best:
                best, chosen = worth, (first, last)
        return list(matches[chosen[0] : chosen[1]])

    def _recent_words(self, text: str, low: int, high: int) -> int:
        """Return how many distinct words of earlier queries stand in a part of a text."""
        before = max(0, low - _MARGIN)
        matches = self._recent.find(text[before : max(0, high + _MARGIN)]) if self._recent else []
        return len({term for start, end, term in matches if low <= before + start and before + end <= high})


def _first_matches(matcher: Matcher, text: str) -> list[Match]:
    """Return the first places where a word of a query stands, at most `MOST_MATCHES`."""
    matches, start = list[Match](), 0
    while start < len(text) and len(matches) < MOST_MATCHES:
        blank = _BLANK.search(text, start + STRETCH)
        end = blank.end() if blank else len(text)
        matches += [(start + low, start + high, term) for low, high, term in matcher.find(text[start:end])]
        start = end
    return matches[:MOST_MATCHES]


def _stretches(matches: Sequence[Match], room: int) -> list[tuple[int, int, int]]:
    """Return for every match how many distinct words stand within reach, and the first and last match there."""
    stretches = []
    last = 0
    for first, (start, _, _) in enumerate(matches):
        last = max(last, first + 1)
        while last < len(matches) and matches[last][1] - start <= room:
            last += 1
        stretches.append((len({term for _, _, term in matches[first:last]}), first, last))
    return stretches
