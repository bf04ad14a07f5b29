"""Acknowledged means durable: a process killed at any instant loses no acknowledged write and leaves nothing to repair.

1. What was acknowledged is there, at exactly that version; the write in flight is there wholly or not at all.
2. What was deleted is gone; nothing is there that nobody wrote.
3. The log has no gaps, `doctor` has nothing to say, and the indexes are level with the log.
4. The indexes answer as ones built anew do.
5. A backup is the last complete one, or the new one.

`CRASH_ROUNDS=5000 pytest tests/crash/test_kill.py` looks longer. A failure prints its seed and the last lines of the
worker that was killed.
"""

from __future__ import annotations

import json
import os
import random
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest
from crash_checks import State

SEEDS = (11, 23, 37, 53)
ROUNDS = int(os.environ.get("CRASH_ROUNDS", "200"))
ROUNDS_PER_HOME = 17
MOST_S = 60.0
FAVOURED = ("", "", "search", "hybrid", "embed", "compact", "rebuild", "backup", "batch", "delete")


class Zygote:
    """The worker process that forks a fresh child for each job. See crash_worker."""

    def __init__(self) -> None:
        quiet = {"OPENBLAS_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}  # threads do not survive a fork
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("crash_worker.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | quiet,
        )
        assert self._process.stdin
        assert self._process.stdout
        self._in, self._out = self._process.stdin, self._process.stdout.fileno()
        self._rest = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.communicate()

    def start(self, job: str, **values: Any) -> None:
        self._in.write(json.dumps({"job": job, **values}).encode() + b"\n")
        self._in.flush()

    def lines(self, until: float) -> Iterator[dict[str, Any]]:
        """What the zygote and its child say, up to a moment."""
        while True:
            while b"\n" in self._rest:
                line, _, self._rest = self._rest.partition(b"\n")
                yield json.loads(line)
            left = until - time.monotonic()
            if left <= 0 or not select.select([self._out], [], [], left)[0]:
                return
            data = os.read(self._out, 1 << 16)
            assert data, "the zygote ended"
            self._rest += data


class Ledger:
    """What a home must hold: everything acknowledged, and with it all or nothing of the write in flight."""

    def __init__(self) -> None:
        self.items: State = {}
        self.backups: list[State | None] = [None]
        self._flight: dict[str, Any] = {}
        self._embedded = False

    def hear(self, line: dict[str, Any]) -> None:
        if "begin" in line:
            self._flight = line
            if "items" in line:
                self._embedded = False
        if "ack" in line:
            if line["ack"] == "backup":
                self.backups = [dict(self.items)]
            elif line["ack"] == "embed":
                self._embedded = True
            self.items = _applied(self.items, line)
            self._flight = {}

    def settle(self, found: dict[str, Any]) -> list[str]:
        """What is wrong with what was found after the kill. It is what the next round starts from."""
        actual = {uri: (version, digest) for uri, (version, digest) in found["items"].items()}
        backup = found["backup"] and {uri: (version, digest) for uri, (version, digest) in found["backup"].items()}
        problems = list(found["problems"])
        expected = _applied(self.items, self._flight)
        if actual not in (self.items, expected):
            problems.append(f"stored is neither of: {_diff(self.items, actual)}; {_diff(expected, actual)}")
        if self._flight.get("begin") == "backup":
            self.backups.append(dict(self.items))
        if backup not in self.backups:
            problems.append("the backup is neither the last complete one nor the new one")
        if self._embedded and found["pending"]:
            problems.append(f"{found['pending']} passages lost their vectors")
        self.items, self.backups, self._flight = actual, [backup], {}
        return problems


def _applied(items: State, line: dict[str, Any]) -> State:
    changed = {**items, **{uri: value and tuple(value) for uri, value in line.get("items", {}).items()}}
    return {uri: value for uri, value in changed.items() if value}


def _diff(expected: State, actual: State) -> str:
    lost = {uri: (value, actual.get(uri)) for uri, value in expected.items() if actual.get(uri) != value}
    return f"expected and found {lost}, not expected {sorted(actual.keys() - expected.keys())}"


def run_and_kill(zygote: Zygote, home: Path, rng: random.Random, ledger: Ledger) -> list[dict[str, Any]]:
    """Let a worker loose, kill it at a random moment, and return what it said."""
    favour, early = rng.choice(FAVOURED), rng.random() < 0.2
    kill_on = "" if early else favour
    zygote.start("work", home=str(home), seed=rng.randrange(10**6), favour=favour, early=early)
    said: list[dict[str, Any]] = []
    pid, ready, errors = 0, False, []
    deadline = time.monotonic() + MOST_S
    for line in zygote.lines(deadline):  # until it is time to draw
        said.append(line)
        ledger.hear(line)
        pid, ready = line.get("pid", pid), ready or "ready" in line
        errors += [line["error"]] if "error" in line else []
        if errors or (pid and ready and (not kill_on or line.get("begin") == kill_on)):
            break
    delay = 0.3 ** rng.uniform(1, 5.7) if not kill_on else 0.03 ** rng.uniform(1, 2.6)  # 1–300 ms, or 0.1–30 ms
    for line in zygote.lines(time.monotonic() + delay):
        said.append(line)
        ledger.hear(line)
    os.kill(pid, signal.SIGKILL)
    for line in zygote.lines(deadline):
        said.append(line)
        ledger.hear(line)
        if "done" in line:
            break
    errors += [line["error"] for line in said if "error" in line]
    assert not errors, errors[0]
    assert said[-1].get("done") == signal.SIGKILL, said[-3:]
    return said


def look_over(zygote: Zygote, home: Path, *, doctor_first: bool) -> dict[str, Any]:
    """What a fresh process finds."""
    zygote.start("check", home=str(home), doctor_first=doctor_first)
    found: dict[str, Any] = {}
    for line in zygote.lines(time.monotonic() + MOST_S):
        found |= line
        if "done" in line:
            break
    assert "error" not in found, found["error"]
    assert "items" in found, f"the check ended with {found}"
    return found


@pytest.mark.slow
@pytest.mark.timeout(900 + ROUNDS * 3)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_kill_at_any_moment_loses_nothing_and_needs_no_repair(seed: int, tmp_path: Path) -> None:
    home, ledger, said = tmp_path, Ledger(), []
    with Zygote() as zygote:
        for number in range(-(-ROUNDS // len(SEEDS))):
            if number % ROUNDS_PER_HOME == 0:
                home, ledger = tmp_path / f"home-{number}", Ledger()
            rng = random.Random(seed * 100_000 + number)
            try:
                said = run_and_kill(zygote, home, rng, ledger)
                problems = ledger.settle(look_over(zygote, home, doctor_first=rng.random() < 0.5))
            except AssertionError as error:
                problems = [str(error)]
            if problems:
                tail = "\n".join(json.dumps(line) for line in said[-8:])
                pytest.fail(f"seed {seed}, round {number}, home {home}:\n" + "\n".join(problems) + f"\n{tail}")
