"""Embedders: from the catalogue, from the hub, from a folder, or the one that ships with the package."""

from __future__ import annotations

from pathlib import Path

from commonplace.errors import NotFound, Unavailable
from commonplace.models.cache import HUB, Installed, find, installed
from commonplace.models.catalog import DEFAULT, Card, Entry, catalog
from commonplace.models.embedder import Embedder
from commonplace.models.local import TOKENIZER, is_path, local_card, model_file, require_model
from commonplace.models.onnx import OnnxEmbedder
from commonplace.models.static import NAME as STATIC
from commonplace.models.static import SHIPPED, StaticEmbedder

__all__ = [
    "DEFAULT",
    "STATIC",
    "Card",
    "Embedder",
    "Entry",
    "Installed",
    "OnnxEmbedder",
    "StaticEmbedder",
    "catalog",
    "find",
    "installed",
    "open_embedder",
]


def open_embedder(name_or_path: str | None, cache: Path, *, threads: int | None = None) -> Embedder:
    """The model of this name, `hf:owner/name` or folder; None means the default if it was pulled, else the shipped one.

    Never goes to the network: a model that is not in the cache is an error that says how to get it.
    """
    name = name_or_path or (DEFAULT if find(DEFAULT, cache) else STATIC)
    if name == STATIC:
        return _open_folder(SHIPPED, None, threads)
    if name in catalog() or name.startswith(HUB):
        return _open_pulled(name, cache, threads)
    if is_path(name):
        return _open_folder(require_model(Path(name).expanduser()), None, threads)
    raise NotFound(
        f"There is no model called {name!r}. Choose {', '.join((STATIC, *catalog()))}, hf:owner/name, or a folder."
    )


def _open_pulled(name: str, cache: Path, threads: int | None) -> Embedder:
    folder = find(name, cache)
    if folder is None:
        raise Unavailable(
            f"The model {name} is not in {cache}. Run `commonplace models pull {name}`, or use the model {STATIC!r}."
        )
    return _open_folder(folder, catalog().get(name), threads)


def _open_folder(folder: Path, entry: Entry | None, threads: int | None) -> Embedder:
    card = entry.card if entry else local_card(folder)
    identity = entry.identity if entry else card.version
    model, tokenizer = model_file(folder), folder / TOKENIZER
    if card.kind == "static":
        return StaticEmbedder(card, model, tokenizer, identity)
    return OnnxEmbedder(card, model, tokenizer, identity, threads=threads)
