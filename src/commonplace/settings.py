"""One typed Settings object: environment over config.toml over defaults."""

from __future__ import annotations

import os
import re
import sys
from dataclasses import field, fields
from pathlib import Path
from typing import Any, Self

from commonplace.errors import CommonplaceError
from commonplace.lazy_dataclass import dataclass

PREFIX = "COMMONPLACE_"
_BOOLEANS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


class BadSetting(CommonplaceError):
    """A setting that cannot be used. Ends a process with EX_CONFIG."""

    code, status, exit_code = "bad_setting", 500, 78


_USUAL = {"data": ".local/share", "cache": ".cache", "config": ".config"}


def user_path(kind: str) -> Path:
    """Where this platform wants a user's data, caches or configuration: platformdirs knows.

    It loads tempfile, and with that takes 5 ms of every search. So it is not asked where its answer is sure: on a Linux
    whose user has not set another place.
    """
    home, told = os.environ.get("HOME", ""), {f"XDG_{kind.upper()}_HOME", "ANDROID_ROOT"} & os.environ.keys()
    if sys.platform == "linux" and home.startswith("/") and not told:
        return Path(home, _USUAL[kind], "commonplace")
    import platformdirs

    found: Path = getattr(platformdirs, f"user_{kind}_path")("commonplace")
    return found


