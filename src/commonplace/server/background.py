"""The work of a server between calls: pending vectors and summaries, one space at a time, in one thread."""

from __future__ import annotations

import logging
import math
import threading
import time

from commonplace.errors import CommonplaceError
from commonplace.server.libraries import Libraries

log = logging.getLogger(__name__)

SETTLE_S = 1.0
"""The seconds after a write before work begins: what follows at once is included."""
AGAIN_S = 30.0
"""The seconds until a space is looked at again: for work that is left, and for writes of other processes."""
PATIENCE_S = 5.0


class Background:
    """The thread that does pending work. It holds no lock or resource that a call waits for."""

    def __init__(self, libraries: Libraries) -> None:
        self._libraries = libraries
        self._due: dict[str, float] = {}
        self._looked: dict[str, float] = {}
        """When a call last asked for each space to be looked at."""
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._closed = False

    def nudge(self, space: str, *, wrote: bool) -> None:
        """Schedule a look at a space after a call, if the call wrote or is the first in a while."""
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
        """Start the thread; where the system has none to give, log it, and the next call tries again."""
        thread = threading.Thread(target=self._run, name="background", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            log.warning("Pending work has to wait: %s", error)
        else:
            self._thread = thread

    def close(self) -> None:
        """Begin nothing new, and wait up to `PATIENCE_S` for the current step. The rest is done another time."""
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
        """Wait for the next space that is due and return it; None when the server ends."""
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
        """Do pending work of a space and return whether some is left. A closed library waits until it is used again."""
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
