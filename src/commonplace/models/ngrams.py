"""Universal Sentence Encoder, multilingual: token vectors, convolutions over their neighbors, a sum, a small network.

No attention, so a passage costs a third of what a transformer of its size does, and numpy is all it needs. A text's
tokens are read in groups of two, three and five; what the groups say is added up over the text.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from commonplace.errors import Unavailable
from commonplace.models.onnx import Windowed
from commonplace.models.pieces import Tokens
from commonplace.models.roles import Vectors, unit

Tensors = Mapping[str, NDArray[np.float32]]

PARTS = 17
"""The table of token vectors lies in so many parts: token i is row i // PARTS of part i % PARTS."""
GROUPS = ((2, 0), (3, 1), (5, 2))
"""The tokens of a group, and how many of them stand before the one it is about."""


class NgramEmbedder(Windowed):
    """An `Embedder` over a `weights.npz` and its SentencePiece `sp.model`."""

    def _load(self) -> _Network:
        tokens = Tokens(self._tokenizer)
        try:
            return _read(self._model, tokens)
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error) as error:
            raise Unavailable(
                f"{self._model} cannot be read ({error}). Delete its folder and pull the model again."
            ) from error


@dataclass(frozen=True, slots=True)
class _Layer:
    """A product and a bias that is added to it."""

    weight: Vectors
    bias: Vectors

    def __call__(self, x: Vectors) -> Vectors:
        return np.asarray(x @ self.weight + self.bias, np.float32)


@dataclass(frozen=True, slots=True)
class _Norm:
    """A norm of rows: each at mean 0 and variance 1, then scaled and moved."""

    gain: Vectors
    bias: Vectors
    least: np.float32

    def __call__(self, x: Vectors) -> Vectors:
        centered = x - x.mean(axis=1, keepdims=True)
        centered /= np.sqrt(np.square(centered).mean(axis=1, keepdims=True) + self.least)
        return np.asarray(centered * self.gain + self.bias, np.float32)


@dataclass(frozen=True, slots=True)
class _Group:
    """Two convolutions over a token and its neighbors, each added to what it was made from."""

    size: int
    before: int
    layers: tuple[_Layer, _Layer]

    def __call__(self, x: Vectors) -> Vectors:
        for layer in self.layers:
            x = x + np.maximum(self._convolved(x, layer), 0)
        return x

    def _convolved(self, x: Vectors, layer: _Layer) -> Vectors:
        """Return a product per place in the group, added up.

        Nothing is copied, and beyond the ends of a text is nothing.
        """
        count, width = x.shape
        padded = np.pad(x, ((self.before, self.size - 1 - self.before), (0, 0)))
        out = np.broadcast_to(layer.bias, x.shape).copy()
        for place in range(self.size):
            out += padded[place : place + count] @ layer.weight[place * width : (place + 1) * width]
        return out


@dataclass(frozen=True, slots=True)
class _Network:
    tokens: Tokens
    codes: NDArray[np.uint8]
    scales: Vectors
    lowest: Vectors
    inward: _Layer
    inward_norm: _Norm
    groups: tuple[_Group, ...]
    joined_norm: _Norm
    outward: _Layer
    dense: Tensors

    @property
    def dims(self) -> int:
        return int(self.codes.shape[2])

    def vector(self, ids: Sequence[int]) -> Vectors:
        words = self._words(np.asarray(ids))
        inward = np.split(self.inward_norm(self.inward(words)), len(self.groups), axis=1)
        group_outputs = [group(part) for group, part in zip(self.groups, inward, strict=True)]
        joined = self.joined_norm(np.concatenate([words, *group_outputs], axis=1))
        length = np.float32(len(ids))
        # The sum before the product: it is linear, and one row is cheaper than one for each token.
        total = (joined.sum(axis=0) @ self.outward.weight + length * self.outward.bias) / np.sqrt(length)
        return unit(self._finished(total))

    def _words(self, ids: NDArray[np.int64]) -> Vectors:
        part = ids % PARTS
        rows = self.codes[part, ids // PARTS].astype(np.float32)
        return rows * self.scales[part, None] + self.lowest[part, None]

    def _finished(self, total: Vectors) -> Vectors:
        """Return the result of two blocks of two layers, each block with a way around it."""
        dense = self.dense
        first = np.maximum(np.maximum(total @ dense["d0"], 0) @ dense["d1"] + total @ dense["p1"], 0)
        second = np.maximum(first @ dense["d2"], 0) @ dense["d3"] + first @ dense["p3"]
        return np.asarray(np.tanh(second), np.float32)


def _read(path: Path, tokens: Tokens) -> _Network:
    with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
        codes = _codes(stored)
        tensors = {name: stored[name] for name in stored.files if not name.startswith("q")}
    least = np.float32(tensors["eps"])
    together = {name: _joined(tensors, name) for name in ("proj", "proj_b", "ln_g", "ln_b")}
    return _Network(
        tokens=tokens,
        codes=codes,
        scales=tensors["scale"],
        lowest=tensors["lo"],
        inward=_Layer(together["proj"], together["proj_b"]),
        inward_norm=_Norm(together["ln_g"], together["ln_b"], least),
        groups=tuple(_Group(size, before, _convolutions(tensors, size)) for size, before in GROUPS),
        joined_norm=_Norm(tensors["ln_g"], tensors["ln_b"], least),
        outward=_Layer(tensors["cnn_W"], tensors["cnn_b"]),
        dense={name: tensors[name] for name in ("d0", "d1", "d2", "d3", "p1", "p3")},
    )


def _codes(stored: Mapping[str, NDArray[np.uint8]]) -> NDArray[np.uint8]:
    """Return the table of codes, put together part by part: it is never in memory twice."""
    first = stored["q1"]
    codes = np.empty((PARTS, *first.shape), np.uint8)
    for part in range(PARTS):
        codes[part] = stored[f"q{part + 1}"]
    return codes


def _joined(tensors: Tensors, name: str) -> Vectors:
    return np.concatenate([tensors[f"{name}{size}"] for size, _ in GROUPS], axis=-1)


def _convolutions(tensors: Tensors, size: int) -> tuple[_Layer, _Layer]:
    first, second = (_Layer(tensors[f"w{turn}_{size}"], tensors[f"b{turn}_{size}"]) for turn in (1, 2))
    return first, second
