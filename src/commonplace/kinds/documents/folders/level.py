"""Compare a collection with its folder: whether the library holds what is on disk now."""

from __future__ import annotations

import errno
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from commonplace.errors import NotFound
from commonplace.ingest.files.read import Skipped
from commonplace.kinds.documents.folders.folder_collections import Collection
from commonplace.kinds.documents.folders.looks import last_look
from commonplace.kinds.documents.folders.update import (
    CHANGED,
    TAKES_IT_AWAY,
    is_current,
    is_settled,
    read_file,
    unreadable,
)
from commonplace.kinds.documents.folders.walk import FileStat, walk
from commonplace.store.base import Store
from commonplace.store.rows import FileRecord

LONG_S = 1.0
"""A folder whose last walk took longer is not walked only to report its state."""


@dataclass(frozen=True, slots=True)
class FolderState:
    """A collection compared with its folder: whether the two are level, and why that is not known."""

    collection: str
    root: Path
    looked_at: datetime | None
    """When it was last updated from this home; None: never."""
    level: bool | None
    """True: an update would change nothing. None: not examined, because walking takes long."""
    trouble: str = ""
    """Why the folder cannot be read, in a sentence."""


def state_of(store: Store, folder: Path, collection: Collection) -> FolderState:
    """Return the state of a collection. Its folder is walked unless that took longer than `LONG_S` the last time."""
    look, level, trouble = last_look(folder, collection), None, ""
    if look is None or look.seconds <= LONG_S:
        try:
            level = is_level(store, collection)
        except NotFound as error:
            level, trouble = False, str(error)
    return FolderState(collection.name, collection.root, look.at if look else None, level, trouble)


def is_level(store: Store, collection: Collection) -> bool:
    """Return whether an update would change nothing. Open only files whose times and sizes prove nothing.

    Raise NotFound where the root cannot be read.
    """
    try:
        survey = walk(collection.selection())
    except OSError as error:
        raise unreadable(collection, error) from error
    versions = store.document_versions(collection.name)
    paths = {file.path for file in survey.files}
    paths.update(path for path, code in survey.skipped if code not in TAKES_IT_AWAY)
    unlisted = tuple(survey.unlisted)
    if any(path not in paths and not path.startswith(unlisted) for path in versions):
        return False
    records, root = store.file_records(collection.name), collection.place
    return not any(_differs(root, file, records.get(file.path), versions) for file in survey.files)


def _differs(root: str, file: FileStat, record: FileRecord | None, versions: Mapping[str, int]) -> bool:
    """Return whether an update would do anything with a file that is there."""
    if record is not None and is_settled(record, file, versions):
        return False
    try:
        _, data = read_file(root, file)
    except Skipped as skipped:
        code = str(skipped)
    except OSError as error:
        code = errno.errorcode.get(error.errno or 0, "")
    else:
        return record is None or record.hash != hashlib.sha256(data).digest() or not is_current(record, versions)
    return code == CHANGED or (code in TAKES_IT_AWAY and file.path in versions)
