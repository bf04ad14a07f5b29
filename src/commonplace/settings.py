"""One typed Settings object: environment over config.toml over defaults."""

from __future__ import annotations

import os
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any, Self

from commonplace.lazy_dataclass import dataclass
from commonplace.setting_values import BadSetting as BadSetting
from commonplace.setting_values import parsed, setting

PREFIX = "COMMONPLACE_"
_USUAL = {"data": ".local/share", "cache": ".cache", "config": ".config"}


def user_path(kind: str) -> Path:
    """Return this platform's folder for a user's data, cache or configuration, as platformdirs knows it.

    It loads tempfile, and with that takes 5 ms of every search. So it is not asked where its answer is sure: on a Linux
    whose user has not set another place.
    """
    home, variables = os.environ.get("HOME", ""), {f"XDG_{kind.upper()}_HOME", "ANDROID_ROOT"} & os.environ.keys()
    if sys.platform == "linux" and home.startswith("/") and not variables:
        return Path(home, _USUAL[kind], "commonplace")
    import platformdirs

    path: Path = getattr(platformdirs, f"user_{kind}_path")("commonplace")
    return path


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The values a user may set. The environment variable of `home` is COMMONPLACE_HOME, and so on."""

    home: Path = setting(lambda: user_path("data"), "The folder that holds your libraries, users and keys.")
    store: str = setting(
        "",
        "Where data is stored. Unset: in a SQLite file in the home. `postgresql://USER:PASSWORD@HOST/DATABASE`: "
        "in a PostgreSQL database that several servers may share.",
    )
    store_owner: str = setting(
        "",
        "The address of the same database as the role that owns the schema. Where it is set, the schema is "
        "created or upgraded when a library is opened.",
    )
    store_connections: int = setting(20, "Most connections to PostgreSQL that one process keeps.", least=2)
    offline: bool = setting(
        False,
        "Forbid every connection to other machines: no model is pulled, no package of documents is fetched, no "
        "provider or service is asked. A PostgreSQL database named in `store` is still used.",
    )
    models: Path = setting(lambda: user_path("cache") / "models", "The folder for pulled models, shared by all homes.")
    model: str = setting(
        "",
        "The embedding model of new libraries: a name from `commonplace models list`, `static`, `hf:owner/name`, "
        "a folder, or a provider's model: `ollama:MODEL`, `openai:MODEL`, `azure:DEPLOYMENT`. Unset: the one that"
        " suits the library's languages.",
    )
    reranker: str = setting(
        "",
        "The model that reranks the best hits: `cohere:MODEL`, `jina:MODEL` or `tei:MODEL`. Unset: the built-in "
        "reranker.",
    )
    generator: str = setting(
        "",
        "The language model that rephrases queries and writes summaries: `ollama:MODEL`, `openai:MODEL`, "
        "`azure:DEPLOYMENT` or `anthropic:MODEL`. Unset: neither is done.",
    )
    keys: Path = setting(
        lambda: user_path("config") / "keys.toml",
        "The file with API keys, by host or provider. It is refused if other users of this machine can read it.",
    )
    embedder_url: str = setting("", "The base address of the provider's embedding API. Unset: the provider's own.")
    embedder_dims: int = setting(
        0,
        "Dimensions to ask a provider's model for. 0: as many as it has.",
        least=0,
        most=16384,
    )
    embedder_query_prefix: str = setting(
        "",
        "Text put before each query that is sent to a provider's embedding model. Unset: the usual one of that "
        "model, where it is known; `none`: no prefix.",
    )
    embedder_passage_prefix: str = setting(
        "", "Text put before each passage that is sent to a provider's embedding model, with the same special values."
    )
    embedder_timeout_ms: int = setting(30_000, "Timeout of a provider's embedding API, in milliseconds.", least=1)
    embedder_attempts: int = setting(3, "How many times a request to a provider's embedding API is tried.", least=1)
    embedder_pause_ms: int = setting(500, "Milliseconds before the second attempt; later pauses are longer.", least=1)
    embedder_concurrency: int = setting(4, "Most requests to a provider's embedding API at the same time.", least=1)
    embedder_batch: int = setting(32, "Most texts in one request to a provider's embedding API.", least=1, most=2048)
    embedder_context: int = setting(0, "Tokens of context to ask Ollama for. 0: the model's own.", least=0)
    embedder_truncate: bool = setting(
        False, "Let Ollama cut off texts that are too long for the model. Otherwise they are embedded in parts."
    )
    reranker_url: str = setting("", "The base address of the reranker's API. Unset: the provider's own.")
    reranker_tokens: int = setting(512, "Most tokens of a passage that are sent to the reranker.", least=128, most=2048)
    reranker_batch: int = setting(0, "Most passages in one request to the reranker. 0: all of them.", least=0)
    generator_url: str = setting("", "The base address of the generator's API. Unset: the provider's own.")
    generator_timeout_ms: int = setting(120_000, "Timeout of the generator, in milliseconds.", least=1)
    generator_attempts: int = setting(3, "How many times a request to the generator is tried.", least=1)
    generator_pause_ms: int = setting(1000, "Milliseconds before the second attempt; later pauses are longer.", least=1)
    generator_concurrency: int = setting(2, "Most requests to the generator at the same time.", least=1)
    generator_context: int = setting(0, "Tokens of context to ask Ollama for. 0: the model's own.", least=0)
    generator_effort: str = setting(
        "", "The reasoning effort to ask the generator for, such as `low` or `high`, in its provider's words."
    )
    log_level: str = setting(
        "warning",
        "The least severe messages that a server writes to standard error: `debug`, `info`, `warning`, `error` or"
        " `critical`.",
        among=("debug", "info", "warning", "error", "critical"),
    )
    background: bool = setting(
        True, "Whether a server embeds pending passages and writes pending summaries while it runs."
    )
    watch: bool = setting(True, "Whether a server watches the library's folders while it runs.")
    language: str = setting(
        "en",
        "The language to assume for a text whose language cannot be detected, as an ISO 639-1 code.",
        like=("[a-z]{2}", "an ISO 639-1 code such as en"),
    )
    index: str = setting(
        "local",
        "Where search indexes are kept: `local`, beside the library, or `turbopuffer`, a hosted service "
        "(docs/operations.md).",
        among=("local", "turbopuffer"),
    )
    turbopuffer_prefix: str = setting(
        "", "The beginning of this home's namespace names on turbopuffer: at most 20 letters, digits and dashes."
    )
    threads: int = setting(2, "How many CPU threads an embedding model may use.", least=1)
    allow_writes: bool = setting(
        False, "Whether agents may write. If so, `remember`, `revise` and `forget` are listed."
    )
    embed_on_search: int = setting(
        64, "Most pending passages that a search embeds before it answers, in a library that has vectors.", least=0
    )
    embed_on_write: int = setting(
        64,
        "Most new passages that a write embeds before it returns; the rest is embedded in the background. 0: none.",
        least=0,
    )
    expand_ms: int = setting(
        1500, "The time limit for rephrasing a query, in milliseconds. A search goes on without it.", least=0
    )
    embed_query_ms: int = setting(
        1000, "The time limit for embedding a query, in milliseconds. A search goes on by words alone.", least=1
    )
    rerank_ms: int = setting(
        2000, "The time limit for reranking hits, in milliseconds. A search goes on without it.", least=0
    )
    auth: str = setting(
        "none",
        "How callers over HTTP and WebSocket prove who they are: `none` (everyone on this machine may call), "
        "`keys` (made by `commonplace keys`) or `jwt` (tokens of an authorization server).",
        among=("none", "keys", "jwt"),
    )
    jwt_issuer: str = setting("", "The issuer that a token must name (`iss`): the authorization server's address.")
    jwt_audience: str = setting("", "The audience that a token must name (`aud`).")
    jwt_jwks_url: str = setting("", "The https address where the issuer publishes its keys.")
    jwt_key: str = setting(
        "",
        "The issuer's key, where it publishes none: a public key in PEM, a secret, or `file:` and the path of a "
        "file with either.",
    )
    jwt_algorithms: str = setting(
        "RS256,ES256,EdDSA",
        "The signature algorithms that are accepted, separated by commas. `HS256` and its like need a secret in "
        "`jwt_key`.",
    )
    public_url: str = setting("", "The address by which clients reach this server, where a proxy stands before it.")
    open_libraries: int = setting(64, "Most users' libraries that a server keeps open at the same time.", least=1)
    session_ttl_seconds: int = setting(3600, "How long an unused session is kept, in seconds.", least=1)
    session_max: int = setting(
        1000, "Most sessions kept in a space; the least recently used are dropped first.", least=1
    )
    session_max_uris: int = setting(
        500, "Most results that a session remembers in order not to return them again.", least=10, most=5000
    )

    tool_names: str = setting(
        "dotted",
        "How tool names are listed: `dotted` (`notes.search`), or `underscore` for clients that refuse dots. Both"
        " can be called.",
        among=("dotted", "underscore"),
    )
    hosts: str = setting(
        "", "Other host names that this server answers to, separated by commas. This machine's own are always allowed."
    )
    rate_limit_per_minute: int = setting(0, "Most calls of one tool by one caller in a minute. 0: no limit.", least=0)
    write_limit_per_minute: int = setting(
        0, "Most calls of writing tools, all together, by one caller in a minute. 0: no limit.", least=0
    )
    concurrency: int = setting(16, "Most calls that a server works on at the same time; others wait.", least=1)
    call_seconds: int = setting(60, "The time limit of a call, in seconds.", least=1)
    result_tokens: int = setting(300_000, "Most tokens in an answer.", least=1000)
    body_bytes: int = setting(
        160 * 1024 * 1024,
        "The largest request accepted, in bytes. Images are sent in it as base64.",
        least=1024,
        most=2**40,
    )
    connections: int = setting(1000, "Most WebSocket connections at the same time.", least=1)
    idle_seconds: int = setting(
        600,
        "How long a silent WebSocket, a half-sent request or a client that does not read its answer is kept, in "
        "seconds.",
        least=1,
    )

    knowledge_search: str = setting(
        "fts",
        "How the knowledge tools search: `fts` by words, `hybrid` also by meaning, where there are vectors.",
        among=("fts", "hybrid"),
    )
    knowledge_snippet_length: int = setting(
        300, "The length of a snippet in the knowledge tools, in characters.", least=20, most=1000
    )
    knowledge_max_tokens: int = setting(
        5000, "Most tokens of text that the knowledge tools return around a hit.", least=1, most=200_000
    )
    knowledge_sibling_window: int = setting(
        2,
        "Most neighboring passages on either side that the knowledge tools return with a hit, as far as they fit.",
        least=0,
        most=10,
    )
    knowledge_chars_per_token: float = setting(
        4, "How many characters the knowledge tools count as one token.", least=1, most=20
    )
    knowledge_order_by: str = setting(
        "relevance",
        "The order of results in the knowledge tools: `relevance` or `recent`.",
        among=("relevance", "recent"),
    )
    full_max_chars: int = setting(
        80_000, "Most characters of an item that the knowledge tools return at once.", least=1
    )
    list_aliases: bool = setting(False, "Whether the knowledge profile also lists `search` and `fetch`.")

    @property
    def limits_calls(self) -> bool:
        return bool(self.rate_limit_per_minute or self.write_limit_per_minute)

    import_max_bytes: int = setting(
        200 * 1024 * 1024,
        "The largest file that can be imported, in bytes. An archive may unpack to four times that.",
        least=1,
        most=2**40,
    )
    package_members: int = setting(20_000, "Most files in an archive or a manifest.", least=1)
    package_file_mb: int = setting(16, "The largest document in a package, in MiB.", least=1, most=1024)
    package_total_mb: int = setting(
        512, "The largest package, unpacked, and the most that git may fetch for it, in MiB.", least=1
    )
    memory_max_text_mb: int = setting(10, "The longest text of a memory entry, in MiB of UTF-8.", least=1)
    memory_max_image_mb: int = setting(10, "The largest image of a memory entry, in MiB.", least=1, most=200)
    memory_max_images_mb: int = setting(
        100, "The largest total size of the images of a memory entry, in MiB.", least=1, most=1000
    )
    memory_history: int = setting(20, "Most earlier versions that are kept of a memory entry.", least=0)
    memory_generation: str = setting(
        "lazy",
        "When a memory is embedded: `lazy` stores it first and embeds it after; `strict` stores it only if it "
        "could be embedded.",
        among=("lazy", "strict"),
    )
    memory_indexed_fields: str = setting(
        "status,agent_name,task_name,project,report_type,references:object,technologies:array",
        "The metadata fields of memories that filters find through an index, separated by commas.",
    )
    memory_index_sync: str = setting(
        "additive",
        "What to do when the library indexes other fields than `memory_indexed_fields`: `additive` adds the "
        "missing ones, `auto` also drops the others, `warn` only says so, `strict` refuses to start.",
        among=("additive", "auto", "warn", "strict"),
    )
    memory_truncation: int = setting(
        300, "Most characters of a memory's text that a search returns.", least=50, most=1000
    )
    memory_chunk_size: int = setting(
        1500, "The length of the passages that a memory is cut into, in characters.", least=100
    )
    memory_chunk_overlap: int = setting(150, "How many characters neighboring passages of a memory share.", least=0)
    memory_chunking: bool = setting(
        True, "Whether long memories are cut into several passages before they are embedded."
    )
    memory_embedding: bool = setting(True, "Whether memories are embedded.")
    memory_lexical: bool = setting(True, "Whether the memory profile lists `fts_search_context`.")
    memory_semantic: bool = setting(True, "Whether the memory profile lists `semantic_search_context`.")
    memory_hybrid: bool = setting(True, "Whether the memory profile lists `hybrid_search_context`.")
    memory_reranking: bool = setting(True, "Whether searches of memories are reranked, where a reranker is set.")
    memory_summaries: bool = setting(True, "Whether memories are summarized, where a generator is set.")
    memory_summary_least: int = setting(
        500, "The length from which a memory is summarized, in characters.", least=0, most=10000
    )
    memory_summarizer: str = setting(
        "",
        "The model that summarizes memories, if not the generator: a provider's model, or `extractive` to quote "
        "the most telling sentences without a model.",
    )
    memory_summary_tokens: int = setting(2000, "Most tokens in a summary.", least=50, most=16384)
    memory_summary_prompt: str = setting("", "The instructions for summarizing a memory. Unset: the built-in ones.")
    memory_language: str = setting("english", "The language whose stems a search of memories by words matches.")
    memory_rrf_k: int = setting(
        60, "The constant k of reciprocal rank fusion in `hybrid_search_context`.", least=1, most=1000
    )
    memory_or_threshold: int = setting(
        4, "The number of words from which `hybrid_search_context` requires only some of them.", least=1, most=1000
    )
    memory_disabled_tools: str = setting("", "Tools that the memory profile does not list, separated by commas.")
    memory_instructions: str = setting(
        "", "The instructions that the memory profile gives to clients. Unset: the built-in ones."
    )

    tables_short_string_chars: int = setting(
        200,
        "The length up to which a string of a table is indexed together with its neighbors, in characters.",
        least=0,
        most=10000,
    )
    tables_chunk_threshold_chars: int = setting(
        1000,
        "The length up to which a string of a table is indexed in one piece, in characters.",
        least=100,
        most=100_000,
    )
    tables_chunk_size_chars: int = setting(
        1000, "The length of the pieces of longer strings of a table, in characters.", least=100, most=100_000
    )
    tables_chunk_overlap_chars: int = setting(
        100, "How many characters neighboring pieces of a string of a table share.", least=0, most=10000
    )

    @classmethod
    def load(cls, **overrides: Any) -> Self:
        """Return the settings of config.toml and the environment.

        Raise BadSetting, which names the one that cannot be understood.
        """
        values: dict[str, Any] = {}
        from_file = _config_file()
        unknown = ", ".join(sorted(from_file.keys() - {item.name for item in fields(cls)}))
        if unknown:
            raise BadSetting(f"config.toml sets {unknown}, which is no setting. docs/operations.md lists them.")
        for item in fields(cls):
            name = PREFIX + item.name.upper()
            if item.name in overrides and overrides[item.name] is not None:
                value = overrides[item.name]
                values[item.name] = Path(os.path.expanduser(value)) if item.type == "Path" else value
            elif os.environ.get(name):  # an empty variable is one that is not set
                values[item.name] = parsed(name, os.environ[name], str(item.type), **_bounds(item))
            elif item.name in from_file:
                values[item.name] = parsed(
                    f"{item.name} in config.toml", from_file[item.name], str(item.type), **_bounds(item)
                )
        return cls(**values)


def _config_file() -> dict[str, Any]:
    configured = os.environ.get(f"{PREFIX}CONFIG")
    path = Path(os.path.expanduser(configured)) if configured else user_path("config") / "config.toml"
    try:
        text = path.read_text(encoding="utf-8")
        import tomllib  # most people have no such file

        return tomllib.loads(text)
    except FileNotFoundError as error:
        if configured:  # what it was to set, such as who may call, would be left out without a word
            raise BadSetting(f"{PREFIX}CONFIG names {path}, and there is no such file. Name another.") from error
        return {}
    except (OSError, ValueError) as error:
        raise BadSetting(f"{path} cannot be read: {error}. Mend it or move it away.") from error


def _bounds(item: Any) -> dict[str, Any]:
    return {name: item.metadata[name] for name in ("least", "most", "among", "like")}


def reference() -> str:
    """Return every setting as a Markdown table, which docs/operations.md shows."""
    rows = ["| setting | environment | default | what it does |", "|---|---|---|---|"]
    for item in fields(Settings):
        value = _default(item)
        default = "the platform's own folder" if item.type == "Path" else f"`{value}`" if value != "" else "–"
        rows.append(f"| `{item.name}` | `{PREFIX}{item.name.upper()}` | {default} | {item.metadata['doc']} |")
    return "\n".join(rows)


def _default(item: Any) -> Any:
    return item.default_factory()
