"""The upkeep of a library's vectors: with a write, beside the calls, for a better model; and the leftovers of old ones.

Beside the calls vectors are made in short turns, so that whoever is asked for them by a person comes in between.
"""

from __future__ import annotations

import logging
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from commonplace.errors import StorageFull
from commonplace.index.sealed_files import PART_SUFFIX
from commonplace.ingest.automatic import AutomaticVectors, OnWrite
from commonplace.ingest.embedding import Embedding, Progress
from commonplace.ingest.library_status import Coverage, Pending
from commonplace.ingest.suited import best_here, languages, pulled_betters
from commonplace.ingest.switching import Switch
from commonplace.settings import Settings
from commonplace.store.base import Store
from commonplace.store.embeddings import Embeddings

log = logging.getLogger(__name__)

SHARE = 20
TURN_S, PAUSE_S = 2.0, 0.15
"""Seconds that the lock is held at a stretch, and let go of: longer than who waits for it takes to look again."""
LOOK_S, LOOK_CHANGES = 600.0, 1000
"""Seconds, or changes, after which it is looked again which model suits a library."""


class _TurnOver(Exception):
    """The turn is over, or somebody wants an end. What was made is kept."""


@dataclass(frozen=True, slots=True)
class _Looked:
    """The result of a look for a better model, and what it depends on."""

    chosen: str
    here: tuple[str, ...]
    at: float
    change: int
    found: str | None


class Upkeep:
    """The upkeep of one library's vectors."""

    def __init__(self, store: Store, embedding: Embedding, settings: Settings) -> None:
        self._store, self._embedding, self._settings = store, embedding, settings
        self._automatic = AutomaticVectors(store, embedding)
        self.on_write = OnWrite(store, embedding, self._automatic, settings)
        self.tended = False
        """True: this process makes what is pending beside its calls, as a server does that has called `run`."""
        self._counted: tuple[float, Coverage] | None = None
        self._looked: _Looked | None = None

    def run(self, stopping: Callable[[], bool]) -> bool:
        """Make what is missing until somebody stops it, and return whether something is left.

        That is everything, once somebody has had everything embedded; until then it is all but documents. Where a
        better model has come, its vectors are made first, while those that are there answer. Raise Busy where another
        is at it.
        """
        self.tended = True
        while not stopping():
            if self._is_done(stopping):
                return False
            time.sleep(PAUSE_S)
        return True

    def _is_done(self, stopping: Callable[[], bool]) -> bool:
        until = time.monotonic() + TURN_S

        def look(done: int, total: int) -> None:
            if stopping() or time.monotonic() >= until:
                raise _TurnOver

        better = self.better_model()
        if better is None and not self._embedding.lacks_some():
            return True
        try:
            if better is not None:
                self._go_over(better, look)
            else:
                with self._embedding.exclusive():
                    self._make_wanted(look)
        except _TurnOver:
            return False
        return better is None

    def _go_over(self, name: str, look: Progress) -> None:
        switch = Switch(self._store, self._embedding, name, by_hand=False)
        try:
            switch.cost().require_room()
        except StorageFull as error:
            log.warning("The vectors stay those of %s for now: %s", self._embedding.chosen, error)
            self._looked = replace(self._looked, found=None) if self._looked else None
            return
        switch.run(look, patient=False)

    def embed(self, progress: Progress | None = None, *, wanted: bool = False) -> int:
        """Make every missing vector for a caller that asks for them, and return how many.

        `wanted`: only those that nobody would have to ask for. Where a better model has come and nobody has chosen,
        that one is used from now on. Raise AlreadyEmbedding where another process is at it.
        """
        count = 0
        if better := self.better_model():
            count = Switch(self._store, self._embedding, better, by_hand=False).run(progress)
        with self._embedding.exclusive(patient=True):
            return count + (self._make_wanted(progress) if wanted else self._embedding.embed_all(progress))

    def _make_wanted(self, progress: Progress | None) -> int:
        model = self._embedding.serving()
        if model is not None and model.position:
            return self._embedding.embed_all(progress)
        return self._automatic.fill(model, progress)

    def pending(self) -> Pending | None:
        """Return what is found by its words only for now; None where nothing is.

        Counts anew every few seconds at most.
        """
        if not self._embedding.lacks_some():
            return None
        coverage = self._coverage()
        if coverage.pending <= 0:
            return None
        rate = self._embedding.pace.rate()
        seconds = coverage.pending / rate if rate else None
        return Pending(coverage.pending, coverage.total, seconds, self.tended and self._will_be_made())

    def _coverage(self) -> Coverage:
        """Return the coverage, counted anew at most every so often.

        Counting looks at every passage there is: no more than a twentieth of the time is spent on it.
        """
        now = time.monotonic()
        if self._counted is None or now >= self._counted[0]:
            coverage = self._embedding.coverage()
            ended = time.monotonic()
            self._counted = ended + SHARE * (ended - now), coverage
        return self._counted[1]

    def _will_be_made(self) -> bool:
        """Return whether documents, where they are what is missing, get theirs without being asked for."""
        model = self._embedding.serving()
        return bool(model and model.position) or not self._embedding.documents_lacking()

    def better_model(self) -> str | None:
        """Return the model that is here and suits the library better than the one chosen for it; None as a rule."""
        current = self._embedding.chosen
        here = pulled_betters(current, self._settings) if current and not self._embedding.is_settled else ()
        if not current or not here:
            return None
        now, last = time.monotonic(), self._store.last_change()
        last_look = self._looked
        if (
            last_look is None
            or (last_look.chosen, last_look.here) != (current, here)
            or now >= last_look.at + LOOK_S
            or not 0 <= last - last_look.change < LOOK_CHANGES
        ):
            best = best_here(languages(self._store), self._settings)
            self._looked = last_look = _Looked(current, here, now, last, best if best in here else None)
        return last_look.found


@dataclass(frozen=True, slots=True)
class Rubbish:
    """The leftovers of a library, found or dropped."""

    caches: tuple[Path, ...]
    """Folders and files of indexes that nobody opens any more."""
    cache_bytes: int
    rows: dict[str, int]
    """The number of rows of each sort."""


def rubbish(store: Store, folder: Path, embedding: Embedding) -> Rubbish:
    """Return what there is to drop. `folder` is the library's."""
    caches = tuple(sorted(_caches(store, folder, embedding.folder)))
    return Rubbish(caches, sum(map(_size, caches)), store.leftovers())


def clean(store: Store, folder: Path, embedding: Embedding) -> Rubbish:
    """Drop the leftovers, then give room back to the vectors' file and to the disk. Return what was dropped."""
    leftovers = rubbish(store, folder, embedding)
    for cache in leftovers.caches:
        if cache.is_dir():
            shutil.rmtree(cache, ignore_errors=True)
        else:
            cache.unlink(missing_ok=True)
    dropped = store.leftovers(drop=True)
    if index := embedding.index():
        index.catch_up()
        index.compact()
    store.vacuum()
    return Rubbish(leftovers.caches, leftovers.cache_bytes, dropped)


def _caches(store: Store, folder: Path, indexes: Path) -> list[Path]:
    names = {f"vectors-{model.fingerprint[:8]}" for model in store.drawer(Embeddings).models()}
    stale = [path for path in folder.glob("index-*") if path != indexes]
    stale += [path for path in indexes.glob("vectors-*") if path.name not in names]
    return stale + list(folder.glob(f"*{PART_SUFFIX}"))


def _size(place: Path) -> int:
    files = place.rglob("*") if place.is_dir() else [place]
    return sum(file.stat().st_size for file in files if file.is_file())
