"""Which model a name opens, what a folder's own files say of it, and what a missing one tells the caller."""

from __future__ import annotations

import dataclasses
import gc
import hashlib
import json
import shutil
import weakref
from pathlib import Path

import numpy as np
import pytest
from wheel_registry import Site

from commonplace.errors import CommonplaceError, DownloadFailed, InvalidInput, NotFound, Unavailable
from commonplace.models import DEFAULT, catalog, find, installed, open_embedder
from commonplace.models.cache import read_card
from commonplace.models.onnx import OnnxEmbedder
from commonplace.models.pull import pull
from commonplace.models.roles import fingerprint_of
from commonplace.models.static import SHIPPED

WEIGHTS = b"weights" * 1000


def test_nothing_asked_and_nothing_pulled_is_the_shipped_model(tmp_path: Path) -> None:
    assert open_embedder(None, tmp_path).name == "static"


def test_nothing_asked_is_the_default_once_it_was_pulled(tmp_path: Path) -> None:
    folder = tmp_path / catalog()[DEFAULT].folder
    folder.mkdir()
    for file in catalog()[DEFAULT].files.values():
        with (folder / file.name).open("wb") as sparse:
            sparse.truncate(file.bytes)
    opened = open_embedder(None, tmp_path)
    assert (opened.name, opened.dims, opened.languages) == (DEFAULT, 384, frozenset({"en"}))


@pytest.mark.parametrize(
    ("name", "error", "sentence"),
    [
        (DEFAULT, Unavailable, f"commonplace models pull {DEFAULT}"),
        ("hf:owner/name", Unavailable, "commonplace models pull hf:owner/name"),
        ("gpt-9", NotFound, "Choose static, arctic-embed-s"),
        ("./no/such/folder", NotFound, "There is no model folder"),
    ],
)
def test_a_missing_model_says_what_to_do(
    name: str, error: type[CommonplaceError], sentence: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=sentence):
        open_embedder(name, tmp_path)


def test_a_model_is_in_memory_once_however_many_use_it_and_not_when_nobody_does(tmp_path: Path) -> None:
    for name in ("codes.npy", "scales.npy", "tokenizer.json"):
        shutil.copy(SHIPPED / name, tmp_path)
    first = open_embedder(str(tmp_path), tmp_path)
    first.warm()
    assert open_embedder(str(tmp_path), tmp_path) is first
    (tmp_path / "config.json").write_text(json.dumps({"hidden_size": 7}), encoding="utf-8")
    assert open_embedder(str(tmp_path), tmp_path) is not first  # its files say something else now
    used = weakref.ref(first)
    del first
    gc.collect()
    assert used() is None


def test_a_folder_is_a_model(tmp_path: Path) -> None:
    for name in ("codes.npy", "scales.npy", "tokenizer.json"):
        shutil.copy(SHIPPED / name, tmp_path)
    assert pull(str(tmp_path), tmp_path) == tmp_path
    mine, shipped = open_embedder(str(tmp_path), tmp_path), open_embedder("static", tmp_path)
    assert (mine.name, mine.dims, mine.languages) == (tmp_path.name, 256, frozenset())
    np.testing.assert_array_equal(mine.embed_queries(["tea"]), shipped.embed_queries(["tea"]))


@pytest.mark.parametrize("missing", ["codes.npy", "tokenizer.json"])
def test_a_folder_without_a_part_names_it(missing: str, tmp_path: Path) -> None:
    for name in {"codes.npy", "scales.npy", "tokenizer.json"} - {missing}:
        shutil.copy(SHIPPED / name, tmp_path)
    with pytest.raises(NotFound, match=missing):
        pull(str(tmp_path), tmp_path)


def test_a_card_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    shutil.copytree(SHIPPED, tmp_path, dirs_exist_ok=True)
    (tmp_path / "card.json").write_text('{"languages": []}', encoding="utf-8")
    with pytest.raises(InvalidInput, match=r"card\.json cannot be read"):
        open_embedder(str(tmp_path), tmp_path)


@pytest.mark.parametrize(
    "change", [{"pooling": "mean"}, {"query_prefix": "q: "}, {"passage_prefix": "p: "}, {"max_tokens": 256}]
)
def test_whatever_changes_vectors_changes_the_fingerprint(change: dict[str, object]) -> None:
    card = catalog()[DEFAULT].card
    changed = dataclasses.replace(card, **change)  # type: ignore[arg-type]
    assert fingerprint_of(card, "a") != fingerprint_of(changed, "a")


