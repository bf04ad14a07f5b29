"""Environment variables of mcp-context-server, read as weaker names of our own settings.

Where no model is named, it is the default of mcp-context-server, whichever the provider: one that has no such model
says so when it is first used, and never keeps this server from starting.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from commonplace.errors import Unavailable
from commonplace.kinds.memories.memories import Memories
from commonplace.kinds.memories.metadata import typed_fields
from commonplace.settings import PREFIX, BadSetting, Settings
from commonplace.space import Space
from commonplace.store.stored_settings import StoredSettings
from commonplace.tools.profile import StartOptions

# values


_BOOLEANS = {
    **dict.fromkeys(("true", "1", "yes", "on", "t", "y"), True),
    **dict.fromkeys(("false", "0", "no", "off", "f", "n"), False),
}

Parse = Callable[[str, str], Any]
"""A reader: takes a variable's name and value, returns its meaning; None leaves our own setting as it is."""


def boolean(name: str, value: str) -> bool:
    """Return a boolean from its many spellings."""
    if value.strip().lower() not in _BOOLEANS:
        raise BadSetting(f"{name} must be true or false, not {value!r}.")
    return _BOOLEANS[value.strip().lower()]


def switch(name: str, value: str) -> bool | None:
    """Return whether something is on; None for `auto` and blanks, which leave it to our own setting."""
    if value.strip().lower() in ("auto", ""):
        return None
    if value.strip().lower() not in _BOOLEANS:
        raise BadSetting(f"{name} must be auto, true or false, not {value!r}.")
    return boolean(name, value)


def whole(least: int, most: int) -> Parse:
    """Return a reader of integers within bounds."""

    def parse(name: str, value: str) -> int:
        try:
            number = int(value)
        except ValueError:
            raise BadSetting(f"{name} must be a whole number, not {value!r}.") from None
        if not least <= number <= most:
            raise BadSetting(f"{name} must be between {least} and {most}, not {number}.")
        return number

    return parse


def milliseconds(most: float) -> Parse:
    """Return a reader of seconds above 0, with or without a fraction, as the milliseconds our settings count."""

    def parse(name: str, value: str) -> int:
        try:
            seconds = float(value)
        except ValueError:
            raise BadSetting(f"{name} must be a number of seconds, not {value!r}.") from None
        if not 0 < seconds <= most:
            raise BadSetting(f"{name} must be above 0 and at most {most:g}, not {value}.")
        return max(1, round(seconds * 1000))

    return parse


def among(*values: str) -> Parse:
    """Return a reader of values that are one of these, case ignored."""

    def parse(name: str, value: str) -> str:
        if value.strip().lower() not in values:
            raise BadSetting(f"{name} must be one of {', '.join(values)}, not {value!r}.")
        return value.strip().lower()

    return parse


def as_it_is(name: str, value: str) -> str:
    """Return the value unchanged."""
    return value


# models and a database that others serve


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


# all variables


LANGUAGES = (
    "arabic", "armenian", "basque", "catalan", "danish", "dutch", "english", "finnish", "french", "german", "greek",
    "hindi", "hungarian", "indonesian", "irish", "italian", "lithuanian", "nepali", "norwegian", "portuguese",
    "romanian", "russian", "serbian", "simple", "spanish", "swedish", "tamil", "turkish", "yiddish",
)  # fmt: skip


def _fields(name: str, value: str) -> str:
    """Return a list of fields as it is. Raise BadSetting where a path in it is malformed."""
    typed_fields(value, name)
    return value


HONOURED: Mapping[str, tuple[str, Parse]] = {
    "ENABLE_FTS": ("memory_lexical", switch),
    "ENABLE_SEMANTIC_SEARCH": ("memory_semantic", switch),
    "ENABLE_HYBRID_SEARCH": ("memory_hybrid", switch),
    "ENABLE_EMBEDDING_GENERATION": ("memory_embedding", switch),
    "ENABLE_SUMMARY_GENERATION": ("memory_summaries", switch),
    "ENABLE_RERANKING": ("memory_reranking", switch),
    "ENABLE_CHUNKING": ("memory_chunking", switch),
    "CHUNK_SIZE": ("memory_chunk_size", whole(100, 10_000)),
    "CHUNK_OVERLAP": ("memory_chunk_overlap", whole(0, 500)),
    "FTS_LANGUAGE": ("memory_language", among(*LANGUAGES)),
    "HYBRID_RRF_K": ("memory_rrf_k", whole(1, 1000)),
    "HYBRID_FTS_OR_THRESHOLD": ("memory_or_threshold", whole(2, 20)),
    "SEARCH_TRUNCATION_LENGTH": ("memory_truncation", whole(50, 1000)),
    "SUMMARY_MIN_CONTENT_LENGTH": ("memory_summary_least", whole(0, 10_000)),
    "SUMMARY_MAX_TOKENS": ("memory_summary_tokens", whole(50, 16_384)),
    "SUMMARY_PROMPT": ("memory_summary_prompt", as_it_is),
    "LOG_LEVEL": ("log_level", among("debug", "info", "warning", "error", "critical")),
    "MAX_IMAGE_SIZE_MB": ("memory_max_image_mb", whole(1, 200)),
    "MAX_TOTAL_SIZE_MB": ("memory_max_images_mb", whole(1, 1000)),
    "METADATA_INDEXED_FIELDS": ("memory_indexed_fields", _fields),
    "METADATA_INDEX_SYNC_MODE": ("memory_index_sync", among("strict", "auto", "warn", "additive")),
    "DISABLED_TOOLS": ("memory_disabled_tools", as_it_is),
    "MCP_SERVER_INSTRUCTIONS": ("memory_instructions", as_it_is),
}
"""Variables of mcp-context-server: our setting for each, and the reader of its value."""

