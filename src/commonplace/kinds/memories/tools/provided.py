"""Variables of mcp-context-server for models and a database that others serve.

Where no model is named, it is the default of mcp-context-server, whichever the provider: one that has no such model
says so when it is first used, and never keeps this server from starting.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from commonplace.kinds.memories.tools.variables import Parse, among, as_it_is, boolean, milliseconds, whole

log = logging.getLogger(__name__)

Environment = Mapping[str, str]
Table = Mapping[str, tuple[str, Parse, str]]
"""By variable: our setting, the reader of its value, and mcp-context-server's default, "" for none or for ours."""

_CONTEXT = whole(512, 2_097_152)
_EMBEDDING: Table = {
    "EMBEDDING_DIM": ("embedder_dims", whole(1, 4096), ""),
    "EMBEDDING_TIMEOUT_S": ("embedder_timeout_ms", milliseconds(300), "240"),
    "EMBEDDING_RETRY_MAX_ATTEMPTS": ("embedder_attempts", whole(1, 10), "5"),
    "EMBEDDING_RETRY_BASE_DELAY_S": ("embedder_pause_ms", milliseconds(30), "1"),
    "EMBEDDING_MAX_CONCURRENT": ("embedder_concurrency", whole(1, 20), "3"),
    "EMBEDDING_OLLAMA_NUM_CTX": ("embedder_context", _CONTEXT, "4096"),
    "EMBEDDING_OLLAMA_TRUNCATE": ("embedder_truncate", boolean, ""),
}
_SUMMARY: Table = {
    "SUMMARY_TIMEOUT_S": ("generator_timeout_ms", milliseconds(600), "240"),
    "SUMMARY_RETRY_MAX_ATTEMPTS": ("generator_attempts", whole(1, 10), "5"),
    "SUMMARY_RETRY_BASE_DELAY_S": ("generator_pause_ms", milliseconds(30), "3"),
    "SUMMARY_MAX_CONCURRENT": ("generator_concurrency", whole(1, 20), "2"),
    "SUMMARY_OLLAMA_NUM_CTX": ("generator_context", _CONTEXT, "32768"),
}
_RERANKING: Table = {
    "RERANKING_MAX_LENGTH": ("reranker_tokens", whole(128, 2048), ""),
    "RERANKING_BATCH_SIZE": ("reranker_batch", whole(1, 1000), ""),
}
_EFFORTS: Mapping[str, tuple[str, Parse]] = {
    "openai": ("SUMMARY_OPENAI_REASONING_EFFORT", as_it_is),
    "anthropic": ("SUMMARY_ANTHROPIC_EFFORT", among("max", "high", "medium", "low")),
}


def embedder_of(environment: Environment) -> dict[str, Any]:
    """Return the settings of EMBEDDING_*: none where no provider is set, so that the built-in model serves.

    A provider that is not available here means no vectors, with a warning in the log.
    """
    settings = _settings(_EMBEDDING, environment)
    name = environment.get("EMBEDDING_PROVIDER", "")
    if not name:
        return {}
    provider = among("ollama", "openai", "azure", "huggingface", "voyage")("EMBEDDING_PROVIDER", name)
    if provider in ("huggingface", "voyage"):
        log.warning("EMBEDDING_PROVIDER=%s is not available here: no vectors", provider)
        return {"memory_embedding": False}
    deployed = environment.get("AZURE_OPENAI_EMBEDDING_DEPLOYMENT_NAME") if provider == "azure" else None
    model = deployed or environment.get("EMBEDDING_MODEL") or "qwen3-embedding:0.6b"
    return {"model": f"{provider}:{model}", **settings}


def summarizer_of(environment: Environment) -> dict[str, Any]:
    """Return the settings of SUMMARY_*: none where no provider is set."""
    settings = _settings(_SUMMARY, environment)
    name = environment.get("SUMMARY_PROVIDER", "")
    if not name:
        return {}
    provider = among("ollama", "openai", "anthropic")("SUMMARY_PROVIDER", name)
    model = environment.get("SUMMARY_MODEL") or "qwen3:0.6b"
    effort, read = _EFFORTS.get(provider, ("", as_it_is))
    if environment.get(effort):
        settings["generator_effort"] = read(effort, environment[effort])
    return {"memory_summarizer": f"{provider}:{model}", **settings}


def reranker_of(environment: Environment) -> dict[str, Any]:
    """Return the settings of RERANKING_*: none without a provider or for `flashrank`, whose weights no registry has.

    RERANKING_CACHE_DIR is where those weights would be; whoever serves a reranker keeps them elsewhere.
    """
    settings = _settings(_RERANKING, environment)
    name = environment.get("RERANKING_PROVIDER", "")
    if not name:
        return {}
    provider = among("flashrank", "cohere", "jina", "tei")("RERANKING_PROVIDER", name)
    if provider == "flashrank":
        return {}
    model = environment.get("RERANKING_MODEL") or "ms-marco-MiniLM-L-12-v2"
    return {"reranker": f"{provider}:{model}", **settings}


def store_of(environment: Environment) -> dict[str, Any]:
    """Return the settings of STORAGE_BACKEND and POSTGRESQL_*: the database's address and how many connections it gets.

    The other variables have no effect: tables live in a schema of their own, waits have bounds of their own, a
    connection is made when one is needed, and no statement is prepared, as POSTGRESQL_STATEMENT_CACHE_SIZE=0 asks.
    """
    backend = environment.get("STORAGE_BACKEND", "")
    if not backend or among("sqlite", "postgresql")("STORAGE_BACKEND", backend) == "sqlite":
        return {}
    address = environment.get("POSTGRESQL_CONNECTION_STRING") or _address(environment)
    settings: dict[str, Any] = {"store": address}
    if environment.get("POSTGRESQL_POOL_MAX"):
        settings["store_connections"] = whole(2, 1000)("POSTGRESQL_POOL_MAX", environment["POSTGRESQL_POOL_MAX"])
    return settings


def _address(environment: Environment) -> str:
    def part(name: str, default: str) -> str:
        return quote(environment.get(f"POSTGRESQL_{name}") or default, safe="")

    whole(1, 65_535)("POSTGRESQL_PORT", environment.get("POSTGRESQL_PORT") or "5432")
    who = f"{part('USER', 'postgres')}:{part('PASSWORD', 'postgres')}"
    where = f"{part('HOST', 'localhost')}:{part('PORT', '5432')}/{part('DATABASE', 'mcp_context')}"
    mode = environment.get("POSTGRESQL_SSL_MODE", "")
    return f"postgresql://{who}@{where}{f'?sslmode={quote(mode)}' if mode else ''}"


def _settings(table: Table, environment: Environment) -> dict[str, Any]:
    """Return the settings of a table's variables.

    Raise BadSetting, even without a provider: an early error is better.
    """
    values = {name: environment.get(name) or default for name, (_, _, default) in table.items()}
    return {table[name][0]: table[name][1](name, value) for name, value in values.items() if value}
