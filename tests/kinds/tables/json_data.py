"""Strategies for JSON of every shape, with the keys and texts that go wrong first."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

AWKWARD = [
    "",
    "/",
    "~",
    "~1",
    "a/b",
    "0",
    "1",
    "é",
    "日本",
    "a b",
    "#",
    "\U0001f600",
    "stock",
    "stockroom",
    "\0",
    "-",
    "~n",
]
WORDS = ["oolong", "tea", "boil", "water", "green", "日本語", "straße", "kettle", "42", "leaf"]


def keys() -> st.SearchStrategy[str]:
    return st.one_of(st.sampled_from(AWKWARD), st.text(st.characters(exclude_categories=["Cs"]), max_size=5))


def texts() -> st.SearchStrategy[str]:
    """Short and long ones of words, and anything."""
    some = st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join)
    long = st.tuples(some, st.integers(40, 400)).map(lambda made: (f"{made[0]}. " * made[1])[:3000])
    return st.one_of(some, some, long, st.text(st.characters(exclude_categories=["Cs"]), max_size=20))


def scalars() -> st.SearchStrategy[Any]:
    numbers = st.one_of(st.integers(-5, 5), st.integers(), st.floats(allow_nan=False, allow_infinity=False))
    return st.one_of(st.none(), st.booleans(), numbers, texts())


def values(most: int = 20) -> st.SearchStrategy[Any]:
    return st.recursive(
        scalars(),
        lambda inner: st.one_of(st.lists(inner, max_size=5), st.dictionaries(keys(), inner, max_size=5)),
        max_leaves=most,
    )


def pointers_of(value: Any, pointer: str = "") -> list[str]:
    """Every place in a value."""
    found = [pointer]
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, member in members:
        found += pointers_of(member, f"{pointer}/{str(key).replace('~', '~0').replace('/', '~1')}")
    return found


def nameable(pointers: list[str]) -> list[str]:
    """Those that a caller may name: not where a key is a dash, which a pointer takes for a list's end."""
    return [pointer for pointer in pointers if "-" not in pointer.split("/")]
