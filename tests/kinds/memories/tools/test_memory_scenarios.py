"""What clients of mcp-context-server rely on: their calls, and what they read in the answers.

`contracts/memory.md` says what each tool does; here are the ways through several of them that such clients take.
"""

from __future__ import annotations

import base64
import json
import os
import zipfile
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from memory_calls import Tools, entry, refused, stored

from kit.answers import text_of
from kit.forked import forked_server

ARCHIVE = Path(__file__).parents[1] / "context-server-2.2.2.zip"
RANKED = ("semantic_search_context", "fts_search_context", "hybrid_search_context")
THEIRS = {
    "STORAGE_BACKEND": "sqlite", "MCP_TEST_MODE": "1", "ENABLE_SEMANTIC_SEARCH": "true", "ENABLE_FTS": "true",
    "ENABLE_HYBRID_SEARCH": "true", "ENABLE_RERANKING": "false", "SUMMARY_OPENAI_REASONING_EFFORT": "low",
    "SUMMARY_ANTHROPIC_EFFORT": "low", "ENABLE_EMBEDDING_COMPRESSION": "true", "COMPRESSION_BITS": "4",
    "POOL_IDLE_TIMEOUT_S": "1", "DISABLED_TOOLS": "",
}  # fmt: skip


def ids(answer: dict[str, Any]) -> list[int]:
    return [one["id"] for one in answer["results"]]


# arguments


@pytest.mark.parametrize("limit", ["2", '"2"', " 2 ", "2.0", 2.0])
def test_a_number_may_come_as_a_json_string(tools: Tools, limit: object) -> None:
    numbers = [stored(tools, text=text) for text in ("one", "two", "three")]
    assert ids(tools("search_context", limit=limit, offset="1")) == numbers[1::-1]


@pytest.mark.parametrize("limit", ["", "two", "2.5", "true", "null", "[2]", "0x2", "NaN", "1e999", "9" * 5000])
def test_a_string_that_holds_no_number_is_none(tools: Tools, limit: str) -> None:
    assert refused(tools("search_context", limit=limit)).endswith("limit must be a whole number")


def test_true_and_false_may_come_as_json_strings(tools: Tools) -> None:
    number = stored(tools, images=[{"data": base64.b64encode(b"pixel").decode()}])
    (shown,) = tools("get_context_by_ids", context_ids=[number], include_images="false")["result"]
    assert "images" not in shown
    assert tools("delete_context", context_ids=[number], dry_run="true")["deleted_count"] == 0
    assert entry(tools, number).number == number
    for wrong in ("yes", "1", 1, "", "null"):
        assert refused(tools("search_context", explain_query=wrong)).endswith("explain_query must be true or false")


# statistics


def test_a_store_that_works_is_healthy(tools: Tools) -> None:
    assert "not found" in refused(tools("update_context", context_id=999_999_999, text="x"))
    metrics = tools("get_statistics")["connection_metrics"]
    assert (metrics["circuit_state"], metrics["failed_queries"]) == ("healthy", 0)


def test_writing_is_counted_among_the_queries(tools: Tools) -> None:
    def queries() -> int:
        return int(tools("get_statistics")["connection_metrics"]["total_queries"])

    number = stored(tools)
    queries()
    before = queries()
    idle = queries() - before
    before = queries()
    tools("delete_context", context_ids=[number])
    assert queries() - before > idle


def test_equal_counts_stand_in_the_order_of_code_points(tools: Tools) -> None:
    tags = ["coll-b", "colla", "coll-a", "collb"]
    for thread in ("t-b", "ta", "t-a"):
        stored(tools, thread_id=thread, text="tied", tags=tags)
    answer = tools("get_statistics")
    assert [one["tag"] for one in answer["top_tags"]] == ["coll-a", "coll-b", "colla", "collb"]
    assert [one["thread_id"] for one in answer["most_active_threads"]] == ["t-a", "t-b", "ta"]


def test_vectors_go_with_their_entries(tools: Tools) -> None:
    def counted() -> tuple[int, int]:
        semantic = tools("get_statistics")["semantic_search"]
        return semantic["context_count"], semantic["embedding_count"]

    stored(tools, thread_id="kept", text="This one stays")
    assert counted() == (1, 1)
    sentences = " ".join(f"Sentence number {number} of a text of many chunks." for number in range(150))
    long = stored(tools, thread_id="gone", text=sentences)
    entries, vectors = counted()
    assert (entries, vectors > 3) == (2, True)
    tools("delete_context", context_ids=[long])
    assert counted() == (1, 1)
    stored(tools, thread_id="gone", text="one of two")
    stored(tools, thread_id="gone", text="two of two")
    tools("delete_context", thread_id="gone")
    assert counted() == (1, 1)


