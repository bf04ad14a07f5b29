"""What kinds hide from general searches. It is named here as text, and loaded only where there is something of it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from functools import cache
from importlib import import_module
from typing import NamedTuple

import numpy as np

from commonplace.index.scope import Ids
from commonplace.model import JSON
from commonplace.store.base import Store
from commonplace.store.stored_settings import StoredSettings


class Hiding(NamedTuple):
    """A kind that hides some of its items."""

    kind: str
    setting: str
    """The setting of the store that is there once there may be any, and whose value tells one state from another."""
    items: str
    """The function of a store and of that value that returns their ids, ascending, as `module:function`."""


HIDING = (Hiding("table", "tables.state", "commonplace.kinds.tables.node_drawer:hidden_nodes"),)


def hidden_items(store: Store, kinds: Collection[str]) -> Ids | None:
    """Return the ids of items of these kinds, or of any, that only their own kind's searches show; None for none."""
    hidden: Iterable[Ids] = (
        _function(hiding.items)(store, state)
        for hiding in HIDING
        if (not kinds or hiding.kind in kinds) and (state := store.drawer(StoredSettings).get(hiding.setting))
    )
    items = None
    for one in hidden:
        items = one if items is None else np.union1d(items, one)
    return items


@cache
def _function(name: str) -> Callable[[Store, JSON], Ids]:
    module, _, attribute = name.partition(":")
    function: Callable[[Store, JSON], Ids] = getattr(import_module(module), attribute)
    return function
