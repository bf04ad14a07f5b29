"""The terms of rows, and the changes that rows make to the ledger's counts of them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from commonplace.index.turbopuffer.rows import Row

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
        """Return the terms of one of `FIELDS`."""
        return self.words if field == "words" else self.body if field == "body" else self.title


def apart(terms: str) -> str:
    """Return terms with one blank before and after each, also where a sign that is no term stood between two."""
    text = f" {terms} "
    return text if "  " not in text else f" {' '.join(terms.split())} "


@dataclass(frozen=True, slots=True)
class CountedRow:
    """The attributes of a row that are counted."""

    namespace: str
    generation: int
    kind: str
    language: str
    many: int
    embedded: int
    title: str
    body: str
    words: str


def counted_row(row: Row) -> CountedRow:
    """Return the counted attributes of a row."""
    embedded = row.vector is not None
    place = (row.namespace, row.generation, row.kind, row.language, row.many, embedded)
    return CountedRow(*place, row.title, row.body, row.words)


class CountChanges:
    """A sum of changes to the counts, by added and removed rows."""

    def __init__(self) -> None:
        self.terms: Counter[tuple[str, str]] = Counter()
        self.tallies: Counter[str] = Counter()

    def add(self, row: CountedRow, sign: int) -> None:
        """Count a row: `sign` is 1 for an added one, -1 for a removed one."""
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
