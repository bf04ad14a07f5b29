"""The folders of the spaces a server is asked about, watched beside its calls.

Of all the servers of a home one watches a space, whichever has its lock; the system takes the lock back from a process
that ends, however it ends, and the next one goes on. Nothing is loaded for it before the first call is over.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING

from commonplace.errors import CommonplaceError
from commonplace.library import Library
from commonplace.server.libraries import Libraries

if TYPE_CHECKING:
    from commonplace.kinds.documents.folders.folders import Report

log = logging.getLogger(__name__)

MOST_SPACES = 16
"""How many spaces are watched at once, those that were used last. Each takes one of the listeners the system has."""
SETTLE_S = 1.0
"""After the first call of a space: those that come right behind it have the machine to themselves."""
TURN_S = 1.0
"""How long who waits for the lock lets it be before it asks again."""
AGAIN_S = 30.0
"""When watching that failed is begun again."""
PATIENCE_S = 5.0

Wrote = Callable[[str], None]
"""Told of a space whose folders brought something new."""


class Watching:
    """Threads may share it."""

    def __init__(self, libraries: Libraries, wrote: Wrote = lambda space: None, say: Callable[[str], None] = log.info):
        """`say` hears what was read of a folder, and why one cannot be read."""
        self._libraries, self._wrote, self._say = libraries, wrote, say
        self._spaces: OrderedDict[str, _SpaceWatch] = OrderedDict()  # the least recently used first
        self._lock = threading.Lock()
        self._closed = False

    def visit(self, space: str) -> None:
        """A space is used: watch its folders from now on, in place of those of another where that is one too many."""
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
        """End, and wait a moment for the files that are being read. What is left is read another time."""
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
        """Wait until no other process watches, and do it until told to stop, or until the library is outdated."""
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
