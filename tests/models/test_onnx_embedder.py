"""The transformer: (1) it equals plain code; (2) company does not change a vector; (3) no text is cut off."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from commonplace.errors import Unavailable
from commonplace.models import catalog
from commonplace.models.onnx import OVERLAP, OnnxEmbedder
from commonplace.models.onnx import windows as windows_of
from commonplace.models.pieces import Tokens
from commonplace.models.roles import Embedder, Vectors
from commonplace.models.static import SHIPPED

TEXTS = [
    "Boil the spaghetti in salted water for nine minutes.",
    "tea",
    "The stock market fell by four percent on Monday, its worst day since the spring. " * 4,
    "def read_lines(path):\n    return open(path).read().splitlines()",
    "東京都庁",
]


def by_plain_code(embedder: Embedder, texts: Sequence[str]) -> Vectors:
    """Each text alone, as a model card would show it."""
    import onnxruntime
    import tokenizers

    assert isinstance(embedder, OnnxEmbedder)
    tokenizer = tokenizers.Tokenizer.from_file(str(embedder._tokenizer))
    session = onnxruntime.InferenceSession(str(embedder._model), providers=["CPUExecutionProvider"])
    rows = []
    for text in texts:
        ids = np.array([tokenizer.encode(text).ids])
        feed = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        first = session.run(None, feed)[0][0, 0]
        rows.append(first / np.linalg.norm(first))
    return np.array(rows)


@pytest.mark.model
def test_it_equals_plain_code(default_model: Embedder) -> None:
    cosines = (default_model.embed_passages(TEXTS) * by_plain_code(default_model, TEXTS)).sum(axis=1)
    assert cosines.min() > 1 - 1e-4


@pytest.mark.model
def test_a_query_carries_the_prefix(default_model: Embedder) -> None:
    prefix = catalog()["arctic-embed-s"].card.query_prefix
    expected = by_plain_code(default_model, [prefix + "tea"])[0]
    assert default_model.embed_queries(["tea"])[0] @ expected > 1 - 1e-4


@pytest.mark.model
def test_a_vector_does_not_depend_on_its_neighbours(default_model: Embedder) -> None:
    together = default_model.embed_passages(TEXTS)
    alone = [default_model.embed_passages([text])[0] for text in TEXTS]
    assert all(np.array_equal(*pair) for pair in zip(together, alone, strict=True))


@pytest.mark.model
def test_what_is_about_the_same_is_nearer(default_model: Embedder) -> None:
    query = default_model.embed_queries(["how to cook pasta"])[0]
    boiling, crash = default_model.embed_passages(["boiling spaghetti in water", "stock market crash"])
    assert query @ boiling > default_model.unrelated
    assert query @ crash < default_model.unrelated - 0.1


@pytest.mark.model
def test_the_end_of_a_long_text_counts(default_model: Embedder) -> None:
    start = "Tomatoes and beans grow behind the house. " * 120
    query = default_model.embed_queries(["stock market crash"])[0]
    plain, with_end = default_model.embed_passages([start, start + "The stock market crashed. " * 120])
    assert query @ with_end > query @ plain + 0.05
    assert np.linalg.norm(with_end) == pytest.approx(1, abs=1e-5)


@pytest.mark.model
def test_odd_texts_have_vectors_too(default_model: Embedder) -> None:
    vectors = default_model.embed_passages(["", " ", "\ud800", "\0", "🎉"])
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert default_model.embed_queries([]).shape == (0, 384)


@pytest.mark.model
def test_many_threads_may_ask_at_once(default_model: Embedder) -> None:
    with ThreadPoolExecutor(4) as pool:
        rows = list(pool.map(lambda text: default_model.embed_queries([text])[0], TEXTS * 3))
    np.testing.assert_array_equal(np.stack(rows), np.tile(default_model.embed_queries(TEXTS), (3, 1)))


@pytest.mark.model
def test_progress_counts_the_texts(default_model: Embedder) -> None:
    calls: list[tuple[int, int]] = []
    default_model.embed_passages(["a", "b", "c"], lambda done, total: calls.append((done, total)))
    assert calls == [(1, 3), (2, 3), (3, 3)]


@pytest.mark.model
def test_nothing_may_go_to_the_network(default_model: Embedder) -> None:
    default_model.warm()
    assert os.environ["HF_HUB_OFFLINE"] == "1"
    assert default_model.fertility("how do I read a file") < 1.3 < 3 < default_model.fertility("東京都庁の夜景を見たい")


@pytest.mark.parametrize("length", [509, 510, 511, 600, 1020, 5000])
@pytest.mark.parametrize("prefix", ["", "a question: "])
def test_windows_hold_every_token_evenly(length: int, prefix: str) -> None:
    tokens = Tokens(SHIPPED / "tokenizer.json")
    body = tokens.plain(" ".join(f"{number}" for number in range(100)) + " tea" * (length - 100))[:length]
    text = "tea " * length
    windows = windows_of(tokens, prefix, text, 512)
    lead = len(tokens.head) + len(tokens.plain(prefix))
    assert len(body) == length
    assert all(
        len(window) <= 512 and window[0] == tokens.head[0] and window[-1] == tokens.tail[0] for window in windows
    )
    inside = [len(window) - lead - len(tokens.tail) for window in windows]
    assert sum(inside) - OVERLAP * (len(windows) - 1) == length
    assert max(inside) - min(inside) <= len(windows)


def test_a_broken_model_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(b"not a model")
    embedder = OnnxEmbedder(catalog()["arctic-embed-s"].card, tmp_path / "model.onnx", SHIPPED / "tokenizer.json", "x")
    with pytest.raises(Unavailable, match="pull the model again"):
        embedder.embed_queries(["tea"])
    (tmp_path / "tokenizer.json").write_text("{", encoding="utf-8")
    embedder = OnnxEmbedder(catalog()["arctic-embed-s"].card, tmp_path / "model.onnx", tmp_path / "tokenizer.json", "x")
    with pytest.raises(Unavailable, match=r"tokenizer\.json cannot be read"):
        embedder.fertility("tea")
