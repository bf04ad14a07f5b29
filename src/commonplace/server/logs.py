"""The log of a server on standard error: our own loggers at the set level, others at warnings.

A log holds names of tools, sizes and times, and never what documents, queries, settings or keys say. So libraries are
heard from `warning` on, whatever our own level is: at `debug` they print the bytes they carry. And of an error the log
has its type and where it was raised, and not its message, which may quote what was being read.
"""

from __future__ import annotations

import logging
import sys
import traceback
from copy import copy
from types import TracebackType
from typing import TextIO

OURS = "commonplace"
_Exception = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]


def log_to(stream: TextIO | None = None, level: str = "warning") -> None:
    """Send log lines of `level` and worse to a stream (standard error by default), replacing an earlier call's."""
    handler = logging.StreamHandler(sys.stderr if stream is None else stream)
    handler.setFormatter(_Formatter("%(levelname)s %(message)s"))
    handler.setLevel(level.upper())
    root = logging.getLogger()
    for earlier in root.handlers[:]:
        if isinstance(earlier.formatter, _Formatter):
            root.removeHandler(earlier)
    root.addHandler(handler)
    logging.getLogger(OURS).setLevel(level.upper())


class _Formatter(logging.Formatter):
    """A formatter that writes tracebacks without the messages of their exceptions."""

    def format(self, record: logging.LogRecord) -> str:
        record = copy(record)
        record.exc_text = None  # as another handler may have written it
        return super().format(record)

    def formatException(self, ei: _Exception) -> str:
        if ei[1] is None:
            return ""
        lines: list[str] = []
        seen: set[int] = set()
        error: BaseException | None = ei[1]
        while error is not None and id(error) not in seen:
            seen.add(id(error))
            frames = traceback.extract_tb(error.__traceback__)
            name = f"{type(error).__module__}.{type(error).__qualname__}".removeprefix("builtins.")
            lines.insert(0, "".join(["Traceback (most recent call last):\n", *traceback.format_list(frames), name]))
            error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
        return "\nThen:\n".join(lines)
