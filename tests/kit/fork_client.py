"""Run `commonplace` in a fork of the server at the socket that the first argument names, and end as it does.

It imports nothing that takes time. A signal that asks it to end goes to the program; when it is killed, so
is the program.
"""

import _socket
import array
import os
import signal
import sys

server = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
server.connect(sys.argv[1])
streams = array.array("i", [0, 1, 2])
server.sendmsg([b"?"], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)])
server.sendall(repr((sys.argv[2:], dict(os.environ), os.getcwd())).encode("utf-8", "surrogateescape") + b"\n")
program = int(server.recv(32))
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, lambda number, frame: os.kill(program, number))
answer = server.recv(32)
status = os.waitstatus_to_exitcode(int(answer)) if answer else 70
if status < 0:
    signal.signal(-status, signal.SIG_DFL)
    os.kill(os.getpid(), -status)
os._exit(status)
