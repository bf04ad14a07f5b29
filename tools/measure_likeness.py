"""Says what scores of `related` and `hyde` mean: on which side of 0.35 and 0.6 pairs of texts score, and fits them.

    python tools/measure_likeness.py FOLDER-OF-JUDGED-COLLECTIONS --models static arctic-embed-s --pairs 100

A related pair are two texts that answer one question best. So that both are about the same thing, and not each about
another part of the question, each has two of the eight most telling words of the other; where every question has one
answer, the two halves of that are a pair. An unrelated pair are two texts of a set, drawn by chance, that answer no
question together. A pair is of lines where one of its texts has less than 200 characters.

`related` scores one text of a pair for the other by words and meaning, `hyde` by meaning alone. Prints, for every kind
of text, which share of the unrelated is below 0.35 and of the related above 0.6: as shipped, and with a line fitted on
all other kinds. It takes its two ends from them: 0.35 is where nine in ten unrelated pairs are below, 0.6 where eight
in ten related ones are above, the mean over kinds, as far as the second is above the first.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from commonplace.evaluation.judged import JudgedCollection, find_judged, load_judged
from commonplace.library import Library
from commonplace.model import Draft, Filter
from commonplace.models import STATIC, open_embedder
from commonplace.search.question import Question, Search
from commonplace.settings import Settings
from commonplace.store.items import Items
from commonplace.store.listing import Listing
from commonplace.text.analyze import stems
from commonplace.text.languages import detect

Floats = NDArray[np.float64]
Pair = tuple[str, str]

LINE = 200
TELLING, SHARED = 8, 2
UNRELATED, RELATED = 0.35, 0.6
NINE_IN_TEN, EIGHT_IN_TEN = 0.9, 0.8
WAYS = ("related", "hyde")


@dataclass(frozen=True, slots=True)
class Pairs:
    """Texts of a set by key, and pairs of keys."""

    texts: Mapping[str, str]
    related: Sequence[Pair]
    unrelated: Sequence[Pair]


@dataclass(frozen=True, slots=True)
class Scored:
    """The scores of the pairs of a kind, with one model, one way."""

    kind: str
    model: str
    way: str
    related: Floats
    unrelated: Floats


def pairs_of(collection: JudgedCollection, count: int, texts: int) -> Pairs:
    """Return pairs, and the texts of these with others around them."""
    rng = random.Random(5)  # noqa: S311  # the same every time
    bodies = {one.id: f"{one.title}\n{one.text}".strip() for one in collection.documents if one.text.strip()}
    together = [
        sorted(key for key, grade in one.grades.items() if grade == max(one.grades.values()) and key in bodies)
        for one in collection.questions
    ]
    together = [keys for keys in together if keys]
    rng.shuffle(together)
    telling = _telling(bodies)
    related: dict[frozenset[str], Pair] = {}
    for keys in together:
        if len(keys) > 1 and len(related) < count:
            one, other = rng.sample(keys, 2)
            if min(len(telling[one] & _stems(bodies[other])), len(telling[other] & _stems(bodies[one]))) >= SHARED:
                related[frozenset((one, other))] = one, other
    for key, *more in together:
        if len(related) < count // 2 and not more and len(bodies[key]) >= 2 * LINE:
            half = bodies[key].find(" ", len(bodies[key]) // 2)
            if half > 0 and f"{key}-b" not in bodies:
                bodies[f"{key}-b"], bodies[key] = bodies[key][half:], bodies[key][:half]
                related[frozenset((key,))] = key, f"{key}-b"
    known = {frozenset(pair) for keys in together for pair in ((a, b) for a in keys for b in keys)}
    names, unrelated = sorted(bodies), list[Pair]()
    while len(unrelated) < count:
        one, other = rng.sample(names, 2)
        if frozenset((one, other)) not in known and one.removesuffix("-b") != other.removesuffix("-b"):
            unrelated.append((one, other))
    kept = {key for pair in (*related.values(), *unrelated) for key in pair}
    others = [key for key in names if key not in kept]
    rng.shuffle(others)
    kept.update(others[: max(0, texts - len(kept))])
    return Pairs({key: bodies[key] for key in sorted(kept)}, list(related.values()), unrelated)


def _stems(text: str) -> frozenset[str]:
    return frozenset(stems(text, "en").split())


def _telling(bodies: Mapping[str, str]) -> dict[str, frozenset[str]]:
    """Return the most telling stems of every text."""
    counts = {key: Counter(stems(text, "en").split()) for key, text in bodies.items()}
    holders = Counter(stem for count in counts.values() for stem in count)
    return {
        key: frozenset(
            sorted(count, key=lambda stem: (-count[stem] * np.log(len(counts) / holders[stem]), stem))[:TELLING]
        )
        for key, count in counts.items()
    }


def scored(pairs: Pairs, kind: str, settings: Settings) -> list[Scored]:
    """Return the scores of these pairs. Every text is a collection of its own, so that a filter can ask for it."""
    with tempfile.TemporaryDirectory() as folder, Library.open(Path(folder), settings=settings) as library:
        library.put_many(Draft("document", "text", parent=key, body=body) for key, body in pairs.texts.items())
        library.embed()
        model = open_embedder(settings.model, settings.models, threads=settings.threads, settings=settings).name
        found = []
        for line in (True, False):
            some = [
                [pair for pair in part if _is_line(pairs, pair) is line] for part in (pairs.related, pairs.unrelated)
            ]
            for way in WAYS:
                scores = [np.array([_score(library, pairs, pair, way) for pair in part]) for part in some]
                found.append(Scored(f"{kind}, lines" if line else kind, model, way, *scores))
        return [one for one in found if len(one.related) + len(one.unrelated)]


def _is_line(pairs: Pairs, pair: Pair) -> bool:
    return min(len(pairs.texts[key]) for key in pair) < LINE


def _score(library: Library, pairs: Pairs, pair: Pair, way: str) -> float:
    """Return the score of a pair's second text as one like the first, 0 where it is not found."""
    one, other = pair
    keep = Filter(kinds=("document",), parents=(other,))
    if way == "related":
        uri = next(
            item.uri
            for item in library.store.drawer(Items).get(
                library.store.drawer(Listing).select(Filter(parents=(one,))).tolist()
            )
        )
        return max((hit.score for hit in library.related(uri, filter=keep, limit=1).hits), default=0.0)
    hits = library.hybrid.find(Question((Search("hyde", pairs.texts[one]),), keep, limit=1)).hits
    return max((hit.score for hit in hits), default=0.0)


