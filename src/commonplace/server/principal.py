"""Who is calling, and what they may do."""

from __future__ import annotations

from commonplace.lazy_dataclass import dataclass
from commonplace.store.accounts import SCOPES


@dataclass(frozen=True, slots=True)
class Principal:
    """A caller, once known. The space is theirs by right: it comes from here and from nothing a caller sends."""

    name: str
    space: str
    scopes: frozenset[str]
    collections: tuple[str, ...] = ()
    """The only collections of documents they may see, and nothing else of the space; none: everything."""

    def may(self, scope: str) -> bool:
        """Whether a scope is held: `admin` implies `write`, which implies `read`."""
        return not self.scopes.isdisjoint(SCOPES[SCOPES.index(scope) :])


OWNER = Principal("owner", "default", frozenset(SCOPES))
"""The person at this machine: standard input, and the doors where nobody else can reach them."""
