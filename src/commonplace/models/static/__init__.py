"""A table of token vectors and their mean: meaning without a neural network, at a hundredth of its cost.

The files beside this one are potion-base-8M (see NOTICE) in int8, so that search by meaning works before any model was
pulled; `tools/build_static.py` made them. The weight of a token is the length of its row.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commonplace.errors import Unavailable
from commonplace.models.catalog import Card, Progress
from commonplace.models.pieces import Tokens
from commonplace.models.roles import Carded, Vectors, unit

SHIPPED = Path(__file__).parent
_DTYPES = {"F32": np.float32, "F16": np.float16}


@dataclass(frozen=True, slots=True)
class Table:
    """A table with a row per token.

    With scales, row i is `codes[i] * scales[i]`; both stay in the file until they are read.
    """

    codes: NDArray[Any]
    scales: NDArray[np.float32] | None = None

    def mean(self, ids: Sequence[int]) -> Vectors:
        """Return the direction of the mean row; zero when there is none."""
        if not ids:
            return np.zeros(self.codes.shape[1], np.float32)
        rows = self.codes[ids].astype(np.float32)
        weights = np.ones(len(ids), np.float32) if self.scales is None else self.scales[ids]
        return unit(weights @ rows)


def quantize(rows: Vectors) -> Table:
    """Return the rows in int8, each scaled by its own largest value."""
    scales = np.maximum(np.abs(rows).max(axis=1), 1e-12).astype(np.float32) / 127
    return Table(np.round(rows / scales[:, None]).astype(np.int8), scales)


def open_table(model: Path) -> Table:
    """Return the table in `codes.npy` with `scales.npy` beside it, or in a model2vec `model.safetensors`."""
    try:
        if model.suffix == ".npy":
            codes = np.load(model, mmap_mode="r").view(np.ndarray)  # mapped all the same, and quicker to index
            return Table(codes, np.load(model.with_name("scales.npy")))
        return Table(_read_safetensors(model))
    except (OSError, ValueError, KeyError) as error:
        raise Unavailable(f"{model} cannot be read ({error}). Delete its folder and pull the model again.") from error


class StaticEmbedder(Carded):
    """An `Embedder` over a token table and its `tokenizer.json`."""

    def __init__(self, card: Card, model: Path, tokenizer: Path, identity: str) -> None:
        super().__init__(card, identity)
        self._model, self._tokenizer = model, tokenizer
        self._lock = threading.Lock()
        self._parts: tuple[Tokens, Table] | None = None

    @property
    def dims(self) -> int:
        return self._card.dims or int(self._loaded()[1].codes.shape[1])

    def warm(self) -> None:
        self._loaded()

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        return self._embed(self._card.query_prefix, texts, None)

    def embed_passages(self, texts: Sequence[str], progress: Progress | None = None) -> Vectors:
        return self._embed(self._card.passage_prefix, texts, progress)

    def fertility(self, text: str) -> float:
        return self._loaded()[0].fertility(text)

    def _embed(self, prefix: str, texts: Sequence[str], progress: Progress | None) -> Vectors:
        tokens, table = self._loaded()
        out = np.zeros((len(texts), self.dims), np.float32)
        for row, text in enumerate(texts):
            out[row] = table.mean(tokens.known(prefix + text))
            if progress:
                progress(row + 1, len(texts))
        return out

    def _loaded(self) -> tuple[Tokens, Table]:
        if self._parts is None:
            with self._lock:
                if self._parts is None:
                    self._parts = Tokens(self._tokenizer), open_table(self._model)
        return self._parts


def _read_safetensors(path: Path) -> NDArray[Any]:
    """Return the one tensor of a model2vec file, mapped, not copied."""
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(length))
    tensor = header["embeddings"]
    start = 8 + length + tensor["data_offsets"][0]
    return np.memmap(path, _DTYPES[tensor["dtype"]], "r", start, tuple(tensor["shape"]))
