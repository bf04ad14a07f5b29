"""The other server's variables for providers, the database and the door: contracts/memory.md, section 12."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from mcp import Client
from memory_calls import Tools

from commonplace.kinds.memories.tools.environment import (
    _EMBEDDING,
    _RERANKING,
    _SUMMARY,
    Door,
    aliases,
    door_of,
    without_effect,
)
from commonplace.server.auth import OpenGate
from commonplace.server.http import make_app
from commonplace.server.transport import memory_body_bytes
from commonplace.settings import BadSetting, Settings
from kit.forked import forked
from opening import library_settings
from serving import served as served_app
from wire_server import Site, serving, silent, status

LONG = "Anna moves the payment service in May. " * 20


def test_every_variable_of_a_provider_names_a_setting() -> None:
    names = set(Settings.__dataclass_fields__)
    assert {setting for table in (_EMBEDDING, _SUMMARY, _RERANKING) for setting, _, _ in table.values()} <= names


@pytest.mark.parametrize(
    ("environment", "found"),
    [
        ({"EMBEDDING_PROVIDER": "ollama"}, {"model": "ollama:qwen3-embedding:0.6b", "embedder_timeout_ms": 240_000}),
        ({"EMBEDDING_PROVIDER": "Ollama", "EMBEDDING_MODEL": "bge-m3"}, {"model": "ollama:bge-m3"}),
        (
            {"EMBEDDING_PROVIDER": "openai", "EMBEDDING_MODEL": "text-embedding-3-small", "EMBEDDING_DIM": "512"},
            {"model": "openai:text-embedding-3-small", "embedder_dims": 512, "embedder_attempts": 5},
        ),
        (
            {"EMBEDDING_PROVIDER": "azure", "AZURE_OPENAI_EMBEDDING_DEPLOYMENT_NAME": "mine"},
            {"model": "azure:mine", "embedder_concurrency": 3},
        ),
        (
            {"EMBEDDING_PROVIDER": "ollama", "EMBEDDING_TIMEOUT_S": "0.5", "EMBEDDING_OLLAMA_TRUNCATE": "yes"},
            {"embedder_timeout_ms": 500, "embedder_truncate": True, "embedder_context": 4096},
        ),
        ({"SUMMARY_PROVIDER": "ollama"}, {"memory_summarizer": "ollama:qwen3:0.6b", "generator_context": 32_768}),
        (
            {"SUMMARY_PROVIDER": "anthropic", "SUMMARY_MODEL": "m", "SUMMARY_ANTHROPIC_EFFORT": "low"},
            {"memory_summarizer": "anthropic:m", "generator_effort": "low"},
        ),
        ({"EMBEDDING_PROVIDER": "openai"}, {"model": "openai:qwen3-embedding:0.6b"}),
        ({"EMBEDDING_PROVIDER": "azure"}, {"model": "azure:qwen3-embedding:0.6b"}),
        ({"EMBEDDING_PROVIDER": "azure", "EMBEDDING_MODEL": "mine"}, {"model": "azure:mine"}),
        ({"SUMMARY_PROVIDER": "anthropic"}, {"memory_summarizer": "anthropic:qwen3:0.6b"}),
        ({"RERANKING_PROVIDER": "tei"}, {"reranker": "tei:ms-marco-MiniLM-L-12-v2"}),
        ({"SUMMARY_MAX_TOKENS": "100", "SUMMARY_PROMPT": "Sum up."}, {"memory_summary_tokens": 100}),
        ({"RERANKING_PROVIDER": "jina", "RERANKING_MODEL": "m"}, {"reranker": "jina:m"}),
        (
            {"RERANKING_PROVIDER": "tei", "RERANKING_MODEL": "m", "RERANKING_MAX_LENGTH": "256"},
            {"reranker": "tei:m", "reranker_tokens": 256},
        ),
        (
            {"RERANKING_PROVIDER": "tei", "RERANKING_MODEL": "m", "RERANKING_BATCH_SIZE": "8"},
            {"reranker_batch": 8},
        ),
        ({"STORAGE_BACKEND": "postgresql"}, {"store": "postgresql://postgres:postgres@localhost:5432/mcp_context"}),
        (
            {"STORAGE_BACKEND": "postgresql", "POSTGRESQL_PASSWORD": "a@b/c", "POSTGRESQL_SSL_MODE": "require"},
            {"store": "postgresql://postgres:a%40b%2Fc@localhost:5432/mcp_context?sslmode=require"},
        ),
        (
            {"STORAGE_BACKEND": "postgresql", "POSTGRESQL_CONNECTION_STRING": "postgresql://x/y"},
            {"store": "postgresql://x/y"},
        ),
        ({"LOG_LEVEL": "DEBUG"}, {"log_level": "debug"}),
    ],
)
def test_providers_are_honoured(environment: dict[str, str], found: dict[str, Any]) -> None:
    assert found.items() <= aliases(environment).items()


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"EMBEDDING_MODEL": "bge-m3"},
        {"SUMMARY_MODEL": "m"},
        {"RERANKING_PROVIDER": "flashrank", "RERANKING_MAX_LENGTH": "256"},
        {"STORAGE_BACKEND": "sqlite", "POSTGRESQL_HOST": "box"},
    ],
)
def test_what_names_no_provider_changes_nothing(environment: dict[str, str]) -> None:
    assert aliases(environment) == {}


def test_what_has_a_meaning_here_is_not_among_what_has_none() -> None:
    silent = ("RERANKING_CACHE_DIR", "POSTGRESQL_SCHEMA", "POSTGRESQL_POOL_MIN", "POSTGRESQL_COMMAND_TIMEOUT_S")
    honoured = ("RERANKING_MAX_LENGTH", "RERANKING_BATCH_SIZE", "POSTGRESQL_POOL_MAX", "POSTGRESQL_SSL_MODE")
    assert without_effect(dict.fromkeys((*silent, *honoured), "1")) == sorted(silent)


def test_our_own_names_are_stronger() -> None:
    environment = {"EMBEDDING_PROVIDER": "ollama", "COMMONPLACE_MODEL": "static", "EMBEDDING_DIM": "7"}
    found = aliases({**environment, "COMMONPLACE_EMBEDDER_DIMS": "9"})
    assert "model" not in found
    assert "embedder_dims" not in found


@pytest.mark.parametrize(
    ("environment", "sentence"),
    [
        ({"EMBEDDING_PROVIDER": "openia"}, "EMBEDDING_PROVIDER must be one of ollama, openai, azure"),
        ({"EMBEDDING_DIM": "0"}, "EMBEDDING_DIM must be between 1 and 4096, not 0."),
        ({"EMBEDDING_TIMEOUT_S": "soon"}, "EMBEDDING_TIMEOUT_S must be a number of seconds, not 'soon'."),
        ({"EMBEDDING_TIMEOUT_S": "nan"}, "EMBEDDING_TIMEOUT_S must be above 0 and at most 300, not nan."),
        ({"SUMMARY_PROVIDER": "azure"}, "SUMMARY_PROVIDER must be one of ollama, openai, anthropic, not 'azure'."),
        ({"SUMMARY_MAX_TOKENS": "49"}, "SUMMARY_MAX_TOKENS must be between 50 and 16384, not 49."),
        ({"RERANKING_MAX_LENGTH": "64"}, "RERANKING_MAX_LENGTH must be between 128 and 2048, not 64."),
        ({"RERANKING_BATCH_SIZE": "0"}, "RERANKING_BATCH_SIZE must be between 1 and 1000, not 0."),
        ({"STORAGE_BACKEND": "mysql"}, "STORAGE_BACKEND must be one of sqlite, postgresql, not 'mysql'."),
        (
            {"STORAGE_BACKEND": "postgresql", "POSTGRESQL_PORT": "x"},
            "POSTGRESQL_PORT must be a whole number, not 'x'.",
        ),
        ({"LOG_LEVEL": "loud"}, "LOG_LEVEL must be one of debug, info, warning, error, critical, not 'loud'."),
    ],
)
def test_what_cannot_be_meant_is_one_sentence(environment: dict[str, str], sentence: str) -> None:
    with pytest.raises(BadSetting) as caught:
        aliases(environment)
    assert str(caught.value).startswith(sentence)


# summaries as the tools show them


@pytest.fixture
def site() -> Iterator[Site]:
    with serving(Site(says="Anna moves the payment service.")) as found:
        yield found


def test_statistics_tell_who_summarises_and_how_much_is_done(
    open_tools: Callable[..., Tools], site: Site, tmp_path: Path
) -> None:
    tools = open_tools(memory_summarizer="ollama:static", generator_url=site.url, keys=tmp_path / "keys.toml")
    reply = tools("store_context", thread_id="t", source="user", text=LONG)
    assert reply["message"] == "Context stored (embedding generated)"
    tools("store_context", thread_id="t", source="user", text="short")
    expected = {"enabled": True, "available": True, "provider": "ollama", "model": "static", "min_content_length": 500}
    summary = tools("get_statistics")["summary"]
    assert summary == {**expected, "summary_count": 0, "coverage_percentage": 0.0}
    tools.library.tend(lambda: False)
    summary = tools("get_statistics")["summary"]
    assert (summary["summary_count"], summary["coverage_percentage"]) == (1, 50.0)
    found = tools("search_context")["results"]
    assert [entry["summary"] for entry in found] == ["", "Anna moves the payment service."]


def test_statistics_say_what_is_wrong(open_tools: Callable[..., Tools], tmp_path: Path) -> None:
    assert open_tools()("get_statistics")["summary"]["message"] == "No generator is configured."
    keys = tmp_path / "keys.toml"
    keys.write_text("", encoding="utf-8")
    keys.chmod(0o644)
    summary = open_tools(memory_summarizer="ollama:static", keys=keys)("get_statistics")["summary"]
    assert (summary["enabled"], summary["available"]) == (True, False)
    assert "others can read it" in summary["message"]
    quoting = open_tools(memory_summarizer="extractive")("get_statistics")["summary"]
    assert (quoting["available"], quoting["provider"]) == (True, "extractive")


def test_strict_mode_tells_what_it_made_and_what_failed(open_tools: Callable[..., Tools], site: Site) -> None:
    tools = open_tools(memory_summarizer="ollama:static", generator_url=site.url, memory_generation="strict")
    reply = tools("store_context", thread_id="t", source="user", text=LONG)
    assert reply["message"] == "Context stored (embedding generated, summary generated)"
    again = tools("store_context", thread_id="t", source="user", text=LONG)
    assert again["message"] == "Context updated (summary preserved)"
    site.always = status(404)
    error = tools("store_context", thread_id="t", source="user", text=f"{LONG}!")["error"]
    assert error["code"] == "generation_failed"
    assert error["message"].startswith("Generation failed after exhausting configured retries: summary: ollama at ")


def test_a_hybrid_search_of_memories_says_why_meaning_was_left_out(
    open_tools: Callable[..., Tools], site: Site
) -> None:
    tools = open_tools(model="ollama:static", embedder_url=site.url, embedder_pause_ms=1)
    tools("store_context", thread_id="t", source="user", text="Oolong wants hot water")
    site.always = status(500)
    reply = tools("hybrid_search_context", query="oolong")
    assert (reply["count"], reply["search_modes_used"]) == (1, ["fts"])
    (warning,) = reply["warnings"]
    assert warning.startswith("Semantic sub-search failed; results may be based on FTS only: ollama at 127.0.0.1:")
    error = tools("semantic_search_context", query="oolong")["error"]["message"]
    assert error.startswith("Semantic search is not available: ollama at ")
    assert error.endswith("Use fts_search_context or hybrid_search_context.")


def test_a_provider_that_never_answered_is_no_empty_success(open_tools: Callable[..., Tools], site: Site) -> None:
    site.always = status(500)
    tools = open_tools(model="ollama:static", embedder_url=site.url, embedder_pause_ms=1, embedder_dims=256)
    found = tools("get_statistics")["semantic_search"]
    assert (found["enabled"], found["available"]) == (True, False)
    assert found["message"].startswith("ollama at 127.0.0.1:")
    tools("store_context", thread_id="t", source="user", text="Oolong wants hot water")
    error = tools("semantic_search_context", query="oolong")["error"]
    assert error["code"] == "unavailable"
    assert error["message"].startswith("Semantic search is not available: ollama at 127.0.0.1:")
    reply = tools("hybrid_search_context", query="oolong")
    assert (reply["count"], reply["search_modes_used"]) == (1, ["fts"])
    assert reply["warnings"][0].startswith("Semantic sub-search failed; results may be based on FTS only: ollama at ")


def test_statistics_know_a_provider_that_has_stopped_answering(open_tools: Callable[..., Tools], site: Site) -> None:
    tools = open_tools(
        model="ollama:static",
        embedder_url=site.url,
        embedder_pause_ms=1,
        memory_summarizer="ollama:static",
        generator_url=site.url,
        memory_generation="strict",
    )
    tools("store_context", thread_id="t", source="user", text=LONG)
    before = tools("get_statistics")
    assert [before[part]["available"] for part in ("semantic_search", "summary")] == [True, True]
    site.always = status(404)
    tools("store_context", thread_id="t", source="user", text=f"{LONG}!")
    after = tools("get_statistics")
    for part in ("semantic_search", "summary"):
        assert after[part]["available"] is False
        assert "does not have the model static" in after[part]["message"]


# the door


@pytest.mark.parametrize(
    ("environment", "door"),
    [
        ({}, None),
        ({"MCP_TRANSPORT": "stdio", "FASTMCP_PORT": "99"}, None),
        ({"MCP_TRANSPORT": "http"}, Door("127.0.0.1", 8000, "mcp-client")),
        (
            {"MCP_TRANSPORT": "streamable-http", "FASTMCP_HOST": "::1", "FASTMCP_PORT": "9"},
            Door("::1", 9, "mcp-client"),
        ),
        (
            {"MCP_TRANSPORT": "http", "MCP_AUTH_PROVIDER": "simple_token", "MCP_AUTH_TOKEN": "s"},
            Door("127.0.0.1", 8000, "mcp-client", "s"),
        ),
        ({"MCP_TRANSPORT": "http", "MCP_AUTH_TOKEN": "s"}, Door("127.0.0.1", 8000, "mcp-client")),
    ],
)
def test_a_door_is_read_from_the_environment(environment: dict[str, str], door: Door | None) -> None:
    assert door_of(environment) == door
    assert "token" not in repr(door)


@pytest.mark.parametrize(
    ("environment", "sentence"),
    [
        ({"MCP_TRANSPORT": "sse"}, "MCP_TRANSPORT=sse is no longer spoken by clients. Set MCP_TRANSPORT=http."),
        ({"MCP_TRANSPORT": "carrier pigeon"}, "MCP_TRANSPORT must be one of"),
        ({"MCP_AUTH_PROVIDER": "simple_token"}, "MCP_AUTH_PROVIDER=simple_token needs a token. Set MCP_AUTH_TOKEN."),
        ({"MCP_TRANSPORT": "http", "FASTMCP_PORT": "0"}, "FASTMCP_PORT must be between 1 and 65535, not 0."),
        ({"FASTMCP_PORT": "many"}, "FASTMCP_PORT must be a whole number, not 'many'."),
    ],
)
def test_a_door_that_cannot_be_is_one_sentence(environment: dict[str, str], sentence: str) -> None:
    with pytest.raises(BadSetting) as caught:
        door_of(environment)
    assert str(caught.value).startswith(sentence)


@contextmanager
def served(home: Path, **more: str) -> Iterator[str]:
    """The memory profile on HTTP, as a client of the other server starts it."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {
        "PATH": "/usr/bin:/bin", "HOME": str(home), "COMMONPLACE_HOME": str(home), "COMMONPLACE_MODEL": "static",
        "MCP_TRANSPORT": "http", "FASTMCP_PORT": str(port), **more,
    }  # fmt: skip
    command = forked("mcp", "--profile", "memory")
    server = subprocess.Popen(command, env=environment)
    try:
        deadline = time.monotonic() + 30
        while True:
            assert server.poll() is None
            assert time.monotonic() < deadline
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)  # the bound of a wait for another process, not a guess at its speed
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(timeout=20)


