"""Evaluate JMESPath in a worker process: `answers(expression, data)` for an expression and a JSON text.

It yields `+` once the JSON is read, then `=` and the result, `!` and a sentence, or `>` and how many bytes the result
has where they are too many. It imports nothing of the package, so that it starts quickly.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

LARGEST = 1024 * 1024
COUNTING_S = 0.5
"""Seconds for which the bytes of an answer that is too large are counted: it may have no end."""

ORDER = ("lt", "lte", "gt", "gte")


def answers(expression: bytes, data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield a mark once the data is read, then the expression's value or an error."""
    try:
        value = json.loads(data)
        del data
        yield b"+", b""
        yield _answer(_search()(expression.decode("utf-8"), value))
    except _jmespath_error() as error:
        yield b"!", " ".join(str(error).split())[:300].encode("utf-8", "replace")
    except (ValueError, TypeError, AttributeError, ArithmeticError) as error:
        yield b"!", f"{type(error).__name__} in a function of the expression".encode()
    except (MemoryError, RecursionError):
        yield b"!", b"it takes too much memory"


@cache
def _search() -> Callable[[str, Any], Any]:
    import jmespath
    from jmespath.visitor import TreeInterpreter

    TreeInterpreter.COMPARATOR_FUNC.update({name: _if_ordered(TreeInterpreter.COMPARATOR_FUNC[name]) for name in ORDER})
    search: Callable[[str, Any], Any] = jmespath.search
    return search


def _jmespath_error() -> type[Exception]:
    from jmespath.exceptions import JMESPathError

    return JMESPathError


def _if_ordered(compare: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Return a comparison that gives null, as the specification has it, for a number and a text."""

    def compared(left: Any, right: Any) -> Any:
        try:
            return compare(left, right)
        except TypeError:
            return None

    return compared


def _answer(result: object) -> tuple[bytes, bytes]:
    """Return a result as JSON, or how many bytes it has where they are too many.

    A result may be small in memory and endless as text, since its parts may be the same object, so it is cut short.
    """
    pieces, size, deadline = [], 0, time.monotonic() + COUNTING_S
    for piece in json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).iterencode(result):
        encoded = piece.encode("utf-8")
        size += len(encoded)
        if size <= LARGEST:
            pieces.append(encoded)
        elif time.monotonic() > deadline:
            return b">", f"more than {size}".encode()
    return (b"=", b"".join(pieces)) if size <= LARGEST else (b">", str(size).encode())
