"""A library whose models are served by others: it always answers, and says what it went without."""

from __future__ import annotations

import io
import json
import logging
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from commonplace.errors import CommonplaceError, Unavailable
from commonplace.kinds.tables.tools.types import run_tool
from commonplace.library import Library
from commonplace.model import JSON, Draft, Filter, Page
from commonplace.models.providers import provider_line
from commonplace.profiles.registry import profile
from commonplace.search.question import HybridAnswer, Question, Search
from commonplace.settings import Settings
from commonplace.store.listing import Listing
from commonplace.store.stored_settings import StoredSettings
from commonplace.tools.profile import Registry
from commonplace.tools.tool import Call
from kit.forked import forked
from wire_server import Make, Site, cut_off, reset, silent, status, truncated

KEY = "sk-planted-abcdefghijklmnop"
BODIES = {
    "oolong": "Oolong wants water just off the boil.",
    "bread": "Knead the dough and bake it.",
    "train": "The night train to Vienna leaves at nine.",
}
TROUBLE = {
    "slow": silent,
    "reset": reset,
    "cut off": cut_off,
    "truncated": truncated,
    "500": status(500),
    "429": status(429, retry_after="600"),
    "not found": status(404, {"error": "model not found"}),
}


@contextmanager
def opened(settings: Settings) -> Iterator[Library]:
    with Library.open(settings.home, settings=settings) as library:
        if not library.store.drawer(Listing).counts():
            for key, body in BODIES.items():
                library.put(Draft("document", key, parent="n", title=key.title(), body=body))
        yield library


def stage(page: Page | HybridAnswer, name: str) -> tuple[str, str]:
    found = next(stage for stage in page.stages if stage.name == name)
    return found.status, found.reason


def question(text: str) -> Question:
    searches = (Search("lex", text), Search("vec", text))
    return Question(searches, Filter(kinds=("document",)), plain=True, rerank=True)


def test_a_provider_s_vectors_are_searched_like_any_other(make: Make, site: Site) -> None:
    with opened(make(model="ollama:static")) as library:
        assert library.embed() == 3
        assert library.embedding.coverage().model == "ollama:static"
        page = library.search("boiling tea water", mode="semantic")
        assert page.hits[0].uri == "docs://n/oolong"
        library.put(Draft("document", "cake", parent="n", body="A sponge wants six eggs."))
        assert library.search("sponge with eggs", mode="semantic").hits[0].uri == "docs://n/cake"
        assert library.doctor() == []
    assert site.texts() == 3 + 1 + 1 + 1


