"""Generators and rerankers that a provider serves."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import quote

from commonplace.models.hurry import hurried
from commonplace.models.providers.provider_line import ProviderLine
from commonplace.models.providers.replies import Nonsense, ProviderFailed, member, read_indexed, read_text
from commonplace.text.token_estimates import reach

_THOUGHT = re.compile(r"<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
_UNFINISHED = re.compile(r"<think(?:ing)?>.*\Z", re.DOTALL | re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Order:
    """A text to be written: its prompt, its system prompt and its bound."""

    prompt: str
    system: str
    max_tokens: int

    @property
    def messages(self) -> list[dict[str, str]]:
        system = [{"role": "system", "content": self.system}] if self.system else []
        return [*system, {"role": "user", "content": self.prompt}]


class WritingApi(Protocol):
    """A provider's way to be told what to write, and the place of its text in the answer."""

    def request(self, model: str, order: Order) -> tuple[str, dict[str, Any]]: ...
    def read(self, answer: Any) -> str: ...


@dataclass(frozen=True, slots=True)
class OllamaChat:
    """Ollama's `/api/chat`, the whole answer at once."""

    context: int = 0

    def request(self, model: str, order: Order) -> tuple[str, dict[str, Any]]:
        options: dict[str, Any] = {"num_predict": order.max_tokens, "temperature": 0}
        if self.context:
            options["num_ctx"] = self.context
        return "/api/chat", {"model": model, "messages": order.messages, "stream": False, "options": options}

    def read(self, answer: Any) -> str:
        return read_text(answer, "message", "content")


@dataclass(frozen=True, slots=True)
class OpenAIChat:
    """OpenAI's `/chat/completions` under a base such as `…/v1`; Azure's under the name of a deployment."""

    azure: bool = False
    original: bool = False
    """The provider itself, whose newer models know the bound by another name only."""
    effort: str = ""

    def request(self, model: str, order: Order) -> tuple[str, dict[str, Any]]:
        bound = "max_completion_tokens" if self.original or self.azure else "max_tokens"
        body: dict[str, Any] = {"model": model, "messages": order.messages, bound: order.max_tokens, "stream": False}
        if self.effort:
            body["reasoning_effort"] = self.effort
        path = f"/openai/deployments/{quote(model, safe='')}" if self.azure else ""
        return f"{path}/chat/completions", body

    def read(self, answer: Any) -> str:
        return read_text(answer, "choices", 0, "message", "content")


@dataclass(frozen=True, slots=True)
class AnthropicChat:
    """Anthropic's `/v1/messages`."""

    effort: str = ""

    def request(self, model: str, order: Order) -> tuple[str, dict[str, Any]]:
        body: dict[str, Any] = {
            "model": model,
            "max_tokens": order.max_tokens,
            "messages": [{"role": "user", "content": order.prompt}],
        }
        if order.system:
            body["system"] = order.system
        if self.effort:
            body["output_config"] = {"effort": self.effort}
        return "/v1/messages", body

    def read(self, answer: Any) -> str:
        blocks = member(answer, "content")
        if not isinstance(blocks, list):
            raise Nonsense("no text")
        return "".join(read_text(block, "text") for block in blocks if member(block, "type") == "text")


class HttpGenerator:
    """A generator that a provider serves. Its texts come without what it thought on the way."""

    def __init__(self, line: ProviderLine, api: WritingApi) -> None:
        self._line, self._api = line, api

    @property
    def name(self) -> str:
        return self._line.endpoint.name

    @property
    def problem(self) -> str:
        return self._line.problem

    def generate(self, prompt: str, *, system: str = "", max_tokens: int = 1000, timeout: float | None = None) -> str:
        endpoint = self._line.endpoint
        path, body = self._api.request(endpoint.model, Order(prompt, system, max_tokens))
        with hurried(timeout):
            answer = self._line.ask(path, body)
        try:
            text = self._api.read(answer)
        except Nonsense as nonsense:
            raise ProviderFailed(
                f"{endpoint.provider} at {endpoint.host} answered with {nonsense}. "
                f"Check that {endpoint.model} is a chat model."
            ) from None
        return _UNFINISHED.sub("", _THOUGHT.sub("", text)).strip()


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


RERANK_APIS = {
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