_CHECKED: Mapping[str, Parse] = {
    "CHUNK_AGGREGATION": among("max"),
    "OLLAMA_AUTO_PULL": boolean,
    "SUMMARY_OLLAMA_TRUNCATE": boolean,
}
_WITHOUT_EFFECT = (
    "POOL_", "RETRY_", "CIRCUIT_BREAKER_", "QUEUE_", "SHUTDOWN_", "SQLITE_", "VOYAGE_", "HUGGINGFACEHUB_", "LANGSMITH_",
    "FTS_RERANK_", "CHUNK_DEDUP_OVERFETCH", "HYBRID_RRF_OVERFETCH", "RERANKING_OVERFETCH", "SEARCH_DEFAULT_SORT_BY",
    "FASTMCP_STATELESS_HTTP", "OLLAMA_PULL_TIMEOUT_S", "RERANKING_CACHE_DIR", "POSTGRESQL_SCHEMA",
    "POSTGRESQL_POOL_MIN", "POSTGRESQL_POOL_TIMEOUT_S", "POSTGRESQL_COMMAND_TIMEOUT_S", "POSTGRESQL_CONNECT_TIMEOUT_S",
    "POSTGRESQL_STATEMENT_CACHE_SIZE", "POSTGRESQL_SESSION_", "POSTGRESQL_MIGRATION_", "POSTGRESQL_MAX_",
    "POSTGRESQL_TCP_", "RERANKING_CHARS_PER_TOKEN", "RERANKING_INTRA_OP_THREADS", "RERANKING_CPU_MEM_ARENA",
)  # fmt: skip


def aliases(environment: Mapping[str, str]) -> dict[str, Any]:
    """Return the settings that mcp-context-server's variables name, where our own variables do not name them.

    Raise BadSetting for a value that cannot be read.
    """
    values: dict[str, Any] = {}
    for name, (setting, parse) in HONOURED.items():
        if environment.get(name) and not environment.get(PREFIX + setting.upper()):
            value = parse(name, environment[name])
            values |= {} if value is None else {setting: value}
    for name, parse in _CHECKED.items():
        if environment.get(name):
            parse(name, environment[name])
    for read in (embedder_of, summarizer_of, reranker_of, store_of):
        provided = read(environment)
        values |= {name: value for name, value in provided.items() if not environment.get(PREFIX + name.upper())}
    if environment.get("DB_PATH") and not environment.get(f"{PREFIX}HOME"):
        values["home"] = home_beside(Path(os.path.expanduser(environment["DB_PATH"])))
    return values


def home_beside(database: Path) -> Path:
    """Return the home for a client that names a database file: the folder beside it."""
    return database.with_name(database.name + ".commonplace")


def without_effect(environment: Mapping[str, str] = os.environ) -> list[str]:
    """Return the variables of mcp-context-server that are set and mean nothing here, sorted."""
    return sorted(name for name in environment if name.startswith(_WITHOUT_EFFECT))


def adopt_database(space: Space, environment: Mapping[str, str]) -> None:
    """Import the file at DB_PATH, once, at the first start beside it. The file itself is never written."""
    path = environment.get("DB_PATH")
    if not path or environment.get(f"{PREFIX}HOME"):
        return
    database = Path(os.path.expanduser(path))
    if not database.is_file() or space.store.drawer(StoredSettings).get("imported_context_server") is not None:
        return
    report = space.part(Memories).import_context_server(database)
    space.store.drawer(StoredSettings).set("imported_context_server", str(database))
    log.warning("Imported %d entries from %s", report.stored, database)


def prepare(settings: Settings, options: StartOptions) -> None:
    """Take over what another program kept, and raise BadSetting for a setting that memories cannot use.

    A store that is away may come back, so it does not end the start.
    """
    with suppress(Unavailable), Space.open(settings=settings, space=options.space) as space:
        if options.settings.get("home") is None:
            adopt_database(space, os.environ)
        space.part(Memories).sweep()


# how it is reached


_HTTP = ("http", "streamable-http")


@dataclass(frozen=True, slots=True)
class Door:
    """An address to serve at. An empty token admits everyone, which is allowed on loopback only."""

    host: str
    port: int
    client: str
    token: str = field(default="", repr=False)


def door_of(environment: Mapping[str, str]) -> Door | None:
    """Return the address and the token for HTTP; None for standard input and output. Raise BadSetting."""
    transport_name = environment.get("MCP_TRANSPORT") or "stdio"
    transport = among("stdio", *_HTTP, "sse")("MCP_TRANSPORT", transport_name)
    if transport == "sse":
        raise BadSetting("MCP_TRANSPORT=sse is no longer spoken by clients. Set MCP_TRANSPORT=http.")
    provider = among("none", "simple_token")("MCP_AUTH_PROVIDER", environment.get("MCP_AUTH_PROVIDER") or "none")
    token = environment.get("MCP_AUTH_TOKEN", "").strip()
    if provider == "simple_token" and not token:
        raise BadSetting("MCP_AUTH_PROVIDER=simple_token needs a token. Set MCP_AUTH_TOKEN.")
    port = whole(1, 65_535)("FASTMCP_PORT", environment.get("FASTMCP_PORT") or "8000")
    if transport not in _HTTP:
        return None
    return Door(
        host=environment.get("FASTMCP_HOST") or "127.0.0.1",
        port=port,
        client=environment.get("MCP_AUTH_CLIENT_ID") or "mcp-client",
        token=token if provider == "simple_token" else "",
    )
