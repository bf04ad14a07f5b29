"""Other ways to ask the same: written by a generator, remembered while they are of use."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence

from commonplace.models.roles import Generator
from commonplace.search.timed import within
from commonplace.search.typed import Kind, Search, typed_lines
from commonplace.text.terms import query_terms
from commonplace.text.token_estimates import reach

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
