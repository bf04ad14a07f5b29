"""A worker made to be killed: it works on a home at random and says, line by line, what it begins and what is done.

Started once per test as a zygote: everything is imported, nothing is open, and no thread runs. For each job it forks a
child, so a round costs milliseconds instead of the start of a Python process. Jobs come as JSON lines on stdin; lines
of JSON go out on stdout, from the child and from the zygote alike, each in one `write`.
"""

from __future__ import annotations

import functools
import json
import os
import random
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from crash_checks import WORDS, State, make_draft, open_library, problems_of, short_hash, state_of, unique_word

from commonplace.ingest import embedding
from commonplace.library import Library
from commonplace.model import Draft, uri_of
from commonplace.models import open_embedder
from commonplace.store import SqliteStore

MOST_IN_A_BATCH = 8
WEIGHTS = {
    "put": 30, "batch": 12, "update": 20, "delete": 10, "search": 12, "hybrid": 10, "embed": 4, "compact": 3,
    "rebuild": 2, "backup": 2,
}  # fmt: skip


def say(**values: Any) -> None:
    os.write(1, json.dumps(values).encode() + b"\n")


def backup_of(home: Path) -> Path:
    return home / "backup.db"


class Work:
    """An endless random workload on one home."""

    def __init__(self, library: Library, home: Path, seed: int, favour: str) -> None:
        self._library, self._home, self._rng = library, home, random.Random(seed)
        self._seed, self._made = seed, 0
        self._state = state_of(library.store)
        self._weights = {**WEIGHTS, favour: 40} if favour else WEIGHTS

    def step(self) -> None:
        op = self._rng.choices(list(self._weights), list(self._weights.values()))[0]
        getattr(self, f"_{op}")()

    def _unique(self) -> str:
        self._made += 1
        return unique_word(self._seed * 1000 + self._made)

    def _draft(self, key: str | None = None) -> Draft:
        unique = self._unique()
        return make_draft(self._rng, key or f"{unique}-{self._rng.choice(WORDS)}", unique)

    def _written(self, op: str, drafts: list[Draft], write: Callable[[], Any]) -> None:
        state = {}
        for draft in drafts:
            uri = uri_of(draft.kind, draft.parent, draft.key)
            state[uri] = (self._state.get(uri, (0, ""))[0] + 1, short_hash(draft.body))
        say(begin=op, items=state)
        write()
        stored = [self._library.get(uri, body=False) for uri in state]
        self._state |= state
        say(ack=op, items={item.uri: (item.version, item.content_hash[:16]) for item in stored})
        if self._rng.random() < 0.3:
            self._finds(drafts[-1])

    def _finds(self, draft: Draft) -> None:
        say(begin="own search")
        word = draft.body.split()[-1]
        found = [hit.uri for hit in self._library.search(word, mode="lexical", limit=3).hits]
        if found[:1] != [uri_of(draft.kind, draft.parent, draft.key)]:
            raise AssertionError(f"{draft.key} was written, and a search for {word} finds {found}")

    def _put(self) -> None:
        draft = self._draft()
        self._written("put", [draft], lambda: self._library.put(draft))

    def _batch(self) -> None:
        drafts = [self._draft() for _ in range(self._rng.randint(2, MOST_IN_A_BATCH))]
        self._written("batch", drafts, lambda: self._library.put_many(drafts))

    def _update(self) -> None:
        notes = [uri for uri in self._state if uri.startswith("notes://")]
        if notes:
            old = self._library.get(self._rng.choice(notes))
            draft = Draft("note", old.key, "", old.title, f"{old.body}\n\n{self._unique()}\n", "markdown")
            self._written("update", [draft], lambda: self._library.put(draft, expected_version=old.version))

    def _delete(self) -> None:
        if self._state:
            uri = self._rng.choice(list(self._state))
            say(begin="delete", items={uri: None})
            self._library.delete(uri)
            del self._state[uri]
            say(ack="delete", items={uri: None})

    def _search(self) -> None:
        say(begin="search")
        self._library.search(" ".join(self._rng.choices(WORDS, k=3)), mode="lexical")

    def _hybrid(self) -> None:
        say(begin="hybrid")
        self._library.search(" ".join(self._rng.choices(WORDS, k=3)))

    def _embed(self) -> None:
        say(begin="embed")
        self._library.embed()
        say(ack="embed")

    def _compact(self) -> None:
        vectors = self._library.embedding.index()
        if vectors is not None:
            say(begin="compact")
            vectors.compact()

    def _rebuild(self) -> None:
        say(begin="rebuild")
        self._library.rebuild()

    def _backup(self) -> None:
        say(begin="backup")
        self._library.backup(backup_of(self._home))
        say(ack="backup")


def work(home: str, seed: int, favour: str, early: bool) -> None:
    """Until killed. `early`: say READY before the home is opened, so that some kills come while it is."""
    try:
        if early:
            say(ready=True)
        task = Work(open_library(Path(home)), Path(home), seed, favour)
        if not early:
            say(ready=True)
        while True:
            task.step()
    except BaseException:  # noqa: BLE001  # a door: the parent is told
        say(error=traceback.format_exc())
        signal.pause()  # the one who kills must find this process, not another with its number


def check(home: str, doctor_first: bool) -> None:
    """Look over a home after a kill, and say what is there."""
    try:
        with open_library(Path(home)) as library:
            state, pending = state_of(library.store), library.embedding.coverage().pending
            problems = problems_of(library, doctor_first=doctor_first)
            if state_of(library.store) != state:
                problems.append("looking changed what is stored")
        say(items=state, pending=pending, problems=problems, backup=_backup_state(backup_of(Path(home)), problems))
    except BaseException:  # noqa: BLE001  # a door: the parent is told
        say(error=traceback.format_exc())


def _backup_state(path: Path, problems: list[str]) -> State | None:
    if not path.exists():
        return None
    store = SqliteStore(path)
    try:
        problems += [f"backup: {problem}" for problem in store.check()]
        return state_of(store)
    finally:
        store.close()


def main() -> None:
    cached = functools.cache(open_embedder)  # the weights are read once, before any fork
    embedding.open_embedder = cached  # type: ignore[attr-defined]
    cached("static", Path("no-models"), threads=2).warm()
    jobs: dict[str, Callable[..., None]] = {"work": work, "check": check}
    threads = len(os.listdir("/proc/self/task"))
    if threads != 1:
        say(error=f"{threads} threads run in the zygote: what they hold would stay held in every child")
    for line in sys.stdin:
        job = json.loads(line)
        pid = os.fork()
        if pid == 0:
            jobs[job.pop("job")](**job)
            os._exit(0)
        say(pid=pid)
        say(done=os.waitpid(pid, 0)[1])


if __name__ == "__main__":
    main()
