"""What the service can check of a scope by itself."""

from __future__ import annotations

from commonplace.index.scope import Scope
from commonplace.index.turbopuffer.parts import Filter, one_of, value_of
from commonplace.index.turbopuffer.rows import GENERATION, SCOPE, scope_of

LISTED = 4_000
"""Item ids in one condition."""


def conditions(scope: Scope) -> list[Filter]:
    """What the service can check of a scope by itself, but for long lists of items."""
    asked: list[Filter] = []
    for name, values in (("kind", scope.kinds), ("parent", scope.parents), ("part", scope.parts)):
        if values:
            asked.append(one_of(name, values))
    if scope.tags:
        asked.append(("tags", "ContainsAny", tuple(map(value_of, scope.tags))))
    if len(scope.facets) == 1:
        asked.append(("scopes", "Contains", scope_of(scope.facets[0])))
    elif scope.facets:
        asked.append(("scopes", "ContainsAny", tuple(map(scope_of, scope.facets))))
    for facet in scope.must:
        generation = facet.removeprefix(GENERATION) if facet.startswith(GENERATION) else ""
        asked.append(("generation", "Eq", int(generation)) if generation else ("scopes", "Contains", scope_of(facet)))
    for name, (low, high) in (("created", scope.created), ("updated", scope.updated)):
        asked += [(name, "Gte", low)] if low is not None else []
        asked += [(name, "Lte", high)] if high is not None else []
    if scope.without is not None and 0 < len(scope.without) <= LISTED:
        asked.append(("item", "NotIn", tuple(scope.without.tolist())))
    return asked


def is_place(scope: Scope) -> bool:
    """Whether it is a place in a table, which says by itself what is in it."""
    return bool(scope.parents) and any(facet.startswith(SCOPE) for facet in scope.facets)
