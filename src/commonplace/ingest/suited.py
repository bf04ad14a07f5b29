"""The model that suits a library: one that speaks the language most of it is written in."""

from __future__ import annotations

from collections import Counter

from commonplace.model import Filter
from commonplace.models import DEFAULT, MULTILINGUAL, STATIC, catalog, find
from commonplace.settings import Settings
from commonplace.store.base import Store
from commonplace.store.listing import Listing

_PLACES, _AT_EACH = 8, 25
"""The number of places where a library is looked into, and of items at each: enough to tell a majority."""
_NEWEST = 200
"""Changes among which the highest item is about the highest there is."""


def languages(store: Store) -> Counter[str]:
    """Return how many of the passages in a sample are in which language, as ISO 639-1 codes."""
    end = max((change.item_id for change in store.changes(store.last_change() - _NEWEST, _NEWEST)), default=0)
    ids: set[int] = set()
    for place in range(_PLACES):
        ids |= {item.id for item in store.drawer(Listing).scan(Filter(), after=end * place // _PLACES, limit=_AT_EACH)}
    counts: Counter[str] = Counter()
    for item in store.indexed(sorted(ids)):
        counts[item.language] += max(1, len(item.chunks))
    return counts


def suited(counts: Counter[str]) -> str:
    """Return the catalog's model for these languages: the default, unless most are in ones that only another speaks."""
    english, many = (catalog()[name].card.languages for name in (DEFAULT, MULTILINGUAL))
    only_many = sum(count for language, count in counts.items() if language in many - english)
    return MULTILINGUAL if only_many > sum(counts[language] for language in english) else DEFAULT


def first_choice(store: Store, settings: Settings) -> str:
    """Return the model of a library that has none yet: the one set, else the best of those that are here."""
    return settings.model or best_here(languages(store), settings)


def best_here(counts: Counter[str], settings: Settings) -> str:
    """Return the model that suits these languages, or the next best, among those that were pulled."""
    here = (name for name in (suited(counts), DEFAULT) if find(name, settings.models))
    return next(here, STATIC)


def better_model(chosen: str | None, settings: Settings, store: Store) -> str | None:
    """Return the model that would find more than the one in use, or than the one that the first embedding would use."""
    if chosen is None and settings.model:
        return None  # somebody has decided
    name, best = chosen or first_choice(store, settings), suited(languages(store))
    worse = {STATIC, *catalog()} - {best} if best == MULTILINGUAL else {STATIC, MULTILINGUAL}
    return best if name in worse else None


def pulled_betters(chosen: str, settings: Settings) -> tuple[str, ...]:
    """Return the pulled models that may take the place of one that nobody chose. Looks at a few files.

    From the built-in one to a pulled one, and from one for English to the one for many languages: never back, so that
    a library in two languages does not go to and fro.
    """
    order = (STATIC, DEFAULT, MULTILINGUAL)
    above = order[order.index(chosen) + 1 :] if chosen in order else ()
    return tuple(name for name in above if find(name, settings.models))
