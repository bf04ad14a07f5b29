"""The indexes of one space on turbopuffer, which share one connection."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from commonplace.index.base import NearSource, WordSource
from commonplace.index.turbopuffer import TurbopufferIndex
from commonplace.index.turbopuffer_following import Models
from commonplace.index.turbopuffer_settings import Naming, service
from commonplace.index.turbopuffer_vectors import TurbopufferVectors
from commonplace.index.turbopuffer_wire import Wire
from commonplace.settings import Settings

PASSAGES = "lexical"
"""The folder of the index of chunks, whose rows carry vectors too."""


class TurbopufferSpace:
    """Makes indexes as the local ones are made. Refuses to be made where the environment does not say how."""

    def __init__(self, settings: Settings, space: str, log: str, models: Models) -> None:
        """`log` is the id of the log that the indexes follow: no other log has it."""
        self._models = models
        self._naming = Naming(settings.turbopuffer_prefix, space, log)  # refuses a prefix that cannot be one
        self._wire = Wire(service())
        self._passages: TurbopufferIndex | None = None

    def words(self, folder: Path, source: WordSource, language: str) -> TurbopufferIndex:
        """An index of words. That of passages is one with the index of their vectors."""
        passages = folder.name == PASSAGES
        naming = self._naming if passages else replace(self._naming, suffix=f"_{folder.name}")
        place = folder.with_name(f"turbopuffer-{folder.name}")
        models = self._models if passages else None
        index = TurbopufferIndex(place, source, language, wire=self._wire, naming=naming, models=models)
        if passages:
            self._passages = index
        return index

    def vectors(self, folder: Path, source: NearSource, dims: int, fingerprint: str) -> TurbopufferVectors:
        """An index of the vectors of one model, in the rows of the passages."""
        return TurbopufferVectors(self.passages, source, dims, fingerprint)

    @property
    def passages(self) -> TurbopufferIndex:
        """The index of passages, which is made first."""
        assert self._passages is not None, "the index of passages is made first"  # noqa: S101
        return self._passages

    def trouble(self) -> str:
        """Why something is still pending, in one sentence; empty where nothing went wrong."""
        return self._passages.trouble() if self._passages else ""

    def close(self) -> None:
        self._wire.close()
