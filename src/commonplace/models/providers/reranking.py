"""Rerankers that a provider serves, in the three forms there are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from commonplace.models.providers.answers import Nonsense, member, read_indexed
from commonplace.models.providers.failures import ProviderFailed
from commonplace.models.providers.wire import ProviderLine
from commonplace.text.tokens import reach


@dataclass(frozen=True, slots=True)
class RerankApi:
    """A server's way to be asked: its path, its names for the passages and the scores, and how many it takes."""

    path: str
    passages: str
    score: str
    most: int
    bare: bool
    """True: it serves one model, and its answer is the list itself."""

    def request(self, model: str, query: str, passages: Sequence[str]) -> dict[str, Any]:
        body: dict[str, Any] = {"query": query, self.passages: list(passages)}
        if self.bare:
            return {**body, "truncate": True}
        return {**body, "model": model, "top_n": len(passages)}

    def read(self, answer: Any, count: int) -> list[float]:
        results = answer if self.bare else member(answer, "results")
        return [_number(value) for value in read_indexed(results, count, self.score)]


APIS = {
    "cohere": RerankApi("/v2/rerank", "documents", "relevance_score", 1000, bare=False),
    "jina": RerankApi("/v1/rerank", "documents", "relevance_score", 1000, bare=False),
    "tei": RerankApi("/rerank", "texts", "score", 32, bare=True),
}


class HttpReranker:
    """A reranker that a provider serves. It sends one request, or as few as the server's limit and `batch` allow.

    `tokens`: of a passage, as estimated here; cross-encoders read no more than some hundreds at once.
    """

    def __init__(self, line: ProviderLine, api: RerankApi, *, tokens: int = 512, batch: int = 0) -> None:
        self._line, self._api, self._tokens = line, api, tokens
        self._most = min(api.most, batch or api.most)
        self._raw = False
        """True: the server sends what the model's last layer says, which once seen is so of all its scores."""

    @property
    def name(self) -> str:
        return self._line.endpoint.name

    def score(self, query: str, passages: Sequence[str]) -> list[float]:
        cut = [passage[: reach(passage, 0, 4 * self._tokens)] for passage in passages]
        scores: list[float] = []
        for start in range(0, len(cut), self._most):
            scores += self._scores(query, cut[start : start + self._most])
        self._raw = self._raw or any(not 0.0 <= score <= 1.0 for score in scores)
        return [_sigmoid(score) for score in scores] if self._raw else scores

    def _scores(self, query: str, passages: Sequence[str]) -> list[float]:
        endpoint = self._line.endpoint
        answer = self._line.ask(self._api.path, self._api.request(endpoint.model, query, passages))
        try:
            return self._api.read(answer, len(passages))
        except Nonsense as nonsense:
            raise ProviderFailed(
                f"{endpoint.provider} at {endpoint.host} answered with {nonsense}. "
                f"Check that {endpoint.model} is a reranker and {endpoint.setting} its server."
            ) from None


def _number(value: Any) -> float:
    if not isinstance(value, bool) and isinstance(value, int | float):
        with suppress(OverflowError):  # JSON may hold larger ones than we can
            if math.isfinite(value):
                return float(value)
    raise Nonsense("scores that are no numbers")


def _sigmoid(value: float) -> float:
    return 1.0 / (1.0 + math.exp(-max(-60.0, min(60.0, value))))