def test_a_name_or_a_constant_does_not_change_the_fingerprint() -> None:
    card = catalog()[DEFAULT].card
    renamed = dataclasses.replace(card, name="x", related=0.9)
    assert fingerprint_of(card, "a") == fingerprint_of(renamed, "a") != fingerprint_of(card, "b")


@pytest.fixture
def hub(site: Site, monkeypatch: pytest.MonkeyPatch) -> Site:
    """A hub with one model whose publisher says how to use it."""
    monkeypatch.setenv("HF_ENDPOINT", site.url)
    bodies = {
        "onnx/model_quantized.onnx": WEIGHTS,
        "onnx/model.onnx": b"too big",
        "tokenizer.json": (SHIPPED / "tokenizer.json").read_bytes(),
        "config.json": b'{"hidden_size": 12, "max_position_embeddings": 512}',
        "sentence_bert_config.json": b'{"max_seq_length": 128}',
        "1_Pooling/config.json": b'{"pooling_mode_cls_token": true}',
        "config_sentence_transformers.json": b'{"prompts": {"query": "query: ", "document": "passage: "}}',
    }
    for path, body in bodies.items():
        site.files[f"/acme/small/resolve/c0ffee/{path}"] = ("application/octet-stream", body)
    describe(site, {path: len(body) for path, body in bodies.items()}, hashlib.sha256(WEIGHTS).hexdigest())
    return site


def describe(site: Site, sizes: dict[str, int], sha256: str) -> None:
    siblings: list[dict[str, object]] = [{"rfilename": path, "size": size} for path, size in sizes.items()]
    for sibling in siblings:
        if sibling["rfilename"] == "onnx/model_quantized.onnx":
            sibling["lfs"] = {"sha256": sha256, "size": sibling["size"], "pointerSize": 130}
    said = {"sha": "c0ffee", "siblings": siblings, "cardData": {"language": ["en", "de"]}}
    site.files["/api/models/acme/small?blobs=true"] = ("application/json", json.dumps(said).encode())


def test_a_hub_model_is_pulled_with_what_its_publisher_says(hub: Site, tmp_path: Path) -> None:
    folder = pull("hf:acme/small", tmp_path)
    assert (folder / "model.onnx").read_bytes() == WEIGHTS
    card = read_card(folder)
    assert (card.name, card.dims, card.pooling, card.max_tokens) == ("hf:acme/small", 12, "cls", 128)
    assert (card.query_prefix, card.passage_prefix) == ("query: ", "passage: ")
    assert find("hf:acme/small", tmp_path) == folder
    assert [model.name for model in installed(tmp_path)] == ["hf:acme/small"]
    opened = open_embedder("hf:acme/small", tmp_path)
    assert isinstance(opened, OnnxEmbedder)
    assert opened.languages == {"en", "de"}


def test_a_hub_file_with_another_hash_is_refused(hub: Site, tmp_path: Path) -> None:
    hub.files["/acme/small/resolve/c0ffee/onnx/model_quantized.onnx"] = ("x/y", WEIGHTS[:-1] + b"!")
    with pytest.raises(DownloadFailed, match="is not the file that was expected"):
        pull("hf:acme/small", tmp_path)
    assert find("hf:acme/small", tmp_path) is None


def test_a_hub_model_without_onnx_is_refused(hub: Site, tmp_path: Path) -> None:
    describe(hub, {"pytorch_model.bin": 1, "tokenizer.json": 1}, "")
    with pytest.raises(DownloadFailed, match="published in ONNX form"):
        pull("hf:acme/small", tmp_path)


@pytest.mark.parametrize("answer", [b"<html>", b"{}", b"[]"])
def test_a_hub_that_is_none_is_named(answer: bytes, hub: Site, tmp_path: Path) -> None:
    hub.files["/api/models/acme/small?blobs=true"] = ("text/html", answer)
    with pytest.raises(DownloadFailed, match="did not describe a model"):
        pull("hf:acme/small", tmp_path)


@pytest.mark.parametrize("name", ["hf:", "hf:acme", "hf:acme/../x", "hf:a/b/c", "hf:a/b?x"])
def test_a_hub_name_that_is_none_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="hf:owner/name"):
        pull(name, tmp_path)