# what a metadata filter finds


@pytest.mark.parametrize(
    ("values", "condition", "found"),
    [
        ([0.3, 0.1, 0.5, 7], ("eq", 0.3), [0]),
        ([0.3, 0.1, 0.5, 7], ("gt", 0.3), [2, 3]),
        ([0.3, 0.1, 0.5, 7], ("lt", 0.5), [0, 1]),
        ([2**53 + 1, 2**53 - 1], ("eq", float(2**53)), []),
        ([2**53 + 1, 2**53 - 1], ("gt", float(2**53)), [0]),
        ([2**53 + 1, 2**53 - 1], ("lte", float(2**53)), [1]),
        ([2**53 + 1, 2**53 - 1], ("eq", 2**53 + 1), [0]),
        ([float(2**55), 2**55, 1.7199393681234568e18], ("eq", float(2**55)), [0, 1]),
        ([float(2**55), 2**55, 1.7199393681234568e18], ("gt", float(2**55)), [2]),
        ([float(2**55), 2**55, 0.3, 7, 42, "abc"], ("in", [float(2**55), 0.3, 7]), [0, 1, 2, 3]),
        ([float(2**55), 2**55, 0.3, 7, 42, "abc"], ("not_in", [float(2**55), 0.3, 7]), [4, 5]),
        ([2**64 + 1, 5], ("gt", 5.0), [0]),
        ([[1, 2**55, 3], [2**55 + 8]], ("array_contains", float(2**55)), [0]),
        (["discount 50% off", "discount 5000 off"], ("contains", "50%"), [0]),
        (["file_name.txt", "fileXname.txt"], ("contains", "file_name"), [0]),
        (["a*b token", "aXXb token"], ("starts_with", "a*b"), [0]),
    ],
)
def test_values_compare_as_what_they_are(
    tools: Tools, values: list[Any], condition: tuple[str, Any], found: list[int]
) -> None:
    numbers = [stored(tools, text=f"value {place}", metadata={"k": value}) for place, value in enumerate(values)]
    operator, value = condition
    answer = tools("search_context", metadata_filters=[{"key": "k", "operator": operator, "value": value}])
    assert ids(answer)[::-1] == [numbers[place] for place in found]


def test_a_name_may_be_a_word_of_sql_or_json(tools: Tools) -> None:
    first = stored(tools, text="the word one", metadata={"a": {"null": "x"}, "metadata_version": 1, "select": [1]})
    stored(tools, text="the word two", metadata={"a": {"other": "x"}, "metadata_version": 2, "select": [2]})
    conditions = [
        {"key": "a.null", "operator": "exists", "value": None},
        {"key": "a.null", "operator": "eq", "value": "x"},
        {"key": "metadata_version", "operator": "lt", "value": 2},
        {"key": "select", "operator": "array_contains", "value": 1},
    ]
    for name in ("search_context", *RANKED):
        words = {} if name == "search_context" else {"query": "word"}
        for condition in conditions:
            assert ids(tools(name, **words, metadata_filters=[condition])) == [first]


# searches


def test_equal_entries_are_paged_one_at_a_time_without_loss(tools: Tools) -> None:
    numbers = [stored(tools, source=source, text="zebra quokka narwhal") for source in ("agent", "user", "agent")]
    assert len(set(numbers)) == 3
    for _ in range(2):
        for name in RANKED:
            pages = [ids(tools(name, query="zebra quokka", limit=1, offset=offset)) for offset in range(4)]
            assert pages == [[number] for number in numbers[::-1]] + [[]]
        tools("update_context", context_id=numbers[0], metadata_patch={"touched": True})


def test_odd_queries_find_what_their_words_say(tools: Tools) -> None:
    near = stored(tools, text="alpha zulu beta")
    far = stored(tools, text="alpha somewhere else entirely zulu")
    error = stored(tools, text="Structured error handling for the pipeline")
    assert sorted(ids(tools("fts_search_context", query='alpha"zulu'))) == [near, far]
    assert ids(tools("fts_search_context", query="alpha-zulu")) == [near]
    for query in ("error AND (handling", "(" * 100 + "error" + ")" * 100, "(" * 1000 + "error", 'error AND "handling'):
        assert ids(tools("fts_search_context", query=query, mode="boolean")) == [error]
    answer = tools("fts_search_context", query="AND OR NOT", metadata_filters=[{"key": "k", "operator": "like"}])
    assert answer["error"] == "Metadata filter validation failed"


