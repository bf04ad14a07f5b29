"""The most telling sentences of a text, in their own words and order: a summary that invents nothing.

A sentence counts for what it shares with all others (centrality) and for standing early (position); one that says
again what was chosen already is passed over (redundancy).
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import regex

from commonplace.text.analyze import stems
from commonplace.text.languages import detect, stop_words
from commonplace.text.token_estimates import estimate, reach, safe_cut

POSITION = 0.35
"""The weight of a sentence's place beside centrality."""
REDUNDANCY = 0.6
"""The share that likeness to a chosen sentence takes off; one this much alike is left out altogether."""
FEW_TERMS = 4
MOST_WEIGHED = 400
"""Sentences that are held against each other: the best by themselves."""

_END = regex.compile(r"(?<=[.!?…][\"'”’)\]]{0,2})\s+|(?<=[。！？｡])")
_MARKS = regex.compile(r"^\s*(?:[#>|*+\-•]+|\d+[.)])\s+|[*_`]{1,3}(?=\S)|(?<=\S)[*_`]{1,3}")
_BARE = regex.compile(r"[\p{L}\p{N}]")

Weights = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class _Sentence:
    place: int
    text: str
    weights: Weights
    length: float


def extract(text: str, tokens: int) -> str:
    """Return the sentences of a text that say most of it, within so many tokens; one that alone is longer is cut."""
    language = detect(text)
    sentences = _weighed(list(_sentences(text)), language)
    if not sentences:
        return ""
    worth = _worth(sentences)
    ranked = sorted(sentences, key=lambda one: -worth[one.place])[:MOST_WEIGHED]
    chosen: list[_Sentence] = []
    likeness = dict.fromkeys((one.place for one in ranked), 0.0)
    left = tokens
    while ranked:
        best = max(ranked, key=lambda one: worth[one.place] - REDUNDANCY * likeness[one.place])
        ranked.remove(best)
        cost = estimate(best.text) + 1
        if likeness[best.place] >= REDUNDANCY or cost > left:
            continue
        chosen.append(best)
        left -= cost
        for one in ranked:
            likeness[one.place] = max(likeness[one.place], _cosine(one, best))
    if not chosen:
        return _cut(max(sentences, key=lambda one: worth[one.place]).text, tokens)
    return " ".join(one.text for one in sorted(chosen, key=lambda one: one.place))


def _sentences(text: str) -> Iterator[str]:
    """Yield the sentences of each line. Marks of lists, headings and emphasis are left out."""
    for line in text.split("\n"):
        for sentence in _END.split(_MARKS.sub("", line)):
            if sentence and _BARE.search(sentence):
                yield " ".join(sentence.split())


def _weighed(texts: Sequence[str], language: str) -> list[_Sentence]:
    """Return sentences with the weight of their terms: how often, times how rare among them. Each text comes once."""
    stop = stop_words(language)
    counts = [Counter(term for term in stems(text, language).split() if term not in stop) for text in texts]
    sentences_by_term = Counter(term for count in counts for term in count)
    rarity = {term: math.log(1 + len(texts) / many) for term, many in sentences_by_term.items()}
    sentences, seen = list[_Sentence](), set[str]()
    for place, (text, count) in enumerate(zip(texts, counts, strict=True)):
        if text not in seen and count:
            seen.add(text)
            weights = {term: (1 + math.log(many)) * rarity[term] for term, many in count.items()}
            sentences.append(_Sentence(place, text, weights, math.sqrt(sum(weight**2 for weight in weights.values()))))
    return sentences


def _worth(sentences: Sequence[_Sentence]) -> dict[int, float]:
    """Return the worth of each sentence: its cosine to the sum of all, the best being 1, and `1 / √(1 + place)`.

    A fragment of a few words counts half.
    """
    whole: dict[str, float] = defaultdict(float)
    for one in sentences:
        for term, weight in one.weights.items():
            whole[term] += weight / one.length
    size = math.sqrt(sum(weight**2 for weight in whole.values()))
    central = {
        one.place: sum(weight * whole[term] for term, weight in one.weights.items()) / (one.length * size)
        for one in sentences
    }
    most = max(central.values())
    return {
        one.place: ((1 - POSITION) * central[one.place] / most + POSITION / math.sqrt(1 + one.place))
        * (0.5 if len(one.weights) < FEW_TERMS else 1.0)
        for one in sentences
    }


def _cosine(one: _Sentence, other: _Sentence) -> float:
    few, many = sorted((one.weights, other.weights), key=len)
    return sum(weight * many.get(term, 0.0) for term, weight in few.items()) / (one.length * other.length)


def _cut(text: str, tokens: int) -> str:
    if estimate(text) <= tokens:
        return text
    end = reach(text, 0, 4 * max(tokens - 1, 0))
    blank = text.rfind(" ", 0, end)
    return f"{text[: blank if blank > end // 2 else safe_cut(text, end)].rstrip()}…"
