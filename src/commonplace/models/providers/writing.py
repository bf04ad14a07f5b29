"""Generators that a provider serves."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import quote

from commonplace.models.hurry import hurried
from commonplace.models.providers.answers import Nonsense, member, read_text
from commonplace.models.providers.failures import ProviderFailed
from commonplace.models.providers.wire import ProviderLine

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
