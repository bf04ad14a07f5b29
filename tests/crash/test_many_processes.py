"""Several processes write and search one home at once.

1. No change is lost and none is doubled; the log has no gaps.
2. No process is ever told that something is locked or busy, not even when all create the home together.
3. Each finds what it has just written.
4. Afterwards the indexes are what a rebuild makes of the store.
"""

from __future__ import annotations

import multiprocessing
import random
import traceback
from collections import Counter
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import pytest
from crash_checks import State, make_draft, open_library, problems_of, short_hash, state_of, unique_word

from commonplace.model import Draft

PROCESSES = 4
WRITES = 150


def write_and_search(home: Path, number: int, barrier: Barrier, out: Any) -> None:
    """One process's share: its own items, and every tenth write to one that all of them share."""
    try:
        rng, shared = random.Random(number), 0
        state: dict[str, Any] = {}
        barrier.wait(60)
        with open_library(home) as library:
            for written in range(WRITES):
                word = unique_word((number + 1) * 1000 + written)
                if written % 10 == 9:
                    library.put(Draft("note", "shared", "", "shared", word))
                    shared += 1
                elif written % 25 == 24:
                    library.delete(gone := rng.choice(list(state)))
                    del state[gone]
                    continue
                else:
                    item = library.put(make_draft(rng, f"p{number}-{rng.randrange(80)}", word, longest=30))
                    state[item.uri] = (item.version, short_hash(library.get(item.uri).body or ""))
                    mode = rng.choice(("lexical", "lexical", "auto"))
                    hits = library.search(word, mode=mode, limit=1000, explain=True).hits  # type: ignore[arg-type]
                    found = [hit.uri for hit in hits if hit.explain and (hit.explain["lexical"] or 0) > 0.1]
                    assert item.uri in found, f"a {mode} search for {word} in {item.uri} finds {found}"
                if written == WRITES // 2 and number == 0:
                    library.embed()
                if written == 3 * WRITES // 4 and number == 1:
                    library.rebuild()
        out.put((number, state, shared, ""))
    except BaseException:  # noqa: BLE001  # a door: the parent is told
        out.put((number, {}, 0, traceback.format_exc()))


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_processes_that_write_and_search_at_once_lose_nothing_and_never_wait_in_vain(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    barrier, out = context.Barrier(PROCESSES), context.Queue()
    workers = [
        context.Process(target=write_and_search, args=(tmp_path, number, barrier, out)) for number in range(PROCESSES)
    ]
    for worker in workers:
        worker.start()
    try:
        results = [out.get(timeout=240) for _ in workers]
    finally:
        for worker in workers:
            worker.join(10)
            worker.kill()
            worker.join()
    errors = [error for *_, error in results if error]
    assert not errors, errors[0]
    expected: State = {}
    for _, state, _, _ in results:
        expected |= state
    with open_library(tmp_path) as library:
        stored = state_of(library.store)
        assert stored.pop("notes://shared")[0] == sum(shared for _, _, shared, _ in results)
        assert stored == expected
        log = [(change.item_id, change.version) for change in library.changes(limit=10**6) if change.op != "embed"]
        assert max(Counter(log).values()) == 1
        assert problems_of(library) == []


def open_home(home: Path, barrier: Barrier, out: Any) -> None:
    try:
        barrier.wait(60)
        for number in range(20):
            with open_library(home / str(number)) as library:
                library.put(Draft("note", str(number), body="first"))
        out.put("")
    except BaseException:  # noqa: BLE001  # a door: the parent is told
        out.put(traceback.format_exc())


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_processes_that_create_a_home_together_share_it(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    barrier, out = context.Barrier(PROCESSES), context.Queue()
    workers = [context.Process(target=open_home, args=(tmp_path, barrier, out)) for _ in range(PROCESSES)]
    for worker in workers:
        worker.start()
    try:
        errors = [error for _ in workers if (error := out.get(timeout=100))]
    finally:
        for worker in workers:
            worker.join(10)
            worker.kill()
            worker.join()
    assert not errors, errors[0]
    with open_library(tmp_path / "7") as library:
        assert state_of(library.store).keys() == {"notes://7"}
        assert len(library.changes()) == 1
