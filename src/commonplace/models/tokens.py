"""A model's own tokens: ids for its input, and how well it knows the words of a text."""

from __future__ import annotations

import os
import re
from functools import lru_cache
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING

import regex

from commonplace.errors import Unavailable
from commonplace.models.pieces import UNKNOWN, tokenizer_of
from commonplace.text.analyze import UNSPACED

if TYPE_CHECKING:
    import tokenizers

UNKNOWN_WEIGHT = 8
"""An unknown token counts as this many: a word in it is as good as unread, and spelling one out takes about as many."""
_WORD = re.compile(r"[^\W\d_]+|\d+")
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")
_ALPHABET = regex.compile(r"[\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]")
_LETTERS_OF_ALPHABET, _LETTERS_OF_OTHERS = 4, 2
"""Letters that make a word where words are not spaced: in alphabets, and in scripts of syllables or words."""

_REMEMBERED, _LONGEST_QUESTION = 32, 300


class Tokens:
    """A tokenizer without truncation and padding, both of which would silently change what a text is."""

    def __init__(self, path: Path) -> None:
        self._tokenizer = _load(path)
        self._unknown = _unknown_id(self._tokenizer)
        self._remembered = lru_cache(maxsize=_REMEMBERED)(self._ids)
        self.head, self.tail = self._frame()

    def framed(self, text: str) -> list[int]:
        """Return the ids of a text between the marks a model expects around it."""
        return self._tokenizer.encode(_readable(text)).ids

    def plain(self, text: str) -> list[int]:
        """Return the ids of a text alone.

        A question's are kept a while: it is embedded, and then its words are looked at.
        """
        return self._remembered(text) if len(text) <= _LONGEST_QUESTION else self._ids(text)

    def _ids(self, text: str) -> list[int]:
        return self._tokenizer.encode(_readable(text), add_special_tokens=False).ids

    def known(self, text: str) -> list[int]:
        """Return the ids of a text without the unknown ones."""
        return [token for token in self.plain(text) if token != self._unknown]

    def fertility(self, text: str) -> float:
        """Return tokens per word. Punctuation is left out, and `camelCase` and `snake_case` count as their words.

        Where words are not spaced, so many letters count as one.
        """
        words = _WORD.findall(_HUMP.sub(" ", text))
        if not words:
            return 1.0
        tokens = self.plain(" ".join(words))
        unknown = tokens.count(self._unknown) if self._unknown is not None else 0
        return (len(tokens) + (UNKNOWN_WEIGHT - 1) * unknown) / sum(map(_words_in, words))

    def _frame(self) -> tuple[list[int], list[int]]:
        encoding = self._tokenizer.encode("a")
        inside = [place for place, special in enumerate(encoding.special_tokens_mask) if not special]
        return encoding.ids[: inside[0]], encoding.ids[inside[-1] + 1 :]


def _load(path: Path) -> tokenizers.Tokenizer:
    os.environ["HF_HUB_OFFLINE"] = "1"  # nothing here may ever look on the network
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    import tokenizers

    try:
        from_pieces = path.suffix == ".model"
        tokenizer = tokenizer_of(path) if from_pieces else tokenizers.Tokenizer.from_file(str(path))
    except Exception as error:  # tokenizers raises nothing narrower
        raise Unavailable(f"{path} cannot be read ({error}). Delete its folder and pull the model again.") from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def _unknown_id(tokenizer: tokenizers.Tokenizer) -> int | None:
    name: str | None = getattr(tokenizer.model, "unk_token", UNKNOWN)
    return tokenizer.token_to_id(name) if name else None


def _words_in(run: str) -> int:
    """Return how many words a run of letters is: more than one only where a script does not space them."""
    if run.isascii():
        return 1
    length = _LETTERS_OF_ALPHABET if _ALPHABET.match(run) else _LETTERS_OF_OTHERS
    return max(1, ceil(len(UNSPACED.findall(run)) / length))


def _readable(text: str) -> str:
    """Return a text without halves of surrogate pairs: broken JSON may hold them, and no tokenizer reads them."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")
