"""A process that answers requests and can be stopped: run as a file, with MODULE, MEMORY, IDLE_S and FOLDERS.

MODULE is a file whose `answers(*blocks)` yields what goes back for a request: each time a mark of one byte and a block.
A request is one byte, how many blocks it has, and the blocks; a block is its length in eight bytes and itself. FOLDERS
are imported from as well, but nothing of the package, so that it starts quickly. It ends with what started it.
"""

from __future__ import annotations

import os
import runpy
import select
import sys
from typing import BinaryIO


def main() -> None:
    module, memory, idle_s, *folders = sys.argv[1:]
    sys.path += folders
    source, sink = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # where a library of others prints is no place for answers
    answers = runpy.run_path(module)["answers"]
    _bound(int(memory))
    while (request := _request(source, float(idle_s))) is not None:
        for mark, block in answers(*request):
            sink.write(mark + len(block).to_bytes(8, "big"))
            sink.write(block)
            sink.flush()


def _bound(memory: int) -> None:
    try:
        import resource
    except ImportError:
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    most = memory if hard == resource.RLIM_INFINITY else min(memory, hard)
    resource.setrlimit(resource.RLIMIT_AS, (most, hard))


def _request(source: BinaryIO, idle_s: float) -> list[bytes] | None:
    """Return the blocks of the next request, or None where there is none, or none in `idle_s` (0: wait for ever)."""
    waiting = select.poll()
    waiting.register(source, select.POLLIN)
    if idle_s and not waiting.poll(idle_s * 1000):
        return None
    count = source.read(1)
    blocks = [source.read(int.from_bytes(source.read(8), "big")) for _ in range(count[0])] if count else []
    return blocks or None


if __name__ == "__main__":
    main()
