"""Work that takes longer than a page may: begun by a form, done in a thread of its own, watched on a screen."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from commonplace.errors import CommonplaceError
from commonplace.library import Library
from commonplace.model import JSON
from commonplace.server.libraries import Libraries
from commonplace.web.wording import duration

log = logging.getLogger(__name__)

MOST_KEPT = 20
"""Jobs of a library that are remembered after their end."""
Progress = Callable[[int, int], None]
Work = Callable[[Library, Progress], str]
"""Do the work, telling (done, total), and return its result in a sentence."""


@dataclass(slots=True)
class PageJob:
    """One piece of work, and how far it is."""

    name: str
    title: str
    started: float = field(default_factory=time.time)
    ended: float | None = None
    done: int = 0
    total: int = 0
    result: str = ""
    problem: str = ""

    def tell(self, done: int, total: int) -> None:
        self.done, self.total = done, total

    def record(self) -> dict[str, JSON]:
        """Return what a screen says of it: its rate a second and the time left, where they can be told."""
        seconds = (self.ended or time.time()) - self.started
        rate = self.done / seconds if self.done and seconds > 0 else 0.0
        left = (self.total - self.done) / rate if rate and self.total > self.done and self.ended is None else None
        return {
            "name": self.name,
            "title": self.title,
            "running": self.ended is None,
            "done": self.done,
            "total": self.total,
            "share": self.done / self.total if self.total else 0.0,
            "rate": round(rate, 1),
            "left": None if left is None else duration(left),
            "took": duration(seconds),
            "result": self.result,
            "problem": self.problem,
        }


class PageJobs:
    """The jobs of all libraries of a server. One with a name runs once at a time."""

    def __init__(self, libraries: Libraries, ended: Callable[[str], None]) -> None:
        """Take the libraries, and what is called with the space of a job that has ended."""
        self._libraries, self._ended = libraries, ended
        self._jobs: dict[str, list[PageJob]] = {}
        self._lock = threading.Lock()

    def of(self, space: str) -> list[PageJob]:
        """Return the jobs of a space, the latest first."""
        with self._lock:
            return list(reversed(self._jobs.get(space, [])))

    def find(self, space: str, name: str) -> PageJob | None:
        """Return the latest job of a name, or None."""
        return next((job for job in self.of(space) if job.name == name), None)

    def start(self, space: str, name: str, title: str, work: Work) -> PageJob:
        """Begin a job and return it, or the one of that name that runs already."""
        with self._lock:
            jobs = self._jobs.setdefault(space, [])
            for job in jobs:
                if job.name == name and job.ended is None:
                    return job
            job = PageJob(name, title)
            jobs.append(job)
            while len(jobs) > MOST_KEPT and jobs[0].ended is not None:
                jobs.pop(0)
        threading.Thread(target=self._run, args=(space, job, work), name=f"job {name}", daemon=True).start()
        return job

    def _run(self, space: str, job: PageJob, work: Work) -> None:
        try:
            with self._libraries.borrow(space) as library:
                job.result = work(library, job.tell)
        except CommonplaceError as error:
            job.problem = str(error)
        except Exception:  # the thread's own door: nobody else would hear of it
            log.exception("The job %s failed", job.title)
            job.problem = "It failed unexpectedly. The server's log has the details."
        finally:
            job.ended = time.time()
        with suppress(RuntimeError):  # the server is ending
            self._ended(space)
