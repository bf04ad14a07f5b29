"""Known items: questions made from a library's own passages, to see what a model is worth there.

A telling sentence is taken out of a passage and made harder: its rarest words go, which any search by words would find
it by. What is left is asked, and the rest of the passage is the one right answer. Nobody has to judge anything; what
comes of it compares models on the same texts, and says little about how good a search is in itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import ceil, log, sqrt

import regex

from commonplace.errors import InvalidInput
from commonplace.evaluation.judged import Document, Judged, Question
from commonplace.lazy_dataclass import dataclass
from commonplace.model import Filter
from commonplace.store.base import Store
from commonplace.text.analyze import UNSPACED

FEWEST = 20
"""Questions below which a difference is chance."""
_SENTENCE = regex.compile(r"[^.!?。！？؟।\n]+(?:[.!?。！？؟।]+|\n|$)")
_WORD = regex.compile(r"[\p{L}\p{M}\p{N}_]+")
_SHORTEST, _LONGEST = 5, 40  # words of a sentence that may be asked
_PAIR = 2  # characters that count as a word where words are not spaced


@dataclass(frozen=True, slots=True)
class _Passage:
    id: str
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class _Sentence:
    start: int
    end: int
    words: tuple[str, ...]


def known_items(store: Store, most: int) -> Judged:
    """At most so many passages, evenly spaced over the library, and a question for each with a sentence to spare."""
    passages = _sample(store, most)
    told = Counter(word for passage in passages for word in set(_words(passage.text)))
    documents, questions = [], []
    for passage in passages:
        sentence = _most_telling(passage.text, told)
        rest = passage.text
        if sentence:
            rest = f"{passage.text[: sentence.start]} {passage.text[sentence.end :]}".strip()
            asked = _harder(passage.text[sentence.start : sentence.end], told)
            questions.append(Question(passage.id, asked, "", {passage.id: 1}))
        documents.append(Document(passage.id, passage.title, rest))
    if len(questions) < FEWEST:
        raise InvalidInput(
            f"Only {len(questions)} passages here have several sentences, and a comparison needs {FEWEST}. "
            "Add more to the library first."
        )
    return Judged("known items", tuple(documents), tuple(questions))


def sample_texts(store: Store, most: int) -> list[str]:
    """Passages as they are, evenly spaced over the library."""
    return [passage.text for passage in _sample(store, most)]


def _sample(store: Store, most: int) -> list[_Passage]:
    """Evenly spaced items, and as many passages of each as it takes, evenly spaced too."""
    ids = store.select(Filter())
    each = ceil(most / max(1, len(ids)))
    found = []
    for item in store.items([int(ids[place]) for place in _spaced(len(ids), most)]):
        chunks = [chunk for chunk in store.chunks_of(item.id) if chunk.text.strip()]
        found += [
            _Passage(str(chunks[place].id), item.title, chunks[place].text) for place in _spaced(len(chunks), each)
        ]
    return found[:most]


def _spaced(count: int, most: int) -> list[int]:
    """At most so many places among `count`, the middle one where there is one: beginnings are titles and dates."""
    taken = min(count, most)
    return [(2 * number + 1) * count // (2 * taken) for number in range(taken)]


def _most_telling(text: str, told: Counter[str]) -> _Sentence | None:
    """The sentence that says most in few words; None where taking one away would leave nothing to find."""
    sentences = _sentences(text)
    if len(sentences) < 2:
        return None
    asked = [sentence for sentence in sentences if _SHORTEST <= len(sentence.words) <= _LONGEST]
    return max(asked, key=lambda sentence: _tells(sentence.words, told), default=None)


def _tells(words: Sequence[str], told: Counter[str]) -> float:
    total = sum(told.values()) or 1
    return sum(log(total / (1 + told[word])) for word in set(words)) / sqrt(len(words))


def _sentences(text: str) -> list[_Sentence]:
    found = [
        _Sentence(match.start(), match.end(), tuple(_words(match[0])))
        for match in _SENTENCE.finditer(text)
        if match[0].strip()
    ]
    if len(found) == 1 and len(found[0].words) > _LONGEST:  # a script without full stops has blanks between clauses
        return [
            _Sentence(match.start(), match.end(), tuple(_words(match[0]))) for match in regex.finditer(r"\S+\s*", text)
        ]
    return found


def _harder(sentence: str, told: Counter[str]) -> str:
    """Without the third of its words that fewest passages have. Where words are not spaced it stays as it is."""
    words = [match[0] for match in _WORD.finditer(sentence)]
    if UNSPACED.search(sentence) or len(words) < _SHORTEST:
        return sentence.strip()
    rarest = sorted(range(len(words)), key=lambda place: (told[words[place].casefold()], -len(words[place])))
    dropped = set(rarest[: len(words) // 3])
    return " ".join(word for place, word in enumerate(words) if place not in dropped)


def _words(text: str) -> list[str]:
    """Words as they are compared here: in lower case, in pairs of characters where they are not spaced."""
    found = []
    for match in _WORD.finditer(text):
        word = match[0].casefold()
        if UNSPACED.match(word):
            found += [word[place : place + _PAIR] for place in range(0, len(word), _PAIR)]
        else:
            found.append(word)
    return found