@pytest.mark.parametrize("trouble", TROUBLE)
def test_a_search_answers_by_words_and_says_why_not_by_meaning(
    make: Make, site: Site, trouble: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("commonplace.search.pipeline.EMBED_S", 0.2)
    settings = make(model="ollama:static", embedder_timeout_ms=1000, embed_query_ms=200)
    with opened(settings) as library:
        library.embed()
        site.always = TROUBLE[trouble]
        page = library.search("oolong")
        assert [hit.uri for hit in page.hits] == ["docs://n/oolong"]
        skipped, reason = stage(page, "vector")
        assert skipped == "skipped"
        assert reason.startswith(f"ollama at {site.url.removeprefix('http://')} ")
        answer = library.hybrid.find(question("oolong"))
        assert len(answer.hits) == 1
        assert stage(answer, "vector")[0] in ("skipped", "failed")
        assert answer.notes[0].startswith("keyword search only.")
        assert not answer.notes[0].endswith("..")
        with pytest.raises(Unavailable, match="ollama at"):
            library.search("oolong", mode="semantic")
        assert library.status().coverage.embedded == 3


@pytest.mark.parametrize("trouble", TROUBLE)
def test_nothing_is_stored_half_embedded(make: Make, site: Site, trouble: str) -> None:
    settings = make(model="ollama:static", embedder_timeout_ms=100, embedder_batch=8)
    with opened(settings) as library:
        library.put_many(Draft("note", f"n{n}", body=f"note number {n}") for n in range(61))
        library.embedding.embedder().warm()
        site.plan.extend([None, None])  # type: ignore[list-item]  # two requests are answered, of a step that has four
        site.always = TROUBLE[trouble]
        with pytest.raises(CommonplaceError):
            library.embed()
        coverage = library.embedding.coverage()
        assert (coverage.embedded, coverage.total) == (0, 64)
        site.always = None
        provider_line.line_to.cache_clear()  # as if the rest that a failed provider is given were over
    with opened(settings) as library:
        assert library.embed() == 64
        assert library.doctor() == []


def test_wrong_dimensions_are_not_stored(make: Make, site: Site) -> None:
    with opened(make(model="ollama:static")) as library:
        library.embed()
        library.put(Draft("document", "cake", parent="n", body="A sponge wants six eggs."))
        site.dims = 100
        with pytest.raises(Unavailable, match="100 dimensions for static, not 256, so nothing was stored"):
            library.embed()
        assert library.embedding.coverage().embedded == 3
        assert library.search("sponge").hits[0].uri == "docs://n/cake"
        site.dims = 256
        assert library.embed() == 1


def test_other_ways_to_ask_come_from_the_generator_and_are_remembered(make: Make, site: Site) -> None:
    site.says = "Sure!\n- lex: boil steep\n* vec: how warm must the water be\nhyde: It wants ninety degrees.\nlex: more"
    with opened(make(generator="ollama:static", model="static")) as library:
        library.embed()
        answer = library.hybrid.find(question("boil it hot"))
        assert [str(made.search) for made in answer.lists] == [
            "lex: boil it hot", "vec: boil it hot", "lex: boil steep", "vec: how warm must the water be",
            "hyde: It wants ninety degrees.",
        ]  # fmt: skip
        assert stage(answer, "expand") == ("ran", "")
        library.hybrid.find(question("boil it hot"))
        assert site.paths() == ["/api/chat"]
        library.hybrid.find(question("knead it hot"))
        assert site.paths() == ["/api/chat"] * 2


def test_a_reranker_moves_hits_by_its_share(make: Make, site: Site) -> None:
    with opened(make(reranker="jina:static", model="static")) as library:
        answer = library.hybrid.find(question("the night train"))
        assert stage(answer, "rerank") == ("ran", "")
        assert answer.hits[0].reranked == 1.0
        assert site.asked[0].body["query"] == "the night train"


@pytest.mark.parametrize("trouble", TROUBLE)
def test_stages_that_fail_are_named_with_their_reason(make: Make, site: Site, trouble: str) -> None:
    site.always = TROUBLE[trouble]
    settings = make(generator="ollama:static", reranker="tei:static", model="static", expand_ms=300, rerank_ms=300)
    with opened(settings) as library:
        answer = library.hybrid.find(question("oolong and bread"))
        assert len(answer.hits) == 2
        for name in ("expand", "rerank"):
            result, reason = stage(answer, name)
            assert result in ("skipped", "failed")
            assert "it took longer than" in reason or site.url.removeprefix("http://") in reason


def test_a_wrong_setting_costs_its_own_stage_alone(make: Make, tmp_path: Path) -> None:
    (tmp_path / "keys.toml").write_text(f'"x" = "{KEY}"', encoding="utf-8")
    (tmp_path / "keys.toml").chmod(0o644)
    settings = make(generator="ollama:static", reranker="tei:static", model="ollama:static")
    with opened(settings) as library:
        answer = library.hybrid.find(question("oolong and bread"))
        assert len(answer.hits) == 2
        assert "others can read it" in str(stage(answer, "expand")[1])
        assert "others can read it" in str(stage(answer, "rerank")[1])
        assert library.search("oolong").hits
        assert library.status().coverage.embedded == 0


# the key


def _everything_said(library: Library, log: io.StringIO, errors: list[str]) -> str:
    from commonplace.profiles.registry import profile
    from commonplace.tools.tool import Call

    memory = {tool.name: tool for tool in profile("memory").tools}
    statistics = memory["get_statistics"].call(Call(library), {})
    return "\n".join(
        [
            log.getvalue(),
            *errors,
            json.dumps(statistics, default=str),
            str(library.status()),
            "\n".join(library.doctor()),
            "\n".join(library.export()),
            repr(library.settings),
            repr(library.embedding.embedder()),
            repr(library.embedding.embedder()._line.endpoint),  # type: ignore[attr-defined]
        ]
    )


@pytest.fixture
def heard() -> Iterator[io.StringIO]:
    """Everything that is logged, at every level."""
    text = io.StringIO()
    handler = logging.StreamHandler(text)
    root, level = logging.getLogger(), logging.getLogger().level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield text
    root.removeHandler(handler)
    root.setLevel(level)


def _echo(code: int) -> Callable[..., None]:
    """A provider that repeats the key in its error, as some do."""
    return status(code, {"error": {"message": f"Incorrect API key provided: {KEY}. Also {KEY}"}})


def test_a_key_appears_nowhere(make: Make, site: Site, monkeypatch: pytest.MonkeyPatch, heard: io.StringIO) -> None:
    for role in ("EMBEDDER", "GENERATOR", "RERANKER"):
        monkeypatch.setenv(f"COMMONPLACE_{role}_KEY", KEY)
    settings = make(
        model="openai:static", embedder_url=f"{site.url}/v1", generator="openai:static", generator_url=f"{site.url}/v1",
        reranker="jina:static",
    )  # fmt: skip
    errors: list[str] = []
    with opened(settings) as library:
        library.embed()
        assert f"Bearer {KEY}" == site.asked[0].headers["authorization"]
        for code in (400, 401, 403, 404, 422, 500):
            site.always = _echo(code)
            answer = library.hybrid.find(question("oolong and bread"))
            errors += [str(stage.reason) for stage in answer.stages] + list(answer.notes)
            errors += [str(stage.reason) for stage in library.search("oolong").stages]
            with pytest.raises(CommonplaceError) as caught:
                library.search("oolong", mode="semantic")
            errors += [str(caught.value), repr(caught.value), str(caught.value.details)]
        said = _everything_said(library, heard, errors)
    assert "oolong" in said
    assert "did not accept" in said
    assert KEY not in said
    assert KEY[:12] not in said
    for path in settings.home.rglob("*"):
        if path.is_file():
            assert KEY.encode() not in path.read_bytes(), path


def test_the_doctor_says_which_helpers_cannot_be_used(make: Make) -> None:
    settings = make(reranker="nobody:m", generator="openai", memory_summarizer="jina:m")
    with Library.open(settings.home, settings=settings) as library:
        reranker, generator, summarizer = library.doctor()
    assert reranker.startswith("reranker must be one of cohere:MODEL")
    assert generator.startswith("generator must be one of ollama:MODEL")
    assert summarizer.startswith("memory_summarizer must be")


def test_no_command_prints_a_key(make: Make, site: Site, tmp_path: Path) -> None:
    settings = make()
    environment = {
        **os.environ,
        "COMMONPLACE_HOME": str(settings.home),
        "COMMONPLACE_MODELS": str(settings.models),
        "COMMONPLACE_MODEL": "openai:static",
        "COMMONPLACE_EMBEDDER_URL": f"{site.url}/v1",
        "COMMONPLACE_EMBEDDER_KEY": KEY,
        "OPENAI_API_KEY": KEY,
        "COMMONPLACE_GENERATOR": "openai:static",
    }
    (tmp_path / "tea.md").write_text("# Tea\n\nOolong wants hot water.", encoding="utf-8")
    printed = ""
    for command in (
        ["add", str(tmp_path), "--name", "n"], ["embed"], ["models", "list"], ["status"], ["doctor"],
        ["query", "oolong"], ["export", "everything"],
    ):  # fmt: skip
        done = subprocess.run(forked(*command), env=environment, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        printed += done.stdout + done.stderr
    assert "openai:static" in printed
    assert "Oolong" in printed
    assert KEY not in printed
    assert any(asked.headers.get("authorization") == f"Bearer {KEY}" for asked in site.asked)


def test_the_first_contact_is_no_longer_waited_for_than_any_other(make: Make, site: Site, tmp_path: Path) -> None:
    with Library.open(tmp_path, settings=make(model="ollama:static", embedder_attempts=3)) as library:
        library.put(Draft("note", "oolong", body=BODIES["oolong"]))
        library.store.drawer(StoredSettings).set("model", "ollama:static")
        site.always = silent
        started = time.monotonic()
        page = library.search("oolong")
        assert [hit.uri for hit in page.hits] == ["notes://oolong"]
        assert time.monotonic() - started < 10  # three attempts of the provider's own time would be ninety


def called(library: Library, surface: str, tool: str, **arguments: JSON) -> Any:
    found = Registry(profile(surface), writable=True).find(tool)
    assert found is not None
    return found.call(Call(library), arguments)


def test_documents_wait_no_longer_for_a_first_contact(make: Make, site: Site, tmp_path: Path) -> None:
    with Library.open(tmp_path, settings=make(model="ollama:static", embedder_attempts=3)) as library:
        (tmp_path / "files").mkdir()
        (tmp_path / "files" / "tea.md").write_text(BODIES["oolong"], encoding="utf-8")
        library.folders.update(library.folders.add(tmp_path / "files", "shelf").name)
        library.store.drawer(StoredSettings).set("model", "ollama:static")
        site.always = silent
        started = time.monotonic()
        answer = called(library, "documents", "documents_search", query="oolong")
        assert [found["documentId"] for found in answer.structured["results"]] == ["tea.md"]
        assert time.monotonic() - started < 10


@pytest.mark.parametrize("trouble", ["500", "slow"])
def test_a_table_is_searched_by_words_while_its_model_is_away(make: Make, site: Site, trouble: str) -> None:
    with Library.open(make().home, settings=make(model="ollama:static", embedder_attempts=1)) as library:
        called(library, "tables", "project_create", name="shop")
        called(library, "tables", "table_create", project_id="shop", name="stock", data={"a": BODIES["oolong"]})
        called(library, "tables", "tool_create", table_id="stock", type="search", name="find")
        library.embed()
        tool = library.tables.tool("find")
        assert run_tool(library, tool, {"query": "oolong", "top_k": 3})["results"]
        site.always = TROUBLE[trouble]
        (hit,) = run_tool(library, tool, {"query": "boil water", "top_k": 3})["results"]
        assert BODIES["oolong"] in hit["chunk"]["chunk_text"]


def test_a_model_that_could_not_be_reached_is_not_chosen_for_good(site: Site, make: Make) -> None:
    site.always = status(404, {"error": "model not found"})
    with opened(make(model="ollama:typo", embedder_url=site.url)) as library:
        with pytest.raises(Unavailable):
            library.embed()
        assert library.embedding.chosen is None
    with opened(make(model="static")) as library:
        assert library.embed() == len(BODIES)
        assert library.embedding.chosen == "static"
