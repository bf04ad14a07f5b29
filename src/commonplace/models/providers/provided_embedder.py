"""Embedders that a provider serves, and their traits: asked of the model itself, once, and kept.

Scores need to know how alike a question and its answer usually are for a model, and how alike strangers. Nobody
publishes that, so a few questions with their answers are embedded when a model is first used on a machine.
"""

from __future__ import annotations

import json
import logging
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote

import numpy as np

from commonplace.errors import Command
from commonplace.model import fingerprint
from commonplace.models.catalog import Progress
from commonplace.models.hurry import hurried, time_left
from commonplace.models.providers.endpoint import Prefixes
from commonplace.models.providers.provider_line import ProviderLine
from commonplace.models.providers.replies import (
    Nonsense,
    ProviderFailed,
    RequestRefused,
    TooLong,
    member,
    read_indexed,
    read_vectors,
)
from commonplace.models.roles import Vectors, unit
from commonplace.text.token_estimates import reach, safe_cut

log = logging.getLogger(__name__)

PAIRS = (
    ("why does the database refuse new connections",
     "The database accepts at most a hundred connections; when all are in use, new ones are refused."),
    ("how is the database backed up at night",
     "Every night a job copies the database to a second disk and keeps the last seven backups."),
    ("how to speed up a slow query in the database",
     "A query that reads the whole table becomes fast once the database has an index on its column."),
    ("how to move the database to another server",
     "To move the database, stop writing, copy its files to the new server and change the address."),
    ("does a lack of iron in the blood cause tiredness",
     "Patients with too little iron in the blood feel tired, because less oxygen reaches the muscles."),
    ("does aspirin thin the blood of healthy patients",
     "In healthy patients aspirin keeps blood platelets from clumping, so that wounds bleed longer."),
    ("what blood pressure is too high for older patients",
     "For patients over seventy a blood pressure above 150 is treated, as it harms heart and kidneys."),
    ("how much sugar in the blood is a sign of diabetes",
     "Diabetes is diagnosed in patients whose blood sugar before breakfast is above 126 mg per decilitre."),
    ("when was the first railway line for passengers opened",
     "The first railway that carried passengers by steam was opened in England in 1825."),
    ("who built the longest railway tunnel in the mountains",
     "Swiss engineers built the longest railway tunnel, 57 kilometres under the mountains, until 2016."),
    ("how fast did the first railway engines run",
     "Early engines on the railway reached 46 kilometres an hour, faster than any horse."),
    ("why did the railway company close the small stations",
     "The railway company closed small stations in the sixties, since buses had taken their passengers."),
)  # fmt: skip
"""Questions and their answers in three fields, so that strangers have something in common, as in a real library."""

USUAL_WORTH = 0.06
"""Evidence times spread of the default model: what a good embedder's opinion weighs beside words."""
LEAST_SPREAD = 0.02
PLAINNESS = 0.45
"""The part of these plain pairs' distance above strangers that a real answer has, as it is for the catalog's models."""
QUERY_S = 10.0
"""Seconds that a question is waited for, where nobody is in a greater hurry."""
WINDOW = 6000
"""Tokens, as estimated here, of the longest text that is sent whole; halved whenever a model finds one too long."""
LEAST_WINDOW = 48
_RULES = "1"
"""The version of how texts are cut and pooled here. Raise it when vectors change: stored ones are then made anew."""


@dataclass(frozen=True, slots=True)
class Learned:
    """The length of a model's vectors, and the cosines a question has with its answer and with strangers."""

    dims: int
    related: float
    unrelated: float

    @property
    def evidence(self) -> float:
        """Return the weight of its cosine. A model that cannot tell a pair from strangers counts next to nothing."""
        spread = self.related - self.unrelated
        return USUAL_WORTH / spread if spread > LEAST_SPREAD else 0.1


def measure(questions: Vectors, answers: Vectors) -> Learned:
    """Return what the vectors of PAIRS say: the 95th percentile of strangers, and the median of pairs above it."""
    cosines = questions @ answers.T
    pairs = np.diagonal(cosines)
    strangers = cosines[~np.eye(len(PAIRS), dtype=np.bool_)]
    unrelated = float(np.percentile(strangers, 95))
    related = unrelated + max(PLAINNESS * (float(np.median(pairs)) - unrelated), LEAST_SPREAD)
    return Learned(questions.shape[1], round(related, 4), round(unrelated, 4))


def read_learned(path: Path) -> Learned | None:
    """Return what was kept, or None where nothing that can be used was."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        learned = Learned(int(record["dims"]), float(record["related"]), float(record["unrelated"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return learned if learned.dims > 0 and -1 <= learned.unrelated < learned.related <= 1 else None


def keep_learned(path: Path, learned: Learned, model: str) -> None:
    """Store what was learned. A folder that cannot be written costs asking again, and nothing else."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_name(f"{path.name}.{os.getpid()}")
        unfinished.write_text(json.dumps({"model": model, **asdict(learned)}, indent=2), encoding="utf-8")
        unfinished.replace(path)
    except OSError as error:
        log.info("What was learned of %s is not kept: %s", model, error)


