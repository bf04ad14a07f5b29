"""A question of typed searches: how texts spell it, how a generator puts it otherwise, and its lists as one answer.

A typed search is what to look for by words, by meaning, or by what an answer might say.
"""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from commonplace.errors import Command, Sentence
from commonplace.index.scope import Scope
from commonplace.model import Filter, Stage
from commonplace.models.roles import Generator
from commonplace.search.blend import Fused, Fusion, falling, retrieved
from commonplace.search.engine import within
from commonplace.search.lists import Listed, NamesOf, best_of
from commonplace.search.request import Parsed
from commonplace.store.base import Store
from commonplace.store.chunks import Chunks
from commonplace.store.items import Items
from commonplace.text.terms import Term, query_terms
from commonplace.text.token_estimates import reach

Kind = Literal["lex", "vec", "hyde"]

MOST_SEARCHES = 10
_LINE = re.compile(r"\s*(lex|vec|hyde|intent)\s*:\s*(\S.*?)\s*\Z", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Search:
    """One list to make: `lex` by the words of a text, `vec` by its meaning, `hyde` by that of an imagined answer."""

    kind: Kind
    text: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}"


@dataclass(frozen=True, slots=True)
class QueryDocument:
    """Typed searches in one text, a line each, and what the caller is after."""

    searches: tuple[Search, ...]
    intent: str = ""


def read_document(text: str) -> QueryDocument | None:
    """Return the searches of a text in which every line that is not blank is typed; None for plain text.

    `intent:` stands at most once and never alone.
    """
    searches: list[Search] = []
    intents: list[str] = []
    for line in filter(str.strip, text.split("\n")):
        typed = _LINE.match(line)
        if typed is None:
            return None
        kind, said = typed[1].lower(), typed[2]
        if kind == "intent":
            intents.append(said)
        else:
            searches.append(Search(kind, said))  # type: ignore[arg-type]  # the pattern knows no other
    if not 1 <= len(searches) <= MOST_SEARCHES or len(intents) > 1:
        return None
    return QueryDocument(tuple(searches), *intents)


def typed_lines(text: str) -> list[Search]:
    """Return the searches of a text, whatever else is in it: for those who were told to write nothing else and did."""
    lines = (_LINE.match(line.strip().lstrip("-*• ").strip("`")) for line in text.split("\n"))
    found = [(typed[1].lower(), typed[2].strip('"“”` ')) for typed in lines if typed]
    return [Search(kind, said) for kind, said in found if kind != "intent" and said]  # type: ignore[arg-type]


