"""A scope as filters of the service."""

from __future__ import annotations

from commonplace.index.scope import Scope
from commonplace.index.turbopuffer.parts import Filter, one_of, value_of
from commonplace.index.turbopuffer.rows import GENERATION, SCOPE, scope_of

LISTED = 4_000
"""Item ids in one condition."""


def conditions(scope: Scope) -> list[Filter]:
    """Return the filters for a scope, which the service checks by itself. Long lists of items are not among them."""
    filters: list[Filter] = []
    for name, values in (("kind", scope.kinds), ("parent", scope.parents), ("part", scope.parts)):
        if values:
            filters.append(one_of(name, values))
    if scope.tags:
        filters.append(("tags", "ContainsAny", tuple(map(value_of, scope.tags))))
    if len(scope.facets) == 1:
        filters.append(("scopes", "Contains", scope_of(scope.facets[0])))
    elif scope.facets:
        filters.append(("scopes", "ContainsAny", tuple(map(scope_of, scope.facets))))
    for facet in scope.must:
        generation = facet.removeprefix(GENERATION) if facet.startswith(GENERATION) else ""
        filters.append(("generation", "Eq", int(generation)) if generation else ("scopes", "Contains", scope_of(facet)))
    for name, (low, high) in (("created", scope.created), ("updated", scope.updated)):
        filters += [(name, "Gte", low)] if low is not None else []
        filters += [(name, "Lte", high)] if high is not None else []
    if scope.without is not None and 0 < len(scope.without) <= LISTED:
        filters.append(("item", "NotIn", tuple(scope.without.tolist())))
    return filters


def is_place(scope: Scope) -> bool:
    """Return True if a scope is a place in a table: its facet then selects the items, and no list of them is needed."""
    return bool(scope.parents) and any(facet.startswith(SCOPE) for facet in scope.facets)
