"""How the library is: what is indexed, how large it is, which model finds by meaning, and what runs now."""

from __future__ import annotations

from pathlib import Path

from commonplace import __version__
from commonplace.library import Library
from commonplace.model import JSON
from commonplace.web.frame import Answer, Redirect, Sheet
from commonplace.web.page_jobs import Progress
from commonplace.web.visits import Visit
from commonplace.web.wording import counted, number_of

CHECK = "doctor"
_EVERY_S = 5


def health(library: Library, visit: Visit) -> Sheet:
    """Return the state of a library. It is cheap: what reads every byte is a job that is asked for."""
    status = library.status()
    coverage, jobs = status.coverage, [job.record() for job in visit.jobs]
    behind = max(0, status.changes - status.indexed)
    troubles = [*([status.index_trouble] if status.index_trouble else [])]
    if status.pending:
        troubles.append(status.pending.sentence)
    if behind:
        troubles.append(f"The index of words is {counted(behind, 'change')} behind. The next search brings it level.")
    record: dict[str, JSON] = {
        "version": __version__,
        "items": {kind: count for kind, count in status.items.items() if count},
        "counts": [number_of(kind, count) for kind, count in status.items.items() if count],
        "passages": status.chunks,
        "embedded": coverage.embedded,
        "share": coverage.embedded / coverage.total if coverage.total else 1.0,
        "model": coverage.model,
        "better_model": status.better_model,
        "switching": {
            "model": status.switching.model,
            "done": status.switching.embedded,
            "total": status.switching.total,
        }
        if status.switching
        else None,
        "changes": status.changes,
        "behind": behind,
        "troubles": troubles,
        "sizes": _sizes(library.folder) if not visit.settings.store else [],
        "place": str(library.folder) if visit.is_owner else None,
        "jobs": jobs,
        "checked": next((job for job in jobs if job["name"] == CHECK), None),
    }
    busy = bool(status.pending or status.switching or any(job["running"] for job in jobs))
    return Sheet("health.html", "Health", record, "health", refresh=2 if busy else _EVERY_S * 6)


def check(library: Library, visit: Visit) -> Answer:
    """Begin to read every byte and say what is wrong."""
    visit.start(CHECK, "Check everything", _checking)
    return Redirect("/health")


def _checking(library: Library, progress: Progress) -> str:
    problems = library.doctor()
    return " ".join(problems) if problems else "Every byte was read, and everything is in order."


def _sizes(folder: Path) -> list[dict[str, JSON]]:
    """Return the bytes on disk: of what is kept, and of indexes, which can be made again."""
    kept = sum(file.stat().st_size for file in folder.glob("library.db*"))
    indexes = sum(_size(place) for place in folder.glob("index-*"))
    return [{"name": "What is kept", "bytes": kept}, {"name": "Indexes, which can be made again", "bytes": indexes}]


def _size(folder: Path) -> int:
    total = 0
    for file in folder.rglob("*"):
        try:
            total += file.stat().st_size if file.is_file() else 0
        except OSError:  # an index was being written
            continue
    return total