def test_the_profile_is_served_over_http_behind_one_token(tmp_path: Path) -> None:
    token = {"MCP_AUTH_PROVIDER": "simple_token", "MCP_AUTH_TOKEN": "s3cret"}
    with served(tmp_path, **token) as address:
        assert httpx.get(f"{address}/health").json() == {"status": "ok"}
        assert httpx.post(f"{address}/mcp", json={}).status_code == 401
        wrong = {"authorization": "Bearer s3cre"}
        assert httpx.post(f"{address}/mcp", json={}, headers=wrong).status_code == 401
        call = {
            "jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {
                "name": "store_context", "arguments": {"thread_id": "t", "source": "user", "text": "tea"},
                "_meta": {
                    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                    "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
                    "io.modelcontextprotocol/clientCapabilities": {},
                },
            },
        }  # fmt: skip
        headers = {
            "authorization": "Bearer s3cret", "accept": "application/json, text/event-stream",
            "mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": "store_context",
        }  # fmt: skip
        reply = httpx.post(f"{address}/mcp", json=call, headers=headers)
        assert reply.status_code == 200, reply.text
        assert '"Context stored' in reply.text.replace("\\", "")


def test_without_a_token_only_this_machine_is_served(tmp_path: Path) -> None:
    async def names(address: str) -> set[str]:
        async with Client(f"{address}/mcp") as client:
            return {tool.name for tool in (await client.list_tools()).tools}

    with served(tmp_path) as address:
        assert "store_context" in anyio.run(names, address)
    environment = {
        "PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "COMMONPLACE_HOME": str(tmp_path), "MCP_TRANSPORT": "http",
        "FASTMCP_HOST": "0.0.0.0",
    }  # fmt: skip
    command = forked("mcp", "--profile", "memory")
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 78
    assert "only this machine is served" in done.stderr


