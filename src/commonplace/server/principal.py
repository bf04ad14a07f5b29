"""The caller, and what they may do."""

from __future__ import annotations

from dataclasses import dataclass

from commonplace.store.accounts import SCOPES


@dataclass(frozen=True, slots=True)
class Principal:
    """An authenticated caller. Their space comes from here and never from what a caller sends."""

    name: str
    space: str
    scopes: frozenset[str]
    collections: tuple[str, ...] = ()
    """The collections of documents they are limited to, seeing nothing else of the space; empty: no limit."""

    def may(self, scope: str) -> bool:
        """Return whether a scope is held: `admin` implies `write`, which implies `read`."""
        return not self.scopes.isdisjoint(SCOPES[SCOPES.index(scope) :])


OWNER = Principal("owner", "default", frozenset(SCOPES))
"""The person at this machine: for standard input, and doors that nobody else can reach."""
