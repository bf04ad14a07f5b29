"""A model in a folder that did not come through the catalog: which file is which, and how it wants to be used."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from commonplace.errors import InvalidInput, NotFound
from commonplace.models.cache import CARD, read_card, sha256_of
from commonplace.models.catalog import Card, Kind, Pooling

ONNX_NAMES = ("model.onnx", "onnx/model_quantized.onnx", "onnx/model_int8.onnx", "onnx/model.onnx")
STATIC_NAMES = ("codes.npy", "model.safetensors")
NGRAM_NAMES = ("weights.npz",)
TOKENIZER = "tokenizer.json"
PIECES = "sp.model"
CONFIGS = (
    "config.json",
    "sentence_bert_config.json",
    "config_sentence_transformers.json",
    "1_Pooling/config.json",
)
"""Small files in which publishers say how their model is used; each may be missing."""

TYPICAL_RELATED, TYPICAL_UNRELATED = 0.70, 0.50
"""Cosines that are assumed of a model nobody has measured here."""
MOST_TOKENS = 512
"""Attention costs the square of the length, and windows of this size lose nothing: longer texts are cut into them."""


def require_model(folder: Path) -> Path:
    """Return the folder, if there is a model in it that can be opened. Raise NotFound otherwise."""
    if not folder.is_dir():
        raise NotFound(f"There is no model folder {folder}. Name a catalog model, hf:owner/name or a folder.")
    model_file(folder)
    tokenizer_file(folder)
    return folder


def model_file(folder: Path) -> Path:
    """Return the weights in a folder, the quantized before the full ones."""
    names = (*ONNX_NAMES, *STATIC_NAMES, *NGRAM_NAMES)
    for name in names:
        if (folder / name).is_file():
            return folder / name
    raise NotFound(f"{folder} has no model: it needs one of {', '.join(names)}.")


def tokenizer_file(folder: Path) -> Path:
    """Return the tokenizer in a folder, in either of its forms."""
    for name in (TOKENIZER, PIECES):
        if (folder / name).is_file():
            return folder / name
    raise NotFound(f"{folder} has no {TOKENIZER}. Put the model's tokenizer beside it.")


def local_card(folder: Path, name: str | None = None) -> Card:
    """Return the card beside the files, or one put together from what the publisher's configuration files say."""
    if (folder / CARD).is_file():
        try:
            return read_card(folder)
        except (ValueError, KeyError, TypeError) as error:
            raise InvalidInput(f"{folder / CARD} cannot be read ({error}). Correct or delete it.") from error
    weights = model_file(folder)
    return card_from_configs(folder, name or folder.name, sha256_of(weights)[:16], weights)


def card_from_configs(
    folder: Path, name: str, version: str, weights: Path, languages: frozenset[str] = frozenset()
) -> Card:
    model, sentence, prompts, pooling = (_read(folder / config) for config in CONFIGS)
    kind = _kind(weights)
    prefixes = prompts.get("prompts") or {}
    return Card(
        name=name,
        version=version,
        kind=kind,
        dims=int(model.get("hidden_size") or model.get("dim") or model.get("hidden_dim") or 0),
        pooling=_pooling(pooling),
        languages=languages,
        related=TYPICAL_RELATED,
        unrelated=TYPICAL_UNRELATED,
        query_prefix=str(prefixes.get("query", "")),
        passage_prefix=str(prefixes.get("passage") or prefixes.get("document") or ""),
        max_tokens=_window(model, sentence) if kind == "onnx" else None,
    )


def _kind(weights: Path) -> Kind:
    if weights.name in NGRAM_NAMES:
        return "ngrams"
    return "static" if weights.name in STATIC_NAMES else "onnx"


def _pooling(config: dict[str, Any]) -> Pooling:
    return "cls" if config.get("pooling_mode_cls_token") else "mean"


def _window(model: dict[str, Any], sentence: dict[str, Any]) -> int:
    limits = (sentence.get("max_seq_length"), model.get("max_position_embeddings"))
    return min([MOST_TOKENS, *(int(value) for value in limits if value)])


def _read(path: Path) -> dict[str, Any]:
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{path} cannot be read ({error}). Correct or delete it.") from error
    return config if isinstance(config, dict) else {}


def is_path(source: str) -> bool:
    """Return whether a model was named by a folder: it has a separator, or there is one of that name."""
    is_written_as_path = "/" in source or "\\" in source or source.startswith(("~", "."))
    return is_written_as_path or (bool(source) and Path(source).is_dir())
