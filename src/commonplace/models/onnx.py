"""Neural embedders: long texts in windows, several texts at once, queries that are asked again; and transformers.

A transformer runs on the CPU through onnxruntime. One text per run, never a padded batch: int8 models scale their
activations by the largest value in the whole input, so a neighbor in the batch would change a text's vector (by a
cosine of 0.992 to 0.999 for arctic-embed-s), and batches are slower besides (a passage takes 56 ms alone, 93 in a
four: tools/time_embedder.py). Threads run more texts at once.
"""

from __future__ import annotations

import os
import threading
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache, partial
from math import ceil
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from commonplace.errors import Unavailable
from commonplace.models.catalog import Card, Pooling, Progress
from commonplace.models.local import MOST_TOKENS
from commonplace.models.pieces import Tokens
from commonplace.models.roles import Carded, Vectors, unit

OVERLAP = 16
"""Tokens two neighboring windows of a long text share, so that no phrase is cut in both."""
RECENT_QUERIES = 256


def default_threads() -> int:
    return min(2, os.cpu_count() or 1)


class Network(Protocol):
    """A model's loaded weights with their tokenizer. Runs from several threads at once."""

    @property
    def tokens(self) -> Tokens: ...
    @property
    def dims(self) -> int: ...

    def vector(self, ids: Sequence[int]) -> Vectors: ...  # the unit vector of one window


class Windowed(Carded):
    """An `Embedder` over a network that reads so many tokens at a time; a longer text is the mean of its windows."""

    def __init__(self, card: Card, model: Path, tokenizer: Path, identity: str, *, threads: int | None = None) -> None:
        super().__init__(card, identity)
        self._model, self._tokenizer = model, tokenizer
        self._threads = threads or default_threads()
        self._lock = threading.Lock()
        self._network: Network | None = None
        self._recent = lru_cache(RECENT_QUERIES)(partial(self._embed, card.query_prefix))

    @abstractmethod
    def _load(self) -> Network: ...

    @property
    def dims(self) -> int:
        return self._card.dims or self._loaded().dims

    def warm(self) -> None:
        """Load the weights and run once: some of the work is prepared in the first run."""
        self._loaded().vector(self._loaded().tokens.framed("a"))

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors of queries.

        One that is asked again, for its next page or by another leg, is not computed again.
        """
        return self._rows([self._recent(text) for text in texts])

    def embed_passages(self, texts: Sequence[str], progress: Progress | None = None) -> Vectors:
        self._loaded()
        rows = []
        for row in self._each(texts):
            rows.append(row)
            if progress:
                progress(len(rows), len(texts))
        return self._rows(rows)

    def fertility(self, text: str) -> float:
        return self._loaded().tokens.fertility(text)

    def _each(self, texts: Sequence[str]) -> Iterator[Vectors]:
        embed = partial(self._embed, self._card.passage_prefix)
        if self._threads == 1 or len(texts) == 1:
            yield from map(embed, texts)
            return
        with ThreadPoolExecutor(self._threads, thread_name_prefix="embed") as pool:
            yield from pool.map(embed, texts)

    def _embed(self, prefix: str, text: str) -> Vectors:
        network = self._loaded()
        total = np.zeros(network.dims, np.float32)
        for window in windows(network.tokens, prefix, text, self._card.max_tokens or MOST_TOKENS):
            total += network.vector(window)
        return unit(total)

    def _rows(self, rows: list[Vectors]) -> Vectors:
        return np.stack(rows) if rows else np.zeros((0, self.dims), np.float32)

    def _loaded(self) -> Network:
        if self._network is None:
            with self._lock:
                if self._network is None:
                    self._network = self._load()
        return self._network


def windows(tokens: Tokens, prefix: str, text: str, most: int) -> list[list[int]]:
    """Return the ids of a text in as few windows as hold it, of even length so that each is a fair part of the mean."""
    whole = tokens.framed(prefix + text)
    if len(whole) <= most:
        return [whole]
    head = tokens.head + (tokens.plain(prefix) if prefix else [])
    body = tokens.plain(text)
    room = most - len(head) - len(tokens.tail)
    count = ceil((len(body) - OVERLAP) / (room - OVERLAP))
    step = ceil((len(body) - OVERLAP) / count)
    return [head + body[start : start + step + OVERLAP] + tokens.tail for start in range(0, len(body) - OVERLAP, step)]


class OnnxEmbedder(Windowed):
    """An `Embedder` over a `model.onnx` and its `tokenizer.json`."""

    def _load(self) -> _Network:
        return _load(self._model, self._tokenizer, self._card)


@dataclass(frozen=True, slots=True)
class _Network:
    session: Any
    tokens: Tokens
    inputs: frozenset[str]
    output: str
    pooling: Pooling
    dims: int

    def vector(self, ids: Sequence[int]) -> Vectors:
        output = self._run(ids)
        if output.ndim == 1:
            return unit(output)
        return unit(output[0] if self.pooling == "cls" else output.mean(axis=0))

    def _run(self, ids: Sequence[int]) -> Vectors:
        row = np.array([ids], np.int64)
        feeds = {"input_ids": row, "attention_mask": np.ones_like(row), "token_type_ids": np.zeros_like(row)}
        inputs = {name: value for name, value in feeds.items() if name in self.inputs}
        output: NDArray[Any] = self.session.run([self.output], inputs)[0][0]
        return output.astype(np.float32, copy=False)


def _load(model: Path, tokenizer: Path, card: Card) -> _Network:
    tokens = Tokens(tokenizer)
    session = _session(model)
    outputs = {output.name: output.shape for output in session.get_outputs()}
    output = "sentence_embedding" if "sentence_embedding" in outputs else next(iter(outputs))
    inputs = frozenset(put.name for put in session.get_inputs())
    dims = card.dims or outputs[output][-1]
    if not isinstance(dims, int):
        raise Unavailable(f"{model} does not say how long its vectors are. Write dims into {model.parent}/card.json.")
    return _Network(session, tokens, inputs, output, card.pooling, dims)


def _session(model: Path) -> Any:
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # read while it is loaded: it would report to its maker from then on
    try:
        import onnxruntime
    except ImportError as error:
        raise Unavailable(
            f"onnxruntime cannot be imported ({error}). Reinstall it, or use the model 'static'."
        ) from error
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.enable_cpu_mem_arena = False
    options.enable_mem_pattern = False  # one plan per text length would be kept for ever
    options.log_severity_level = 3
    try:
        return onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's errors share no narrower base
        raise Unavailable(f"{model} cannot be loaded ({error}). Delete its folder and pull the model again.") from error
