"""The contents of a library and how ready it is: its vectors, and what is found by words only for now."""

from __future__ import annotations

from dataclasses import dataclass

from commonplace.errors import Command, Sentence

_MINUTE, _HOUR = 60, 3600
_SOON_S = 90


@dataclass(frozen=True, slots=True)
class Coverage:
    """The share of a library's passages that has vectors, and the model of these vectors."""

    model: str | None
    embedded: int
    total: int

    @property
    def pending(self) -> int:
        return self.total - self.embedded


@dataclass(frozen=True, slots=True)
class Status:
    """The contents of a library and how ready it is."""

    items: dict[str, int]
    collections: dict[str, int]
    chunks: int
    changes: int
    indexed: int
    """The change the lexical index is level with."""
    coverage: Coverage
    better_model: str | None
    switching: Coverage | None = None
    """The coverage of the model that is to take the place of this one."""
    index_trouble: str = ""
    """The reason, in a sentence, that an index on a service is behind; empty where nothing went wrong."""
    pending: Pending | None = None
    """The part that is found by its words only, and what happens next; None where everything has its vectors."""


@dataclass(frozen=True, slots=True)
class Pending:
    """A count of passages without a vector of the model that answers."""

    passages: int
    total: int
    seconds: float | None
    """Seconds their vectors will take at the pace of whoever makes them now; None where nobody does."""
    tended: bool
    """True: this process makes them beside its calls."""

    @property
    def sentence(self) -> Sentence:
        """Return how many they are and what happens next, for people and agents."""
        verb = "is found by its words only" if self.total == 1 else "are found by their words only"
        noun = "passage" if self.total == 1 else "passages"
        return Sentence(f"{self.passages:,} of {self.total:,} {noun} {verb}; ", *self._next, ".")

    @property
    def _next(self) -> tuple[str | Command, ...]:
        if self.seconds is not None:
            return (f"about {_worded(self.seconds)} left",)
        if self.tended:
            return ("the rest is under way",)
        return ("`", Command("embed"), "` has them found by meaning, too")


def _worded(seconds: float) -> str:
    if seconds < _SOON_S:
        return f"{max(1, round(seconds))} seconds" if round(seconds) > 1 else "a second"
    if seconds < _SOON_S * _MINUTE:
        return f"{round(seconds / _MINUTE)} minutes"
    return f"{round(seconds / _HOUR)} hours"
