"""The terms of rows, and how often they occur: what some rows add to the counts, and others take from them."""

from __future__ import annotations

from collections import Counter

from commonplace.index.turbopuffer.rows import Row
from commonplace.lazy_dataclass import dataclass

FIELDS = ("title", "body", "words")


@dataclass(frozen=True, slots=True)
class Terms:
    """A row's terms, each field with a blank before and after every term."""

    chunk: int
    created: int
    title: str
    body: str
    words: str

    def of(self, field: str) -> str:
        return self.words if field == "words" else self.body if field == "body" else self.title


def apart(terms: str) -> str:
    """A blank before and after every term, and no more where a sign that is no term stood between two."""
    text = f" {terms} "
    return text if "  " not in text else f" {' '.join(terms.split())} "


@dataclass(frozen=True, slots=True)
class Tallied:
    namespace: str
    generation: int
    kind: str
    language: str
    many: int
    embedded: int
    title: str
    body: str
    words: str


def tallied(row: Row) -> Tallied:
    embedded = row.vector is not None
    place = (row.namespace, row.generation, row.kind, row.language, row.many, embedded)
    return Tallied(*place, row.title, row.body, row.words)


class Tally:
    """What some rows add to the counts, and others take from them."""

    def __init__(self) -> None:
        self.terms: Counter[tuple[str, str]] = Counter()
        self.tallies: Counter[str] = Counter()

    def add(self, row: Tallied, sign: int) -> None:
        names = ["rows", f"namespace:{row.namespace}", f"kind:{row.kind}", f"language:{row.language}"]
        names.append(f"generation:{row.namespace}:{row.generation}")
        names += ["many"] * bool(row.many) + ["embedded"] * bool(row.embedded)
        for name in names:
            self.tallies[name] += sign
        for field, text in zip(FIELDS, (row.title, row.body, row.words), strict=True):
            terms = text.split()
            self.tallies[f"length:{field}"] += sign * len(terms)
            for term in set(terms):
                self.terms[field, term] += sign
