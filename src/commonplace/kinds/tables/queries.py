"""JMESPath over a table's data, in worker processes that are stopped when an expression takes too long."""

from __future__ import annotations

import json
import time
from itertools import pairwise
from pathlib import Path

from commonplace.errors import InvalidInput, TooLarge, Unavailable
from commonplace.kinds.tables.query_worker import LARGEST
from commonplace.kinds.tables.values import DEEPEST_MESSAGE, is_deeper
from commonplace.model import JSON
from commonplace.workers.worker import Gone, Late, Program, Worker, WorkerPool

SECONDS = 2.0
"""Seconds that an evaluation may take."""

READING_S = 30.0
MOST_WORKERS = 4
MOST_MEMORY = 3 * 1024**3
_MODULE = Path(__file__).with_name("query_worker.py")


def check_expression(expression: str) -> None:
    """Raise InvalidInput, with the position, where a text is not JMESPath."""
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
    """The worker processes of one library, at most `MOST_WORKERS`, kept while it is open."""

    def __init__(self) -> None:
        self._workers = WorkerPool(_program, MOST_WORKERS)

    def run(self, expression: str, data: str) -> JSON:
        """Return the value of an expression over a JSON text. Raise InvalidInput, TooLarge or Unavailable."""
        check_expression(expression)
        with self._workers.lent(READING_S) as worker:
            if worker is None:
                raise Unavailable("Too many queries are running. Try again in a moment.")
            answer = _ask(worker, expression.encode("utf-8"), data.encode("utf-8"))
        return answer()

    def close(self) -> None:
        """Stop the processes."""
        self._workers.close()


def _program() -> Program:
    import jmespath

    return Program(_MODULE, (jmespath.__file__,), MOST_MEMORY)


def _ask(worker: Worker, expression: bytes, data: bytes) -> _Answer:
    """Return a worker's answer.

    Raise InvalidInput when the time or the memory is over; the worker is of no use then.
    """
    try:
        worker.ask(expression, data)
    except Gone:
        raise Unavailable("A query could not be run. Try again.") from None
    try:
        mark, block = worker.answer(time.monotonic() + READING_S)
        if mark == b"+":
            mark, block = worker.answer(time.monotonic() + SECONDS)
    except Late:
        raise InvalidInput(
            f"query took longer than {SECONDS:g} s and was stopped. Use a simpler one, or a smaller json_path.",
            argument="query",
        ) from None
    except Gone:
        raise InvalidInput("query cannot be evaluated: it takes too much memory.", argument="query") from None
    return _Answer(mark, block)


class _Answer:
    """A worker's answer, read when it is called, after the worker was returned."""

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
    """Return the value of an answer. Raise InvalidInput where it is nested deeper than any door can send.

    An expression may nest what it finds, or what it brings along, that deep.
    """
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