def setting(
    default: Any,
    doc: str,
    *,
    least: float | None = None,
    most: float = 2**31 - 1,
    among: tuple[str, ...] = (),
    like: tuple[str, str] = ("", ""),
) -> Any:
    """A setting: its default, the sentence that explains it, and its bounds, in one place.

    `like`: what all of a text matches, and what such a text is called.
    """
    factory = default if callable(default) else lambda: default
    bounds = {"least": least, "most": most, "among": among, "like": like}
    return field(default_factory=factory, metadata={"doc": doc, **bounds})


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything a user may set. The environment variable of `home` is COMMONPLACE_HOME, and so on."""

    home: Path = setting(lambda: user_path("data"), "Where libraries live.")
    store: str = setting(
        "",
        "Where what is stored is kept: unset, in a file of each space; or in a PostgreSQL database that servers share, "
        "`postgresql://USER:PASSWORD@HOST/DATABASE`.",
    )
    store_owner: str = setting(
        "", "The same address for the schema's owner: where it is set, the schema is made and brought up to date."
    )
    store_connections: int = setting(20, "How many connections to PostgreSQL a process keeps at most.", least=2)
    offline: bool = setting(
        False,
        "Forbid every connection off this machine: no model is pulled, no package of documents fetched, no provider or "
        "service elsewhere asked. The database that `store` names is the library itself and stays allowed.",
    )
    models: Path = setting(lambda: user_path("cache") / "models", "Where pulled models live, shared by all homes.")
    model: str = setting(
        "",
        "The embedder for new libraries: a catalogue name, `static`, `hf:owner/name`, a folder, or a provider's: "
        "`ollama:MODEL`, `openai:MODEL`, `azure:DEPLOYMENT`.",
    )
    reranker: str = setting(
        "", "Who takes a second look at hits: `cohere:MODEL`, `jina:MODEL` or `tei:MODEL`; unset: what is built in."
    )
    generator: str = setting(
        "",
        "Who thinks of other ways to ask, and writes summaries: `ollama:MODEL`, `openai:MODEL`, `azure:DEPLOYMENT` or "
        "`anthropic:MODEL`.",
    )
    keys: Path = setting(
        lambda: user_path("config") / "keys.toml",
        "A file of keys by host or provider, which nobody else may be able to read.",
    )
    embedder_url: str = setting("", "Where a provider's embedder is, if not at the provider's own address.")
    embedder_dims: int = setting(
        0, "How many dimensions a provider's embedder is asked for; 0: as many as it has.", least=0, most=16384
    )
    embedder_query_prefix: str = setting(
        "", "What a question to a provider's embedder begins with; unset: what is known of the model; `none`: nothing."
    )
    embedder_passage_prefix: str = setting("", "The same for passages.")
    embedder_timeout_ms: int = setting(30_000, "How long a provider's embedder is waited for.", least=1)
    embedder_attempts: int = setting(3, "How often a provider's embedder is asked before it has failed.", least=1)
    embedder_pause_ms: int = setting(500, "How long the first pause between attempts is.", least=1)
    embedder_concurrency: int = setting(4, "How many requests to a provider's embedder are under way.", least=1)
    embedder_batch: int = setting(32, "How many texts one request has.", least=1, most=2048)
    embedder_context: int = setting(0, "How many tokens Ollama's embedder reads at once; 0: its own.", least=0)
    embedder_truncate: bool = setting(
        False, "Whether Ollama may cut a text that is too long, which is embedded in parts otherwise."
    )
    reranker_url: str = setting("", "Where the reranker is, if not at the provider's own address.")
    reranker_tokens: int = setting(512, "How many tokens of a passage a reranker reads.", least=128, most=2048)
    reranker_batch: int = setting(0, "How many passages a request to a reranker has at most; 0: all it takes.", least=0)
    generator_url: str = setting("", "Where the generator is, if not at the provider's own address.")
    generator_timeout_ms: int = setting(120_000, "How long a generator is waited for.", least=1)
    generator_attempts: int = setting(3, "How often a generator is asked before it has failed.", least=1)
    generator_pause_ms: int = setting(1000, "How long the first pause between attempts is.", least=1)
    generator_concurrency: int = setting(2, "How many requests to a generator are under way.", least=1)
    generator_context: int = setting(0, "How many tokens Ollama's generator reads at once; 0: its own.", least=0)
    generator_effort: str = setting("", "How hard a generator that reasons should think, in its provider's words.")
    log_level: str = setting(
        "warning",
        "What a server says on standard error: `debug`, `info`, `warning`, `error` or `critical`, and what is worse.",
        among=("debug", "info", "warning", "error", "critical"),
    )
    background: bool = setting(True, "Whether a server makes pending vectors and summaries while it serves.")
    watch: bool = setting(True, "Whether a server watches the folders of the spaces it serves.")
    language: str = setting(
        "en",
        "The language of texts whose own cannot be told, as an ISO 639-1 code.",
        like=("[a-z]{2}", "an ISO 639-1 code such as en"),
    )
    index: str = setting(
        "local",
        "Where indexes are: `local`, beside the library, or `turbopuffer`, a service (docs/operations.md).",
        among=("local", "turbopuffer"),
    )
    turbopuffer_prefix: str = setting(
        "", "What the namespaces of this home begin with on turbopuffer: letters, digits, dashes; 20 at most."
    )
    threads: int = setting(2, "How many threads an embedder may use.", least=1)
    allow_writes: bool = setting(False, "Whether agents may write: lists `remember`, `revise` and `forget`.")
    embed_on_search: int = setting(
        64, "How many pending chunks a search embeds on the spot, where vectors exist.", least=0
    )
    embed_on_write: int = setting(
        64, "How many fresh passages a write embeds on the spot; more are left to the background. 0: none.", least=0
    )
    expand_ms: int = setting(1500, "How long other ways to ask a query may be thought of, in milliseconds.", least=0)
    embed_query_ms: int = setting(1000, "How long a hybrid query may be embedded, in milliseconds.", least=1)
    rerank_ms: int = setting(2000, "How long hits may be reranked, in milliseconds.", least=0)
    auth: str = setting(
        "none",
        "Who may use the HTTP and WebSocket doors: `none` (everyone on this machine), `keys` or `jwt`.",
        among=("none", "keys", "jwt"),
    )
    jwt_issuer: str = setting("", "Who must have issued a token (`iss`); the authorization server's address.")
    jwt_audience: str = setting("", "Whom a token must be meant for (`aud`).")
    jwt_jwks_url: str = setting("", "Where the issuer publishes its keys: an https address.")
    jwt_key: str = setting(
        "",
        "The issuer's key where none is published: a public key in PEM, a secret, or `file:` and the path of either.",
    )
    jwt_algorithms: str = setting(
        "RS256,ES256,EdDSA",
        "How tokens may be signed, with commas between: `HS256` and the like go with a secret only.",
    )
    public_url: str = setting("", "The address clients reach this server by, where a proxy stands before it.")
    open_libraries: int = setting(64, "How many users' libraries a server keeps open.", least=1)
    session_ttl_seconds: int = setting(3600, "How long a session that nobody uses is kept, in seconds.", least=1)
    session_max: int = setting(1000, "How many sessions a space keeps; the least recently used go first.", least=1)
    session_max_uris: int = setting(
        500, "How many returned items a session remembers, so as not to return them again.", least=10, most=5000
    )

    tool_names: str = setting(
        "dotted",
        "How tools are listed: `dotted`, or `underscore` for clients that refuse dots. Both are callable.",
        among=("dotted", "underscore"),
    )
    hosts: str = setting("", "Host names this server answers to beside this machine's own, with commas between.")
    rate_limit_per_minute: int = setting(
        0, "How often a caller may call each tool in a minute; 0 is no limit.", least=0
    )
    write_limit_per_minute: int = setting(
        0, "How often a caller may call tools that write, all together, in a minute; 0 is no limit.", least=0
    )
    concurrency: int = setting(16, "How many calls a server works on at once; others wait.", least=1)
    call_seconds: int = setting(60, "How long a call may take before it is given up.", least=1)
    result_tokens: int = setting(300_000, "How many tokens an answer may have at most.", least=1000)
    body_bytes: int = setting(
        160 * 1024 * 1024, "How large a request may be. Images travel in it as base64.", least=1024, most=2**40
    )
    connections: int = setting(1000, "How many WebSocket connections a server keeps open.", least=1)
    idle_seconds: int = setting(
        600,
        "How long a silent WebSocket, a half-sent request, or a client that does not read its answer, is waited for.",
        least=1,
    )

    knowledge_search: str = setting(
        "fts",
        "How the knowledge tools search: `fts` by words, `hybrid` by meaning too, where there are vectors.",
        among=("fts", "hybrid"),
    )
    knowledge_snippet_length: int = setting(
        300, "How many characters of an item the knowledge tools show in a search.", least=20, most=1000
    )
    knowledge_max_tokens: int = setting(
        5000, "How many tokens a window of the knowledge tools has at most.", least=1, most=200_000
    )
    knowledge_sibling_window: int = setting(
        2, "How many neighbours a window has on either side, if they fit.", least=0, most=10
    )
    knowledge_chars_per_token: float = setting(4, "How many characters count as a token.", least=1, most=20)
    knowledge_order_by: str = setting(
        "relevance", "What comes first in the knowledge tools: `relevance` or `recent`.", among=("relevance", "recent")
    )
    full_max_chars: int = setting(80_000, "How many characters of an item are read at once.", least=1)
    list_aliases: bool = setting(False, "Whether the knowledge profile lists `search` and `fetch` too.")

    @property
    def limits_calls(self) -> bool:
        return bool(self.rate_limit_per_minute or self.write_limit_per_minute)

    import_max_bytes: int = setting(
        200 * 1024 * 1024,
        "How large a file to import may be, in bytes; an archive may unpack to four times that.",
        least=1,
        most=2**40,
    )
    package_members: int = setting(20_000, "How many files an archive or a manifest may list.", least=1)
    package_file_mb: int = setting(16, "How large one document of a package may be, in MiB.", least=1, most=1024)
    package_total_mb: int = setting(
        512, "How much a package may hold in all, unpacked, and git may fetch for it, in MiB.", least=1
    )
    memory_max_text_mb: int = setting(10, "How long a memory entry's text may be, in MiB of UTF-8.", least=1)
    memory_max_image_mb: int = setting(10, "How large one image of a memory entry may be, in MiB.", least=1, most=200)
    memory_max_images_mb: int = setting(
        100, "How large all images of a memory entry may be together, in MiB.", least=1, most=1000
    )
    memory_history: int = setting(20, "How many earlier versions of a memory entry are kept.", least=0)
    memory_generation: str = setting(
        "lazy",
        "Whether a memory is stored first and embedded after (`lazy`), or only once it is embedded (`strict`).",
        among=("lazy", "strict"),
    )
    memory_indexed_fields: str = setting(
        "status,agent_name,task_name,project,report_type,references:object,technologies:array",
        "The metadata fields of memories whose filters are answered from an index, with commas between.",
    )
    memory_index_sync: str = setting(
        "additive",
        "What happens when other fields are indexed than set: `additive` adds, `auto` also drops, `warn` only says so, "
        "`strict` refuses to start.",
        among=("additive", "auto", "warn", "strict"),
    )
    memory_truncation: int = setting(300, "How many characters of a memory a search shows.", least=50, most=1000)
    memory_chunk_size: int = setting(1500, "How long the passages of a memory are, in characters.", least=100)
    memory_chunk_overlap: int = setting(
        150, "How much neighbouring passages of a memory share, in characters.", least=0
    )
    memory_chunking: bool = setting(True, "Whether long memories are embedded in several passages.")
    memory_embedding: bool = setting(True, "Whether memories get vectors.")
    memory_lexical: bool = setting(True, "Whether the memory profile lists `fts_search_context`.")
    memory_semantic: bool = setting(True, "Whether the memory profile lists `semantic_search_context`.")
    memory_hybrid: bool = setting(True, "Whether the memory profile lists `hybrid_search_context`.")
    memory_reranking: bool = setting(True, "Whether searches of memories are reranked where a reranker is there.")
    memory_summaries: bool = setting(True, "Whether memories are summarised where a generator is there.")
    memory_summary_least: int = setting(
        500, "How many characters a memory needs to be summarised.", least=0, most=10000
    )
    memory_summarizer: str = setting(
        "",
        "Who summarises memories, if not the generator: a provider's model, or `extractive` for the built-in way of "
        "quoting the most telling sentences.",
    )
    memory_summary_tokens: int = setting(2000, "How many tokens a summary has at most.", least=50, most=16384)
    memory_summary_prompt: str = setting("", "What a generator is told to do with a memory; unset: our own words.")
    memory_language: str = setting("english", "Whose stems a lexical search of memories matches.")
    memory_rrf_k: int = setting(60, "The k of reciprocal rank fusion in `hybrid_search_context`.", least=1, most=1000)
    memory_or_threshold: int = setting(
        4, "From how many words on a hybrid search of memories needs only some of them.", least=1, most=1000
    )
    memory_disabled_tools: str = setting("", "Tools the memory profile does not list, with commas between.")
    memory_instructions: str = setting("", "What the memory profile tells a client instead of its own instructions.")

    tables_short_string_chars: int = setting(
        200,
        "Up to how many characters a string of a table is indexed together with its neighbours.",
        least=0,
        most=10000,
    )
    tables_chunk_threshold_chars: int = setting(
        1000, "Up to how many characters a string of a table is indexed in one piece.", least=100, most=100_000
    )
    tables_chunk_size_chars: int = setting(
        1000, "How long the pieces of longer strings of a table are, in characters.", least=100, most=100_000
    )
    tables_chunk_overlap_chars: int = setting(
        100, "How much neighbouring pieces of a string of a table share, in characters.", least=0, most=10000
    )

    @classmethod
    def load(cls, **overrides: Any) -> Self:
        """Read config.toml and the environment. What cannot be understood is an error that names the setting."""
        values: dict[str, Any] = {}
        given = _config_file()
        unknown = ", ".join(sorted(given.keys() - {item.name for item in fields(cls)}))
        if unknown:
            raise BadSetting(f"config.toml sets {unknown}, which is no setting. docs/operations.md lists them.")
        for item in fields(cls):
            name = PREFIX + item.name.upper()
            if item.name in overrides and overrides[item.name] is not None:
                value = overrides[item.name]
                values[item.name] = Path(os.path.expanduser(value)) if item.type == "Path" else value
            elif os.environ.get(name):  # an empty variable is one that is not set
                values[item.name] = _parse(name, os.environ[name], str(item.type), **_bounds(item))
            elif item.name in given:
                values[item.name] = _parse(
                    f"{item.name} in config.toml", given[item.name], str(item.type), **_bounds(item)
                )
        return cls(**values)


def _config_file() -> dict[str, Any]:
    named = os.environ.get(f"{PREFIX}CONFIG")
    path = Path(os.path.expanduser(named)) if named else user_path("config") / "config.toml"
    try:
        text = path.read_text(encoding="utf-8")
        import tomllib  # most people have no such file

        return tomllib.loads(text)
    except FileNotFoundError as error:
        if named:  # what it was to set, such as who may call, would be left out without a word
            raise BadSetting(f"{PREFIX}CONFIG names {path}, and there is no such file. Name another.") from error
        return {}
    except (OSError, ValueError) as error:
        raise BadSetting(f"{path} cannot be read: {error}. Mend it or move it away.") from error


def _bounds(item: Any) -> dict[str, Any]:
    return {name: item.metadata[name] for name in ("least", "most", "among", "like")}


def _parse(
    name: str, value: Any, kind: str, *, least: float | None, most: float, among: tuple[str, ...], like: tuple[str, str]
) -> Any:
    if kind in ("Path", "str"):
        _check_text(name, value, among, like)
        if kind == "Path" and not value:
            raise BadSetting(f"{name} must name a folder, and is empty.")
        return Path(os.path.expanduser(value)) if kind == "Path" else value
    if kind == "bool":
        if str(value).lower() not in _BOOLEANS:
            raise BadSetting(f"{name} must be true or false, not {value!r}.")
        return _BOOLEANS[str(value).lower()]
    try:
        number = float(str(value)) if kind == "float" else int(str(value))
    except ValueError:
        called = "number" if kind == "float" else "whole number"
        raise BadSetting(f"{name} must be a {called}, not {value!r}.") from None
    if least is not None and not number >= least:  # nor is what is no number
        raise BadSetting(f"{name} must be at least {least}, not {number}.")
    if number > most:
        raise BadSetting(f"{name} must be at most {most}, not {number}.")
    return number


def _check_text(name: str, value: Any, among: tuple[str, ...], like: tuple[str, str]) -> None:
    pattern, called = like
    if not isinstance(value, str):
        raise BadSetting(f"{name} must be a text in quotes, not {value!r}.")
    if "\0" in value:
        raise BadSetting(f"{name} has U+0000, which nothing can be called. Remove it.")
    if among and value not in among:
        raise BadSetting(f"{name} must be one of {', '.join(among)}, not {value!r}.")
    if pattern and not re.fullmatch(pattern, value):
        raise BadSetting(f"{name} must be {called}, not {value!r}.")


def reference() -> str:
    """Every setting as a Markdown table: what docs/operations.md shows."""
    rows = ["| setting | environment | default | what it does |", "|---|---|---|---|"]
    for item in fields(Settings):
        default = (
            "the platform's own folder"
            if item.type == "Path"
            else f"`{_default(item)}`"
            if _default(item) != ""
            else "–"
        )
        rows.append(f"| `{item.name}` | `{PREFIX}{item.name.upper()}` | {default} | {item.metadata['doc']} |")
    return "\n".join(rows)


def _default(item: Any) -> Any:
    return item.default_factory()
