"""A user of this machine who has never run Commonplace: a home folder of their own, and none of our settings."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

from kit.forked import PROGRAM, forked

_NOT_THEIRS = ("COMMONPLACE_", "XDG_", "CLAUDE_", "CODEX_")
PROGRAMS = Path(sys.executable).parent
COMMONPLACE = PROGRAM


class FreshUser:
    """Runs programs as a user whose `HOME` is `home`; `more` are variables that they have set."""

    def __init__(self, home: Path, **more: str) -> None:
        self.home = home
        clean = {name: value for name, value in os.environ.items() if not name.startswith(_NOT_THEIRS)}
        self.environment = {**clean, "HOME": str(home), "COMMONPLACE_OFFLINE": "1", **more}
        home.mkdir(parents=True, exist_ok=True)

    def run(self, *arguments: str, code: int = 0, **more: Any) -> subprocess.CompletedProcess[str]:
        """Return what `commonplace` did with these arguments, nobody at a terminal."""
        return self.program(*forked(*arguments), code=code, **more)

    def program(
        self, *command: str, code: int = 0, input: str = "", cwd: Path | None = None, **more: str
    ) -> subprocess.CompletedProcess[str]:
        """Return what a program did, which has to end with `code` and without a traceback."""
        done = subprocess.run(
            command,
            env={**self.environment, **more},
            cwd=cwd or self.home,
            input=input,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        assert done.returncode == code, (command, done.stdout, done.stderr)
        assert "Traceback" not in done.stderr
        return done

    def at_terminal(self, *command: str, typed: str = "", code: int = 0) -> str:
        """Return all that a program shows on a terminal of 200 columns, with `typed` as the keyboard."""
        terminal, end = pty.openpty()
        environment = {**self.environment, "COLUMNS": "200"}
        child = subprocess.Popen(command, env=environment, cwd=self.home, stdin=end, stdout=end, stderr=end)
        os.close(end)
        os.write(terminal, typed.encode() + b"\x04")  # who asks more than was typed gets the end of the input
        shown = b""
        try:
            while part := os.read(terminal, 65536):
                shown += part
        except OSError:  # how Linux says that nobody writes there any more
            pass
        finally:
            os.close(terminal)
        assert child.wait(100) == code, shown.decode()
        return shown.decode().replace("\r\n", "\n")
