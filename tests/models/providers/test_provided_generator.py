"""Generators and rerankers over real HTTP."""

from __future__ import annotations

import pytest

from commonplace.errors import Unavailable
from commonplace.models import open_generator, open_reranker
from wire_server import Make, Site, reset, says, silent, status

GENERATORS = ["ollama", "openai", "azure", "anthropic"]
RERANKERS = {"cohere": "/v2/rerank", "jina": "/v1/rerank", "tei": "/rerank"}


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "azure-key")
    monkeypatch.setenv("COMMONPLACE_GENERATOR_KEY", "given-key")


@pytest.mark.parametrize("provider", GENERATORS)
def test_a_prompt_is_answered_without_the_thinking(make: Make, site: Site, provider: str) -> None:
    site.says = "<think>What may they want?\n</think>\n\nWater just off the boil. "
    generator = open_generator(make(generator=f"{provider}:static"))
    assert generator is not None
    assert generator.name == f"{provider}:static"
    assert site.asked == []
    assert generator.generate("How hot?", system="Be brief.", max_tokens=50) == "Water just off the boil."
    (asked,) = site.asked
    assert "Be brief." in str(asked.body)
    assert "How hot?" in str(asked.body)
    assert "50" in str(asked.body)
    assert "given-key" in "".join(asked.headers.values())


def test_a_thought_that_never_ends_is_no_answer(make: Make, site: Site) -> None:
    site.says = "<think>on and on"
    generator = open_generator(make(generator="ollama:static"))
    assert generator is not None
    assert generator.generate("How hot?") == ""


@pytest.mark.parametrize("provider", GENERATORS)
def test_what_cannot_be_written_anywhere_is_no_part_of_an_answer(make: Make, site: Site, provider: str) -> None:
    site.says = "Tea \ud83c\udf75, and half of another \ud83c, \0 and so on"
    generator = open_generator(make(generator=f"{provider}:static"))
    assert generator is not None
    assert generator.generate("How hot?") == "Tea \U0001f375, and half of another \ufffd, \ufffd and so on"


def test_what_a_provider_says_of_an_error_steers_no_terminal_and_can_be_sent_on(make: Make, site: Site) -> None:
    site.always = status(400, {"error": "odd \ud83c \x1b[2J request"})
    generator = open_generator(make(generator="ollama:static"))
    assert generator is not None
    with pytest.raises(Unavailable, match=r"\(odd \ufffd \ufffd\[2J request\)"):
        generator.generate("How hot?")


@pytest.mark.parametrize(
    ("trouble", "sentence"),
    [
        (reset, "broke the connection off"),
        (status(429, retry_after="3600"), "asks to be left alone for 3600 s"),
        (status(404), "does not have the model static"),
        (says({"message": {}}), "answered with no text"),
        (says([1]), "answered with no text"),
    ],
)
def test_what_goes_wrong_is_one_sentence(make: Make, site: Site, trouble: object, sentence: str) -> None:
    site.always = trouble  # type: ignore[assignment]
    generator = open_generator(make(generator="ollama:static"))
    assert generator is not None
    with pytest.raises(Unavailable, match=sentence):
        generator.generate("How hot?")


def test_a_generator_that_is_late_is_not_waited_for(make: Make, site: Site) -> None:
    site.always = silent
    generator = open_generator(make(generator="ollama:static"))
    assert generator is not None
    with pytest.raises(Unavailable, match=r"did not answer within 0\.1 s"):
        generator.generate("How hot?", timeout=0.1)


@pytest.mark.parametrize("provider", RERANKERS)
def test_passages_are_scored_in_their_own_order(make: Make, site: Site, provider: str) -> None:
    reranker = open_reranker(make(reranker=f"{provider}:static"))
    assert reranker is not None
    assert site.asked == []
    assert list(reranker.score("hot water", ["cold tea", "hot water now", "hot tea"])) == [0.0, 1.0, 0.5]
    assert site.paths() == [RERANKERS[provider]]
    assert list(reranker.score("hot water", [])) == []


def test_a_server_with_a_limit_is_asked_in_turns(make: Make, site: Site) -> None:
    reranker = open_reranker(make(reranker="tei:static"))
    assert reranker is not None
    assert len(reranker.score("tea", [f"tea {n}" for n in range(70)])) == 70
    assert [len(asked.body["texts"]) for asked in site.asked] == [32, 32, 6]


def test_scores_off_the_scale_are_brought_onto_it(make: Make, site: Site) -> None:
    site.always = says({"results": [{"index": 1, "relevance_score": 4.0}, {"index": 0, "relevance_score": -4.0}]})
    reranker = open_reranker(make(reranker="jina:static"))
    assert reranker is not None
    low, high = reranker.score("tea", ["a", "b"])
    assert 0 < low < 0.5 < high < 1
    site.always = says({"results": [{"index": 0, "relevance_score": 0.9}]})
    (same,) = reranker.score("tea", ["a"])
    assert 0.5 < same < high  # the server's scale is one, whether or not a score of it happens to be within 0 and 1


@pytest.mark.parametrize(
    "answer",
    [
        {"results": [{"index": 0, "relevance_score": 0.5}]},
        {"results": [{"index": 0, "relevance_score": 0.5}, {"index": 0, "relevance_score": 0.5}]},
        {"results": [{"index": 0, "relevance_score": "high"}, {"index": 1, "relevance_score": 0.5}]},
        {"results": [{"index": "a", "relevance_score": 0.1}, {"index": 1, "relevance_score": 0.5}]},
        {"results": [{"index": [0], "relevance_score": 0.1}, {"index": 1, "relevance_score": 0.5}]},
        {"results": [{"index": 0, "relevance_score": 10**400}, {"index": 1, "relevance_score": 0.5}]},
        {"results": "none"},
        [],
    ],
)
def test_scores_that_make_no_sense_are_refused(make: Make, site: Site, answer: object) -> None:
    site.always = says(answer)
    reranker = open_reranker(make(reranker="jina:static"))
    assert reranker is not None
    with pytest.raises(Unavailable, match="Check that static is a reranker"):
        reranker.score("tea", ["a", "b"])


def test_none_is_none(make: Make) -> None:
    assert open_generator(make()) is None
    assert open_reranker(make()) is None


@pytest.mark.parametrize("name", ["openia:gpt", "ollama", "ollama:", "tei:x", "gpt-4o"])
def test_a_name_that_cannot_be_meant_is_told_to_whoever_asks(make: Make, name: str) -> None:
    generator = open_generator(make(generator=name))
    assert generator is not None
    with pytest.raises(Unavailable, match="generator must be one of ollama:MODEL") as caught:
        generator.generate("x")
    assert caught.value.exit_code == 78


def test_a_reranker_is_sent_no_more_at_once_and_no_longer_passages_than_it_is_set(make: Make, site: Site) -> None:
    reranker = open_reranker(make(reranker="jina:static", reranker_batch=4, reranker_tokens=128))
    assert reranker is not None
    assert len(reranker.score("tea", ["tea " * 1000] * 10)) == 10
    sent = [asked.body["documents"] for asked in site.asked]
    assert [len(passages) for passages in sent] == [4, 4, 2]
    assert 400 <= max(len(passage) for passages in sent for passage in passages) <= 4 * 128