def test_the_body_of_a_request_may_hold_what_the_images_of_an_entry_may() -> None:
    mib = 1 << 20
    assert memory_body_bytes(Settings()) >= 100 * mib * 4 / 3 + 10 * mib
    assert memory_body_bytes(Settings(memory_max_images_mb=1000)) >= 1000 * mib * 4 / 3
    assert memory_body_bytes(Settings(memory_max_images_mb=1, memory_max_text_mb=1)) < 12 * mib


def test_a_request_is_as_large_as_the_settings_of_images_allow(tmp_path: Path) -> None:
    settings = library_settings(tmp_path, memory_max_images_mb=1, memory_max_text_mb=1, body_bytes=1 << 25)
    body = b" " * (memory_body_bytes(settings) + 1)
    headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    with served_app(make_app(settings, OpenGate())) as port:
        found = {
            place: httpx.post(f"http://127.0.0.1:{port}/mcp{place}", content=body, headers=headers).status_code
            for place in ("/memory", "")
        }
    assert found == {"/memory": 413, "": 400}  # blanks are no message, but no more than others may send


def test_statistics_do_not_wait_for_a_provider_that_is_slow(
    open_tools: Callable[..., Tools], site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("commonplace.kinds.memories.tools.statistics.ASKED_S", 0.1)
    site.always = silent
    found = open_tools(model="ollama:static", embedder_url=site.url)("get_statistics")["semantic_search"]
    assert (found["enabled"], found["available"], found["dimensions"]) == (True, False, None)
    assert "did not answer within" in found["message"]


def test_a_provider_that_is_none_of_ours_leaves_vectors_out_whatever_else_is_set() -> None:
    assert aliases({"ENABLE_EMBEDDING_GENERATION": "true", "EMBEDDING_PROVIDER": "voyage"})["memory_embedding"] is False
