"""Commands that help, as this caller types them: `qmd` and `commonplace` share commands under different names."""

from __future__ import annotations

from commonplace.cli.lazy import called_qmd, typed

_NAMES_IN_COMMONPLACE = {"collection add": "add"}


def command(name: str) -> str:
    """Return a command of qmd as it is typed from here, with the options that chose the home and the space.

    Where `commonplace` was called, it is that program's command for the same thing.
    """
    if called_qmd():
        return f"{typed('qmd')} {name}"
    return f"{typed('commonplace')} {_NAMES_IN_COMMONPLACE.get(name, name)}"
