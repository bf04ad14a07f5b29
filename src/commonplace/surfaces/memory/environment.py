"""The environment of a client configured for mcp-context-server, read as weaker names of our own settings."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from commonplace.library import Library
from commonplace.settings import PREFIX, BadSetting

log = logging.getLogger(__name__)

COMPAT = f"{PREFIX}COMPAT"
_BOOLEANS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
LANGUAGES = (
    "arabic", "armenian", "basque", "catalan", "danish", "dutch", "english", "finnish", "french", "german", "greek",
    "hindi", "hungarian", "indonesian", "irish", "italian", "lithuanian", "nepali", "norwegian", "portuguese",
    "romanian", "russian", "serbian", "simple", "spanish", "swedish", "tamil", "turkish", "yiddish",
)  # fmt: skip

Parse = Callable[[str, str], Any]


def _boolean(name: str, value: str) -> bool:
    if value.strip().lower() not in _BOOLEANS:
        raise BadSetting(f"{name} must be true or false, not {value!r}.")
    return _BOOLEANS[value.strip().lower()]


def _whole(least: int, most: int) -> Parse:
    def parse(name: str, value: str) -> int:
        try:
            number = int(value)
        except ValueError:
            raise BadSetting(f"{name} must be a whole number, not {value!r}.") from None
        if not least <= number <= most:
            raise BadSetting(f"{name} must be between {least} and {most}, not {number}.")
        return number

    return parse


def _among(*values: str) -> Parse:
    def parse(name: str, value: str) -> str:
        if value.strip().lower() not in values:
            raise BadSetting(f"{name} must be one of {', '.join(values)}, not {value!r}.")
        return value.strip().lower()

    return parse


def _as_it_is(name: str, value: str) -> str:
    return value


HONOURED: Mapping[str, tuple[str, Parse]] = {
    "ENABLE_FTS": ("memory_lexical", _boolean),
    "ENABLE_SEMANTIC_SEARCH": ("memory_semantic", _boolean),
    "ENABLE_HYBRID_SEARCH": ("memory_hybrid", _boolean),
    "ENABLE_EMBEDDING_GENERATION": ("memory_embedding", _boolean),
    "ENABLE_SUMMARY_GENERATION": ("memory_summaries", _boolean),
    "ENABLE_RERANKING": ("memory_reranking", _boolean),
    "ENABLE_CHUNKING": ("memory_chunking", _boolean),
    "CHUNK_SIZE": ("memory_chunk_size", _whole(100, 10_000)),
    "CHUNK_OVERLAP": ("memory_chunk_overlap", _whole(0, 500)),
    "FTS_LANGUAGE": ("memory_language", _among(*LANGUAGES)),
    "HYBRID_RRF_K": ("memory_rrf_k", _whole(1, 1000)),
    "HYBRID_FTS_OR_THRESHOLD": ("memory_or_threshold", _whole(2, 20)),
    "SEARCH_TRUNCATION_LENGTH": ("memory_truncation", _whole(50, 1000)),
    "SUMMARY_MIN_CONTENT_LENGTH": ("memory_summary_least", _whole(0, 10_000)),
    "MAX_IMAGE_SIZE_MB": ("memory_max_image_mb", _whole(1, 200)),
    "MAX_TOTAL_SIZE_MB": ("memory_max_images_mb", _whole(1, 1000)),
    "METADATA_INDEXED_FIELDS": ("memory_indexed_fields", _as_it_is),
    "METADATA_INDEX_SYNC_MODE": ("memory_index_sync", _among("strict", "auto", "warn", "additive")),
    "DISABLED_TOOLS": ("memory_disabled_tools", _as_it_is),
    "MCP_SERVER_INSTRUCTIONS": ("memory_instructions", _as_it_is),
}
"""The variables that mean a setting of ours, and how their values are read."""

_CHECKED: Mapping[str, Parse] = {
    "CHUNK_AGGREGATION": _among("max"),
    "EMBEDDING_PROVIDER": _among("ollama", "openai", "azure", "huggingface", "voyage"),
    "LOG_LEVEL": _among("debug", "info", "warning", "error", "critical"),
}
_WITHOUT_EFFECT = (
    "POOL_", "RETRY_", "CIRCUIT_BREAKER_", "QUEUE_", "SHUTDOWN_", "SQLITE_", "VOYAGE_", "HUGGINGFACEHUB_", "LANGSMITH_",
    "FTS_RERANK_", "CHUNK_DEDUP_OVERFETCH", "HYBRID_RRF_OVERFETCH", "RERANKING_OVERFETCH", "SEARCH_DEFAULT_SORT_BY",
    "FASTMCP_STATELESS_HTTP",
)  # fmt: skip


def is_wanted(profile: str, environment: Mapping[str, str]) -> bool:
    """Whether a process that serves a profile on stdio reads these variables."""
    return profile == "memory" or environment.get(COMPAT) == "context-server"


def aliases(environment: Mapping[str, str]) -> dict[str, Any]:
    """The settings that the other server's variables name, where our own variables do not say otherwise."""
    found: dict[str, Any] = {}
    for name, (setting, parse) in HONOURED.items():
        if environment.get(name) and not environment.get(PREFIX + setting.upper()):
            found[setting] = parse(name, environment[name])
    for name, parse in _CHECKED.items():
        if environment.get(name):
            parse(name, environment[name])
    if environment.get("EMBEDDING_PROVIDER") and "memory_embedding" not in found:
        log.warning("EMBEDDING_PROVIDER=%s is not available here: no vectors", environment["EMBEDDING_PROVIDER"])
        found["memory_embedding"] = False
    if environment.get("DB_PATH") and not environment.get(f"{PREFIX}HOME"):
        found["home"] = home_beside(Path(environment["DB_PATH"]).expanduser())
    return found


def home_beside(database: Path) -> Path:
    """Where data lives for a client that names a database file."""
    return database.with_name(database.name + ".commonplace")


def without_effect(environment: Mapping[str, str] = os.environ) -> list[str]:
    """The variables of the other server that are set and mean nothing here."""
    return sorted(name for name in environment if name.startswith(_WITHOUT_EFFECT))


def adopt_database(library: Library, environment: Mapping[str, str]) -> None:
    """Take over the file at DB_PATH, once, at the first start beside it. The file itself is never written."""
    path = environment.get("DB_PATH")
    if not path or environment.get(f"{PREFIX}HOME"):
        return
    database = Path(path).expanduser()
    if not database.is_file() or library.store.setting("imported_context_server") is not None:
        return
    done = library.memories.import_context_server(database)
    library.store.set_setting("imported_context_server", str(database))
    log.warning("Imported %d entries from %s", done.stored, database)