def test_marks_of_the_text_itself_stay_text(tools: Tools) -> None:
    text = "This literally holds <mark>quarkbeacon</mark> around the word quarkbeacon."
    number = stored(tools, text=text)
    for name in RANKED:
        assert tools(name, query="quarkbeacon")["results"][0]["text_content"] == text
    (found,) = tools("fts_search_context", query="quarkbeacon", highlight=True)["results"]
    assert found["id"] == number
    assert found["highlighted"].endswith("around the word <mark>quarkbeacon</mark>.")


def test_a_long_text_is_found_once_by_any_of_its_parts(tools: Tools) -> None:
    parts = ("Neural networks learn from data. ", "An index speeds a database up. ", "A browser draws a page. ")
    number = stored(tools, text="\n\n".join(part * 60 for part in parts))
    stored(tools, text="Sourdough rises overnight.")
    for query in ("machine learning", "database index", "web page"):
        for name in ("semantic_search_context", "hybrid_search_context"):
            assert ids(tools(name, query=query)).count(number) == 1


# images


def test_the_metadata_of_an_image_comes_back_as_it_was(tools: Tools) -> None:
    data = base64.b64encode(b"pixel").decode()
    given: list[dict[str, Any]] = [{"metadata": '{"iso": 100}'}, {"metadata": ""}, {"metadata": {"iso": 1}}, {}]
    number = stored(tools, images=[{"data": data, **one} for one in given])
    (shown,) = tools("get_context_by_ids", context_ids=[number])["result"]
    assert shown["images"] == [{"data": data, "mime_type": "image/png", **one} for one in given]


# a process configured for the other server


async def walk(client: Client) -> None:
    async def call(name: str, **arguments: Any) -> dict[str, Any]:
        answer = await client.call_tool(name, arguments)
        assert not answer.is_error, answer.content
        assert answer.structured_content is not None
        return answer.structured_content

    imported = (await call("get_statistics"))["total_entries"]
    assert imported > 0
    data = base64.b64encode(os.urandom(9 << 20)).decode()
    large = {"data": data, "mime_type": "application/octet-stream"}
    number = (await call("store_context", thread_id="new", source="agent", text="A large one", images=[large]))[
        "context_id"
    ]
    answer = await client.call_tool("get_context_by_ids", {"context_ids": f"[{number}]"})
    assert answer.structured_content is not None
    assert answer.structured_content["result"][0]["images"][0]["data"] == data
    assert len(text_of(answer)) < 2000
    found = await call("hybrid_search_context", query="large", limit=1)
    assert (found["search_modes_used"], ids(found)) == (["fts", "semantic"], [number])
    assert (await call("delete_context", thread_id="new"))["deleted_count"] == 1
    assert (await call("get_statistics"))["total_entries"] == imported


async def without_words(client: Client) -> None:
    names = {tool.name for tool in (await client.list_tools()).tools}
    assert {"semantic_search_context", "hybrid_search_context"} <= names
    assert "fts_search_context" not in names
    await client.call_tool("store_context", {"thread_id": "t", "source": "user", "text": "Oolong tea"})
    found = await client.call_tool("hybrid_search_context", {"query": "tea"})
    assert json.loads(text_of(found))["search_modes_used"] == ["semantic"]


@pytest.mark.parametrize("era", ["legacy", "2026-07-28"])
def test_a_configuration_of_theirs_works_with_its_command_changed(tmp_path: Path, era: str) -> None:
    with zipfile.ZipFile(ARCHIVE) as archive:
        archive.extractall(tmp_path)
    environment = {**THEIRS, "DB_PATH": str(tmp_path / "context.db"), "COMMONPLACE_MODEL": "static"}

    async def run() -> None:
        with anyio.fail_after(60):
            async with Client(stdio_client(server(environment)), mode=era) as client:
                await walk(client)

    anyio.run(run)


def test_what_they_switch_off_is_not_there(tmp_path: Path) -> None:
    environment = {**THEIRS, "DB_PATH": str(tmp_path / "x.db"), "ENABLE_FTS": "false", "COMMONPLACE_MODEL": "static"}

    async def run() -> None:
        with anyio.fail_after(60):
            async with Client(stdio_client(server(environment))) as client:
                await without_words(client)

    anyio.run(run)


def server(environment: dict[str, str]) -> StdioServerParameters:
    ours = {name: value for name, value in os.environ.items() if not name.startswith("COMMONPLACE_")}
    return StdioServerParameters(**forked_server("mcp", "--profile", "memory"), env={**ours, **environment})
