"""Typed searches: what to look for by words, by meaning, or by what an answer might say; and texts that spell them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

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
