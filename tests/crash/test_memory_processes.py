"""Memory entries under several processes and under kills.

1. Processes that store into one home at once lose nothing, number every entry once, and are never told of a lock.
2. A process killed at any moment leaves every acknowledged entry, whole and searchable, and nothing half written.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import signal
import traceback
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import pytest
from crash_checks import open_library, unique_word

from commonplace.kinds.memories.entry import Image, New, Revision, Stored

FORK = multiprocessing.get_context("fork")
PROCESSES = 4
ROUNDS = int(os.environ.get("CRASH_ROUNDS", "50"))


def store_many(home: Path, number: int, stores: int, barrier: Barrier, out: Any) -> None:
    try:
        barrier.wait(60)
        made = []
        with open_library(home) as library:
            for n in range(stores):
                word = unique_word((number + 1) * 10_000 + n)
                new = New(f"t{n % 3}", "user" if number % 2 else "agent", f"{word} said by {number}", tags=("x",))
                (stored,) = library.memories.store([new])
                assert isinstance(stored, Stored)
                made.append((stored.number, word))
        out.put((number, made, ""))
    except BaseException:  # noqa: BLE001  # a door: the parent is told
        out.put((number, [], traceback.format_exc()))


def run_together(home: Path, stores: int) -> None:
    barrier, out = FORK.Barrier(PROCESSES), FORK.Queue()
    workers = [FORK.Process(target=store_many, args=(home, n, stores, barrier, out)) for n in range(PROCESSES)]
    for worker in workers:
        worker.start()
    told = [out.get(timeout=280) for _ in workers]
    for worker in workers:
        worker.join(60)
    assert not [error for _, _, error in told if error], next(error for _, _, error in told if error)
    made = {number: word for _, entries, _ in told for number, word in entries}
    assert sum(len(entries) for _, entries, _ in told) == len(made) == PROCESSES * stores
    with open_library(home) as library:
        assert library.memories.find() == sorted(made) == list(range(1, len(made) + 1))
        for number in random.Random(1).sample(sorted(made), 20):
            hits = library.search(made[number], mode="lexical", limit=1).hits
            assert [hit.uri for hit in hits] == [f"memory://{number}"]
        assert library.doctor() == []


@pytest.mark.timeout(120)
def test_four_processes_store_into_one_home(tmp_path: Path) -> None:
    run_together(tmp_path, 100)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_four_processes_store_two_thousand_entries_into_one_home(tmp_path: Path) -> None:
    run_together(tmp_path, 500)


def write_until_killed(home: Path, seed: int, out: Connection) -> None:
    """Store, update and delete at random; tell of what is about to be done, and of what is done."""
    rng, made = random.Random(seed), 0
    try:
        with open_library(home) as library:
            memories = library.memories
            numbers = memories.find()
            while True:
                made += 1
                word = unique_word(seed * 1000 + made)
                images = (Image(word.encode(), "image/png"),) if rng.random() < 0.3 else None
                metadata = {"status": rng.choice(["open", "done"]), "technologies": [word]}
                if numbers and rng.random() < 0.3:
                    number = rng.choice(numbers)
                    out.send(("begin", number, word))
                    memories.revise([Revision(number, text=word, images=images, metadata=metadata)])
                    out.send(("ack", number, word))
                elif numbers and rng.random() < 0.1:
                    number = numbers.pop(rng.randrange(len(numbers)))
                    out.send(("begin", number, None))
                    memories.delete([number])
                    out.send(("ack", number, None))
                else:
                    new = [New("t", rng.choice(["user", "agent"]), f"{word}{n}", images, metadata) for n in "ab"]
                    out.send(("begin", None, word))
                    results = memories.store(new, batch=True)
                    for n, stored in zip("ab", results, strict=True):
                        assert isinstance(stored, Stored)
                        numbers.append(stored.number)
                        out.send(("ack", stored.number, f"{word}{n}"))
    except BaseException:  # noqa: BLE001  # a door: the parent is told
        out.send(("error", 0, traceback.format_exc()))


def kill_one(home: Path, seed: int, known: dict[int, str | None]) -> dict[int, str | None]:
    """Let a worker loose and kill it; returns what may be different from what was acknowledged."""
    rng = random.Random(seed)
    mine, theirs = FORK.Pipe(duplex=False)
    worker = FORK.Process(target=write_until_killed, args=(home, seed, theirs))
    worker.start()
    theirs.close()
    flight: dict[int, str | None] = {}

    def hear() -> None:
        nonlocal flight
        kind, number, word = mine.recv()
        assert kind != "error", word
        if kind == "begin":
            flight = {number: word} if number else {}
        else:
            known[number] = word
            flight = {}

    try:
        for _ in range(rng.randrange(1, 30)):
            assert mine.poll(60), "the worker says nothing"
            hear()
        if mine.poll(rng.uniform(0, 0.02)):
            hear()
        os.kill(worker.pid or 0, signal.SIGKILL)
        worker.join(30)
        while mine.poll(0):
            try:
                hear()
            except EOFError:
                break
    finally:
        mine.close()
        worker.close()
    return flight


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_kill_loses_no_acknowledged_entry(tmp_path: Path) -> None:
    known: dict[int, str | None] = {}
    for seed in range(1, ROUNDS + 1):
        flight = kill_one(tmp_path, seed, known)
        with open_library(tmp_path) as library:
            there = {entry.number: entry.item.body for entry in library.memories.entries(library.memories.find())}
            for number, word in known.items():
                found = there.get(number)
                assert found == word or (number in flight and found == flight[number]), f"{seed}: {number} {found}"
                known[number] = found
            for number in there.keys() - known.keys():  # killed before it was acknowledged: the batch is there whole
                word = there[number] or ""
                assert {f"{word[:-1]}a", f"{word[:-1]}b"} <= set(there.values()), f"{seed}: half of a batch"
                known[number] = word
            number = max(there, default=0)
            if number:
                found = library.search(there[number] or "", mode="lexical", limit=1).hits  # type: ignore[assignment]
                assert [hit.uri for hit in found] == [f"memory://{number}"], json.dumps(there[number])  # type: ignore[union-attr]
            assert library.store.check() == []
