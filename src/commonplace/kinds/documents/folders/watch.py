"""Keeping collections level with their folders while people write: events where the system has them, looks where not.

An event only says that a collection may have changed; what has changed is always found by an update, which opens no
file that is as it was. So an event too many costs little, and one that got lost is made up for by the next look.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from commonplace.errors import Busy, CommonplaceError, Unavailable
from commonplace.ingest.embedding import Embedding
from commonplace.kinds.documents.folders.collections import Collection, all_collections, find_collection
from commonplace.kinds.documents.folders.ignore import GIT_RULE_FILE, RULE_FILE
from commonplace.kinds.documents.folders.update import Report, update
from commonplace.kinds.documents.folders.walk import SKIPPED_FOLDERS, is_inside
from commonplace.store.base import Store

if TYPE_CHECKING:
    from watchfiles import Change

log = logging.getLogger(__name__)

DEBOUNCE_MS, QUIET_MS, WAKE_MS = 500, 100, 1000
"""Events are gathered until none came for `QUIET_MS`, or for `DEBOUNCE_MS`; without any, it turns once a second."""

POLL_S, SHARE = 1.0, 20
"""A folder without events is looked at every second, and for no more than a twentieth of the time."""

SLOW_S, LONGEST_REST_S = 0.25, 2.0
CERTAIN_S = 60.0
"""How often a folder with events is looked at all the same."""

AGAIN_S = 30.0
"""When vectors that could not be made are tried again."""

_WITHOUT_EVENTS = ("nfs", "cifs", "smb", "9p", "fuse", "vboxsf", "afs", "ceph", "glusterfs", "drvfs", "virtiofs")
_MOUNTS = Path("/proc/self/mounts")

Updated = Callable[[str, Report], None]
Failed = Callable[[str, str], None]


class Stopped(Exception):
    """Somebody has set the event. What was under way is not done, or goes on where it was another time."""


def until(stop: threading.Event) -> Callable[[int, int], None]:
    """What looks, whenever something tells how far it is, whether to go on."""

    def look(done: int, total: int) -> None:
        if stop.is_set():
            raise Stopped

    return look


class Watch:
    """Watches until it is told to stop. `updated` hears of every change, `failed` of every new trouble, once."""

    def __init__(
        self,
        store: Store,
        folder: Path,
        stop: threading.Event,
        *,
        names: Iterable[str] = (),
        wanted: Callable[[Collection], bool] = lambda collection: True,
        updated: Updated,
        failed: Failed,
    ) -> None:
        """`names`: those to watch, which have to be there; none: all, and of them those that are `wanted`."""
        self._store, self._folder, self._stop = store, folder, stop
        self._names, self._wanted = tuple(names), wanted
        self._updated, self._failed = updated, failed
        self._looked: dict[str, tuple[float, float]] = {}
        """When a collection was last looked at, and how long that took."""
        self._trouble: dict[str, str] = {}
        self._deaf: set[str] = set()
        """Roots whose events the system would not give."""

    def run(self) -> None:
        for name in self._names:
            find_collection(self._store, name)
        for collection in self._collections():
            self._update(collection)
        while not self._stop.is_set():
            try:
                if self._is_outdated():
                    return
                self._turn()
            except (Busy, Unavailable) as error:  # a store that others share may be away for a while
                self._tell("", str(error))
                self._stop.wait(POLL_S)

    def _turn(self) -> None:
        collections = self._collections()
        self._trouble.pop("", None)
        heard = [found for found in collections if self._has_events(found)]
        if heard:
            self._listen(collections, heard)
        else:
            self._stop.wait(POLL_S)
            self._look(collections, set())

    def _is_outdated(self) -> bool:
        """Whether a backup was put in the place of the store: what goes with it, such as its indexes, is another's."""
        self._store.last_change()
        return self._store.replaced

    def _collections(self) -> list[Collection]:
        found = all_collections(self._store)
        named = [collection for collection in found if not self._names or collection.name in self._names]
        return [collection for collection in named if self._wanted(collection)]

    def _has_events(self, collection: Collection) -> bool:
        root = str(collection.root)
        return root not in self._deaf and collection.root.is_dir() and not _is_remote(root)

    def _listen(self, collections: list[Collection], heard: list[Collection]) -> None:
        """Until the collections, or what is known of their folders, are others."""
        from watchfiles import Change, watch

        roots = sorted({str(collection.root) for collection in heard})
        known, first = self._standing(collections), True

        def matters(change: Change, path: str) -> bool:
            return path in roots or self._matters(change, path)

        try:
            for events in watch(
                *roots, watch_filter=matters, debounce=DEBOUNCE_MS, step=QUIET_MS, stop_event=self._stop,
                rust_timeout=WAKE_MS, yield_on_timeout=True, raise_interrupt=False,
            ):  # fmt: skip
                paths = {path for _, path in events}
                self._look(collections, {found.name for found in heard if first or _concerned(found, paths)})
                first = False  # what was written before the system listened is found by the first look
                gone = {path for change, path in events if change is Change.deleted}
                if self._is_outdated():
                    return
                if self._standing(self._collections()) != known or not gone.isdisjoint(roots):
                    return  # nothing is heard of a root made anew, which may have the number of the old one
        except (OSError, RuntimeError) as error:  # no more watches to be had, or a root that has just gone
            log.info("No events for %s: %s", ", ".join(roots), error)
            self._deaf.update(root for root in roots if Path(root).is_dir())

    def _standing(self, collections: list[Collection]) -> list[tuple[Collection, int]]:
        """The collections and which folder each root is now: 0 where there is none. A new one needs a new ear."""
        return [(found, _inode(found.root) if self._has_events(found) else 0) for found in collections]

    def _look(self, collections: list[Collection], changed: set[str]) -> None:
        for collection in collections:
            if self._stop.is_set():
                return
            if collection.name in changed or self._is_due(collection):
                self._update(collection)

    def _is_due(self, collection: Collection) -> bool:
        ended, took = self._looked.get(collection.name, (0.0, 0.0))
        pause = CERTAIN_S if self._has_events(collection) else POLL_S
        return time.monotonic() >= ended + max(pause, SHARE * took)

    def _update(self, collection: Collection) -> None:
        name, started = collection.name, time.monotonic()
        try:
            report = update(self._store, name, self._folder, progress=until(self._stop))
            if report.changed:
                self._updated(name, report)
        except Stopped:
            return
        except CommonplaceError as error:
            self._tell(name, str(error))
        except Exception as error:  # the loop outlives whatever one collection does to it
            log.exception("Updating %s failed", name)
            self._tell(name, f"{name} could not be updated: {error}")
        else:
            self._trouble.pop(name, None)
        ended = time.monotonic()
        self._looked[name] = ended, ended - started
        if ended - started > SLOW_S:
            self._stop.wait(min(ended - started, LONGEST_REST_S))  # half the time is enough, however busy the folder

    def _tell(self, name: str, sentence: str) -> None:
        if self._trouble.get(name) != sentence:
            self._trouble[name] = sentence
            self._failed(name, sentence)

    def _matters(self, change: Change, path: str) -> bool:
        """Whether an event can change a collection. Our own files may lie in a folder we watch."""
        if is_inside(path, str(self._folder)):
            return False
        name = path.rpartition("/")[2]
        return name in (RULE_FILE, GIT_RULE_FILE) or not name.startswith(".")


