"""The ranked lists of a question as one: a fused order, and scores that fall along it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from commonplace.search.blend import Fused, Fusion, falling, retrieved
from commonplace.search.lists import NamesOf, best_of
from commonplace.search.question import PlacedHit, RankedList


def merged(lists: Sequence[RankedList], limit: int, meaning_share: float, names_of: NamesOf) -> list[PlacedHit]:
    """Return at most `limit` hits in the fused order, with scores that fall along it.

    `meaning_share`: how much of its scores the leg by meaning is believed beside words, from 0 to 1.
    """
    fusion = Fusion([(one.listed.items, one.weight) for one in lists])
    if len(lists) == 1:
        order, scores = fusion.items, list(lists[0].listed.scores)
    else:
        words, meaning = (
            best_of(one.listed for one in lists if (one.search.kind == "lex") == lexical) for lexical in (True, False)
        )
        first = frozenset[int]().union(*(one.listed.together for one in lists if one.role != "variant"))
        keys = {item: (item not in first, -fusion.of(item).total, -words.get(item, 0.0)) for item in fusion.items}
        order = _in_order(keys, names_of)
        scores = falling([retrieved(words.get(item, 0.0), meaning_share * meaning.get(item, 0.0)) for item in order])
    return [
        PlacedHit(item, _passage(lists, fused), score, rank, score, None, fused)
        for rank, (item, score) in enumerate(zip(order[:limit], scores, strict=False), start=1)
        for fused in (fusion.of(item),)
    ]


def _in_order(keys: Mapping[int, tuple[bool, float, float]], names_of: NamesOf) -> list[int]:
    """Return items by their keys; equals by name, which is looked up only where there are any."""
    order = sorted(keys, key=keys.__getitem__)
    equal = {item for pair in pairwise(order) if keys[pair[0]] == keys[pair[1]] for item in pair}
    if not equal:
        return order
    names = names_of(sorted(equal))
    return sorted(order, key=lambda item: (keys[item], names.get(item, "")))


def _passage(lists: Sequence[RankedList], fused: Fused) -> int:
    """Return the id of the passage that the first list with the item found: lists by words come first."""
    first = fused.places[0]
    return lists[first.list].listed.chunks[first.rank - 1]
