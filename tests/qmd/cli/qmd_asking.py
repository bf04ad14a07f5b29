"""A `qmd` command line carried out in this process, and the environment it finds."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple

from commonplace.qmd.cli.program import run


class Done(NamedTuple):
    code: int
    out: str
    err: str


Ask = Callable[..., Done]


def environment_of(folder: Path) -> dict[str, str]:
    """A home of its own, the shipped model, and no configuration of whoever runs the tests."""
    return {
        "COMMONPLACE_HOME": str(folder / "home"),
        "COMMONPLACE_MODEL": "static",
        "COMMONPLACE_MODELS": str(folder / "models"),
        "COMMONPLACE_CONFIG": os.devnull,
        "XDG_CONFIG_HOME": str(folder / "config"),
    }


def asked(*arguments: str) -> Done:
    """A command line carried out here."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = run(list(arguments))
    return Done(code, out.getvalue(), err.getvalue())