def _inode(root: Path) -> int:
    """0 for a root that has gone since somebody looked."""
    try:
        return root.stat().st_ino
    except OSError:
        return 0


def _concerned(collection: Collection, paths: set[str]) -> bool:
    root = str(collection.root)
    return any(path == root or (is_inside(path, root) and _is_open(path[len(root) + 1 :])) for path in paths)


def _is_open(path: str) -> bool:
    """Whether no folder on the way is one that a walk would pass by."""
    *folders, _ = path.split("/")
    return not any(folder.startswith(".") or folder in SKIPPED_FOLDERS for folder in folders)


def _is_remote(root: str) -> bool:
    """Whether a folder lies on a file system whose other users' writes make no events here."""
    try:
        mounts = [line.split(" ") for line in _MOUNTS.read_text("utf-8", errors="replace").splitlines()]
    except OSError:
        return False
    over = [(len(place), kind) for _, place, kind, *_ in mounts if root == place or is_inside(root, place)]
    return bool(over) and max(over)[1].startswith(_WITHOUT_EVENTS)


class EmbeddingThread(threading.Thread):
    """Makes the vectors that are pending whenever it is asked to, beside the watching, so that words never wait."""

    def __init__(self, embedding: Embedding, stop: threading.Event, failed: Callable[[str], None]) -> None:
        super().__init__(name="commonplace-embed", daemon=True)
        self._embedding, self._stop_event, self._failed = embedding, stop, failed
        self._wanted = threading.Event()

    def want(self) -> None:
        self._wanted.set()

    def finish(self, patience: float) -> bool:
        """After the stop event: wake, and wait for the step that is running; returns whether that is done."""
        self._wanted.set()
        self.join(timeout=patience)
        return not self.is_alive()

    def run(self) -> None:
        failed = ""
        while True:
            self._wanted.wait(AGAIN_S if failed else None)
            self._wanted.clear()
            if self._stop_event.is_set():
                return
            if self._embedding.chosen is None:
                continue  # the first vectors are made by a command that says so
            before, failed = failed, ""
            try:
                self._embedding.embed(until(self._stop_event))
            except Stopped:
                return
            except CommonplaceError as error:
                failed = str(error)
            except Exception as error:  # as above
                log.exception("Embedding failed")
                failed = f"Embedding failed: {error}"
            if failed and failed != before:
                self._failed(failed)
