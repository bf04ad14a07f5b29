"""Run `commonplace` in a fork of the server at the socket that the first argument names, and end as it does.

It imports nothing that takes time. A signal that asks it to end goes to the program; when it is killed, so
is the program.
"""

from __future__ import annotations

import _socket
import array
import os
import signal
import sys

program = 0
waiting: list[int] = []


def pass_on(number: int, frame: object) -> None:
    """Send a signal to the program, which may not be there yet or any more."""
    if not program:
        waiting.append(number)
        return
    try:  # noqa: SIM105 (contextlib takes longer to import than everything here)
        os.kill(program, number)
    except ProcessLookupError:
        pass


for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, pass_on)
server = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
server.connect(sys.argv[1])
server.sendmsg([b"?"], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, array.array("i", [0, 1, 2]))])
server.sendall(repr((sys.argv[2:], dict(os.environ), os.getcwd())).encode("utf-8", "surrogateescape") + b"\n")
first, _, answer = server.recv(32).partition(b"\n")
program = int(first)
for number in waiting:  # type: ignore[assignment]
    pass_on(number, None)
answer = answer or server.recv(32)
status = os.waitstatus_to_exitcode(int(answer)) if answer else 70
if status < 0:
    if status not in (-signal.SIGKILL, -signal.SIGSTOP):
        signal.signal(-status, signal.SIG_DFL)
    os.kill(os.getpid(), -status)
os._exit(status)
