"""How a namespace filters and ranks its rows: exact cosines, BM25, order by an attribute."""

from __future__ import annotations

import base64
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

K1, B = 1.2, 0.75
LONGEST_TOKEN = 39
Row = Mapping[str, Any]


class BadRequest(Exception):
    """What the service would refuse with 400."""


def vector_of(value: object) -> np.ndarray:
    """A list of numbers, or base64 of little-endian 32-bit floats."""
    if isinstance(value, str):
        try:
            return np.frombuffer(base64.b64decode(value, validate=True), "<f4").astype(np.float32)
        except ValueError as error:
            raise BadRequest(f"invalid vector: {error}") from None
    if isinstance(value, list) and all(isinstance(x, int | float) and not isinstance(x, bool) for x in value):
        return np.array(value, np.float32)
    raise BadRequest("a vector is a list of numbers or base64")


COMPARED: Mapping[str, Callable[[Any, Any], bool]] = {
    "Eq": lambda found, wanted: found == wanted,
    "NotEq": lambda found, wanted: found != wanted,
    "In": lambda found, wanted: any(found == one for one in wanted),
    "NotIn": lambda found, wanted: all(found != one for one in wanted),
    "Contains": lambda found, wanted: wanted in (found or ()),
    "NotContains": lambda found, wanted: wanted not in (found or ()),
    "ContainsAny": lambda found, wanted: not set(found or ()).isdisjoint(wanted),
    "NotContainsAny": lambda found, wanted: set(found or ()).isdisjoint(wanted),
    "Lt": lambda found, wanted: wanted is not None and (found is None or found < wanted),
    "Lte": lambda found, wanted: found is None or found <= wanted,
    "Gt": lambda found, wanted: found is not None and found > wanted,
    "Gte": lambda found, wanted: found is not None and found >= wanted,
}


Check = Callable[[str, str, Any], None]
"""Refuses a condition by its attribute, its operator and its value."""


def resolved(filter: object, new: Row) -> object:
    """Return a condition with the values that are being written in the place of its references to them."""
    if isinstance(filter, dict) and set(filter) == {"$ref_new"}:
        return new.get(filter["$ref_new"])
    return [resolved(part, new) for part in filter] if isinstance(filter, list) else filter


def condition(filter: object, check: Check) -> Callable[[Row], bool]:
    """A filter as a function of rows. Refuses what cannot be asked of an attribute."""
    if filter is None:
        return lambda row: True
    if not isinstance(filter, list) or not filter:
        raise BadRequest(f"a filter is a list, not {filter!r}")
    if filter[0] in ("And", "Or"):
        parts = [condition(part, check) for part in filter[1]]
        combine = all if filter[0] == "And" else any
        return lambda row: combine(part(row) for part in parts)
    if filter[0] == "Not":
        inner = condition(filter[1], check)
        return lambda row: not inner(row)
    if len(filter) != 3 or filter[1] not in COMPARED:
        raise BadRequest(f"no such filter: {filter!r}")
    name, operator, wanted = filter
    check(name, operator, wanted)
    if operator in ("In", "NotIn") and len(wanted) > 20 and all(isinstance(one, int | str) for one in wanted):
        among = set(wanted)
        return (lambda row: row.get(name) in among) if operator == "In" else (lambda row: row.get(name) not in among)
    compare = COMPARED[operator]
    return lambda row: compare(row.get(name), wanted)


def nearest(rows: Sequence[Row], query: object, dims: int | None) -> list[tuple[Row, float]]:
    """Cosine distances, smallest first. What the service does approximately is done exactly here."""
    towards = vector_of(query)
    if dims is None or len(towards) != dims:
        raise BadRequest(f"the query has {len(towards)} dimensions, the namespace {dims}")
    if not rows:
        return []
    vectors = np.stack([row["vector"] for row in rows])
    norms = np.linalg.norm(vectors, axis=1) * np.linalg.norm(towards)
    distances = 1 - vectors @ towards / np.where(norms > 0, norms, 1)
    order = np.argsort(distances, kind="stable")
    return [(rows[place], float(distances[place])) for place in order]


def bm25(
    rows: Sequence[Row], everything: Sequence[Row], name: str, query: object, settings: object
) -> list[tuple[Row, float]]:
    """Scores with the counts of the whole namespace, highest first, without zeros. Tokens that are too long are out."""
    longest = longest_token(settings)
    wanted = [term for term in (query if isinstance(query, list) else _words(query)) if len(term.encode()) <= longest]
    counts = {id(row): _terms(row.get(name), longest) for row in everything}
    mean = sum(map(Counter.total, counts.values())) / max(len(counts), 1) or 1.0
    scored = []
    frequencies = {term: sum(term in found for found in counts.values()) for term in set(wanted)}
    for row in rows:
        found, score = counts[id(row)], 0.0
        for term in wanted:
            if term in found:
                n, f = frequencies[term], found[term]
                idf = math.log(1 + (len(counts) - n + 0.5) / (n + 0.5))
                score += idf * f * (K1 + 1) / (f + K1 * (1 - B + B * found.total() / mean))
        if score > 0:
            scored.append((row, score))
    scored.sort(key=lambda pair: -pair[1])
    return scored


def longest_token(settings: object) -> int:
    """Return how many bytes a token of a full-text attribute has at most; longer ones are left out."""
    return int(settings.get("max_token_length", LONGEST_TOKEN)) if isinstance(settings, Mapping) else LONGEST_TOKEN


def _words(value: object) -> list[str]:
    return re.findall(r"\w+", str(value).lower())


def _terms(value: object, longest: int) -> Counter[str]:
    terms = _words(value) if isinstance(value, str) else value if isinstance(value, list) else ()
    return Counter(term for term in terms if len(term.encode()) <= longest)
