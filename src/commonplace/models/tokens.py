"""A model's own tokens: ids for its input, and how well it knows the words of a text."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from commonplace.errors import Unavailable

if TYPE_CHECKING:
    import tokenizers

UNKNOWN_WEIGHT = 8
"""An unknown token counts as this many: a word in it is as good as unread, and spelling one out takes about as many."""
_WORD = re.compile(r"[^\W\d_]+|\d+")
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")


class Tokens:
    """A tokenizer without truncation and padding, both of which would silently change what a text is."""

    def __init__(self, path: Path) -> None:
        self._tokenizer = _load(path)
        self._unknown = _unknown_id(self._tokenizer)
        self.head, self.tail = self._frame()

    def framed(self, text: str) -> list[int]:
        """The ids of a text between the marks a model expects around it."""
        return self._tokenizer.encode(_readable(text)).ids

    def plain(self, text: str) -> list[int]:
        """The ids of a text alone."""
        return self._tokenizer.encode(_readable(text), add_special_tokens=False).ids

    def known(self, text: str) -> list[int]:
        """The ids of a text without the unknown ones."""
        return [token for token in self.plain(text) if token != self._unknown]

    def fertility(self, text: str) -> float:
        """Tokens per word; punctuation is left out and `camelCase` and `snake_case` count as their words."""
        words = _WORD.findall(_HUMP.sub(" ", text))
        if not words:
            return 1.0
        tokens = self.plain(" ".join(words))
        unknown = tokens.count(self._unknown) if self._unknown is not None else 0
        return (len(tokens) + (UNKNOWN_WEIGHT - 1) * unknown) / len(words)

    def _frame(self) -> tuple[list[int], list[int]]:
        encoding = self._tokenizer.encode("a")
        inside = [place for place, special in enumerate(encoding.special_tokens_mask) if not special]
        return encoding.ids[: inside[0]], encoding.ids[inside[-1] + 1 :]


def _load(path: Path) -> tokenizers.Tokenizer:
    os.environ["HF_HUB_OFFLINE"] = "1"  # nothing here may ever look on the network
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    import tokenizers

    try:
        tokenizer = tokenizers.Tokenizer.from_file(str(path))
    except Exception as error:  # tokenizers raises nothing narrower
        raise Unavailable(f"{path} cannot be read ({error}). Delete its folder and pull the model again.") from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def _unknown_id(tokenizer: tokenizers.Tokenizer) -> int | None:
    name: str | None = getattr(tokenizer.model, "unk_token", None)
    return tokenizer.token_to_id(name) if name else None


def _readable(text: str) -> str:
    """Half of a surrogate pair, as broken JSON may hold, is not text to a tokenizer."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")
