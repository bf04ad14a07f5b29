"""The model that ships: it opens at once, knows what words are about, and says when it does not know them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from commonplace.models import STATIC, catalog, open_embedder
from commonplace.models.cache import read_card
from commonplace.models.roles import Embedder
from commonplace.models.static import SHIPPED, Table, open_table, quantize

SENTENCES = [
    "Boil the spaghetti in salted water for nine minutes.",
    "The stock market fell by four percent on Monday.",
    "def read_lines(path): return open(path).read().splitlines()",
    "She planted tomatoes and beans behind the house in spring.",
    "The patient was given 20 mg of the drug twice a day.",
]


@pytest.fixture(scope="module")
def static() -> Embedder:
    return open_embedder(STATIC, Path("/nowhere"))


def test_what_is_about_the_same_is_nearer(static: Embedder) -> None:
    query = static.embed_queries(["how to cook pasta"])[0]
    boiling, crash = static.embed_passages(["boiling spaghetti in water", "stock market crash"])
    assert query @ boiling > query @ crash + 0.2


def test_vectors_are_of_unit_length_and_of_the_promised_shape(static: Embedder) -> None:
    vectors = static.embed_passages(SENTENCES)
    assert vectors.shape == (len(SENTENCES), static.dims) == (5, 256)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


def test_a_vector_does_not_depend_on_its_neighbours(static: Embedder) -> None:
    together = static.embed_passages(SENTENCES)
    assert all(
        np.array_equal(row, static.embed_passages([text])[0]) for row, text in zip(together, SENTENCES, strict=True)
    )


@pytest.mark.parametrize("text", ["", "   ", "\0", "🎉" * 3])
def test_a_text_without_known_words_is_the_zero_vector(text: str, static: Embedder) -> None:
    assert not static.embed_queries([text]).any()


def test_half_a_surrogate_pair_is_no_obstacle(static: Embedder) -> None:
    assert static.embed_queries(["tea \ud800"])[0] @ static.embed_queries(["tea"])[0] > 0.5


def test_no_texts_are_no_vectors(static: Embedder) -> None:
    assert static.embed_passages([]).shape == (0, 256)


def test_the_end_of_a_long_text_counts(static: Embedder) -> None:
    start = "tomatoes and beans " * 2000
    plain, with_end = static.embed_passages([start, start + "stock market crash " * 2000])
    assert plain @ with_end < 0.99


def test_progress_counts_the_texts(static: Embedder) -> None:
    calls: list[tuple[int, int]] = []
    static.embed_passages(SENTENCES, lambda done, total: calls.append((done, total)))
    assert calls == [(done, 5) for done in range(1, 6)]


@pytest.mark.parametrize(
    ("text", "least", "most"),
    [
        ("how do I read a file line by line", 1.0, 1.2),
        ("getUserName read_lines HTTP/2", 1.0, 1.7),
        ("?!", 1.0, 1.0),
        ("東京都庁の夜景を見たい", 5.0, 100.0),
        ("พรุ่งนี้ฝนจะตกหรือไม่", 4.0, 100.0),
        ("Как прочитать файл построчно", 3.0, 100.0),
        ("كيف أقرأ ملفا سطرا بسطر", 2.5, 100.0),
    ],
)
def test_fertility_tells_known_words_from_unknown(text: str, least: float, most: float, static: Embedder) -> None:
    assert least <= static.fertility(text) <= most


def test_int8_is_as_good_as_the_original() -> None:
    rows = np.random.default_rng(0).normal(size=(200, 256)).astype(np.float32)
    table, original = quantize(rows), Table(rows)
    for ids in ([0], [1, 2, 2], list(range(50))):
        assert table.mean(ids) @ original.mean(ids) > 0.999


def test_a_model2vec_file_is_read(tmp_path: Path) -> None:
    rows = np.arange(8, dtype=np.float32).reshape(2, 4)
    header = b'{"embeddings":{"dtype":"F32","shape":[2,4],"data_offsets":[0,32]}}'
    path = tmp_path / "model.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header + rows.tobytes())
    np.testing.assert_array_equal(open_table(path).codes, rows)


def test_the_shipped_card_has_the_constants_of_the_original() -> None:
    shipped, original = read_card(SHIPPED), catalog()["potion-base-8m"].card
    assert (shipped.related, shipped.unrelated, shipped.dims) == (original.related, original.unrelated, original.dims)


def test_onnxruntime_is_not_imported_for_it() -> None:
    program = (
        "import sys, pathlib; from commonplace.models import open_embedder; "
        "open_embedder('static', pathlib.Path('/nowhere')).embed_queries(['tea']); "
        "sys.exit('onnxruntime' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
