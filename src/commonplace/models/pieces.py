"""A model's own tokens: ids for its input, and how well it knows the words of a text.

A SentencePiece unigram model is read out of the one file it is kept in, a protocol buffer (sentencepiece_model.proto):
its vocabulary and its rules, and only what decides the pieces of a text.
"""

from __future__ import annotations

import os
import re
from functools import lru_cache
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING

import regex

from commonplace.errors import Unavailable
from commonplace.text.analyze import UNSPACED

if TYPE_CHECKING:
    import tokenizers
import struct
from collections.abc import Iterator
from dataclasses import dataclass

_PIECE, _TRAINER, _NORMALIZER = 1, 2, 3  # fields of the model
_TEXT, _SCORE, _KIND = 1, 2, 3  # of a piece
_ALGORITHM, _BEGIN, _END = 3, 41, 42  # of the trainer
_CHARACTERS = 2  # of the normalizer
_UNIGRAM = 1
_NORMAL, _UNKNOWN, _CONTROL = 1, 2, 3  # kinds of piece
_SPACE = "▁"
UNKNOWN = " <unk>"
"""The name of the piece for anything unknown in a tokenizer made here."""
UNKNOWN_WEIGHT = 8
"""An unknown token counts as this many: a word in it is as good as unread, and spelling one out takes about as many."""
_WORD = re.compile(r"[^\W\d_]+|\d+")
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")
_ALPHABET = regex.compile(r"[\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]")
_LETTERS_OF_ALPHABET, _LETTERS_OF_OTHERS = 4, 2
"""Letters that make a word where words are not spaced: in alphabets, and in scripts of syllables or words."""
_REMEMBERED, _LONGEST_QUESTION = 32, 300


@dataclass(frozen=True, slots=True)
class Pieces:
    """The vocabulary and rules of a model file."""

    vocabulary: list[tuple[str, float]]
    unknown: int
    begin: int
    end: int
    characters: bytes
    """The rules that make characters alike before a text is cut, as SentencePiece compiles them; empty for none."""


def tokenizer_of(path: Path) -> tokenizers.Tokenizer:
    """Return a tokenizer that cuts as SentencePiece does and puts the model's marks around a text.

    Raise ValueError for another file.
    """
    from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors

    pieces = read_pieces(path.read_bytes())
    tokenizer = Tokenizer(models.Unigram(pieces.vocabulary, pieces.unknown, False))
    blanks = [normalizers.Strip(), normalizers.Replace(Regex(" {2,}"), " ")]
    alike = [normalizers.Precompiled(pieces.characters)] if pieces.characters else []
    tokenizer.normalizer = normalizers.Sequence([*alike, *blanks])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(_SPACE, "always", False)
    tokenizer.post_processor = processors.TemplateProcessing(
        single=["begin", "$A", "end"],
        special_tokens=[("begin", pieces.begin), ("end", pieces.end)],
    )
    return tokenizer


def read_pieces(data: bytes) -> Pieces:
    """Return the pieces in the bytes of a model file. Raise ValueError where they are no unigram model."""
    vocabulary: list[tuple[str, float]] = []
    unknown, trainer, characters = 0, dict[int, int](), b""
    for field, value in _fields(data):
        if field == _PIECE:
            text, score, kind = _piece(_bytes(value))
            if kind == _UNKNOWN:
                unknown, text = len(vocabulary), UNKNOWN
            elif kind == _CONTROL:
                text = f" {text}"  # a mark, which no text can write: blanks are pieces of their own sign
            vocabulary.append((text, score))
        elif field == _TRAINER:
            trainer = {name: number for name, number in _fields(_bytes(value)) if isinstance(number, int)}
        elif field == _NORMALIZER:
            characters = _bytes(dict(_fields(_bytes(value))).get(_CHARACTERS, b""))
    if not vocabulary or trainer.get(_ALGORITHM, _UNIGRAM) != _UNIGRAM:
        raise ValueError("it is no SentencePiece unigram model")
    return Pieces(vocabulary, unknown, trainer.get(_BEGIN, 1), trainer.get(_END, 2), characters)


def _piece(data: bytes) -> tuple[str, float, int]:
    fields = dict(_fields(data))
    kind, score = fields.get(_KIND, _NORMAL), _bytes(fields.get(_SCORE, bytes(4)))
    if len(score) != 4 or not isinstance(kind, int):
        raise ValueError("a piece is not what it should be")
    return _bytes(fields.get(_TEXT, b"")).decode("utf-8"), struct.unpack("<f", score)[0], kind


def _bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise ValueError("a field is not what it should be")
    return value


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield the (number, value) of each field of a message: an integer, or the bytes of anything else."""
    place = 0
    while place < len(data):
        key, place = _varint(data, place)
        match key & 7:
            case 0:
                number, place = _varint(data, place)
                yield key >> 3, number
                continue
            case 1:
                length = 8
            case 2:
                length, place = _varint(data, place)
            case 5:
                length = 4
            case other:
                raise ValueError(f"it has a field of type {other}")
        if place + length > len(data):
            raise ValueError("it ends in the middle of a field")
        yield key >> 3, data[place : place + length]
        place += length


def _varint(data: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while place < len(data) and shift < 64:
        byte = data[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, place
        shift += 7
    raise ValueError("it ends in the middle of a number")


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
