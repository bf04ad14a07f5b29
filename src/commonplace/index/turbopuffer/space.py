"""The indexes of one space on turbopuffer, which share one connection."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from commonplace.index.base import NearSource, WordSource
from commonplace.index.turbopuffer.following import Models
from commonplace.index.turbopuffer.index import TurbopufferIndex
from commonplace.index.turbopuffer.settings import Naming, service
from commonplace.index.turbopuffer.vectors import TurbopufferVectors
from commonplace.index.turbopuffer.wire import Wire
from commonplace.settings import Settings

PASSAGES = "lexical"
"""The folder of the index of chunks, whose rows carry vectors too."""


class LoggedModels(Models, Protocol):
    """A store, as far as it is asked here."""

    log: str | None


class TurbopufferSpace:
    """Makes indexes as the local ones are made. Refuses to be made where the environment does not say how."""

    def __init__(self, settings: Settings, space: str, log: str, store: LoggedModels) -> None:
        """`log` is the id of the log that the store has now: no other log has it."""
        self._store = store
        self._naming = Naming(settings.turbopuffer_prefix, space, log)  # refuses a prefix that cannot be one
        self._wire = Wire(service())
        self._passages: TurbopufferIndex | None = None

    def words(self, folder: Path, source: WordSource, language: str) -> TurbopufferIndex:
        """An index of words. That of passages is one with the index of their vectors."""
        passages = folder.name == PASSAGES
        suffix = "" if passages else f"_{folder.name}"
        place = folder.with_name(f"turbopuffer-{folder.name}")
        models = self._store if passages else None

        def naming() -> Naming:
            log = json.loads(self._store.log) if self._store.log else self._naming.log
            return replace(self._naming, log=log, suffix=suffix)

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
