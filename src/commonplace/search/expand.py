"""Other ways to ask the same: written by a generator, remembered while they are of use."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence

from commonplace.search.timed import within
from commonplace.search.typed import Generator, Kind, Search
from commonplace.text.terms import query_terms

MOST: dict[Kind, int] = {"lex": 1, "vec": 2, "hyde": 1}
REMEMBERED = 1000


class Expansion:
    """A generator and the variants it wrote, the newest thousand. Threads may share it."""

    def __init__(self, generator: Generator, budget: float) -> None:
        self._generator, self._budget = generator, budget
        self._known: OrderedDict[str, tuple[Search, ...]] = OrderedDict()
        self._lock = threading.Lock()

    def variants(self, query: str, languages: Sequence[str]) -> tuple[Search, ...]:
        """At most one `lex`, two `vec` and one `hyde`. A `lex` that shares no term with the query is dropped."""
        with self._lock:
            known = self._known.get(query)
        if known is None:
            written = within(self._budget, lambda: self._generator.expand(query))
            known = _kept(query, written, languages)
            with self._lock:
                self._known[query] = known
                while len(self._known) > REMEMBERED:
                    self._known.popitem(last=False)
        return known

    def forget(self, query: str) -> None:
        """Variants that brought nothing are written anew the next time."""
        with self._lock:
            self._known.pop(query, None)


def _kept(query: str, written: Sequence[Search], languages: Sequence[str]) -> tuple[Search, ...]:
    room = dict(MOST)
    asked = _forms(query, languages)
    kept: list[Search] = []
    for search in written:
        if not room.get(search.kind) or not search.text.strip():
            continue
        if search.kind == "lex" and asked.isdisjoint(_forms(search.text, languages)):
            continue
        room[search.kind] -= 1
        kept.append(search)
    return tuple(kept)


def _forms(text: str, languages: Sequence[str]) -> set[str]:
    return {form for term in query_terms(text, languages) for form in term.forms}
