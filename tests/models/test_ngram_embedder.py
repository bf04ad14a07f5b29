"""The multilingual model: its arithmetic, its long texts, and what it knows where it was pulled."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import platformdirs
import pytest
from numpy.typing import NDArray
from small_encoder import DIMS, INNER, weights, write_model

from commonplace.errors import Unavailable
from commonplace.models import MULTILINGUAL, Embedder, find, open_embedder
from commonplace.models.ngrams import GROUPS, PARTS, NgramEmbedder
from needs import missing


@pytest.fixture
def small(tmp_path: Path) -> Embedder:
    return open_embedder(str(write_model(tmp_path / "small")), tmp_path)


@pytest.fixture(scope="session")
def multilingual() -> Embedder:
    folder = os.environ.get("COMMONPLACE_MODELS")
    cache = Path(folder) if folder else platformdirs.user_cache_path("commonplace") / "models"
    if find(MULTILINGUAL, cache) is None:
        missing(f"{MULTILINGUAL} is not in {cache}. Run `commonplace models pull {MULTILINGUAL}`.")
    return open_embedder(MULTILINGUAL, cache)


def normal(x: NDArray[Any], gain: NDArray[Any], bias: NDArray[Any]) -> NDArray[Any]:
    return (x - x.mean()) / np.sqrt(x.var() + 1e-6) * gain + bias


def by_hand(ids: list[int]) -> NDArray[Any]:
    """The same, a token at a time and in double precision."""
    w: dict[str, Any] = {name: value.astype(np.float64) for name, value in weights().items()}
    words = [
        w[f"q{token % PARTS + 1}"][token // PARTS] * w["scale"][token % PARTS] + w["lo"][token % PARTS] for token in ids
    ]
    inward = np.concatenate([w[f"proj{size}"] for size, _ in GROUPS], axis=1)
    bias, gain, moved = (
        np.concatenate([w[f"{name}{size}"] for size, _ in GROUPS]) for name in ("proj_b", "ln_g", "ln_b")
    )
    narrow = [normal(word @ inward + bias, gain, moved) for word in words]
    features = [[*word] for word in words]
    for number, (size, before) in enumerate(GROUPS):
        rows = [row[number * INNER : (number + 1) * INNER] for row in narrow]
        for turn in (1, 2):
            nothing = np.zeros(INNER)
            padded = [nothing] * before + rows + [nothing] * (size - 1 - before)
            groups = [np.concatenate(padded[place : place + size]) for place in range(len(rows))]
            rows = [
                row + np.maximum(group @ w[f"w{turn}_{size}"] + w[f"b{turn}_{size}"], 0)
                for row, group in zip(rows, groups, strict=True)
            ]
        for feature, row in zip(features, rows, strict=True):
            feature += [*row]
    said = [normal(np.array(feature), w["ln_g"], w["ln_b"]) @ w["cnn_W"] + w["cnn_b"] for feature in features]
    total = sum(said) / np.sqrt(len(ids))
    first = np.maximum(np.maximum(total @ w["d0"], 0) @ w["d1"] + total @ w["p1"], 0)
    out = np.tanh(np.maximum(first @ w["d2"], 0) @ w["d3"] + first @ w["p3"])
    return np.asarray(out / np.linalg.norm(out))


@pytest.mark.parametrize("text", ["", "tea", "tea water", "water tea", "tea water 茶 xyz tea a w ter"])
def test_a_vector_is_what_the_formula_says(small: Embedder, text: str) -> None:
    assert isinstance(small, NgramEmbedder)
    ids = small._loaded().tokens.framed(text)
    np.testing.assert_allclose(small.embed_passages([text])[0], by_hand(ids), atol=1e-5)


def test_vectors_are_of_unit_length_and_of_the_promised_shape(small: Embedder) -> None:
    vectors = small.embed_passages(["tea", "water " * 2000, "茶"])
    assert (vectors.shape, vectors.dtype, small.dims) == ((3, DIMS), np.float32, DIMS)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert small.embed_queries([]).shape == (0, DIMS)


def test_a_vector_depends_on_no_other_text_and_no_other_thread(small: Embedder) -> None:
    texts = [f"tea {'water ' * count}" for count in range(40)]
    alone = [small.embed_passages([text])[0] for text in texts]
    np.testing.assert_array_equal(small.embed_passages(texts), alone)
    with ThreadPoolExecutor(4) as pool:
        np.testing.assert_array_equal(list(pool.map(lambda text: small.embed_queries([text])[0], texts)), alone)


def test_the_end_of_a_long_text_counts(small: Embedder) -> None:
    begins, ends = small.embed_passages(["water " * 900 + "tea " * 900, "water " * 900])
    assert begins @ ends < 0.999


@pytest.mark.parametrize("damage", [b"", b"PK\x03\x04 cut short", b"not a zip"])
def test_broken_weights_say_what_to_do(tmp_path: Path, damage: bytes) -> None:
    folder = write_model(tmp_path / "broken")
    (folder / "weights.npz").write_bytes(damage)
    with pytest.raises(Unavailable, match=r"cannot be read .*pull the model again"):
        open_embedder(str(folder), tmp_path).warm()


def test_weights_that_lack_a_part_say_what_to_do(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "lacking")
    np.savez(folder / "weights.npz", **{name: value for name, value in weights().items() if name != "cnn_W"})  # type: ignore[arg-type]
    with pytest.raises(Unavailable, match="cnn_W"):
        open_embedder(str(folder), tmp_path).warm()


@pytest.mark.model
@pytest.mark.parametrize(
    ("question", "answer", "other"),
    [
        (
            "Wie heiß soll das Wasser für Tee sein?",
            "Grüner Tee wird mit 80 Grad aufgegossen.",
            "Der Zug hat Verspätung.",
        ),
        ("茶应该用多热的水？", "绿茶用八十度的水冲泡。", "火车晚点了。"),
        ("お茶のお湯は何度がいいですか", "緑茶は八十度のお湯でいれます。", "電車が遅れています。"),
        ("ما درجة حرارة ماء الشاي؟", "يحضر الشاي الأخضر بماء حرارته ثمانون درجة.", "القطار متأخر."),
        ("How hot should the water for tea be?", "Grüner Tee wird mit 80 Grad aufgegossen.", "El tren llega tarde."),
    ],
)
def test_it_knows_an_answer_in_many_languages(multilingual: Embedder, question: str, answer: str, other: str) -> None:
    query = multilingual.embed_queries([question])[0]
    near, far = multilingual.embed_passages([answer, other])
    assert query @ near > query @ far + 0.1
    assert multilingual.fertility(question) < 4
