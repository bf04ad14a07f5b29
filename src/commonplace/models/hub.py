"""`hf:owner/name`: a model from the Hugging Face hub or a mirror (HF_ENDPOINT), pinned to the commit it was at."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from commonplace.errors import DownloadFailed, InvalidInput
from commonplace.models import cache as store
from commonplace.models import web
from commonplace.models.catalog import Progress
from commonplace.models.local import CONFIGS, ONNX_NAMES, TOKENIZER, card_from_configs
from commonplace.network import require_allowed

_NAME = re.compile(r"hf:[\w.-]+/[\w.-]+")
_WEIGHTS = ("onnx/model_quantized.onnx", "onnx/model_int8.onnx", "onnx/model.onnx", "model.onnx")


@dataclass(frozen=True, slots=True)
class _Repository:
    """A model as the hub describes it: the commit, and each file's length and hash where it knows them."""

    name: str
    url: str
    commit: str
    files: Mapping[str, tuple[int | None, str | None]]
    languages: frozenset[str]

    def address(self, path: str) -> str:
        return f"{self.url}/resolve/{self.commit}/{path}"


def pull(name: str, cache: Path, progress: Progress | None = None, *, offline: bool = False) -> Path:
    """Return the folder of a hub model in the cache, fetched if it is not there and `offline` does not forbid it."""
    if not _NAME.fullmatch(name) or ".." in name:
        raise InvalidInput(f"{name!r} is not a hub model. Write it as hf:owner/name.")

    def write(stage: Path) -> None:
        require_allowed("", f"Pulling {name}", offline=offline)
        _download(_look_up(name), stage, progress)

    return store.fill(cache / store.hub_folder(name), lambda: store.find(name, cache) is not None, write)


def _look_up(name: str) -> _Repository:
    endpoint = os.environ.get("HF_ENDPOINT", "https://huggingface.co").rstrip("/")
    path = name.removeprefix(store.HUB)
    address = f"{endpoint}/api/models/{path}?blobs=true"
    body, _ = web.read_url(address, accept="application/json")
    try:
        description: dict[str, Any] = json.loads(body)
        files = {file["rfilename"]: _size_and_hash(file) for file in description["siblings"]}
        return _Repository(name, f"{endpoint}/{path}", description["sha"], files, _languages(description))
    except (ValueError, KeyError, TypeError) as error:
        raise DownloadFailed(
            f"{web.shown(address)} did not describe a model ({error!r}). Check HF_ENDPOINT and the model's name."
        ) from error


def _download(repository: _Repository, stage: Path, progress: Progress | None) -> None:
    weights = next((path for path in _WEIGHTS if path in repository.files), None)
    if weights is None or TOKENIZER not in repository.files:
        raise DownloadFailed(
            f"{repository.name} has no {TOKENIZER} with {' or '.join(_WEIGHTS)}. Choose a model published in ONNX form."
        )
    for path in (TOKENIZER, *(config for config in CONFIGS if config in repository.files)):
        _fetch(repository, path, stage / path, None)
    _fetch(repository, weights, stage / ONNX_NAMES[0], progress)
    version = f"{repository.commit}/{weights}"
    model = stage / ONNX_NAMES[0]
    store.write_card(stage, card_from_configs(stage, repository.name, version, model, repository.languages))


def _fetch(repository: _Repository, path: str, target: Path, progress: Progress | None) -> None:
    size, sha256 = repository.files[path]
    target.parent.mkdir(exist_ok=True)
    pieces = web.pieces(web.open_url(repository.address(path)), progress)
    store.write_verified(target, pieces, sha256, size)


def _size_and_hash(file: Mapping[str, Any]) -> tuple[int | None, str | None]:
    large = file.get("lfs") or {}
    return large.get("size", file.get("size")), large.get("sha256")


def _languages(description: Mapping[str, Any]) -> frozenset[str]:
    language = (description.get("cardData") or {}).get("language") or ()
    return frozenset([language] if isinstance(language, str) else language)
