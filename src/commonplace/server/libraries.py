"""The libraries a server has open: as many as it may, each opened once, none closed while someone uses it."""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager

from commonplace.errors import StorageBroken, Unavailable
from commonplace.library import SPACES, Library
from commonplace.settings import Settings
from commonplace.store.sqlite.connection import identity_of


class _Place:
    """Room for one space's library, whether it is open yet or not."""

    def __init__(self) -> None:
        self.library: Library | None = None
        self.borrowers = 0
        self.opening = threading.Lock()

    @property
    def is_outdated(self) -> bool:
        """Whether a store that servers share was replaced by a backup: its indexes follow the log of another then."""
        return self.library is not None and self.library.store.replaced


class Libraries:
    """Open libraries by space, the least recently used first to go. Threads may share it."""

    def __init__(self, settings: Settings, most: int | None = None) -> None:
        self._settings = settings
        self._most = settings.open_libraries if most is None else most
        self._places: OrderedDict[str, _Place] = OrderedDict()  # the least recently used first
        self._lock = threading.Lock()
        self._closed = False
        self._home = settings.home.expanduser() / SPACES
        self._found = self._which_home()

    def check_home(self) -> None:
        """Refuse a home that is not the one it was: a space that is not open yet would be made anew in its place."""
        if self._found is not None and self._which_home() != self._found:
            raise StorageBroken(
                f"{self._home.parent} was removed or replaced while it was served. Nothing was stored: put it back, or "
                "start Commonplace again."
            )

    @contextmanager
    def borrow(self, space: str) -> Iterator[Library]:
        """A space's library, open until the block ends at least. The bound is passed only while all are in use."""
        place = self._enter(space)
        try:
            yield self._library(place, space)
        finally:
            self._leave(space, place, self._most)

    @contextmanager
    def borrow_open(self, space: str) -> Iterator[Library | None]:
        """The library if it is open, and until the block ends at least. Nothing is opened, closed or waited for."""
        with self._lock:
            place = self._places.get(space)
            library = place.library if place else None
            if place is not None and library is not None:
                place.borrowers += 1
        try:
            yield library
        finally:
            if place is not None and library is not None:
                self._leave(space, place, math.inf)

    def peek(self, space: str) -> Library | None:
        """The library if it is open, and perhaps not any more. Nothing is opened, or kept from being closed."""
        place = self._places.get(space)
        return place.library if place else None

    def opened(self) -> Iterator[Library]:
        """Those that are open, one after another: each is while it is looked at."""
        with self._lock:
            spaces = list(self._places)
        for space in spaces:
            with self.borrow_open(space) as library:
                if library is not None:
                    yield library

    def close(self) -> None:
        """Close every library: those in use when they are given back. From now on nothing is lent."""
        with self._lock:
            self._closed = True
            idle = self._take_idle(0)
        _close(idle)

    def _enter(self, space: str) -> _Place:
        with self._lock:
            if self._closed:
                raise Unavailable("The server is shutting down. Try again in a moment.")
            outdated = self._take_outdated(space)
            place = self._places.setdefault(space, _Place())
            place.borrowers += 1
            self._places.move_to_end(space)
            idle = self._take_idle(self._most)
        _close(outdated + idle)
        return place

    def _library(self, place: _Place, space: str) -> Library:
        with place.opening:  # others who want this space wait here, and nobody else does
            if place.library is None:
                self.check_home()
                place.library = Library.open(self._settings.home, space, self._settings)
                self._found = self._found or self._which_home()
            return place.library

    def _which_home(self) -> tuple[int, int] | None:
        """What tells it from another; None where there is none yet, or it holds no more than indexes."""
        return None if self._settings.store else identity_of(self._home)

    def _leave(self, space: str, place: _Place, most: float) -> None:
        """Give it back. Those that nobody uses are closed until no more than `most` are left."""
        with self._lock:
            place.borrowers -= 1
            if place.library is None and not place.borrowers:
                del self._places[space]  # it could not be opened
            is_out = self._places.get(space) is not place
            outdated = [place.library] if place.library and is_out and not place.borrowers else []
            idle = self._take_idle(0 if self._closed else most)
        _close(outdated + idle)

    def _take_outdated(self, space: str) -> list[Library]:
        """Take out what nobody may borrow any more; the last who still uses it closes it. Needs the lock."""
        place = self._places.get(space)
        if place is None or place.library is None or not place.is_outdated:
            return []
        del self._places[space]
        return [] if place.borrowers else [place.library]

    def _take_idle(self, most: float) -> list[Library]:
        """Take out the least recently used that nobody uses, until no more than `most` are left. Needs the lock."""
        surplus = len(self._places) - most
        if surplus <= 0:
            return []
        idle = [space for space, place in self._places.items() if not place.borrowers][: int(surplus)]
        taken = [self._places.pop(space).library for space in idle]
        return [library for library in taken if library is not None]


def _close(libraries: list[Library]) -> None:
    """Outside the lock: closing writes to the disk, and a space that comes back meanwhile may open its own."""
    for library in libraries:
        library.close()
