"""A transformer on the CPU, through onnxruntime."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commonplace.errors import Unavailable
from commonplace.models.catalog import Card, Pooling
from commonplace.models.embedder import Vectors, unit
from commonplace.models.tokens import Tokens
from commonplace.models.windows import Windowed


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
