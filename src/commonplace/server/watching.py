"""The folders of the spaces that a server serves, watched between its calls.

Of all the servers of a home, the one with its lock watches a space. The system releases the lock when a process ends,
however it ends, and the next server goes on. Nothing is loaded for this before the first call is over.
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
    from commonplace.kinds.documents.folders.library_folders import Report

log = logging.getLogger(__name__)

MOST_SPACES = 16
"""The number of spaces watched at once, the last used. Each takes one of the system's file listeners."""
SETTLE_S = 1.0
"""The seconds after the first call of a space before watching begins, so that calls right behind it are not slowed."""
TURN_S = 1.0
"""The seconds between attempts to take the lock."""
AGAIN_S = 30.0
"""The seconds until watching that failed begins again."""
PATIENCE_S = 5.0

Wrote = Callable[[str], None]
"""Called with a space whose folders brought something new."""


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
