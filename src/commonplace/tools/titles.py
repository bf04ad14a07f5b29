"""Names for items that are shown: their title, their conversation's, or how they begin."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from commonplace.model import Hit, Item
from commonplace.store.items import Items
from commonplace.store.listing import Listing
from commonplace.text.token_estimates import safe_cut

if TYPE_CHECKING:
    from commonplace.space import Space

_NAME = 80
"""The characters of a beginning that stands for a missing title."""


def titled(space: Space, hits: Sequence[Hit]) -> Sequence[Hit]:
    """Return the hits, each with a title: a message has its conversation's, anything else without one its beginning."""
    untitled = [hit for hit in hits if not hit.title]
    if not untitled:
        return hits
    talks = conversations(space, [hit.parent for hit in untitled if hit.kind == "message"])
    names = {hit.item.id: talks.get(hit.parent, "") for hit in untitled if hit.kind == "message"}
    names |= beginnings(space, [hit.item for hit in untitled if not names.get(hit.item.id)])
    return [hit if hit.title else replace(hit, title=names.get(hit.item.id, "")) for hit in hits]


def conversations(space: Space, keys: Iterable[str]) -> dict[str, str]:
    """Return the titles of conversations by key."""
    addresses = [("conversation", "", key) for key in dict.fromkeys(keys)]
    ids = space.store.drawer(Listing).ids_of(addresses) if addresses else []
    return {item.key: item.title for item in space.store.drawer(Items).get(ids)} if ids else {}


def beginnings(space: Space, items: Iterable[Item]) -> dict[int, str]:
    """Return the beginnings of the items without a title, by id."""
    ids = [item.id for item in items if not item.title]
    return {item.id: _beginning(item) for item in space.store.drawer(Items).heads(ids, 2 * _NAME)} if ids else {}


def _beginning(item: Item) -> str:
    body = " ".join((item.body or "").split())
    return (body if len(body) <= _NAME else body[: safe_cut(body, _NAME - 1)] + "…") or item.key
