"""Models: from the catalog, from the hub, from a folder, the one that ships with the package, or a provider's."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from weakref import WeakValueDictionary

from commonplace.errors import Command, CommonplaceError, NotFound, Unavailable
from commonplace.models.cache import HUB, Installed, damaged, find, installed, is_gone
from commonplace.models.catalog import DEFAULT, MULTILINGUAL, STATIC, Card, CatalogEntry, catalog
from commonplace.models.local import is_path, local_card, model_file, require_model, tokenizer_file
from commonplace.models.roles import Embedder, Generator, Reranker
from commonplace.settings import Settings

__all__ = [
    "DEFAULT",
    "MULTILINGUAL",
    "STATIC",
    "Card",
    "CatalogEntry",
    "Embedder",
    "Generator",
    "Installed",
    "Reranker",
    "catalog",
    "check_model",
    "find",
    "installed",
    "is_gone",
    "open_embedder",
    "open_generator",
    "open_reranker",
    "open_summarizer",
]

EXTRACTIVE = "extractive"
"""The summarizer that is built in."""

_in_use: WeakValueDictionary[tuple[Path, Card, str, int | None], Embedder] = WeakValueDictionary()
_opening = threading.Lock()


def open_embedder(
    name_or_path: str | None, cache: Path, *, threads: int | None = None, settings: Settings | None = None
) -> Embedder:
    """Return the model of this name, `hf:owner/name` or folder.

    None means the default if it was pulled, else the shipped one. Never goes to the network: raise NotFound or
    Unavailable, which say how to get it, for a model that is not here. `settings` say where a provider's model is,
    `ollama:nomic-embed-text` for one, which is contacted when it is first asked.
    """
    from commonplace.models.providers.endpoint import is_provided
    from commonplace.models.static import SHIPPED

    name = name_or_path or (DEFAULT if find(DEFAULT, cache) else STATIC)
    if is_provided(name):
        from commonplace.models.providers.provided_models import provided_embedder  # an HTTP client, which few need

        return provided_embedder(name, settings or Settings(models=cache))
    if name == STATIC:
        return _open_folder(SHIPPED, None, threads)
    if name in catalog() or name.startswith(HUB):
        return _open_pulled(name, cache, threads)
    if is_path(name):
        return _open_folder(require_model(Path(os.path.expanduser(name))), None, threads)
    raise NotFound(
        f"There is no model called {name!r}. Choose {', '.join((STATIC, *catalog()))}, hf:owner/name, a folder, "
        "or a provider's: ollama:MODEL, openai:MODEL, azure:DEPLOYMENT."
    )


def check_model(name: str, settings: Settings) -> list[str]:
    """Return what is wrong with a model, one sentence each, every byte of it read.

    Nobody is asked about a provider's.
    """
    from commonplace.models.providers.endpoint import is_provided

    if is_provided(name):
        return []
    if broken := damaged(name, settings.models):
        return [f"{path} is not what was pulled. Delete its folder and pull the model again." for path in broken]
    try:
        embedder = open_embedder(name, settings.models, threads=settings.threads, settings=settings)
        embedder.embed_queries(["anything"])  # which loads it
    except CommonplaceError as error:
        return [str(error)]
    return []


def open_reranker(settings: Settings) -> Reranker | None:
    """Return the reranker that the settings name, or None where they name none. Contacts nobody."""
    if not settings.reranker:
        return None
    from commonplace.models.providers.provided_models import provided_reranker, unless_misconfigured

    return unless_misconfigured(settings.reranker, provided_reranker, settings)


def open_generator(settings: Settings) -> Generator | None:
    """Return the generator that the settings name, or None where they name none. Contacts nobody."""
    if not settings.generator:
        return None
    from commonplace.models.providers.provided_models import provided_generator, unless_misconfigured

    return unless_misconfigured(settings.generator, provided_generator, settings)


def check_helpers(settings: Settings) -> list[str]:
    """Return why the reranker and the generators of the settings cannot be used, one sentence each. Contacts nobody."""
    from commonplace.models.providers.provided_models import Unusable

    helpers = (open_reranker(settings), open_generator(settings), open_summarizer(settings))
    return list(dict.fromkeys(one.problem for one in helpers if isinstance(one, Unusable)))


def open_summarizer(settings: Settings) -> Generator | None:
    """Return the generator that writes summaries: its own, or that of everything else; None where there is none."""
    if settings.memory_summarizer in ("", EXTRACTIVE):
        return None if settings.memory_summarizer else open_generator(settings)
    from commonplace.models.providers.provided_models import provided_summarizer, unless_misconfigured

    return unless_misconfigured(settings.memory_summarizer, provided_summarizer, settings)


def _open_pulled(name: str, cache: Path, threads: int | None) -> Embedder:
    folder = find(name, cache)
    if folder is None:
        raise Unavailable(
            f"The model {name} is not in {cache}. Run `",
            Command(f"models pull {name}"),
            f"`, or use the model {STATIC!r}.",
        )
    return _open_folder(folder, catalog().get(name), threads)


def _open_folder(folder: Path, entry: CatalogEntry | None, threads: int | None) -> Embedder:
    """Return the model of a folder.

    Each is in memory once, for as long as somebody uses it, in a server of many users too.
    """
    card = entry.card if entry else local_card(folder)
    identity = entry.identity if entry else card.version
    key = (folder, card, identity, threads)
    with _opening:
        embedder = _in_use.get(key)
        if embedder is None:
            embedder = _in_use[key] = _open_new(*key)
    return embedder


def _open_new(folder: Path, card: Card, identity: str, threads: int | None) -> Embedder:
    model, tokenizer = model_file(folder), tokenizer_file(folder)
    # Each is loaded where it is used: a search by words uses none.
    if card.kind == "static":
        from commonplace.models.static import StaticEmbedder

        return StaticEmbedder(card, model, tokenizer, identity)
    if card.kind == "ngrams":
        from commonplace.models.ngrams import NgramEmbedder

        return NgramEmbedder(card, model, tokenizer, identity, threads=threads)
    from commonplace.models.onnx import OnnxEmbedder

    return OnnxEmbedder(card, model, tokenizer, identity, threads=threads)
