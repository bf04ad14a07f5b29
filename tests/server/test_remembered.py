"""What is remembered is found by meaning at once: in an empty home, without a command, without a pulled model."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from commonplace.library import Library
from commonplace.model import Draft
from commonplace.settings import Settings
from kit.forked import forked_server

FACTS = {
    "Anna is allergic to peanuts.": "which food could make a guest ill",
    "The boiler in the cellar was repaired on Tuesday.": "when was the heating fixed",
    "Our release train leaves every second Thursday.": "how often do we ship new versions",
}


def environment(tmp_path: Path, **more: str) -> dict[str, str]:
    """An empty home and no model but the built-in one."""
    own = {"COMMONPLACE_HOME": str(tmp_path / "home"), "COMMONPLACE_MODELS": str(tmp_path / "no-models")}
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("COMMONPLACE_")}
    return {**inherited, **own, "OPENBLAS_NUM_THREADS": "1", **more}


@asynccontextmanager
async def agent(variables: dict[str, str], *options: str) -> AsyncIterator[Client]:
    server = StdioServerParameters(**forked_server("mcp", "--allow-writes", *options), env=variables)
    with anyio.fail_after(60):
        async with Client(stdio_client(server)) as client:
            yield client


async def ask(client: Client, tool: str, **arguments: Any) -> Any:
    answer = await client.call_tool(tool, arguments)
    assert not answer.is_error, answer.content
    return answer.structured_content


def pending(found: dict[str, Any]) -> list[str]:
    """Return what an answer says of passages that have no vector yet."""
    return [note for note in found["notes"] if "found by their words only" in note]


def settings(tmp_path: Path, **more: Any) -> Settings:
    return Settings(home=tmp_path / "home", models=tmp_path / "no-models", **more)


@pytest.mark.parametrize("kind", ["note", "memory"])
def test_three_facts_are_each_the_first_hit_in_other_words(tmp_path: Path, kind: str) -> None:
    async def main() -> None:
        async with agent(environment(tmp_path)) as client:
            for fact in FACTS:
                await ask(client, "remember", text=fact, kind=kind)
            for fact, question in FACTS.items():
                found = await ask(client, "search", query=question, detail="passages")
                assert found["results"][0]["passage"] == fact
                assert pending(found) == []

    anyio.run(main)


def test_what_the_memory_tools_store_is_found_by_meaning_by_the_others(tmp_path: Path) -> None:
    async def main() -> None:
        async with agent(environment(tmp_path), "--profile", "all") as client:
            for fact in FACTS:
                await ask(client, "store_context", thread_id="t", source="user", text=fact)
            for fact, question in FACTS.items():
                found = await ask(client, "search", query=question, detail="passages")
                assert found["results"][0]["passage"] == fact

    anyio.run(main)


@pytest.mark.parametrize("variable", ["COMMONPLACE_EMBED_ON_WRITE", "COMMONPLACE_MEMORY_EMBEDDING"])
def test_vectors_with_a_write_can_be_switched_off(tmp_path: Path, variable: str) -> None:
    async def main() -> None:
        off = environment(tmp_path, COMMONPLACE_BACKGROUND="false", **{variable: "0"})
        async with agent(off) as client:
            await ask(client, "remember", text="Anna is allergic to peanuts.")

    anyio.run(main)
    with Library.open(settings=settings(tmp_path)) as library:
        assert library.embedding.chosen is None


def test_what_a_write_leaves_is_made_in_the_background_and_until_then_the_answer_says_how_much(tmp_path: Path) -> None:
    with Library.open(settings=settings(tmp_path)) as library:
        library.put(Draft("note", "first", body="The first note."))
        library.embed()
        library.put_many(Draft("note", str(n), body=f"Note {n} about the garden.") for n in range(300))

    async def main() -> None:
        async with agent(environment(tmp_path, COMMONPLACE_BACKGROUND="false")) as client:
            found = await ask(client, "search", query="what grows behind the house")
            assert pending(found) == [
                "300 of 301 passages are found by their words only; `commonplace embed` has them found by meaning, too."
            ]
            assert (await ask(client, "status"))["notes"] == pending(found)
            assert (await ask(client, "search", query="garden", mode="lexical"))["notes"] == []
        async with agent(environment(tmp_path)) as client:
            while pending(await ask(client, "search", query="what grows behind the house")):
                await anyio.sleep(0.05)  # between two looks, within the minute the agent has

    anyio.run(main)


def test_an_embedding_that_fails_fails_no_write(tmp_path: Path) -> None:
    broken = tmp_path / "model"
    broken.mkdir()
    (broken / "model.onnx").write_bytes(b"no model")
    (broken / "tokenizer.json").write_bytes(b"{}")

    async def main() -> None:
        async with agent(environment(tmp_path, COMMONPLACE_MODEL=str(broken))) as client:
            made = await ask(client, "remember", text="Anna is allergic to peanuts.")
            found = await ask(client, "search", query="peanuts", mode="lexical")
            assert [hit["uri"] for hit in found["results"]] == [made["uri"]]

    anyio.run(main)
