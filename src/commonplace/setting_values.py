"""One setting: its declaration, and the meaning of its value as the environment or config.toml writes it."""

from __future__ import annotations

import os
import re
from dataclasses import field
from pathlib import Path
from typing import Any

from commonplace.errors import CommonplaceError

_BOOLEANS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


class BadSetting(CommonplaceError):
    """A setting that cannot be used. Ends a process with EX_CONFIG."""

    code, status, exit_code = "bad_setting", 500, 78


def setting(
    default: Any,
    doc: str,
    *,
    least: float | None = None,
    most: float = 2**31 - 1,
    among: tuple[str, ...] = (),
    like: tuple[str, str] = ("", ""),
) -> Any:
    """Return a setting: its default, the sentence that explains it, and its bounds, in one place.

    `like`: a pattern that all of a text matches, and a name for such a text.
    """
    factory = default if callable(default) else lambda: default
    bounds = {"least": least, "most": most, "among": among, "like": like}
    return field(default_factory=factory, metadata={"doc": doc, **bounds})


def parsed(
    name: str, value: Any, kind: str, *, least: float | None, most: float, among: tuple[str, ...], like: tuple[str, str]
) -> Any:
    """Return what a setting's written value means for its type and bounds. Raise BadSetting, which names it."""
    if kind in ("Path", "str"):
        _check_text(name, value, among, like)
        if kind == "Path" and not value:
            raise BadSetting(f"{name} must name a folder, and is empty.")
        return Path(os.path.expanduser(value)) if kind == "Path" else value
    if kind == "bool":
        if str(value).lower() not in _BOOLEANS:
            raise BadSetting(f"{name} must be true or false, not {value!r}.")
        return _BOOLEANS[str(value).lower()]
    try:
        number = float(str(value)) if kind == "float" else int(str(value))
    except ValueError:
        called = "number" if kind == "float" else "whole number"
        raise BadSetting(f"{name} must be a {called}, not {value!r}.") from None
    if least is not None and not number >= least:  # nor is what is no number
        raise BadSetting(f"{name} must be at least {least}, not {number}.")
    if number > most:
        raise BadSetting(f"{name} must be at most {most}, not {number}.")
    return number


def _check_text(name: str, value: Any, among: tuple[str, ...], like: tuple[str, str]) -> None:
    pattern, called = like
    if not isinstance(value, str):
        raise BadSetting(f"{name} must be a text in quotes, not {value!r}.")
    if "\0" in value:
        raise BadSetting(f"{name} contains U+0000, which no name may contain. Remove it.")
    if among and value not in among:
        raise BadSetting(f"{name} must be one of {', '.join(among)}, not {value!r}.")
    if pattern and not re.fullmatch(pattern, value):
        raise BadSetting(f"{name} must be {called}, not {value!r}.")
