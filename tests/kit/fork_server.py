"""The process that `kit.forked` forks programs from: it imports every command once, and then waits for requests.

A request is three descriptors for the standard streams, and a line with the command, environment and folder. The answer
is the number of its process and, once it has ended, its wait status. Who hangs up early ends the program.
"""

from __future__ import annotations

import ast
import atexit
import gc
import importlib
import os
import pkgutil
import runpy
import select
import signal
import socket
import sys
import threading
import traceback
from contextlib import suppress
from typing import NoReturn

import commonplace

_BESIDES = ("numpy", "tantivy", "apsw", "uvicorn", "mcp", "starlette.applications")


def _import_everything() -> None:
    for module in pkgutil.walk_packages(commonplace.__path__, "commonplace."):
        if not module.name.endswith("__main__"):  # which runs a program
            importlib.import_module(module.name)
    for name in _BESIDES:
        importlib.import_module(name)


def _become_program(streams: list[int], command: list[str], environment: dict[str, str], folder: str) -> NoReturn:
    """Run a module with arguments in this process, as `python -m` does."""
    for number, descriptor in enumerate(streams):
        os.dup2(descriptor, number)
    for descriptor in streams:
        os.close(descriptor)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # ruff: noqa: SIM115 (they stay open as long as the program runs)
    encoding = environment.get("PYTHONIOENCODING", "utf-8")
    sys.stdin = open(0, closefd=False, encoding=encoding)
    sys.stdout = open(1, "w", closefd=False, encoding=encoding, buffering=1 if os.isatty(1) else -1)
    sys.stderr = open(2, "w", closefd=False, encoding=encoding, errors="backslashreplace", buffering=1)
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr  # type: ignore[misc]
    sys.argv = command
    status: str | int | None
    try:
        runpy.run_module(command[0], run_name="__main__", alter_sys=True)
    except SystemExit as end:
        status = end.code
    except BaseException:  # noqa: BLE001 (as the interpreter reports what nobody caught)
        traceback.print_exc()
        status = 1
    _end(status)


def _end(status: str | int | None) -> NoReturn:
    """End as the interpreter does, but without taking its modules apart, which costs more than most programs."""
    if isinstance(status, str):
        print(status, file=sys.stderr)
        status = 1
    threading._shutdown()  # type: ignore[attr-defined]  # waits for the threads that are no daemons
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(status or 0)


def _answer(connection: socket.socket) -> None:
    """Fork the program that is asked for; tell its number and how it ended, or end it when nobody waits any more."""
    _, streams, _, _ = socket.recv_fds(connection, 1, 3)
    with connection.makefile("rb") as lines:
        command, environment, folder = ast.literal_eval(lines.readline().decode("utf-8", "surrogateescape"))
    program = os.fork()
    if program == 0:
        connection.close()
        _become_program(streams, command, environment, folder)
    for descriptor in streams:
        os.close(descriptor)
    connection.sendall(f"{program}\n".encode())
    ended = os.pidfd_open(program)
    ready, _, _ = select.select([ended, connection], [], [])  # type: ignore[type-var]
    if ended not in ready:
        os.kill(program, signal.SIGKILL)
    _, status = os.waitpid(program, 0)
    with suppress(BrokenPipeError):
        connection.sendall(f"{status}\n".encode())


def main() -> None:
    """Serve at the socket that the first argument names, until the process that started this one ends.

    No context manager is open here: a program that ends leaves through these frames, and would close what is ours.
    """
    _import_everything()
    assert threading.active_count() == 1
    gc.collect()
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those that fork and answer
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(sys.argv[1])
    listener.listen(64)
    print("ready", flush=True)
    while True:
        ready, _, _ = select.select([listener, 0], [], [])  # type: ignore[type-var]
        if listener not in ready:
            return  # our input ended, and with it the tests
        connection, _ = listener.accept()
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            listener.close()
            _answer(connection)
            os._exit(0)
        connection.close()


if __name__ == "__main__":
    main()
