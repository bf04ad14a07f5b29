"""The language of a text, told by its script and its commonest words; and the stemmer of each language.

A guess is needed only to pick a stemmer and to know whether a model speaks the language, so a few dozen
function words per language do: no model, no data file, microseconds per text.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from math import lcm
from struct import Struct

import regex
import Stemmer

from commonplace.text.function_words import FUNCTION_WORDS

_SCRIPTS = {
    "zh": r"\p{Han}",
    "ja": r"[\p{Hiragana}\p{Katakana}]",
    "ko": r"\p{Hangul}",
    "th": r"\p{Thai}",
    "ar": r"\p{Arabic}",
    "he": r"\p{Hebrew}",
    "el": r"\p{Greek}",
    "hi": r"\p{Devanagari}",
    "ta": r"\p{Tamil}",
    "hy": r"\p{Armenian}",
    "ru": r"\p{Cyrillic}",
}

_STEMMERS = {
    "ar": "arabic", "hy": "armenian", "eu": "basque", "ca": "catalan", "cs": "czech", "da": "danish", "nl": "dutch",
    "en": "english", "et": "estonian", "fi": "finnish", "fr": "french", "de": "german", "el": "greek", "hi": "hindi",
    "hu": "hungarian", "id": "indonesian", "ga": "irish", "it": "italian", "lt": "lithuanian", "no": "norwegian",
    "pl": "polish", "pt": "portuguese", "ro": "romanian", "ru": "russian", "sr": "serbian", "es": "spanish",
    "sv": "swedish", "ta": "tamil", "tr": "turkish",
}  # fmt: skip

UNKNOWN = "und"
LANGUAGES = frozenset(_STEMMERS)
SAMPLE = 800
"""Characters that tell the language of a text: enough function words for a verdict, however long it is."""
_LEAST_SHARE = 0.08  # of all words: prose has four times as many function words, code and tables fewer
_NOT_LATIN = regex.compile(r"[^\P{L}\p{Latin}]")

_COUNTS = Struct(f"<{len(FUNCTION_WORDS)}I")
_CODES = tuple(FUNCTION_WORDS)


@cache
def stop_words(language: str) -> frozenset[str]:
    """Return the commonest words of a language; none where it is not known."""
    return frozenset(FUNCTION_WORDS.get(language, "").split())


@cache  # most searches need no language to be told, and it is a megabyte
def _votes() -> tuple[int, Mapping[str, int]]:
    """Return a whole vote, and for each word its votes, 32 bits for each language.

    A word of many languages says little of any.
    """
    spoken: dict[str, list[int]] = {}
    for place, words in enumerate(FUNCTION_WORDS.values()):
        for word in words.split():
            if len(word) > 1:  # single letters are anyone's
                spoken.setdefault(word, []).append(place)
    vote = lcm(*map(len, spoken.values()))
    return vote, {word: sum(vote // len(places) << 32 * place for place in places) for word, places in spoken.items()}


def detect(text: str) -> str:
    """Return the language of a text as an ISO 639-1 code, or "und" when neither its script nor its words tell."""
    sample = text[:SAMPLE]
    if not sample.isascii():
        script = _by_script(sample)
        if script is not None:
            return script
    return _by_words(sample)


def _by_script(sample: str) -> str | None:
    others = len(_NOT_LATIN.findall(sample))
    if not others or others * 3 < sum(map(str.isalpha, sample)):
        return None
    counts = {language: len(pattern.findall(sample)) for language, pattern in _scripts()}
    if counts["ja"] * 20 > counts["zh"]:
        counts["ja"] += counts["zh"]  # Japanese writes Han characters too; kana tell it from Chinese
    language, count = max(counts.items(), key=lambda pair: pair[1])
    if count * 2 < others:
        return UNKNOWN
    if language == "ru":
        words = _by_words(sample)
        return words if words in ("uk", "bg", "sr") else "ru"
    return language


@cache
def _scripts() -> list[tuple[str, regex.Pattern[str]]]:
    return [(language, regex.compile(pattern)) for language, pattern in _SCRIPTS.items()]


def _by_words(sample: str) -> str:
    words = sample.lower().split()
    vote, votes_by_word = _votes()
    votes = _COUNTS.unpack(sum(filter(None, map(votes_by_word.get, words))).to_bytes(_COUNTS.size, "little"))
    *_, second, most = sorted(votes)
    if not most or most <= second * 1.2 or most < vote * max(0.5, _LEAST_SHARE * len(words)):
        return UNKNOWN
    return _CODES[votes.index(most)]


@cache
def stemmer(language: str) -> Stemmer.Stemmer | None:
    """Return the Snowball stemmer of a language, or None where there is none. It keeps state: one thread at a time."""
    algorithm = _STEMMERS.get(language)
    return Stemmer.Stemmer(algorithm, 0) if algorithm else None  # no cache: who asks remembers


def stemmed_as(language: str, otherwise: str) -> str:
    """Return the language whose stems a text gets: its own, or `otherwise` where that has no stemmer.

    Chinese or Thai has no endings, but English words stand in it as well, and are asked for by their stems.
    """
    return language if language in LANGUAGES else otherwise


def code_of(name: str) -> str:
    """Return the ISO 639-1 code of a language that is named in English or by its code; UNKNOWN where it is neither."""
    lowered = name.strip().lower()
    if lowered in LANGUAGES:
        return lowered
    return next((code for code, english in _STEMMERS.items() if english == lowered), UNKNOWN)
