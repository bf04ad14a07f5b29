"""What must hold of any home that is opened again, whatever happened to it before."""

from __future__ import annotations

import random
from collections import Counter
from hashlib import sha256
from pathlib import Path

from tantivy import Query

from commonplace.library import Library
from commonplace.model import Draft, Filter, Item, Mode
from commonplace.settings import Settings
from commonplace.store import Store
from commonplace.store.chunks import Chunks
from commonplace.store.listing import Listing

WORDS = [
    "harbour", "lantern", "oolong", "kettle", "granite", "meadow", "copper", "violin", "winter", "orchard", "saffron",
    "glacier", "thunder", "velvet", "compass", "walnut", "feather", "marble", "cinnamon", "anchor", "pepper", "mirror",
    "candle", "willow", "bridge", "needle", "barley", "falcon", "tunnel", "ribbon",
]  # fmt: skip
QUERIES: tuple[tuple[Mode, str], ...] = (
    *(("lexical", word) for word in WORDS[:8]),
    ("lexical", "harbour kettle granite"),
    ("lexical", "oolong -winter"),
    ("lexical", "veg* vel*"),
    ("semantic", "tea in cold weather"),
    ("semantic", "stone and metal"),
    ("hybrid", "copper compass near the harbour"),
    ("hybrid", "spices: saffron, cinnamon, pepper"),
)

State = dict[str, tuple[int, str]]
"""Every item there is: its version and the beginning of its content hash."""
Answer = list[tuple[str, int, float | None]]


def open_library(home: Path) -> Library:
    return Library.open(home, settings=Settings(home=home, models=Path("no-models"), model="static"))


def make_draft(rng: random.Random, key: str, unique: str, longest: int = 60) -> Draft:
    """A note or a document of everyday words, now and then several passages long, with one word nothing else has."""
    parts = [" ".join(rng.choices(WORDS, k=rng.randint(4, longest))) for _ in range(rng.choice((1, 1, 1, 4)))]
    body = "\n\n".join(f"## {rng.choice(WORDS)}\n\n{part}." for part in parts) + f"\n\n{unique}\n"
    tags = tuple(rng.sample(WORDS, rng.randint(0, 2)))
    if rng.random() < 0.3:
        return Draft("document", f"{key}.md", "shelf", rng.choice(WORDS), body, "markdown", tags=tags)
    return Draft("note", key, "", rng.choice(WORDS), body, "markdown", tags=tags)


def unique_word(number: int) -> str:
    """A word of letters alone: one with digits would be found in parts too."""
    letters = ""
    while number:
        number, rest = divmod(number, 20)
        letters += "bcdfghjklmnpqrstvwxz"[rest]
    return f"zuq{letters}"


def short_hash(body: str) -> str:
    return sha256(body.encode()).hexdigest()[:16]


def all_items(store: Store, *, body: bool = False) -> list[Item]:
    items: list[Item] = []
    while found := store.drawer(Listing).scan(Filter(), after=items[-1].id if items else 0, body=body):
        items += found
    return items


def state_of(store: Store) -> State:
    """What is stored. The hash is taken of the body itself, not read from the column that claims it."""
    return {item.uri: (item.version, short_hash(item.body or "")) for item in all_items(store, body=True)}


def problems_of(library: Library, *, doctor_first: bool = True, rebuilt: bool = True) -> list[str]:
    """Every way in which this home is not what it promises; empty when all is well."""
    problems = []
    if doctor_first:
        problems += [f"doctor: {problem}" for problem in library.doctor()]
    before = answers(library)
    problems += _log_problems(library) + _follower_problems(library)
    problems += [f"doctor, after a search: {problem}" for problem in library.doctor()]
    if rebuilt:
        library.rebuild()
        problems += [f"unlike a rebuild: {line}" for line in differences(before, answers(library))]
        problems += [f"after a rebuild: {problem}" for problem in _follower_problems(library) + library.doctor()]
    return problems


def answers(library: Library) -> dict[str, Answer]:
    """Every passage that each query finds, with its cosine where it has one, in the order of the search.

    BM25 counts removed passages until their segments merge, so lexical scores drift a little between rebuilds (see
    `test_scores_drift_little_between_rebuilds`): where they have a say, passages are compared, not their order.
    """
    settle_vectors(library)
    found = {}
    for mode, query in QUERIES:
        if mode == "semantic" and library.embedding.index() is None:
            continue
        hits = library.search(query, mode=mode, limit=10_000, per_item=False, explain=True).hits
        answer: Answer = [(hit.uri, hit.chunk.ordinal, hit.explain["vector"]) for hit in hits if hit.explain]
        found[f"{mode} {query}"] = answer if mode == "semantic" else sorted(answer, key=lambda entry: entry[:2])
    return found


def settle_vectors(library: Library) -> None:
    """Let searches embed the few passages they embed on the spot, so that the next ones change nothing."""
    level = -1
    while level != library.store.last_change():
        level = library.store.last_change()
        library.search("settle")


def differences(before: dict[str, Answer], after: dict[str, Answer]) -> list[str]:
    """One line per query that is answered differently."""
    lines = []
    for query in before.keys() | after.keys():
        old, new = before.get(query, []), after.get(query, [])
        if [entry[:2] for entry in old] != [entry[:2] for entry in new]:
            gone, came = Counter(e[:2] for e in old), Counter(e[:2] for e in new)
            lines.append(f"{query}: gone {list((gone - came).items())[:5]}, new {list((came - gone).items())[:5]}")
        elif any(not _close(a[2], b[2]) for a, b in zip(old, new, strict=True)):
            lines.append(f"{query}: other cosines")
    return lines


def _close(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    return abs(one - other) <= 1e-5


def _log_problems(library: Library) -> list[str]:
    last = library.store.last_change()
    seqs = [change.seq for change in library.changes(limit=last + 1)]
    return [] if seqs == list(range(1, last + 1)) else [f"the log has gaps: {len(seqs)} changes up to {last}"]


def _follower_problems(library: Library) -> list[str]:
    """Level with the log, and holding each passage once: no more, no fewer."""
    problems = []
    last = library.store.last_change()
    if library.lexical.position() != last:
        problems.append(f"the lexical index is at {library.lexical.position()}, the log at {last}")
    stored = Counter(
        chunk.id for item in all_items(library.store) for chunk in library.store.drawer(Chunks).of(item.id)
    )
    indexed = lexical_chunks(library)
    if indexed != stored:
        problems.append(f"the lexical index lacks {list(stored - indexed)[:5]} and has {list(indexed - stored)[:5]}")
    vectors = library.embedding.index()
    if vectors is not None:
        if vectors.position() != last:
            problems.append(f"the vector index is at {vectors.position()}, the log at {last}")
        if len(vectors) != library.embedding.coverage().embedded:
            problems.append(f"the vector index has {len(vectors)} rows: {library.embedding.coverage()}")
    return problems


def lexical_chunks(library: Library) -> Counter[int]:
    """How often each passage is in the lexical index, read from the index itself."""
    searcher = library.lexical._current().searcher  # type: ignore[attr-defined]
    hits = searcher.search(Query.all_query(), max(searcher.num_docs, 1), count=False).hits
    values = searcher.fast_field_values("chunk", [address for _, address in hits])
    return Counter(int(value) for value in values if value is not None)
