"""The indexes of one space on turbopuffer, which share a connection."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from commonplace.index.base import VectorSource, WordSource
from commonplace.index.turbopuffer.following import ModelSource
from commonplace.index.turbopuffer.index import TurbopufferIndex
from commonplace.index.turbopuffer.settings import Naming, service
from commonplace.index.turbopuffer.vectors import TurbopufferVectors
from commonplace.index.turbopuffer.wire import TurbopufferWire
from commonplace.settings import Settings

PASSAGES = "lexical"
"""The folder of the index of chunks, whose rows carry vectors too."""


class LoggedSource(Protocol):
    """The store, as far as it has the id of its log."""

    @property
    def log(self) -> str | None:
        """Return the id of the log that was seen last, as JSON; None before the first look."""
        ...


class TurbopufferSpace:
    """A factory of indexes, with the signatures of the local ones (`MakeWords`, `MakeVectors`)."""

    def __init__(self, settings: Settings, space: str, log: str, store: LoggedSource, models: ModelSource) -> None:
        """Connect to the service that the environment names; raise BadSetting if it names none.

        `log` is the id of the log that the store has now: no other log has it.
        """
        self._store, self._models = store, models
        self._naming = Naming(settings.turbopuffer_prefix, space, log)  # refuses a prefix that cannot be one
        self._wire = TurbopufferWire(service())
        self._passages: TurbopufferIndex | None = None

    def words(self, folder: Path, source: WordSource, language: str) -> TurbopufferIndex:
        """Return an index of words. The one of passages also holds the vectors of `vectors`."""
        passages = folder.name == PASSAGES
        suffix = "" if passages else f"_{folder.name}"
        place = folder.with_name(f"turbopuffer-{folder.name}")
        models = self._models if passages else None

        def naming() -> Naming:
            log = json.loads(self._store.log) if self._store.log else self._naming.log
            return replace(self._naming, log=log, suffix=suffix)

        index = TurbopufferIndex(place, source, language, wire=self._wire, naming=naming, models=models)
        if passages:
            self._passages = index
        return index

    def vectors(self, folder: Path, source: VectorSource, dims: int, fingerprint: str) -> TurbopufferVectors:
        """Return an index of the vectors of one model, in the rows of the index of passages."""
        return TurbopufferVectors(self.passages, source, dims, fingerprint)

    @property
    def passages(self) -> TurbopufferIndex:
        """Return the index of passages, which is created first."""
        assert self._passages is not None, "the index of passages is made first"  # noqa: S101
        return self._passages

    def trouble(self) -> str:
        """Return why something is still pending, in one sentence; empty where nothing went wrong."""
        return self._passages.trouble() if self._passages else ""

    def close(self) -> None:
        """Close the connection."""
        self._wire.close()
