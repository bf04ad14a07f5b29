"""The failures of asking a provider. They are apart from the line itself, so that knowing them takes no HTTP client."""

from __future__ import annotations

from commonplace.errors import Unavailable


class ProviderFailed(Unavailable):
    """A provider that did not give what it was asked for. The sentence never has the key in it."""


class RequestRefused(ProviderFailed):
    """A request that the provider understood and does not want, now or later."""

    def __init__(self, sentence: str, status: int) -> None:
        super().__init__(sentence)
        self.answered = status


class TooLong(ProviderFailed):
    """A text that is longer than the model reads at once."""
