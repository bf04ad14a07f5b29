"""Parse a lexical query in each of its modes. Any text at all can be parsed; each repair becomes a warning."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

from commonplace.index.words.wanted import Atom, AtomKind, Group, Wanted, joined, shown
from commonplace.search.request import NO_WORD
from commonplace.text.analyze import exact

LexicalMode = Literal["match", "prefix", "phrase", "boolean"]

_QUOTED = re.compile(r'"([^"]*)"|[^\s"]+|"')
_BOOLEAN = re.compile(r'[()]|"(?P<phrase>[^"]*)(?P<closed>"?)|(?P<word>[^\s()"]+)')
_OPERATORS = ("AND", "OR", "NOT")


@dataclass(frozen=True, slots=True)
class ParsedQuery:
    """A parsed query: the terms to look for, None where there are none, and warnings for the caller about repairs."""

    wanted: Wanted | None
    warnings: tuple[str, ...] = ()


def read(text: str, mode: LexicalMode) -> ParsedQuery:
    """Return the query `text` as parsed in this mode."""
    if mode == "boolean":
        return _Boolean().read(text)
    if mode == "phrase":
        phrase = text.strip()
        if len(phrase) > 1 and phrase[0] == phrase[-1] == '"':
            phrase = phrase[1:-1]
        wanted = _atom("phrase", phrase)
    elif mode == "prefix":
        wanted = joined("and", [atom for word in text.split() if (atom := _atom("prefix", word.rstrip("*")))])
    else:
        wanted = joined("and", match_atoms(text))
    return ParsedQuery(wanted, () if wanted else (NO_WORD,))


def match_atoms(text: str) -> list[Wanted]:
    """Return the words and the phrases between balanced quotes, in order."""
    parts = []
    for token in _QUOTED.finditer(text):
        quoted = token[1] is not None
        atom = _atom("phrase" if quoted else "word", token[1] if quoted else token[0])
        if atom is not None:
            parts.append(atom)
    return parts


def _atom(kind: AtomKind, text: str) -> Wanted | None:
    text = " ".join(text.split())
    return Atom(kind, text) if exact(text).strip() else None


@dataclass(slots=True)
class _Level:
    """An open pair of parentheses: alternatives (OR) of operands that are all required (AND)."""

    groups: list[list[Wanted]] = field(default_factory=lambda: [[]])
    begun: bool = False
    operator: str = ""
    """AND or OR, waiting for what follows."""
    negated: bool = False

    def add(self, part: Wanted | None) -> None:
        """Add the next operand. None is one without a word in it: it adds nothing, but still takes its operators."""
        if self.operator == "OR":
            self.groups.append([])
        if part is not None:
            self.groups[-1].append(_negated(part) if self.negated else part)
        self.begun, self.operator, self.negated = True, "", False

    def whole(self) -> Wanted | None:
        """Return the expression of this level, or None where it has no operand."""
        ways = [way for parts in self.groups if (way := joined("and", parts)) is not None]
        return joined("or", ways)


def _negated(part: Wanted) -> Wanted:
    return part.parts[0] if isinstance(part, Group) and part.join == "not" else Group("not", (part,))


class _Boolean:
    """A parser of AND, OR, NOT, parentheses, phrases and prefixes; NOT binds tightest, then AND, then OR."""

    def __init__(self) -> None:
        self._levels = [_Level()]
        self._repairs: dict[str, None] = {}

    def read(self, text: str) -> ParsedQuery:
        for token in _BOOLEAN.finditer(text):
            word = token["word"]
            if token["phrase"] is not None:
                if not token["closed"]:
                    self._repair("A missing closing quote was added")
                self._operand(_atom("phrase", token["phrase"]), f'"{token["phrase"]}"')
            elif word is None:
                self._parenthesis(token[0])
            elif word in _OPERATORS:
                self._operator(word)
            else:
                kind: AtomKind = "prefix" if word.endswith("*") else "word"
                self._operand(_atom(kind, word.rstrip("*")), word)
        while len(self._levels) > 1:
            self._repair("A missing closing parenthesis was added")
            self._close()
        self._check_dangling(self._levels[0])
        wanted = self._levels[0].whole()
        if wanted is None:
            return ParsedQuery(None, (NO_WORD,))
        return ParsedQuery(
            wanted, tuple(f"{repair}. The query was read as: {shown(wanted)}" for repair in self._repairs)
        )

    def _operand(self, part: Wanted | None, written: str) -> None:
        if part is None and self._levels[-1].negated:
            self._repair(f"NOT {written} refuses nothing, for there is no word in it to look for")
        self._levels[-1].add(part)

    def _operator(self, word: str) -> None:
        level = self._levels[-1]
        if word == "NOT":
            if level.negated:
                self._repair("A repeated NOT was read once")
            level.negated = True
        elif level.negated or level.operator or not level.begun:
            self._repair(f"A dangling {word} was dropped")
        else:
            level.operator = word

    def _parenthesis(self, sign: str) -> None:
        if sign == "(":
            self._levels.append(_Level())
        elif len(self._levels) == 1:
            self._repair("A closing parenthesis without an opening one was dropped")
        else:
            self._close()

    def _close(self) -> None:
        level = self._levels.pop()
        self._check_dangling(level)
        whole = level.whole()
        if whole is None and not level.begun:
            self._repair("Empty parentheses were dropped")
        self._levels[-1].add(whole)

    def _check_dangling(self, level: _Level) -> None:
        if level.negated:
            self._repair("A dangling NOT was dropped")
        if level.operator:
            self._repair(f"A dangling {level.operator} was dropped")

    def _repair(self, what: str) -> None:
        self._repairs[what] = None
