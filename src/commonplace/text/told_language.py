"""The language of a text that is to be indexed, told by fastText's small model from how its words are spelled.

Where the model is unsure, or a text has too few words for it, script and function words decide, as they do for queries.
"""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from commonplace.text.languages import SAMPLE, detect

_MODEL = Path(__file__).parent / "lid" / "lid.176.ftz"
_LEAST_WORDS = 5
"""In fewer words the model is wrong too often: a name may be of any language."""
_FEW_WORDS = 20
_SURE, _SURE_OF_FEW = 0.3, 0.5
"""The least probability of a language, and that in texts of few words."""
_SAME = {"nn": "no", "nb": "no", "arz": "ar", "yue": "zh", "wuu": "zh", "sh": "sr"}
"""Languages that are stemmed, and known to models, as another."""


@cache
def language_version() -> str:
    """Return what changes where the same text may be told to be in another language than before."""
    return "languages-2" if _is_there() else "languages-1"


def language_of(text: str) -> str:
    """Return the ISO 639 code of a text's language, or "und" where nothing tells it. The first 800 characters count."""
    words = text[:SAMPLE].split()
    if len(words) >= _LEAST_WORDS and _is_there():
        language, probability = _likeliest(" ".join(words))
        if probability >= (_SURE if len(words) >= _FEW_WORDS else _SURE_OF_FEW):
            return _SAME.get(language, language)
    return detect(text)


@cache
def _is_there() -> bool:
    return find_spec("fasttext") is not None


def _likeliest(line: str) -> tuple[str, float]:
    labels, probabilities = _model().predict(line, on_unicode_error="replace")
    return (labels[0].removeprefix("__label__"), probabilities[0]) if labels else ("", 0.0)


@cache
def _model() -> Any:
    import fasttext  # only what indexes needs it: 4 MB

    return fasttext.load_model(str(_MODEL))
