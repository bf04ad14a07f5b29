"""The open libraries of a server: a bounded number, each opened once, none closed while in use."""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager

from commonplace.errors import StorageBroken, Unavailable
from commonplace.library import Library
from commonplace.settings import Settings
from commonplace.space import SPACES
from commonplace.store.sqlite.connection import identity_of


class _Slot:
    """The entry of one space, whether its library is open yet or not."""

    def __init__(self) -> None:
        self.library: Library | None = None
        self.borrowers = 0
        self.opening = threading.Lock()

    @property
    def is_outdated(self) -> bool:
        """True if a shared store was replaced by a backup: the library's indexes follow another log then."""
        return self.library is not None and self.library.store.replaced


class Libraries:
    """The open libraries by space; the least recently used is closed first. Threads may share it."""

    def __init__(self, settings: Settings, most: int | None = None) -> None:
        self._settings = settings
        self._most = settings.open_libraries if most is None else most
        self._slots: OrderedDict[str, _Slot] = OrderedDict()  # the least recently used first
        self._lock = threading.Lock()
        self._closed = False
        self._home = settings.home.expanduser() / SPACES
        self._known_home = self._home_identity()

    def check_home(self) -> None:
        """Raise StorageBroken if the home was removed or replaced: a space would be created anew in its place."""
        if self._known_home is not None and self._home_identity() != self._known_home:
            raise StorageBroken(
                f"{self._home.parent} was removed or replaced while it was served. Nothing was stored: put it back, or "
                "start Commonplace again."
            )

    @contextmanager
    def borrow(self, space: str) -> Iterator[Library]:
        """Lend a space's library for a block. More than the bound are open only while all of them are in use."""
        slot = self._enter(space)
        try:
            yield self._library(slot, space)
        finally:
            self._leave(space, slot, self._most)

    @contextmanager
    def borrow_open(self, space: str) -> Iterator[Library | None]:
        """Lend the library for a block if it is open, else None. Opens, closes and waits for nothing."""
        with self._lock:
            slot = self._slots.get(space)
            library = slot.library if slot else None
            if slot is not None and library is not None:
                slot.borrowers += 1
        try:
            yield library
        finally:
            if slot is not None and library is not None:
                self._leave(space, slot, math.inf)

    def peek(self, space: str) -> Library | None:
        """Return the library if it is open now; it may be closed at any time. Opens and holds nothing."""
        slot = self._slots.get(space)
        return slot.library if slot else None

    def opened(self) -> Iterator[Library]:
        """Yield the open libraries one after another, each lent while it is used."""
        with self._lock:
            spaces = list(self._slots)
        for space in spaces:
            with self.borrow_open(space) as library:
                if library is not None:
                    yield library

    def close(self) -> None:
        """Close every library, those in use once they are returned. Nothing is lent from now on."""
        with self._lock:
            self._closed = True
            idle = self._take_idle(0)
        _close(idle)

    def _enter(self, space: str) -> _Slot:
        with self._lock:
            if self._closed:
                raise Unavailable("The server is shutting down. Try again in a moment.")
            outdated = self._take_outdated(space)
            slot = self._slots.setdefault(space, _Slot())
            slot.borrowers += 1
            self._slots.move_to_end(space)
            idle = self._take_idle(self._most)
        _close(outdated + idle)
        return slot

    def _library(self, slot: _Slot, space: str) -> Library:
        with slot.opening:  # others who want this space wait here, and nobody else does
            if slot.library is None:
                self.check_home()
                slot.library = Library.open(self._settings.home, space, self._settings)
                self._known_home = self._known_home or self._home_identity()
            return slot.library

    def _home_identity(self) -> tuple[int, int] | None:
        """Return what tells the home's folder from another; None for no folder yet, or one that holds only indexes."""
        return None if self._settings.store else identity_of(self._home)

    def _leave(self, space: str, slot: _Slot, most: float) -> None:
        """Return a library, and close idle ones until no more than `most` are left."""
        with self._lock:
            slot.borrowers -= 1
            if slot.library is None and not slot.borrowers:
                del self._slots[space]  # it could not be opened
            is_out = self._slots.get(space) is not slot
            outdated = [slot.library] if slot.library and is_out and not slot.borrowers else []
            idle = self._take_idle(0 if self._closed else most)
        _close(outdated + idle)

    def _take_outdated(self, space: str) -> list[Library]:
        """Remove an outdated library and return it if idle; else its last user closes it. Needs the lock."""
        slot = self._slots.get(space)
        if slot is None or slot.library is None or not slot.is_outdated:
            return []
        del self._slots[space]
        return [] if slot.borrowers else [slot.library]

    def _take_idle(self, most: float) -> list[Library]:
        """Remove and return the least recently used idle libraries until `most` are left. Needs the lock."""
        surplus = len(self._slots) - most
        if surplus <= 0:
            return []
        idle = [space for space, slot in self._slots.items() if not slot.borrowers][: int(surplus)]
        taken = [self._slots.pop(space).library for space in idle]
        return [library for library in taken if library is not None]


def _close(libraries: list[Library]) -> None:
    """Close libraries. Not under the lock: closing writes to disk, and a space may be opened again meanwhile."""
    for library in libraries:
        library.close()
