"""Where documents come from: folders that are kept level, what was left out of them, and what is said about them."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from commonplace.errors import CommonplaceError, Denied, InvalidInput, NotFound
from commonplace.kinds.documents.collection_files import CollectionFiles
from commonplace.kinds.documents.folders.folder_collections import Collection
from commonplace.kinds.documents.folders.locks import last_look
from commonplace.library import Library
from commonplace.model import JSON
from commonplace.profiles.commonplace.browsing import collection_names
from commonplace.store.listing import Listing
from commonplace.web.frame import Answer, Redirect, Sheet
from commonplace.web.page_jobs import Progress, Work
from commonplace.web.paths import with_query
from commonplace.web.visits import Visit
from commonplace.web.wording import counted

ONE = "/sources/one"
_MOST_NAMED = 50
"""Skipped files that are named for one reason."""
_REASONS = {
    "OUTSIDE_COLLECTION": "a link that leads out of the folder",
    "BINARY": "not text, and of no format that is read",
    "TOO_LARGE": "larger than 16 MB",
    "EMPTY": "nothing in it, or no text, such as a scan",
    "BAD_NAME": "a name with control characters, or one that is no UTF-8",
    "DAMAGED": "not what its ending promises",
    "TOO_SLOW": "a PDF that takes too long to read",
    "CHANGED_WHILE_READ": "it was being written; the next sync tries again",
    "EACCES": "this user may not read it",
    "ENOENT": "it went away meanwhile",
}
"""The codes of files that were left out, in words."""
_ONLY_OWNER = (
    "Folders are added by whoever runs this server, with `commonplace add`: the page would read any of its files."
)


def sources(library: Library, visit: Visit) -> Sheet:
    """Return the collections of documents."""
    return _sources(library, visit)


def _sources(library: Library, visit: Visit, problem: str = "", status: int = 200) -> Sheet:
    counts = library.store.drawer(Listing).parents("document")
    folders = library.folders.all()
    known = {folder.name for folder in folders}
    names = collection_names(library, counts)
    record: dict[str, JSON] = {
        "folders": [
            {
                "name": folder.name,
                "path": with_query(ONE, name=folder.name),
                "root": str(folder.root),
                "files": folder.files,
                "documents": counts.get(folder.name, 0),
                "looked_at": _looked_at(library, folder),
                "job": _job(visit, folder.name),
            }
            for folder in folders
        ],
        "others": [
            {"name": names[key], "path": with_query("/", **{"in": key}), "documents": count}
            for key, count in counts.items()
            if key not in known
        ],
        "error": {"code": "invalid_argument", "message": problem} if problem else None,
    }
    running = any(folder["job"] and folder["job"]["running"] for folder in record["folders"])
    beside = {"problem": problem, "typed": {name: visit.field(name) for name in ("root", "name")}}
    refresh = 2 if running else 0
    return Sheet("sources.html", "Sources", record, "sources", status=status, beside=beside, refresh=refresh)


def source(library: Library, visit: Visit) -> Sheet:
    """Return one folder: how much of it is found, what was left out and why, and its descriptions."""
    return _source(library, visit, _folder(library, visit.query.get("name", "")))


def _source(library: Library, visit: Visit, folder: Collection, problem: str = "") -> Sheet:
    documents = library.store.drawer(Listing).parents("document").get(folder.name, 0)
    lacking = library.embedding.documents_lacking([folder.name])
    job = _job(visit, folder.name)
    record: dict[str, JSON] = {
        "name": folder.name,
        "root": str(folder.root),
        "files": folder.files,
        "ignore": list(folder.ignore),
        "documents": documents,
        "embedded": documents - min(lacking, documents),
        "share": 1 - min(lacking, documents) / documents if documents else 0.0,
        "looked_at": _looked_at(library, folder),
        "is_here": folder.root.is_dir(),
        "skipped": _skipped(library, folder),
        "contexts": [{"path": path, "text": text} for path, text in sorted(folder.contexts.items())],
        "job": job,
        "search": with_query("/", **{"in": folder.name}),
        "error": {"code": "invalid_argument", "message": problem} if problem else None,
    }
    beside = {"problem": problem, "typed": {name: visit.field(name) for name in ("place", "text")}}
    status, refresh = (400 if problem else 200), (2 if job and job["running"] else 0)
    return Sheet("source.html", folder.name, record, "sources", status=status, beside=beside, refresh=refresh)


def add(library: Library, visit: Visit) -> Answer:
    """Make a folder of this machine a collection, and begin to read it."""
    if not visit.is_owner:
        raise Denied(_ONLY_OWNER)
    root, name = visit.field("root").strip(), visit.field("name").strip()
    try:
        if not root:
            raise InvalidInput("Name a folder, such as ~/notes.")
        folder = library.folders.add(Path(root), name or None)
    except CommonplaceError as error:
        return _sources(
            library, visit, str(error).replace(" Give this one a --name.", " Give it a name."), error.status
        )
    return _sync(visit, folder.name)


def sync(library: Library, visit: Visit) -> Answer:
    """Begin to bring a collection level with its folder."""
    return _sync(visit, _folder(library, visit.field("name")).name)


def describe(library: Library, visit: Visit) -> Answer:
    """Store or remove what is said about a folder or a file, which agents read with its documents."""
    folder, place = _folder(library, visit.field("name")), visit.field("place").strip()
    try:
        if visit.field("remove"):
            library.folders.remove_context(folder.name, place)
        else:
            library.folders.set_context(folder.name, place, visit.field("text"))
    except (InvalidInput, NotFound) as error:
        return _source(library, visit, folder, str(error))
    return Redirect(with_query(ONE, name=folder.name))


def _sync(visit: Visit, name: str) -> Redirect:
    visit.start(f"sync {name}", f"Sync {name}", _syncing(name))
    return Redirect(with_query(ONE, name=name))


def _syncing(name: str) -> Work:
    def work(library: Library, progress: Progress) -> str:
        report = library.folders.update(name, progress=progress)
        return f"{report.line()}."

    return work


def _folder(library: Library, name: str) -> Collection:
    try:
        return library.folders.get(name)
    except NotFound:
        raise NotFound(f'There is no folder called "{name}" in this library. Sources lists those there are.') from None


def _job(visit: Visit, name: str) -> dict[str, JSON] | None:
    job = visit.find_job(f"sync {name}")
    return job.record() if job else None


def _looked_at(library: Library, folder: Collection) -> str | None:
    look = last_look(library.folder, folder)
    return look.at.isoformat() if look else None


def _skipped(library: Library, folder: Collection) -> list[dict[str, JSON]]:
    """Return the files that were left out, by reason."""
    paths: defaultdict[str, list[str]] = defaultdict(list)
    for path, record in library.store.drawer(CollectionFiles).records(folder.name).items():
        if record.skipped:
            paths[record.skipped].append(path)
    return [
        {
            "code": code,
            "reason": _REASONS.get(code, "it could not be read"),
            "said": counted(len(files), "file"),
            "files": sorted(files)[:_MOST_NAMED],
            "count": len(files),
        }
        for code, files in sorted(paths.items())
    ]