class EmbeddingApi(Protocol):
    """A provider's way to be asked for vectors, and their place in its answer."""

    def request(self, model: str, texts: Sequence[str], dims: int) -> tuple[str, dict[str, Any]]: ...
    def read(self, answer: Any, count: int) -> Vectors: ...


@dataclass(frozen=True, slots=True)
class OllamaApi:
    """Ollama's `/api/embed`. A text that is too long is an error there unless it is told to cut."""

    context: int = 0
    truncate: bool = False

    def request(self, model: str, texts: Sequence[str], dims: int) -> tuple[str, dict[str, Any]]:
        body: dict[str, Any] = {"model": model, "input": list(texts), "truncate": self.truncate}
        if self.context:
            body["options"] = {"num_ctx": self.context}
        if dims:
            body["dimensions"] = dims
        return "/api/embed", body

    def read(self, answer: Any, count: int) -> Vectors:
        return read_vectors(member(answer, "embeddings"), count)


@dataclass(frozen=True, slots=True)
class OpenAIApi:
    """OpenAI's `/embeddings` under a base such as `…/v1`; Azure's under the name of a deployment."""

    azure: bool = False

    def request(self, model: str, texts: Sequence[str], dims: int) -> tuple[str, dict[str, Any]]:
        body: dict[str, Any] = {"model": model, "input": list(texts), "encoding_format": "float"}
        if dims:
            body["dimensions"] = dims
        return (f"/openai/deployments/{quote(model, safe='')}/embeddings" if self.azure else "/embeddings"), body

    def read(self, answer: Any, count: int) -> Vectors:
        return read_vectors(read_indexed(member(answer, "data"), count, "embedding"), count)


