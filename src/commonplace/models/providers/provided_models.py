"""From settings and names to models that others serve."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar
from urllib.parse import urlsplit

from commonplace.errors import Offline
from commonplace.models.providers.endpoint import (
    OLLAMA_PORT,
    Misconfigured,
    ModelEndpoint,
    Prefixes,
    Provider,
    find_key,
    prefixes_of,
    read_address,
    split_name,
)
from commonplace.models.providers.provided_embedder import EmbeddingApi, HttpEmbedder, OllamaApi, OpenAIApi
from commonplace.models.providers.provided_helpers import (
    RERANK_APIS,
    AnthropicChat,
    HttpGenerator,
    HttpReranker,
    OllamaChat,
    OpenAIChat,
    WritingApi,
)
from commonplace.models.providers.provider_line import line_to
from commonplace.network import require_allowed
from commonplace.settings import PREFIX, Settings

M = TypeVar("M")
EMBEDDERS = ("ollama", "openai", "azure")
RERANKERS = ("cohere", "jina", "tei")
GENERATORS = ("ollama", "openai", "azure", "anthropic")
NONE = "none"
"""The setting of a prefix that a model must not be given, though one is known."""
_VERSION = re.compile(r"/v\d+\Z")
_AZURE_VERSION = "2024-02-01"


def provided_embedder(name: str, settings: Settings, environment: Mapping[str, str] = os.environ) -> HttpEmbedder:
    """Return the embedder of a name such as `ollama:nomic-embed-text`. Contacts nobody."""
    provider, model = split_name(name, EMBEDDERS, "model")
    endpoint = replace(
        _endpoint(provider, model, "embedder", settings.embedder_url, settings, environment),
        timeout=settings.embedder_timeout_ms / 1000,
        attempts=settings.embedder_attempts,
        pause=settings.embedder_pause_ms / 1000,
        concurrency=settings.embedder_concurrency,
    )
    api: EmbeddingApi = OpenAIApi(azure=provider.name == "azure")
    if provider.name == "ollama":
        api = OllamaApi(settings.embedder_context, settings.embedder_truncate)
    known = prefixes_of(model)
    prefixes = Prefixes(
        _prefix(settings.embedder_query_prefix, known.query), _prefix(settings.embedder_passage_prefix, known.passage)
    )
    return HttpEmbedder(
        line_to(endpoint),
        api,
        prefixes,
        settings.models,
        dims=settings.embedder_dims,
        batch=settings.embedder_batch,
    )


def provided_reranker(name: str, settings: Settings, environment: Mapping[str, str] = os.environ) -> HttpReranker:
    """Return the reranker of a name such as `jina:jina-reranker-v2-base-multilingual`. Contacts nobody."""
    provider, model = split_name(name, RERANKERS, "reranker")
    endpoint = _endpoint(provider, model, "reranker", settings.reranker_url, settings, environment)
    endpoint = replace(endpoint, timeout=max(1.0, settings.rerank_ms / 1000), attempts=2, pause=0.2)
    api = RERANK_APIS[provider.name]
    return HttpReranker(line_to(endpoint), api, tokens=settings.reranker_tokens, batch=settings.reranker_batch)


def provided_generator(name: str, settings: Settings, environment: Mapping[str, str] = os.environ) -> HttpGenerator:
    """Return the generator of a name such as `ollama:qwen3:4b`. Contacts nobody."""
    provider, model = split_name(name, GENERATORS, "generator")
    return _generator(provider, model, "generator", settings.generator_url, settings, environment)


def provided_summarizer(name: str, settings: Settings, environment: Mapping[str, str] = os.environ) -> HttpGenerator:
    """Return the generator that writes summaries and nothing else.

    It has the other's address and key only where both are of one provider: a key is not sent to somebody else.
    """
    provider, model = split_name(name, GENERATORS, "memory_summarizer")
    if settings.generator.partition(":")[0] in ("", provider.name):
        return _generator(provider, model, "generator", settings.generator_url, settings, environment)
    return _generator(provider, model, "summarizer", "", settings, environment)


def _generator(
    provider: Provider, model: str, role: str, url: str, settings: Settings, environment: Mapping[str, str]
) -> HttpGenerator:
    endpoint = replace(
        _endpoint(provider, model, role, url, settings, environment),
        timeout=settings.generator_timeout_ms / 1000,
        attempts=settings.generator_attempts,
        pause=settings.generator_pause_ms / 1000,
        concurrency=settings.generator_concurrency,
    )
    effort = settings.generator_effort
    api: WritingApi = OpenAIChat(
        azure=provider.name == "azure", original=urlsplit(endpoint.url).hostname == "api.openai.com", effort=effort
    )
    if provider.name == "ollama":
        api = OllamaChat(settings.generator_context)
    elif provider.name == "anthropic":
        api = AnthropicChat(effort)
    return HttpGenerator(line_to(endpoint), api)


class Unusable:
    """A stand-in for a model that is set in a way that cannot work: whoever asks it is told, and goes without."""

    def __init__(self, name: str, problem: Misconfigured) -> None:
        self.name, self.problem = name, str(problem)
        self._problem = problem

    def score(self, query: str, passages: Sequence[str]) -> list[float]:
        raise self._problem

    def generate(self, prompt: str, *, system: str = "", max_tokens: int = 1000, timeout: float | None = None) -> str:
        raise self._problem


def unless_misconfigured(name: str, make: Callable[[str, Settings], M], settings: Settings) -> M | Unusable:
    """Return the model, or one that says why there is none: a wrong setting must not end what works without it."""
    try:
        return make(name, settings)
    except Misconfigured as problem:
        return Unusable(name, problem)


def _endpoint(
    provider: Provider, model: str, role: str, url: str, settings: Settings, environment: Mapping[str, str]
) -> ModelEndpoint:
    setting = f"{PREFIX}{role.upper()}_URL"
    own = environment.get(provider.address_variable, "").strip()
    written_address = url or own or provider.address
    if not written_address:
        raise Misconfigured(f"{provider.name}:{model} needs its address. Set {setting}.")
    address_setting = setting if url or not own else provider.address_variable
    address = read_address(written_address, address_setting, port=OLLAMA_PORT if provider.name == "ollama" else None)
    address = _base(provider, address)
    host = urlsplit(address).netloc
    try:
        require_allowed(urlsplit(address).hostname or "", f"{provider.name}:{model}", offline=settings.offline)
    except Offline as error:
        raise Misconfigured(str(error)) from None
    is_own = not url or provider.name == "azure" or host == urlsplit(provider.address).netloc
    key = find_key(provider, host, role, settings.keys, environment, own=is_own)
    if provider.needs_key and not key:
        variable = provider.key_variable if is_own else f"{PREFIX}{role.upper()}_KEY"
        raise Misconfigured(f"{provider.name}:{model} needs a key. Set {variable}.")
    return ModelEndpoint(
        provider=provider.name,
        model=model,
        url=address,
        setting=address_setting,
        key=key,
        organization=environment.get("OPENAI_ORGANIZATION", "") if provider.name == "openai" and is_own else "",
        version=environment.get("AZURE_OPENAI_API_VERSION") or _AZURE_VERSION if provider.name == "azure" else "",
    )


def _base(provider: Provider, address: str) -> str:
    """Return what paths are added to: for OpenAI's way with its version, for all others without."""
    if provider.name == "openai":
        return address if urlsplit(address).path else f"{address}/v1"
    return _VERSION.sub("", address)


def _prefix(given: str, known: str) -> str:
    return "" if given == NONE else given or known
