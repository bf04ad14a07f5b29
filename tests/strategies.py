"""Shared strategies: items in several scripts with awkward metadata, filters over them, and what a filter means.

`allows` is the meaning of a Filter in plain Python (contracts/memory.md, section 6): slow, obvious, and the judge of
everything fast.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, get_args

from hypothesis import strategies as st

from commonplace.model import Condition, Draft, Filter, Item, Operator
from kit.answers import present

MISSING = object()
ORDERINGS = {
    "gt": lambda a, b: a > b,
    "gte": lambda a, b: a >= b,
    "lt": lambda a, b: a < b,
    "lte": lambda a, b: a <= b,
}
PARTS = {"contains": str.__contains__, "starts_with": str.startswith, "ends_with": str.endswith}


def allows(filter: Filter, item: Item | Draft) -> bool:
    """Whether a filter lets an item through."""
    folded = {fold(tag.strip()) for tag in item.tags}
    return (
        (not filter.kinds or item.kind in filter.kinds)
        and (not filter.parents or item.parent in filter.parents)
        and (not filter.tags or any(fold(tag.strip()) in folded for tag in filter.tags))
        and (not filter.paths or (item.kind == "document" and any(is_at(path, item) for path in filter.paths)))
        and (filter.created_from is None or present(item.created_at) >= aware(filter.created_from))
        and (filter.created_to is None or present(item.created_at) <= aware(filter.created_to))
        and (filter.updated_from is None or present(item.updated_at) >= aware(filter.updated_from))
        and (filter.updated_to is None or present(item.updated_at) <= aware(filter.updated_to))
        and all(holds(condition, item.metadata) for condition in filter.where)
    )


def is_at(path: str, item: Item | Draft) -> bool:
    """Of names alone, without signs of a glob."""
    wanted, key = fold(path), fold(item.key)
    return any(f"{text}/".startswith(f"{wanted}/") for text in (key, f"{fold(item.parent)}/{key}"))


def holds(condition: Condition, metadata: Mapping[str, Any]) -> bool:
    stored: Any = metadata
    for name in condition.path:
        stored = stored.get(name, MISSING) if isinstance(stored, Mapping) else MISSING
    op, wanted, exactly = condition.op, condition.value, condition.case_sensitive
    absent = stored is MISSING or stored is None
    if op in ("exists", "is_not_null"):
        return not absent
    if op == "not_exists":
        return absent
    if op == "is_null":
        return stored is None
    if absent:
        return condition.include_missing and op in ("ne", "not_in")
    if op in ("eq", "ne"):
        return equal(stored, wanted, exactly) is (op == "eq")
    if op in ("in", "not_in"):
        return any(equal(stored, member, exactly) for member in wanted) is (op == "in")
    if op == "array_contains":
        return isinstance(stored, list) and any(equal(element, wanted, exactly) for element in stored)
    if kind(stored) != kind(wanted) or kind(stored) not in ("number", "string"):
        return False
    a, b = plain(stored, exactly), plain(wanted, exactly)
    return bool(ORDERINGS[op](a, b)) if op in ORDERINGS else bool(PARTS[op](a, b))


def equal(stored: Any, wanted: Any, exactly: bool) -> bool:
    same_kind = kind(stored) == kind(wanted) and kind(stored) in ("boolean", "number", "string")
    return same_kind and bool(plain(stored, exactly) == plain(wanted, exactly))


def kind(value: Any) -> str:
    for name, types in (("boolean", bool), ("number", int | float), ("string", str), ("array", list)):
        if isinstance(value, types):
            return name
    return "object"


def plain(value: Any, exactly: bool) -> Any:
    """A value as it is compared: strings folded, numbers beyond 64 bits as floats."""
    if isinstance(value, str):
        return unicodedata.normalize("NFC", value) if exactly else fold(value)
    return float(value) if isinstance(value, int) and not -(2**63) <= value < 2**63 else value


def fold(text: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", text).casefold())


def aware(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


# Small pools, so that values meet each other often; the awkward ones are here on purpose.
NAMES = ["k", "a.b", 'quo"te', "back\\slash", "ключ", "metadata", "0", "é", "e\u0301", "$", "x"]
STRINGS = [
    "", "Open", "open", "OPEN", "7", "50%", "_", "Åse", "A\u030ase", "straße", "STRASSE", "İ", "ſ", "ΣΑΣ", "σας",
    "true", "null", "東京", "a'b", 'a"b', "\n", "ﬁ", "🙂",
]  # fmt: skip
NUMBERS = [
    0,
    1,
    -1,
    7,
    7.0,
    7.5,
    0.1,
    1 / 3,
    2**53,
    2**53 + 1,
    float(2**53),
    2**63 - 1,
    2**63,
    10**30,
    1e300,
    5e-324,
    -0.0,
]
PARENTS = ["", "tea", "Tea", "a/b", "日本"]
TAGS = ["Green", "green", "GREEN tea", "straße", "STRASSE", " oolong ", "日本", "x"]
PATHS = ["tea", "a", "a/b", "A/B/1", "0", "日本", "日本/1", "te"]
KINDS = ["note", "memory", "document"]
EPOCH = datetime(2024, 1, 1, tzinfo=UTC)

numbers = st.sampled_from(NUMBERS) | st.integers(-(2**64), 2**64) | st.floats(allow_nan=False, allow_infinity=False)
scalars = st.booleans() | numbers | st.sampled_from(STRINGS)
values = st.recursive(
    st.none() | scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=3),
    max_leaves=5,
)
metadata = st.dictionaries(st.sampled_from(NAMES), values, max_size=4)
moments = st.integers(-5, 5).map(lambda day: EPOCH + timedelta(days=day)) | st.sampled_from(
    [datetime(1969, 12, 31, tzinfo=UTC), datetime(2024, 1, 1), EPOCH + timedelta(microseconds=1)]
)
paths = st.lists(st.sampled_from(NAMES), min_size=1, max_size=2).map(tuple)


@st.composite
def conditions(draw: st.DrawFn) -> Condition:
    """A well formed condition: each operator with a value of a kind it takes."""
    op: Operator = draw(st.sampled_from(get_args(Operator)))
    value: Any = None
    flags = {}
    if op in ("eq", "ne", "array_contains"):
        value = draw(scalars)
    elif op in ("in", "not_in"):
        value = draw(st.lists(scalars, min_size=1, max_size=4))
    elif op in ORDERINGS:
        value = draw(numbers | st.sampled_from(STRINGS))
    elif op in PARTS:
        value = draw(st.sampled_from([text for text in STRINGS if text]))
    if op in ("ne", "not_in"):
        flags["include_missing"] = draw(st.booleans())
    if value is not None:
        flags["case_sensitive"] = draw(st.booleans())
    return Condition(draw(paths), op, value, **flags)


filters = st.builds(
    Filter,
    kinds=st.lists(st.sampled_from(KINDS), max_size=2).map(tuple),
    parents=st.lists(st.sampled_from(PARENTS), max_size=2).map(tuple),
    tags=st.lists(st.sampled_from(TAGS), max_size=2).map(tuple),
    created_from=st.none() | moments,
    created_to=st.none() | moments,
    updated_from=st.none() | moments,
    updated_to=st.none() | moments,
    where=st.lists(conditions(), max_size=2).map(tuple),
    paths=st.just(()) | st.sampled_from(PATHS).map(lambda path: (path,)),
)
field_filters = st.one_of(
    st.builds(Filter, kinds=st.lists(st.sampled_from(KINDS), max_size=2).map(tuple)),
    st.builds(Filter, parents=st.lists(st.sampled_from(PARENTS), min_size=1, max_size=2).map(tuple)),
    st.builds(Filter, tags=st.lists(st.sampled_from(TAGS), min_size=1, max_size=2).map(tuple)),
    st.builds(Filter, created_from=moments),
    st.builds(Filter, paths=st.lists(st.sampled_from(PATHS), min_size=1, max_size=2).map(tuple)),
    st.builds(Filter, created_to=moments, updated_from=st.none() | moments),
    st.builds(Filter, where=st.lists(conditions(), min_size=1, max_size=1).map(tuple)),
    filters,
)
"""Mostly one part at a time, so that most of them let something through."""

WORDS = [
    "tea", "teas", "oolong", "water", "boil", "the", "of", "getUserName", "HTTP/2", "C++", "F#", "v2.3.1", "real-time",
    "Zoë", "it’s", "don't", "Häuser", "Haus", "Straße", "東京都庁", "京都", "ภาษาไทย", "한국어", "서울에서", "كتاب",
    "книга", "running", "ran", "café", "🍵", "snake_case_name", "AI", "x", "ειδησεις", "ικα", "naïve", "e=mc²",
    "user@example.org",
]  # fmt: skip
bodies = st.lists(st.sampled_from(WORDS), min_size=1, max_size=12).map(" ".join)
long_bodies = st.lists(bodies, min_size=2, max_size=4).map(
    lambda parts: "\n\n".join(f"# {p}\n\n{p} {p}" for p in parts)
)


@st.composite
def drafts(draw: st.DrawFn, key: str) -> Draft:
    body = draw(st.one_of(bodies, bodies, long_bodies))
    return Draft(
        draw(st.sampled_from(KINDS)),
        key,
        parent=draw(st.sampled_from(PARENTS)),
        title=draw(st.sampled_from(["", "", *WORDS])),
        body=body,
        format="markdown" if body.startswith("#") else "text",
        metadata=draw(metadata),
        tags=tuple(draw(st.lists(st.sampled_from(TAGS), max_size=3))),
        created_at=draw(moments),
        updated_at=draw(moments),
    )


@st.composite
def corpora(draw: st.DrawFn, least: int = 1, most: int = 12) -> list[Draft]:
    """Items of several kinds and scripts, some of them with the same text."""
    count = draw(st.integers(least, most))
    return [draw(drafts(str(number))) for number in range(count)]


queries = st.lists(
    st.sampled_from(WORDS) | st.sampled_from(["tee", "oolon", "wat*", "-tea", "-東京"]), min_size=1, max_size=4
).map(" ".join)
