"""Update collections while people write in their folders: on file events where the system has them, else by polling.

An event only says that a collection may have changed; what has changed is always found by an update, which opens no
file that is as it was. So a needless event costs little, and a lost one is made up for by the next poll.
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
from commonplace.kinds.documents.folders.folder_collections import Collection, all_collections, find_collection
from commonplace.kinds.documents.folders.update import Report, update
from commonplace.kinds.documents.folders.walk import GIT_RULE_FILE, RULE_FILE, SKIPPED_FOLDERS, is_inside
from commonplace.store.base import Store

if TYPE_CHECKING:
    from watchfiles import Change

log = logging.getLogger(__name__)

DEBOUNCE_MS, QUIET_MS, WAKE_MS = 500, 100, 1000
"""Events are gathered until none came for `QUIET_MS`, or for `DEBOUNCE_MS`; without any, `WAKE_MS` ends the wait."""

POLL_S, SHARE = 1.0, 20
"""A folder without events is polled every `POLL_S`, but after a pause of `SHARE` times what the last update took."""

SLOW_S, LONGEST_REST_S = 0.25, 2.0
CERTAIN_S = 60.0
"""The interval at which a folder with events is polled all the same."""

AGAIN_S = 30.0
"""The pause before embedding that failed is tried again."""

_WITHOUT_EVENTS = ("nfs", "cifs", "smb", "9p", "fuse", "vboxsf", "afs", "ceph", "glusterfs", "drvfs", "virtiofs")
_MOUNTS = Path("/proc/self/mounts")

Updated = Callable[[str, Report], None]
Failed = Callable[[str, str], None]


class Stopped(Exception):
    """The stop event is set. The work under way has been abandoned; another run goes on from what is stored."""


def until(stop: threading.Event) -> Callable[[int, int], None]:
    """Return a progress callback that raises Stopped once `stop` is set."""

    def check(done: int, total: int) -> None:
        if stop.is_set():
            raise Stopped

    return check


class Watch:
    """A loop that updates collections until `stop` is set.

    `updated` is called after every update that changed something, `failed` once for every new error.
    """

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
        """Watch the collections of these `names`, which have to exist, or all; of them, those that are `wanted`."""
        self._store, self._folder, self._stop = store, folder, stop
        self._names, self._wanted = tuple(names), wanted
        self._updated, self._failed = updated, failed
        self._last_updates: dict[str, tuple[float, float]] = {}
        """By name: when the last update ended, on the monotonic clock, and how many seconds it took."""
        self._trouble: dict[str, str] = {}
        """The last error of each collection by name; under "" that of the store."""
        self._deaf: set[str] = set()
        """Roots for which the system refused to send events."""

    def run(self) -> None:
        """Update all, then watch until `stop` is set or a backup has replaced the store. Raise NotFound for a name."""
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
                self._fail("", str(error))
                self._stop.wait(POLL_S)

    def _turn(self) -> None:
        collections = self._collections()
        self._trouble.pop("", None)
        with_events = [collection for collection in collections if self._has_events(collection)]
        if with_events:
            self._listen(collections, with_events)
        else:
            self._stop.wait(POLL_S)
            self._update_due(collections, set())

    def _is_outdated(self) -> bool:
        """Return whether a backup has replaced the store: our indexes and the like belong to the old one."""
        self._store.last_change()
        return self._store.replaced

    def _collections(self) -> list[Collection]:
        every = all_collections(self._store)
        named = [collection for collection in every if not self._names or collection.name in self._names]
        return [collection for collection in named if self._wanted(collection)]

    def _has_events(self, collection: Collection) -> bool:
        root = str(collection.root)
        return root not in self._deaf and collection.root.is_dir() and not _is_remote(root)

    def _listen(self, collections: list[Collection], with_events: list[Collection]) -> None:
        """Update on events, until the collections or the folders at their roots are no longer the same."""
        from watchfiles import Change, watch

        roots = sorted({str(collection.root) for collection in with_events})
        known, first = self._inodes(collections), True

        def matters(change: Change, path: str) -> bool:
            return path in roots or self._matters(change, path)

        try:
            for events in watch(
                *roots, watch_filter=matters, debounce=DEBOUNCE_MS, step=QUIET_MS, stop_event=self._stop,
                rust_timeout=WAKE_MS, yield_on_timeout=True, raise_interrupt=False,
            ):  # fmt: skip
                paths = {path for _, path in events}
                touched = {collection.name for collection in with_events if first or _concerned(collection, paths)}
                self._update_due(collections, touched)
                first = False  # files written before the system listened are found by the first update
                deleted = {path for change, path in events if change is Change.deleted}
                if self._is_outdated():
                    return
                if self._inodes(self._collections()) != known or not deleted.isdisjoint(roots):
                    return  # a root that was made anew sends no events, and may have the inode of the old one
        except (OSError, RuntimeError) as error:  # the system has no more watches, or a root has just gone
            log.info("No events for %s: %s", ", ".join(roots), error)
            self._deaf.update(root for root in roots if Path(root).is_dir())

    def _inodes(self, collections: list[Collection]) -> list[tuple[Collection, int]]:
        """Return each collection with the inode of its root, or 0 without events. A new inode needs a new watch."""
        return [(each, _inode(each.root) if self._has_events(each) else 0) for each in collections]

    def _update_due(self, collections: list[Collection], touched: set[str]) -> None:
        """Update the collections that events touched, and those that are due to be polled."""
        for collection in collections:
            if self._stop.is_set():
                return
            if collection.name in touched or self._is_due(collection):
                self._update(collection)

    def _is_due(self, collection: Collection) -> bool:
        ended, seconds = self._last_updates.get(collection.name, (0.0, 0.0))
        pause = CERTAIN_S if self._has_events(collection) else POLL_S
        return time.monotonic() >= ended + max(pause, SHARE * seconds)

    def _update(self, collection: Collection) -> None:
        name, started = collection.name, time.monotonic()
        try:
            report = update(self._store, name, self._folder, progress=until(self._stop))
            if report.changed:
                self._updated(name, report)
        except Stopped:
            return
        except CommonplaceError as error:
            self._fail(name, str(error))
        except Exception as error:  # the loop outlives whatever one collection does to it
            log.exception("Updating %s failed", name)
            self._fail(name, f"{name} could not be updated: {error}")
        else:
            self._trouble.pop(name, None)
        ended = time.monotonic()
        self._last_updates[name] = ended, ended - started
        if ended - started > SLOW_S:
            self._stop.wait(min(ended - started, LONGEST_REST_S))  # half the time is enough, however busy the folder

    def _fail(self, name: str, sentence: str) -> None:
        """Report an error, unless it is the same as the last of this collection."""
        if self._trouble.get(name) != sentence:
            self._trouble[name] = sentence
            self._failed(name, sentence)

    def _matters(self, change: Change, path: str) -> bool:
        """Return whether an event can concern a collection. Our own files in a watched folder do not count."""
        if is_inside(path, str(self._folder)):
            return False
        name = path.rpartition("/")[2]
        return name in (RULE_FILE, GIT_RULE_FILE) or not name.startswith(".")


def _inode(root: Path) -> int:
    """Return the inode of a root, or 0 where it is gone."""
    try:
        return root.stat().st_ino
    except OSError:
        return 0


def _concerned(collection: Collection, paths: set[str]) -> bool:
    root = str(collection.root)
    return any(path == root or (is_inside(path, root) and _is_open(path[len(root) + 1 :])) for path in paths)


def _is_open(path: str) -> bool:
    """Return whether a walk enters every folder on the way to a path."""
    *folders, _ = path.split("/")
    return not any(folder.startswith(".") or folder in SKIPPED_FOLDERS for folder in folders)


def _is_remote(root: str) -> bool:
    """Return whether a folder is on a network file system, where writes of other machines make no events here."""
    try:
        mounts = [line.split(" ") for line in _MOUNTS.read_text("utf-8", errors="replace").splitlines()]
    except OSError:
        return False
    above = [(len(point), kind) for _, point, kind, *_ in mounts if root == point or is_inside(root, point)]
    return bool(above) and max(above)[1].startswith(_WITHOUT_EVENTS)


class EmbeddingThread(threading.Thread):
    """A thread that makes pending vectors on request, so that the index of words never waits for them."""

    def __init__(self, embedding: Embedding, stop: threading.Event, failed: Callable[[str], None]) -> None:
        super().__init__(name="commonplace-embed", daemon=True)
        self._embedding, self._stop_event, self._failed = embedding, stop, failed
        self._wanted = threading.Event()

    def want(self) -> None:
        """Ask for the vectors that are pending by now."""
        self._wanted.set()

    def finish(self, patience: float) -> bool:
        """Wait up to `patience` seconds for the running step, once `stop` is set, and return whether it has ended."""
        self._wanted.set()
        self.join(timeout=patience)
        return not self.is_alive()

    def run(self) -> None:
        """Embed whenever asked, and again `AGAIN_S` after an error, until `stop` is set."""
        sentence = ""
        while True:
            self._wanted.wait(AGAIN_S if sentence else None)
            self._wanted.clear()
            if self._stop_event.is_set():
                return
            if self._embedding.chosen is None:
                continue  # the first vectors are made by a command that says so
            last_sentence, sentence = sentence, ""
            try:
                self._embedding.embed(until(self._stop_event))
            except Stopped:
                return
            except CommonplaceError as error:
                sentence = str(error)
            except Exception as error:  # the thread outlives any one failure
                log.exception("Embedding failed")
                sentence = f"Embedding failed: {error}"
            if sentence and sentence != last_sentence:
                self._failed(sentence)
