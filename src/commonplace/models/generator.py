"""The interface of a model that writes."""

from __future__ import annotations

from typing import Protocol


class Generator(Protocol):
    """A model that writes a text when told what about.

    Safe to call from several threads; opening one contacts nobody.
    """

    @property
    def name(self) -> str: ...  # the provider and the model, so that what one wrote is never taken for another's

    def generate(self, prompt: str, *, system: str = "", max_tokens: int = 1000, timeout: float | None = None) -> str:
        """Return what it wrote, without the thinking.

        Raise Unavailable where it cannot, or not within `timeout` seconds.
        """
        ...
