"""Work beside the calls: vectors, summaries and tables are brought level, and folders are watched."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING

from commonplace.errors import CommonplaceError
from commonplace.library import Library
from commonplace.server.libraries import Libraries

if TYPE_CHECKING:
    from commonplace.kinds.documents.folders.library_folders import Report

log = logging.getLogger(__name__)

SETTLE_S = 1.0
"""The seconds after a write before work begins: what follows at once is included."""
AGAIN_S = 30.0
"""The seconds until a space is looked at again: for what is left, what other processes wrote, a watch that failed."""
PATIENCE_S = 5.0
"""The seconds that closing waits for the current step, or for files that are being read."""
MOST_SPACES = 16
"""The number of spaces watched at once, the last used. Each takes one of the system's file listeners."""
TURN_S = 1.0
"""The seconds between attempts to take the lock of a space's watch."""

Wrote = Callable[[str], None]
"""Called with a space whose folders brought something new."""


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


class Watching:
    """The watches of all spaces. Threads may share it."""

    def __init__(self, libraries: Libraries, wrote: Wrote = lambda space: None, say: Callable[[str], None] = log.info):
        """Take the libraries; `say` is called with what was read of a folder, and why one cannot be read."""
        self._libraries, self._wrote, self._say = libraries, wrote, say
        self._spaces: OrderedDict[str, _SpaceWatch] = OrderedDict()  # the least recently used first
        self._lock = threading.Lock()
        self._closed = False

    def visit(self, space: str) -> None:
        """Watch the folders of a space from now on; where that is one too many, the least recently used is dropped."""
        with self._lock:
            if self._closed:
                return
            if space in self._spaces:
                self._spaces.move_to_end(space)
                return
            watch = _SpaceWatch(self._libraries, space, self._wrote, self._say)
            try:
                watch.start()
            except RuntimeError as error:  # the system has no thread to give; the next call tries again
                log.warning("Folders have to wait: %s", error)
                return
            self._spaces[space] = watch
            if len(self._spaces) > MOST_SPACES:
                self._spaces.popitem(last=False)[1].stop.set()

    def close(self) -> None:
        """End, and wait up to `PATIENCE_S` for files that are being read. The rest is read another time."""
        with self._lock:
            self._closed = True
            watches = list(self._spaces.values())
            self._spaces.clear()
        for watch in watches:
            watch.stop.set()
        for watch in watches:
            watch.join(PATIENCE_S)


class _SpaceWatch(threading.Thread):
    def __init__(self, libraries: Libraries, space: str, wrote: Wrote, say: Callable[[str], None]) -> None:
        super().__init__(name=f"watch-{space}", daemon=True)
        self._libraries, self._space, self._wrote, self._say = libraries, space, wrote, say
        self.stop = threading.Event()

    def run(self) -> None:
        self.stop.wait(SETTLE_S)
        while not self.stop.is_set():
            try:
                with self._libraries.borrow(self._space) as library:
                    self._watch(library)
            except CommonplaceError as error:  # such as a store that is away for a while
                log.info("Folders of the space %s have to wait: %s", self._space, error)
                self.stop.wait(AGAIN_S)
            except Exception:  # the thread's own door: nobody else would hear of it, and the next time may go well
                log.warning("Watching the folders of the space %s failed", self._space, exc_info=True)
                self.stop.wait(AGAIN_S)

    def _watch(self, library: Library) -> None:
        """Wait until no other process watches, then watch until told to stop or until the library is outdated."""
        from commonplace.kinds.documents.folders.locks import watch_lock

        def updated(name: str, report: Report) -> None:
            library.upkeep.on_write.embed(report.after)
            self._wrote(self._space)
            self._say(f"{name}: {report.line()}")

        def failed(name: str, sentence: str) -> None:
            self._say(sentence)

        with watch_lock(library.folder, self.stop, TURN_S):
            if not self.stop.is_set():
                library.folders.watch(self.stop, unread=False, embed=False, updated=updated, failed=failed)
