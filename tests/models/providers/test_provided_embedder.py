"""Embedders over real HTTP: what is asked, what is believed, and what is said when it goes wrong."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.errors import Unavailable
from commonplace.models import open_embedder
from commonplace.models.hurry import hurried
from commonplace.models.providers.endpoint import prefixes_of
from commonplace.models.providers.provided_embedder import _pieces
from commonplace.models.roles import Embedder
from commonplace.settings import Settings
from commonplace.text.token_estimates import estimate
from wire_server import Make, Site, cut_off, reset, says, serving, silent, status, truncated

PATHS = {"ollama": "/api/embed", "openai": "/v1/embeddings", "azure": "/openai/deployments/static/embeddings"}


def opened(settings: Settings, name: str = "ollama:static") -> Embedder:
    return open_embedder(name, settings.models, settings=settings)


@pytest.mark.parametrize("provider", PATHS)
def test_a_batch_is_one_request_and_vectors_come_in_the_order_of_the_texts(
    make: Make, site: Site, provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "k")
    settings = make(embedder_url=f"{site.url}/v1" if provider == "openai" else site.url)
    embedder = opened(settings, f"{provider}:static")
    assert site.asked == []  # opening contacts nobody
    texts = ["Oolong wants hot water.", "The night train to Vienna.", "Oolong wants hot water."]
    vectors = embedder.embed_passages(texts)
    path = PATHS[provider]
    assert [asked.partition("?")[0] for asked in site.paths()] == [path, path]  # the introduction, and the batch
    assert vectors.shape == (3, embedder.dims) == (3, 256)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert np.array_equal(vectors[0], vectors[2])
    assert np.array_equal(embedder.embed_passages([texts[1]])[0], vectors[1])
    shipped = open_embedder("static", settings.models).embed_passages(texts)
    assert np.allclose(vectors, shipped, atol=1e-5)


def test_many_texts_are_few_requests_and_no_more_at_once_than_allowed(make: Make, site: Site) -> None:
    embedder = opened(make(embedder_batch=10, embedder_concurrency=2))
    told: list[tuple[int, int]] = []
    vectors = embedder.embed_passages([f"note number {n}" for n in range(95)], lambda *done: told.append(done))
    assert vectors.shape == (95, 256)
    assert len(site.asked) == 1 + 10
    assert site.most_at_once <= 2
    assert told[-1] == (95, 95)
    assert told == sorted(told)


def test_what_was_learned_at_the_first_contact_is_never_asked_again(make: Make, site: Site) -> None:
    first = opened(make())
    fingerprint = first.fingerprint
    assert -1 <= first.unrelated < first.related <= 1
    assert 0 < first.evidence <= 3
    site.always = reset
    second = opened(make())
    assert (second.dims, second.related, second.fingerprint) == (256, first.related, fingerprint)
    assert len(site.asked) == 1


def test_a_fingerprint_tells_apart_what_makes_other_vectors(make: Make, site: Site) -> None:
    kinds = [
        opened(make()).fingerprint,
        opened(make(embedder_passage_prefix="text: ")).fingerprint,
        opened(make(embedder_query_prefix="q: ")).fingerprint,
        opened(make(embedder_url=f"{site.url}/v1"), "openai:static").fingerprint,
    ]
    assert len(set(kinds)) == len(kinds)
    by_name = opened(make(embedder_url=site.url.replace("127.0.0.1", "localhost"))).fingerprint
    assert by_name == kinds[0]


def test_prefixes_go_before_questions_and_passages(make: Make, site: Site) -> None:
    embedder = opened(make(embedder_query_prefix="ask: ", embedder_passage_prefix="say: "))
    embedder.embed_queries(["tea"])
    embedder.embed_passages(["cake"])
    assert [asked.body["input"] for asked in site.asked[1:]] == [["ask: tea"], ["say: cake"]]


@pytest.mark.parametrize(
    ("model", "query", "passage"),
    [
        ("nomic-embed-text:latest", "search_query: ", "search_document: "),
        ("intfloat/multilingual-e5-large", "query: ", "passage: "),
        ("BAAI/bge-m3", "", ""),
        ("mxbai-embed-large", "Represent this sentence for searching relevant passages: ", ""),
        ("text-embedding-3-small", "", ""),
    ],
)
def test_known_models_have_their_prefixes(model: str, query: str, passage: str) -> None:
    found = prefixes_of(model)
    assert (found.query, found.passage) == (query, passage)


def test_a_text_that_is_too_long_is_embedded_in_parts_and_never_cut_off(make: Make, site: Site) -> None:
    site.longest = 400
    text = "Oolong wants water just off the boil. " * 40 + "The night train leaves at nine."
    for provider, url in (("ollama", site.url), ("openai", f"{site.url}/v1")):
        embedder = opened(make(embedder_url=url), f"{provider}:static")
        vector, short = embedder.embed_passages([text, "tea"])
        sent = [piece for asked in site.asked for piece in asked.body["input"] if len(piece) <= 400]
        assert sum("night train" in piece for piece in sent) > 0
        assert float(vector @ embedder.embed_passages(["Oolong wants water just off the boil."])[0]) > 0.8
        assert np.allclose(short, embedder.embed_passages(["tea"])[0], atol=1e-6)
        count = len(site.asked)
        embedder.embed_passages([text])
        assert len(site.asked) == count + 1  # it remembers how much the model reads at once


@given(st.text(max_size=600), st.integers(1, 60))
def test_pieces_lose_nothing_but_blanks(text: str, window: int) -> None:
    pieces = list(_pieces(text, window))
    assert "".join("".join(pieces).split()) == "".join(text.split())
    assert all(estimate(piece) <= window or len(piece) == 1 for piece in pieces)


def test_blank_texts_are_nobody_s_business(make: Make, site: Site) -> None:
    embedder = opened(make())
    vectors = embedder.embed_passages(["", "tea", " \n"])
    assert site.asked[-1].body["input"] == ["tea"]
    assert not vectors[0].any()
    assert vectors[1].any()
    assert embedder.embed_passages([]).shape == (0, 256)


def test_dimensions_are_asked_for_and_checked(make: Make, site: Site) -> None:
    settings = make(embedder_url=f"{site.url}/v1", embedder_dims=64)
    embedder = opened(settings, "openai:static")
    assert embedder.embed_passages(["tea"]).shape == (1, 64)
    assert site.asked[0].body["dimensions"] == 64


def test_a_model_that_does_not_change_its_dimensions_must_have_those_asked_for(make: Make, site: Site) -> None:
    embedder = opened(make(embedder_url=f"{site.url}/v1", embedder_dims=300), "openai:static")
    with pytest.raises(Unavailable, match=r"gave vectors of 256 dimensions for static, not 300, so nothing was stored"):
        embedder.embed_passages(["tea"])


def test_other_dimensions_than_learned_are_refused(make: Make, site: Site) -> None:
    embedder = opened(make())
    embedder.embed_passages(["tea"])
    site.dims = 128
    with pytest.raises(Unavailable, match="128 dimensions for static, not 256") as caught:
        embedder.embed_passages(["tea"])
    assert caught.value.code == "wrong_dimensions"
    assert "COMMONPLACE_EMBEDDER_DIMS=128" in str(caught.value)


@pytest.mark.parametrize("trouble", [reset, cut_off, truncated, status(500), status(503), status(429)])
def test_what_passes_is_tried_again(make: Make, site: Site, trouble: object) -> None:
    embedder = opened(make())
    embedder.warm()
    site.plan.extend([trouble, trouble])  # type: ignore[list-item]
    assert embedder.embed_passages(["tea"]).shape == (1, 256)
    assert len(site.asked) == 1 + 3


@pytest.mark.parametrize(
    ("trouble", "sentence"),
    [
        (reset, "broke the connection off"),
        (cut_off, "broke the connection off"),
        (truncated, "sent an answer that cannot be read"),
        (status(500), "answered with 500"),
        (status(404, {"error": "model 'x' not found"}), "does not have the model static .* `ollama pull static`"),
        (status(401, {"error": "bad key"}), "refuses the key"),
        (status(302, {}, location="http://127.0.0.1:9/"), "redirects .302., which is not followed"),
        (status(400, {"error": "odd request"}), r"did not accept the request for static .400. .odd request.\."),
        (says({"embeddings": []}), "answered with 0 vectors for 1 texts"),
        (says({"embeddings": [["a", "b"]]}), "something else than numbers"),
        (says({"embeddings": [[float("nan")] * 256]}), "not of finite numbers"),
        (says({"embeddings": [[1e39] * 256]}), "not of finite numbers"),
        (says({"oops": 1}), "answered with no embeddings"),
        (says([]), "answered with no embeddings"),
    ],
)
def test_what_does_not_pass_is_one_sentence_with_the_host_and_what_to_do(
    make: Make, site: Site, trouble: object, sentence: str
) -> None:
    embedder = opened(make())
    embedder.warm()
    site.always = trouble  # type: ignore[assignment]
    with pytest.raises(Unavailable, match=sentence) as caught:
        embedder.embed_passages(["tea"])
    said = str(caught.value)
    assert said.startswith(f"ollama at {site.url.removeprefix('http://')} ")
    assert "\n" not in said
    assert len(site.asked) <= 1 + 3


def test_a_first_answer_of_zeros_is_not_believed_and_not_kept(make: Make, site: Site) -> None:
    site.plan.append(says({"embeddings": [[0.0] * 256] * 24}))
    embedder = opened(make())
    with pytest.raises(Unavailable, match="answered with vectors of nothing but zeros, so nothing was stored"):
        embedder.embed_passages(["Oolong wants hot water."])
    assert embedder.embed_passages(["Oolong wants hot water."]).any()
    assert embedder.related - embedder.unrelated > 0.1


def test_nobody_listening_says_where_it_was_looked_for(make: Make) -> None:
    with serving() as gone:
        pass
    embedder = opened(make(embedder_url=gone.url))
    with pytest.raises(Unavailable, match=r"cannot be reached\. Start it, or set COMMONPLACE_EMBEDDER_URL"):
        embedder.embed_queries(["tea"])


def test_a_retry_after_is_waited_for_and_a_long_one_is_a_refusal(make: Make, site: Site) -> None:
    embedder = opened(make())
    embedder.warm()
    site.plan.append(status(429, retry_after="0"))
    assert embedder.embed_passages(["tea"]).shape == (1, 256)
    site.plan.append(status(429, retry_after="120"))
    with pytest.raises(Unavailable, match="answered with 429 and asks to be left alone for 120 s"):
        embedder.embed_passages(["tea"])
    count = len(site.asked)
    with pytest.raises(Unavailable, match="is left alone for another"):
        embedder.embed_passages(["tea"])
    assert len(site.asked) == count  # it was


def test_a_provider_that_keeps_failing_is_left_alone(make: Make, site: Site) -> None:
    embedder = opened(make())
    embedder.warm()
    site.always = status(500)
    for _ in range(2):
        with pytest.raises(Unavailable, match="answered with 500"):
            embedder.embed_passages(["tea"])
    count = len(site.asked)
    with pytest.raises(Unavailable, match="failed several times and is left alone for another 30 s"):
        embedder.embed_passages(["tea"])
    assert len(site.asked) == count


def test_whoever_is_in_a_hurry_does_not_wait_and_does_no_harm(make: Make, site: Site) -> None:
    embedder = opened(make())
    embedder.warm()
    site.plan.append(silent)
    with pytest.raises(Unavailable, match=r"did not answer within 0\.\d s"), hurried(0.2):
        embedder.embed_passages(["tea"])
    site.released.set()
    assert embedder.embed_passages(["tea"]).shape == (1, 256)


def test_a_slow_provider_is_waited_for_as_long_as_set(make: Make, site: Site) -> None:
    embedder = opened(make(embedder_timeout_ms=100, embedder_attempts=2))
    embedder.warm()
    site.always = silent
    with pytest.raises(Unavailable, match=r"did not answer within 0\.1 s"):
        embedder.embed_passages(["tea"])
    assert len(site.asked) == 1 + 2


def test_threads_share_one_line_and_its_limit(make: Make, site: Site) -> None:
    settings = make(embedder_concurrency=2)
    embedders = [opened(settings) for _ in range(6)]
    embedders[0].warm()
    found: list[tuple[int, ...]] = []
    threads = [
        threading.Thread(target=lambda one=one: found.append(one.embed_passages(["tea", "cake"]).shape))
        for one in embedders
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert found == [(2, 256)] * 6
    assert site.most_at_once <= 2


def test_what_cannot_be_kept_is_asked_again_and_hurts_nobody(make: Make, tmp_path: Path) -> None:
    (tmp_path / "models").write_text("not a folder", encoding="utf-8")
    assert opened(make()).dims == 256
