"""When each folder was last looked at from this home.

A folder lies on one machine, and so does a home: each keeps its own looks, also where servers share a database.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import threading
from datetime import UTC, datetime
from pathlib import Path

from commonplace.kinds.documents.folders.collections import Collection
from commonplace.lazy_dataclass import dataclass

log = logging.getLogger(__name__)

_FOLDER = "looks"


@dataclass(frozen=True, slots=True)
class FolderLook:
    """One look at a folder that found all there was to find."""

    at: datetime
    seconds: float
    """How long it took to see which files there are."""


def note_look(folder: Path, collection: Collection, seconds: float) -> None:
    """Remember that a collection was just brought level. `folder` is where the library lives."""
    path = _path(folder, collection)
    part = path.with_name(f"{path.name}.{os.getpid()}-{threading.get_ident()}.part")
    record = {"at": datetime.now(UTC).isoformat(), "seconds": round(seconds, 4)}
    try:
        path.parent.mkdir(exist_ok=True)
        part.write_text(json.dumps(record), "utf-8")
        part.replace(path)
    except OSError as error:  # the collection is level all the same
        log.info("When a folder was looked at could not be noted: %s", error.strerror)


def last_look(folder: Path, collection: Collection) -> FolderLook | None:
    """Return the last look from this home, or None."""
    try:
        record = json.loads(_path(folder, collection).read_text("utf-8"))
        return FolderLook(datetime.fromisoformat(record["at"]), float(record["seconds"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def move_look(folder: Path, old: Collection, new: Collection) -> None:
    """Keep the last look of a collection that is called otherwise now."""
    try:
        _path(folder, old).replace(_path(folder, new))
    except OSError:
        log.debug("There is no look to move")


def _path(folder: Path, collection: Collection) -> Path:
    """The same name with another root is another folder."""
    key = f"{collection.name}\n{collection.root}".encode("utf-8", "surrogatepass")
    return folder / _FOLDER / f"{hashlib.sha256(key).hexdigest()[:16]}.json"