def fitted(some: Sequence[Scored]) -> tuple[float, float]:
    """Return `a, b` of the line `a · x + b`, x the sureness as shipped, by its two ends."""
    low = float(np.mean([np.quantile(_sureness(one.unrelated), NINE_IN_TEN) for one in some if len(one.unrelated)]))
    high = float(np.mean([np.quantile(_sureness(one.related), 1 - EIGHT_IN_TEN) for one in some if len(one.related)]))
    ends = _sureness(np.array([UNRELATED, RELATED]))
    slope = float(ends[1] - ends[0]) / max(high - low, 0.5)
    return round(slope, 2), round(float(ends[0]) - slope * low, 2)


def _sureness(scores: Floats) -> Floats:
    inside = np.clip(scores, 0.0005, 0.9995)
    return np.asarray(np.log(inside / (1.0 - inside)))


def row(name: str, some: Sequence[Scored], line: tuple[float, float]) -> None:
    """Print the shares of unrelated and related pairs on the right side, and their medians."""
    unrelated, related = (np.concatenate([getattr(one, part) for one in some]) for part in ("unrelated", "related"))
    cells = []
    for slope, start in ((1.0, 0.0), line):
        for part, is_right in ((unrelated, lambda p: p < UNRELATED), (related, lambda p: p > RELATED)):
            fresh = 1.0 / (1.0 + np.exp(-(slope * _sureness(part) + start)))
            cells.append(f"{is_right(fresh).mean():.0%} of {len(part)}" if len(part) else "–")
    print(f"| {name} | {' | '.join(cells)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("collections", type=Path)
    parser.add_argument("--models", nargs="+", default=[STATIC])
    parser.add_argument("--pairs", type=int, default=100, help="pairs of each sort from each set")
    parser.add_argument("--texts", type=int, default=400, help="texts of each set")
    options = parser.parse_args()
    everything: list[Scored] = []
    for model in options.models:
        settings = replace(Settings.load(), model=model, store="", store_owner="", index="local")
        languages = open_embedder(model, settings.models, threads=settings.threads, settings=settings).languages
        for folder in find_judged(options.collections):
            collection = load_judged(folder)
            if detect("\n".join(question.text for question in collection.questions[:50])) in languages:
                everything += scored(pairs_of(collection, options.pairs, options.texts), collection.name, settings)
    for way in WAYS:
        for model in dict.fromkeys(one.model for one in everything):
            heads = ("unrelated < 0.35", "related > 0.6", "left out: unrelated", "left out: related")
            print(f"\n| {way}, {model} | {' | '.join(heads)} |\n|{'---|' * 5}")
            some = [one for one in everything if (one.way, one.model) == (way, model)]
            for one in some:
                base = one.kind.removesuffix(", lines")
                others = [other for other in everything if other.way == way and not other.kind.startswith(base)]
                row(one.kind, [one], fitted(others))
            row("all", some, fitted([one for one in everything if one.way == way]))
        print("fitted on all:", fitted([one for one in everything if one.way == way]))


if __name__ == "__main__":
    main()
