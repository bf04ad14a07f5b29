"""JMESPath over a table's data, in processes that are stopped when an expression takes too long."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import threading
import time
from itertools import pairwise
from pathlib import Path

from commonplace.errors import InvalidInput, TooLarge, Unavailable
from commonplace.model import JSON
from commonplace.tables.query_worker import LARGEST
from commonplace.tables.values import DEEPEST_MESSAGE, is_deeper

SECONDS = 2.0
"""How long an evaluation may take."""

READING_S = 30.0
MOST_WORKERS = 4
_WORKER = Path(__file__).with_name("query_worker.py")


def check_expression(expression: str) -> None:
    """Refuse what is no JMESPath, with the position."""
    import jmespath
    from jmespath.exceptions import JMESPathError
    from jmespath.functions import Functions
    from jmespath.lexer import Lexer

    try:
        jmespath.compile(expression)
    except JMESPathError as error:
        at = getattr(error, "lex_position", getattr(error, "lexer_position", None))
        raise _not_jmespath(at, " ".join(str(error).split()).partition(":")[2].strip()[:200]) from None
    except RecursionError:
        raise InvalidInput("query is nested too deep to be read. Use a simpler one.", argument="query") from None
    for name, following in pairwise(Lexer().tokenize(expression)):
        called = name["type"] == "unquoted_identifier" and following["type"] == "lparen"
        if called and name["value"] not in Functions.FUNCTION_TABLE:
            raise _not_jmespath(name["start"], f"there is no function {name['value'][:80]}()")


def _not_jmespath(at: int | None, reason: str) -> InvalidInput:
    where = f" at position {at}" if at is not None else ""
    return InvalidInput(
        f"query is not JMESPath{where}: {reason or 'it cannot be read'}.", argument="query", position=at
    )


class Queries:
    """Workers that are kept while the library is open, at most a few at a time."""

    def __init__(self) -> None:
        self._idle: list[_Worker] = []
        self._lock = threading.Lock()
        self._slots = threading.Semaphore(MOST_WORKERS)
        self._closed = False

    def run(self, expression: str, data: str) -> JSON:
        """The value of an expression over a JSON text."""
        check_expression(expression)
        if not self._slots.acquire(timeout=READING_S):
            raise Unavailable("Too many queries are running. Try again in a moment.")
        worker = self._take()
        try:
            answer = worker.ask(expression.encode("utf-8"), data.encode("utf-8"))
        except BaseException:
            worker.end()
            raise
        else:
            self._give_back(worker)
        finally:
            self._slots.release()
        return answer()

    def close(self) -> None:
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for worker in idle:
            worker.end()

    def _take(self) -> _Worker:
        with self._lock:
            while self._idle:
                worker = self._idle.pop()
                if worker.lives:
                    return worker
                worker.end()
        return _Worker()

    def _give_back(self, worker: _Worker) -> None:
        with self._lock:
            if not self._closed:
                self._idle.append(worker)
                return
        worker.end()


class _Answer:
    def __init__(self, mark: bytes, block: bytes) -> None:
        self._mark, self._block = mark, block

    def __call__(self) -> JSON:
        if self._mark == b"=":
            return _read_answer(self._block)
        if self._mark == b">":
            size = self._block.decode("ascii")
            raise TooLarge(
                f"The answer has {size} bytes, and at most {LARGEST} (1 MiB) are sent. "
                "Ask for less: choose fields, filter, or slice.",
                argument="query",
                size=int(size.rpartition(" ")[2]),
            )
        raise InvalidInput(f"query cannot be evaluated: {self._block.decode('utf-8')}.", argument="query")


def _read_answer(block: bytes) -> JSON:
    """An expression may nest what it finds, or what it brings along, deeper than any door can send."""
    try:
        value = json.loads(block)
        deep = is_deeper(value, DEEPEST_MESSAGE)
    except RecursionError:
        value, deep = None, True
    if deep:
        raise InvalidInput(
            f"The answer is nested more than {DEEPEST_MESSAGE} deep. Ask for what is further inside.", argument="query"
        )
    return value


class _Worker:
    """One process. Whatever goes wrong with it, it is ended and another takes its place."""

    def __init__(self) -> None:
        import jmespath

        # -I: nothing of the folder it is started in is imported, nor what the environment names: so it is told where.
        command = [sys.executable, "-I", str(_WORKER), str(Path(jmespath.__file__).parents[1])]
        self._process = subprocess.Popen(  # noqa: S603 - our own module
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
        )

    @property
    def lives(self) -> bool:
        return self._process.poll() is None

    def ask(self, expression: bytes, data: bytes) -> _Answer:
        """Raises InvalidInput when the time is over; the worker is of no use then."""
        sink = self._process.stdin
        assert sink is not None  # noqa: S101
        try:
            for block in (expression, data):
                whole = memoryview(len(block).to_bytes(8, "big") + block)
                while whole:
                    whole = whole[sink.write(whole) or 0 :]
        except BrokenPipeError:
            raise Unavailable("A query could not be run. Try again.") from None
        mark = self._read(1, time.monotonic() + READING_S)
        deadline = time.monotonic() + SECONDS
        if mark == b"+":
            mark = self._read(1, deadline)
        length = int.from_bytes(self._read(8, deadline), "big")
        return _Answer(mark, self._read(length, deadline))

    def _read(self, length: int, deadline: float) -> bytes:
        source = self._process.stdout
        assert source is not None  # noqa: S101
        found, waiting = b"", select.poll()  # not `select`, which knows no more than 1,024 files
        waiting.register(source, select.POLLIN)
        while len(found) < length:
            if not waiting.poll(max(0.0, deadline - time.monotonic()) * 1000):
                raise InvalidInput(
                    f"query took longer than {SECONDS:g} s and was stopped. Use a simpler one, or a smaller json_path.",
                    argument="query",
                )
            piece = os.read(source.fileno(), length - len(found))
            if not piece:
                raise InvalidInput("query cannot be evaluated: it takes too much memory.", argument="query")
            found += piece
        return found

    def end(self) -> None:
        self._process.kill()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()
        self._process.wait()
