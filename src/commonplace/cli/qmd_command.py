"""`commonplace install qmd-command`: a `qmd` on the path, which is a script of two lines around ours."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from commonplace.errors import AlreadyExists, InvalidInput
from commonplace.settings import PREFIX

NAME = "qmd-command"
MARK = "# The qmd of Commonplace. `commonplace uninstall qmd-command` removes it."
_PROGRAM = "qmd"
_LONGEST = 4096
"""The bytes of a program that are read to see whether it is ours."""


def script(home: str | None) -> str:
    """Return the text of the command: ours, on the library of `home` or on the usual one."""
    chosen = f"export {PREFIX}HOME={shlex.quote(os.path.abspath(os.path.expanduser(home)))}\n" if home else ""
    return f'#!/bin/sh\n{MARK}\n{chosen}exec {shlex.quote(sys.executable)} -P -m commonplace.qmd.cli "$@"\n'


def put_on_path(home: str | None, environment: Mapping[str, str]) -> tuple[Path, bool]:
    """Return the path of our `qmd`, and whether it was written now.

    Raise AlreadyExists where the path has another `qmd`, and InvalidInput where no folder on it can be written.
    """
    others = [path for path in _on_path(environment) if not is_ours(path)]
    if others:
        raise AlreadyExists(
            f"{others[0]} is another program called qmd, and stays. `commonplace qmd` does what ours would do."
        )
    text = script(home)
    target = next(_on_path(environment), None) or _folder(environment) / _PROGRAM
    if target.is_file() and target.read_text("utf-8") == text:
        return target, False
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        fresh = target.with_name(f".{_PROGRAM}.new")
        fresh.write_text(text, "utf-8")
        fresh.chmod(0o755)
        fresh.replace(target)
    except OSError as error:
        said = f"{target} cannot be written: {error.strerror}. Check that path and its permissions."
        raise InvalidInput(said) from error
    return target, True


def ours_on_path(environment: Mapping[str, str]) -> list[Path]:
    """Return every `qmd` of ours that the path leads to."""
    return [path for path in _on_path(environment) if is_ours(path)]


def is_ours(path: Path) -> bool:
    """Return whether a program is the script that `put_on_path` writes."""
    try:
        with path.open("rb") as file:
            return MARK.encode() in file.read(_LONGEST)
    except OSError:
        return False


def _folders(environment: Mapping[str, str]) -> Iterator[Path]:
    for folder in dict.fromkeys(environment.get("PATH", "").split(os.pathsep)):
        if os.path.isabs(folder):
            yield Path(folder)


def _on_path(environment: Mapping[str, str]) -> Iterator[Path]:
    """Yield every `qmd` on the PATH in its order, executable or not."""
    for folder in _folders(environment):
        if os.path.lexists(folder / _PROGRAM):
            yield folder / _PROGRAM


def _folder(environment: Mapping[str, str]) -> Path:
    """Return the folder of the path that `commonplace` is in, or the user's own for programs."""
    beside = shutil.which("commonplace", path=environment.get("PATH"))
    own = Path(os.path.expanduser("~"), ".local", "bin")
    for folder in [*([Path(beside).parent] if beside else []), own]:
        if folder in _folders(environment) and (os.access(folder, os.W_OK) or folder == own):
            return folder
    raise InvalidInput(
        f'No folder on your PATH can take the command. Put {own} on it (export PATH="{own}:$PATH") and repeat this.'
    )
