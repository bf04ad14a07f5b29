"""A question of typed searches and its answer: the lists they made, and the hits with what went into their scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from commonplace.errors import Command, Sentence
from commonplace.index.scope import Scope
from commonplace.model import Filter, Stage
from commonplace.search.blend import Fused
from commonplace.search.lists import Listed
from commonplace.search.parse import Parsed
from commonplace.search.typed import Search
from commonplace.text.terms import Term

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