def untyped_line(text: str) -> int | None:
    """Return the number of the first untyped line, from 1, in a text with typed lines; None if all or none are."""
    lines = [(number, _LINE.match(line)) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    if not any(typed for _, typed in lines):
        return None
    return next((number for number, typed in lines if not typed), None)


# the question and its answer

Role = Literal["original", "typed", "variant"]
"""The origin of a search: the caller's own text, one that the caller typed, or one that a generator wrote."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question as typed searches.

    `plain`: they are one text in the caller's own words, searched in one way or in both. Where it is searched in
    both, a generator may put it otherwise.
    """

    searches: tuple[Search, ...]
    filter: Filter
    plain: bool = False
    limit: int = 10
    min_score: float = 0.0
    intent: str = ""
    rerank: bool = False
    candidates: int = 30
    """How many of the best a reranker looks at."""
    embed: Command = Command("embed")
    """The command that makes vectors, of the program that asks."""

    @property
    def no_vectors(self) -> Sentence:
        """Return the sentence for a library without vectors."""
        return Sentence("Vector index not found. Run '", self.embed, "' first to create embeddings.")


@dataclass(frozen=True, slots=True)
class SearchTask:
    """A search with its parsed text, its weight, and the scope that its phrases and exclusions leave."""

    search: Search
    weight: float
    parsed: Parsed
    scope: Scope
    role: Role

    @property
    def meaning(self) -> str:
        """Return the text whose vector is searched: its words and beginnings."""
        return " ".join((self.parsed.words, *self.parsed.prefixes))


@dataclass(frozen=True, slots=True)
class RankedList:
    """A list, the search that it answers, and its weight in the fusion."""

    search: Search
    weight: float
    listed: Listed
    role: Role


@dataclass(frozen=True, slots=True)
class PlacedHit:
    """One hit before it is presented: an item at its best passage, and what went into its score."""

    item_id: int
    chunk_id: int
    score: float
    rank: int
    """Among the fused, from 1."""
    retrieval: float
    reranked: float | None
    fused: Fused


@dataclass(frozen=True, slots=True)
class HybridAnswer:
    """The answer to a question: hits best first, the lists they come from, and notes for the caller."""

    hits: tuple[PlacedHit, ...]
    lists: tuple[RankedList, ...]
    stages: tuple[Stage, ...]
    notes: tuple[str, ...]
    terms: tuple[Term, ...]
    """What the words of the searches became, for snippets."""
    intent: tuple[Term, ...]
    languages: tuple[str, ...]


# other ways to ask the same

MOST: dict[Kind, int] = {"lex": 1, "vec": 2, "hyde": 1}
REMEMBERED = 1000
MOST_TOKENS = 300
"""Of what a generator writes: four lines, the last of them a few sentences."""
MOST_ASKED = 500
"""Tokens of a query that a generator reads: a longer one says enough for itself."""

SYSTEM = """You help a search engine by putting a query in other words. Write exactly four lines and nothing else:
lex: three to six keywords, some of them the query's own, with synonyms and the full forms of abbreviations
vec: the query as a full question in plain words
vec: the same need put in quite different words
hyde: two sentences that a document with the answer might contain
Use the language of the query. Keep names, numbers and code as they are. Answer nothing and invent no facts beyond the \
last line."""


class Expansion:
    """A generator and the variants it wrote, the newest thousand. Threads may share it."""

    def __init__(self, generator: Generator) -> None:
        self._generator = generator
        self._known: OrderedDict[tuple[str, str], tuple[Search, ...]] = OrderedDict()
        self._lock = threading.Lock()

    def variants(self, query: str, languages: Sequence[str], seconds: float) -> tuple[Search, ...]:
        """Return at most one `lex`, two `vec` and one `hyde`. A `lex` that shares no term with the query is dropped.

        Raise StageOmitted where they are not there in `seconds`.
        """
        key = self._generator.name, query
        with self._lock:
            known = self._known.get(key)
        if known is None:
            written = within(seconds, lambda: self._ask(query, seconds))
            known = _useful(query, typed_lines(written), languages)
            with self._lock:
                if known:  # what brought nothing is written anew the next time
                    self._known[key] = known
                while len(self._known) > REMEMBERED:
                    self._known.popitem(last=False)
        return known

    def forget(self, query: str) -> None:
        """Forget the variants of a query, which are then written anew the next time."""
        with self._lock:
            self._known.pop((self._generator.name, query), None)

    def _ask(self, query: str, seconds: float) -> str:
        text = query[: reach(query, 0, 4 * MOST_ASKED)]
        return self._generator.generate(f"Query: {text}", system=SYSTEM, max_tokens=MOST_TOKENS, timeout=seconds)


def _useful(query: str, written: Sequence[Search], languages: Sequence[str]) -> tuple[Search, ...]:
    """Return as many of the searches of each kind as MOST has, without a `lex` that shares no term with the query."""
    room = dict(MOST)
    query_forms = _forms(query, languages)
    variants: list[Search] = []
    for search in written:
        if not room.get(search.kind) or not search.text.strip():
            continue
        if search.kind == "lex" and query_forms.isdisjoint(_forms(search.text, languages)):
            continue
        room[search.kind] -= 1
        variants.append(search)
    return tuple(variants)


def _forms(text: str, languages: Sequence[str]) -> set[str]:
    return {form for term in query_terms(text, languages) for form in term.forms}


# one order


def merged(lists: Sequence[RankedList], limit: int, meaning_share: float, names_of: NamesOf) -> list[PlacedHit]:
    """Return at most `limit` hits in the fused order, with scores that fall along it.

    `meaning_share`: how much of its scores the leg by meaning is believed beside words, from 0 to 1.
    """
    fusion = Fusion([(one.listed.items, one.weight) for one in lists])
    if len(lists) == 1:
        order, scores = fusion.items, list(lists[0].listed.scores)
    else:
        words, meaning = (
            best_of(one.listed for one in lists if (one.search.kind == "lex") == lexical) for lexical in (True, False)
        )
        first = frozenset[int]().union(*(one.listed.together for one in lists if one.role != "variant"))
        keys = {item: (item not in first, -fusion.of(item).total, -words.get(item, 0.0)) for item in fusion.items}
        order = _in_order(keys, names_of)
        scores = falling([retrieved(words.get(item, 0.0), meaning_share * meaning.get(item, 0.0)) for item in order])
    return [
        PlacedHit(item, _passage(lists, fused), score, rank, score, None, fused)
        for rank, (item, score) in enumerate(zip(order[:limit], scores, strict=False), start=1)
        for fused in (fusion.of(item),)
    ]


def _in_order(keys: Mapping[int, tuple[bool, float, float]], names_of: NamesOf) -> list[int]:
    """Return items by their keys; equals by name, which is looked up only where there are any."""
    order = sorted(keys, key=keys.__getitem__)
    equal = {item for pair in pairwise(order) if keys[pair[0]] == keys[pair[1]] for item in pair}
    if not equal:
        return order
    names = names_of(sorted(equal))
    return sorted(order, key=lambda item: (keys[item], names.get(item, "")))


def _passage(lists: Sequence[RankedList], fused: Fused) -> int:
    """Return the id of the passage that the first list with the item found: lists by words come first."""
    first = fused.places[0]
    return lists[first.list].listed.chunks[first.rank - 1]


def passages_to_rerank(store: Store, hits: Sequence[PlacedHit]) -> list[str]:
    """Return what a reranker reads of each hit: where the passage stands, then what it says."""
    chunks = {chunk.id: chunk for chunk in store.drawer(Chunks).get([hit.chunk_id for hit in hits])}
    titles = {item.id: item.title for item in store.drawer(Items).get([hit.item_id for hit in hits])}
    texts = []
    for hit in hits:
        chunk = chunks.get(hit.chunk_id)
        path = dict.fromkeys(filter(None, (titles.get(hit.item_id, ""), *(chunk.headings if chunk else ()))))
        texts.append("\n".join(filter(None, (" › ".join(path), chunk.text if chunk else ""))))
    return texts
