"""Known items: questions made from a library's own passages, to see what a model is worth there.

A telling sentence is taken out of a passage and made harder: its rarest words go, which any search by words would find
it by. What is left is asked, and the rest of the passage is the one right answer. Nobody has to judge anything; what
comes of it compares models on the same texts, and says little about how good a search is in itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, log, sqrt

import regex

from commonplace.errors import InvalidInput
from commonplace.evaluation.judged import JudgedCollection, JudgedDocument, JudgedQuestion
from commonplace.model import Filter
from commonplace.store.base import Store
from commonplace.store.chunks import Chunks
from commonplace.store.items import Items
from commonplace.store.listing import Listing
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


def known_items(store: Store, most: int) -> JudgedCollection:
    """Return at most `most` passages, evenly spaced, and a question for each with a sentence to spare."""
    passages = _sample(store, most)
    passages_by_word = Counter(word for passage in passages for word in set(_words(passage.text)))
    documents, questions = [], []
    for passage in passages:
        sentence = _most_telling(passage.text, passages_by_word)
        rest = passage.text
        if sentence:
            rest = f"{passage.text[: sentence.start]} {passage.text[sentence.end :]}".strip()
            question = _harder(passage.text[sentence.start : sentence.end], passages_by_word)
            questions.append(JudgedQuestion(passage.id, question, "", {passage.id: 1}))
        documents.append(JudgedDocument(passage.id, passage.title, rest))
    if len(questions) < FEWEST:
        raise InvalidInput(
            f"Only {len(questions)} passages here have several sentences, and a comparison needs {FEWEST}. "
            "Add more to the library first."
        )
    return JudgedCollection("known items", tuple(documents), tuple(questions))


def sample_texts(store: Store, most: int) -> list[str]:
    """Return passages as they are, evenly spaced over the library."""
    return [passage.text for passage in _sample(store, most)]


def _sample(store: Store, most: int) -> list[_Passage]:
    """Return passages of evenly spaced items, and as many of each as it takes, evenly spaced too."""
    ids = store.drawer(Listing).select(Filter())
    each = ceil(most / max(1, len(ids)))
    passages = []
    for item in store.drawer(Items).get([int(ids[place]) for place in _spaced(len(ids), most)]):
        chunks = [chunk for chunk in store.drawer(Chunks).of(item.id) if chunk.text.strip()]
        passages += [
            _Passage(str(chunks[place].id), item.title, chunks[place].text) for place in _spaced(len(chunks), each)
        ]
    return passages[:most]


def _spaced(count: int, most: int) -> list[int]:
    """Return at most `most` places among `count`, the middle one if there is one: beginnings are titles and dates."""
    total = min(count, most)
    return [(2 * number + 1) * count // (2 * total) for number in range(total)]


def _most_telling(text: str, passages_by_word: Counter[str]) -> _Sentence | None:
    """Return the sentence that says most in few words; None where taking one away would leave nothing to find."""
    sentences = _sentences(text)
    if len(sentences) < 2:
        return None
    candidates = [sentence for sentence in sentences if _SHORTEST <= len(sentence.words) <= _LONGEST]
    return max(candidates, key=lambda sentence: _tells(sentence.words, passages_by_word), default=None)


def _tells(words: Sequence[str], passages_by_word: Counter[str]) -> float:
    total = sum(passages_by_word.values()) or 1
    return sum(log(total / (1 + passages_by_word[word])) for word in set(words)) / sqrt(len(words))


def _sentences(text: str) -> list[_Sentence]:
    sentences = [
        _Sentence(match.start(), match.end(), tuple(_words(match[0])))
        for match in _SENTENCE.finditer(text)
        if match[0].strip()
    ]
    if (
        len(sentences) == 1 and len(sentences[0].words) > _LONGEST
    ):  # a script without full stops has blanks between clauses
        return [
            _Sentence(match.start(), match.end(), tuple(_words(match[0]))) for match in regex.finditer(r"\S+\s*", text)
        ]
    return sentences


def _harder(sentence: str, passages_by_word: Counter[str]) -> str:
    """Return a sentence without the third of its words that fewest passages have; whole where words are not spaced."""
    words = [match[0] for match in _WORD.finditer(sentence)]
    if UNSPACED.search(sentence) or len(words) < _SHORTEST:
        return sentence.strip()
    rarest = sorted(
        range(len(words)), key=lambda place: (passages_by_word[words[place].casefold()], -len(words[place]))
    )
    dropped = set(rarest[: len(words) // 3])
    return " ".join(word for place, word in enumerate(words) if place not in dropped)


def _words(text: str) -> list[str]:
    """Return words as they are compared here: in lower case, in pairs of characters where they are not spaced."""
    words = []
    for match in _WORD.finditer(text):
        word = match[0].casefold()
        if UNSPACED.match(word):
            words += [word[place : place + _PAIR] for place in range(0, len(word), _PAIR)]
        else:
            words.append(word)
    return words
