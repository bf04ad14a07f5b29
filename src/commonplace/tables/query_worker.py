"""A process that evaluates JMESPath and can be stopped: run as a file, it reads requests and writes answers.

Its argument is the folder that jmespath is in, where it is not found otherwise.

A request is two blocks, the expression and the JSON; the answer to it is `+` once the JSON is read, then a mark and a
block: `=` and the result, `!` and a sentence, or `>` and how many bytes it has where they are too many. A block is its
length in eight bytes and itself. It imports nothing of the package, so that it starts quickly.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any, BinaryIO

LARGEST = 1024 * 1024
COUNTING_S = 0.5
"""For how long the bytes of an answer are counted that is too large: it may have no end."""

MOST_MEMORY = 3 * 1024**3
ORDER = ("lt", "lte", "gt", "gte")


def main() -> None:
    sys.path += sys.argv[1:]
    import jmespath
    from jmespath.exceptions import JMESPathError
    from jmespath.visitor import TreeInterpreter

    TreeInterpreter.COMPARATOR_FUNC.update({name: _if_ordered(TreeInterpreter.COMPARATOR_FUNC[name]) for name in ORDER})
    _bound_memory()
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    while (asked := _read(source)) is not None and (data := _read(source)) is not None:
        try:
            value = json.loads(data)
            del data
            sink.write(b"+")
            sink.flush()
            answer = _answer(jmespath.search(asked.decode("utf-8"), value))
        except JMESPathError as error:
            answer = b"!", " ".join(str(error).split())[:300].encode("utf-8", "replace")
        except (ValueError, TypeError, AttributeError, ArithmeticError) as error:
            answer = b"!", f"{type(error).__name__} in a function of the expression".encode()
        except (MemoryError, RecursionError):
            answer = b"!", b"it takes too much memory"
        sink.write(answer[0] + len(answer[1]).to_bytes(8, "big") + answer[1])
        sink.flush()


def _if_ordered(compare: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """A number and a text have no order: that is null, as the specification has it, and no error."""

    def compared(left: Any, right: Any) -> Any:
        try:
            return compare(left, right)
        except TypeError:
            return None

    return compared


def _bound_memory() -> None:
    try:
        import resource
    except ImportError:
        return
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    most = MOST_MEMORY if hard == resource.RLIM_INFINITY else min(MOST_MEMORY, hard)
    resource.setrlimit(resource.RLIMIT_AS, (most, hard))


def _read(source: BinaryIO) -> bytes | None:
    length = source.read(8)
    return source.read(int.from_bytes(length, "big")) if len(length) == 8 else None


def _answer(result: object) -> tuple[bytes, bytes]:
    """A result may be small in memory and without end as text, since its parts may be the same: so it is cut short."""
    pieces, size, deadline = [], 0, time.monotonic() + COUNTING_S
    for piece in json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).iterencode(result):
        encoded = piece.encode("utf-8")
        size += len(encoded)
        if size <= LARGEST:
            pieces.append(encoded)
        elif time.monotonic() > deadline:
            return b">", f"more than {size}".encode()
    return (b"=", b"".join(pieces)) if size <= LARGEST else (b">", str(size).encode())


if __name__ == "__main__":
    main()
