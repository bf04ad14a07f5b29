"""What a server does beside its calls: vectors and summaries that are pending, one space at a time, in one thread."""

from __future__ import annotations

import logging
import math
import threading
import time

from commonplace.errors import CommonplaceError
from commonplace.server.libraries import Libraries

log = logging.getLogger(__name__)

SETTLE_S = 1.0
"""After a write: what comes right behind it is done with it."""
AGAIN_S = 30.0
"""When a space is looked at again: for what is left, and for what other processes wrote meanwhile."""
PATIENCE_S = 5.0


class Background:
    """Sleeps until a space is named. Never in the way of a call: it holds nothing that one waits for."""

    def __init__(self, libraries: Libraries) -> None:
        self._libraries = libraries
        self._due: dict[str, float] = {}
        self._looked: dict[str, float] = {}
        """When a call last had a space looked at."""
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._closed = False

    def nudge(self, space: str, *, wrote: bool) -> None:
        """A call was made: look at the space soon, if the call wrote or is the first in a while."""
        now = time.monotonic()
        if not wrote and now < self._looked.get(space, -math.inf) + AGAIN_S:
            return
        with self._changed:
            if self._closed:
                return
            self._looked[space] = now
            self._due.setdefault(space, now + SETTLE_S)
            if self._thread is None:
                self._start()
            self._changed.notify()

    def _start(self) -> None:
        """A call is no worse for it where the system has no thread to give: the next one tries again."""
        thread = threading.Thread(target=self._run, name="background", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            log.warning("Pending work has to wait: %s", error)
        else:
            self._thread = thread

    def close(self) -> None:
        """Begin nothing new, and wait a moment for the step that is under way. What is left is done another time."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join(PATIENCE_S)

    def is_closing(self) -> bool:
        return self._closed

    def _run(self) -> None:
        while (space := self._next()) is not None:
            left = self._tend(space)
            with self._changed:
                if left:
                    self._due.setdefault(space, time.monotonic() + AGAIN_S)

    def _next(self) -> str | None:
        """The space whose time has come, or None when the server ends."""
        with self._changed:
            while not self._closed:
                if self._due:
                    space = min(self._due, key=self._due.__getitem__)
                    wait = self._due[space] - time.monotonic()
                    if wait <= 0:
                        del self._due[space]
                        return space
                self._changed.wait(wait if self._due else None)
        return None

    def _tend(self, space: str) -> bool:
        """Whether something is left. A library that was closed meanwhile is left until somebody uses it again."""
        if self._libraries.peek(space) is None:
            self._looked.pop(space, None)
            return False
        try:
            with self._libraries.borrow(space) as library:
                return library.tend(self.is_closing)
        except CommonplaceError as error:  # such as a store that is away for a while
            log.warning("Pending work in the space %s has to wait: %s", space, error)
            return True
        except Exception:  # the worker's own door: nobody else would hear of it, and the next look may go well
            if not self._closed:
                log.warning("Pending work in the space %s failed", space, exc_info=True)
            return True
