"""A SentencePiece unigram model as a tokenizer: its vocabulary and its rules, read out of the one file it is kept in.

That file is a protocol buffer (sentencepiece_model.proto). Only what decides the pieces of a text is read.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import tokenizers

_PIECE, _TRAINER, _NORMALIZER = 1, 2, 3  # fields of the model
_TEXT, _SCORE, _KIND = 1, 2, 3  # of a piece
_ALGORITHM, _BEGIN, _END = 3, 41, 42  # of the trainer
_CHARACTERS = 2  # of the normalizer
_UNIGRAM = 1
_NORMAL, _UNKNOWN, _CONTROL = 1, 2, 3  # kinds of piece
_SPACE = "▁"
UNKNOWN = " <unk>"
"""The name of the piece for anything unknown in a tokenizer made here."""


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