class HttpEmbedder:
    """An embedder that a provider serves. Opening one contacts nobody; what is learned at the first contact is kept."""

    languages: frozenset[str] = frozenset()

    def __init__(
        self, line: ProviderLine, api: EmbeddingApi, prefixes: Prefixes, cache: Path, *, dims: int = 0, batch: int = 32
    ) -> None:
        """Take `dims` as what is asked for, 0 for whatever the model has, and `cache` as the folder of models."""
        self._line, self._api, self._prefixes = line, api, prefixes
        self._wanted, self._batch = dims, batch
        self._asks_dims = dims > 0
        self._window = WINDOW
        endpoint = line.endpoint
        parts = (endpoint.provider, endpoint.place, endpoint.model, prefixes.query, prefixes.passage, str(dims))
        self._identity = fingerprint(_RULES, *parts, size=8).hex()
        self._kept_at = cache / "providers" / f"{self._identity}.json"
        self._learned: Learned | None = None
        self._learning = threading.Lock()

    @property
    def name(self) -> str:
        return self._line.endpoint.name

    @property
    def problem(self) -> str:
        return self._line.problem

    @property
    def fingerprint(self) -> str:
        return fingerprint(self._identity, str(self.dims), size=8).hex()

    @property
    def dims(self) -> int:
        return self._wanted or self._known().dims

    @property
    def related(self) -> float:
        return self._known().related

    @property
    def unrelated(self) -> float:
        return self._known().unrelated

    @property
    def evidence(self) -> float:
        return self._known().evidence

    @property
    def widens(self) -> bool:
        return True

    def warm(self) -> None:
        self._known()

    def fertility(self, text: str) -> float:
        return 1.0

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        with hurried(QUERY_S):
            self._known()
            return self._embed(texts, self._prefixes.query, None)

    def embed_passages(self, texts: Sequence[str], progress: Progress | None = None) -> Vectors:
        self._known()
        return self._embed(texts, self._prefixes.passage, progress)

    # first contact

    def _known(self) -> Learned:
        if self._learned is not None:
            return self._learned
        seconds = time_left()
        if not self._learning.acquire(timeout=-1 if seconds is None else seconds):
            raise ProviderFailed(f"{self._where} has not answered its first request yet. Try again in a moment.")
        try:
            if self._learned is None:
                self._learned = read_learned(self._kept_at) or self._introduction()
            return self._learned
        finally:
            self._learning.release()

    def _introduction(self) -> Learned:
        """Return what the vectors of a few questions and answers say of the model, asked for in one request."""
        questions = [f"{self._prefixes.query}{question}" for question, _ in PAIRS]
        answers = [f"{self._prefixes.passage}{answer}" for _, answer in PAIRS]
        raw_vectors = self._ask([*questions, *answers])
        if not raw_vectors.any(axis=1).all():
            raise self._makes_no_sense("vectors of nothing but zeros")
        vectors = np.stack([unit(vector) for vector in raw_vectors])
        if self._wanted:
            self._require_dims(vectors.shape[1], self._wanted)
        learned = measure(vectors[: len(PAIRS)], vectors[len(PAIRS) :])
        keep_learned(self._kept_at, learned, self.name)
        return learned

    # texts to vectors

    def _embed(self, texts: Sequence[str], prefix: str, progress: Progress | None) -> Vectors:
        """Return the vectors of texts.

        Blank ones have the zero vector: many providers refuse them, and there is nothing to find.
        """
        dims, window = self.dims, self._window
        pieces = [(place, piece) for place, text in enumerate(texts) for piece in _pieces(text, window)]
        sums = np.zeros((len(texts), dims), dtype=np.float32)
        batches = [pieces[start : start + self._batch] for start in range(0, len(pieces), self._batch)]
        done = 0
        for batch, vectors in zip(batches, self._in_turn(batches, prefix), strict=True):
            for (place, piece), vector in zip(batch, vectors, strict=True):
                sums[place] += unit(vector) * np.float32(len(piece))  # a long piece says more of its text
            done = batch[-1][0] + 1
            if progress:
                progress(done, len(texts))
        if progress and done < len(texts):
            progress(len(texts), len(texts))
        return np.stack([unit(vector) for vector in sums]) if len(texts) else sums

    def _in_turn(self, batches: Sequence[Sequence[tuple[int, str]]], prefix: str) -> Iterator[Vectors]:
        """Yield the vectors of each batch in order, several batches under way at once."""
        if len(batches) == 1:
            yield self._of_pieces([piece for _, piece in batches[0]], prefix)
            return
        with ThreadPoolExecutor(self._line.endpoint.concurrency) as pool:
            requests = [
                pool.submit(copy_context().run, self._of_pieces, [piece for _, piece in batch], prefix)
                for batch in batches
            ]
            try:
                for one in requests:
                    yield one.result()
            finally:
                for one in requests:
                    one.cancel()

    def _of_pieces(self, pieces: Sequence[str], prefix: str) -> Vectors:
        """Return a vector for each piece. A piece that the model finds too long is cut in halves until it does not."""
        window = self._window
        try:
            vectors = self._ask([f"{prefix}{piece}" for piece in pieces])
        except TooLong:
            if window <= LEAST_WINDOW:
                raise
            self._window = min(self._window, window // 2)
            return np.stack([self._in_parts(piece, prefix) for piece in pieces])
        self._require_dims(vectors.shape[1], self.dims)
        return vectors

    def _in_parts(self, piece: str, prefix: str) -> Vectors:
        parts = list(_pieces(piece, self._window))
        vectors = self._of_pieces(parts, prefix)
        lengths = np.array([[len(part)] for part in parts], dtype=np.float32)
        return np.asarray((np.stack([unit(vector) for vector in vectors]) * lengths).sum(axis=0), dtype=np.float32)

    def _ask(self, texts: Sequence[str]) -> Vectors:
        model, dims = self._line.endpoint.model, self._wanted if self._asks_dims else 0
        path, body = self._api.request(model, texts, dims)
        try:
            answer = self._line.ask(path, body)
        except RequestRefused as refused:
            if not dims or refused.answered not in (400, 422):
                raise
            self._asks_dims = False  # most models have one length only and refuse to be asked; what comes is checked
            return self._ask(texts)
        return self._read(answer, len(texts))

    def _read(self, answer: Mapping[str, Any], count: int) -> Vectors:
        try:
            return self._api.read(answer, count)
        except Nonsense as nonsense:
            raise self._makes_no_sense(str(nonsense)) from None

    def _makes_no_sense(self, what: str) -> ProviderFailed:
        return ProviderFailed(
            f"{self._where} answered with {what}, so nothing was stored. "
            f"Check that {self._line.endpoint.model} is an embedding model."
        )

    def _require_dims(self, dims: int, expected: int) -> None:
        if dims != expected:
            raise ProviderFailed(
                f"{self._where} gave vectors of {dims} dimensions for {self._line.endpoint.model}, not {expected}, so "
                f"nothing was stored. If it serves another model now, set COMMONPLACE_EMBEDDER_DIMS={dims} and run `",
                Command("embed"),
                "`.",
                code="wrong_dimensions",
            )

    @property
    def _where(self) -> str:
        return f"{self._line.endpoint.provider} at {self._line.endpoint.host}"


def _pieces(text: str, window: int) -> Iterator[str]:
    """Yield a text in pieces of at most so many tokens, cut at blanks where there are any; nothing of a blank one."""
    start = 0
    while start < len(text):
        end = reach(text, start, 4 * window)
        if end < len(text):
            blank = max(text.rfind(" ", start, end), text.rfind("\n", start, end))
            end = blank + 1 if blank > start else max(safe_cut(text, end, start), start + 1)
        if text[start:end].strip():
            yield text[start:end]
        start = end
