"""The time at which each folder was last walked from this home.

A folder lies on one machine, and so does a home: each home keeps its own record, also where servers share a database.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import threading
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from commonplace.kinds.documents.folders.folder_collections import Collection

log = logging.getLogger(__name__)

_FOLDER = "looks"


@dataclass(frozen=True, slots=True)
class FolderLook:
    """A complete walk of a folder: when it ended and how long it took."""

    at: datetime
    seconds: float
    """The duration of the walk, without reading files."""


def note_look(folder: Path, collection: Collection, seconds: float) -> None:
    """Store that a collection has just been updated, after a walk of `seconds`. `folder` is the library's."""
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
    """Return the last walk from this home, or None."""
    try:
        record = json.loads(_path(folder, collection).read_text("utf-8"))
        return FolderLook(datetime.fromisoformat(record["at"]), float(record["seconds"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def move_look(folder: Path, old: Collection, new: Collection) -> None:
    """Carry the last walk of a renamed collection over to its new name."""
    try:
        _path(folder, old).replace(_path(folder, new))
    except OSError:
        log.debug("There is no look to move")


def _path(folder: Path, collection: Collection) -> Path:
    """Return the file of a collection's record. The same name with another root has another one."""
    key = f"{collection.name}\n{collection.root}".encode("utf-8", "surrogatepass")
    return folder / _FOLDER / f"{hashlib.sha256(key).hexdigest()[:16]}.json"
