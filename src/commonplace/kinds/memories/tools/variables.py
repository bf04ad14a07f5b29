"""Readers of values of mcp-context-server's variables. Each raises BadSetting, with the variable's name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from commonplace.settings import BadSetting

_BOOLEANS = {
    **dict.fromkeys(("true", "1", "yes", "on", "t", "y"), True),
    **dict.fromkeys(("false", "0", "no", "off", "f", "n"), False),
}

Parse = Callable[[str, str], Any]
"""A reader: takes a variable's name and value, returns its meaning; None leaves our own setting as it is."""


def boolean(name: str, value: str) -> bool:
    """Return a boolean from its many spellings."""
    if value.strip().lower() not in _BOOLEANS:
        raise BadSetting(f"{name} must be true or false, not {value!r}.")
    return _BOOLEANS[value.strip().lower()]


def switch(name: str, value: str) -> bool | None:
    """Return whether something is on; None for `auto` and blanks, which leave it to our own setting."""
    if value.strip().lower() in ("auto", ""):
        return None
    if value.strip().lower() not in _BOOLEANS:
        raise BadSetting(f"{name} must be auto, true or false, not {value!r}.")
    return boolean(name, value)


def whole(least: int, most: int) -> Parse:
    """Return a reader of integers within bounds."""

    def parse(name: str, value: str) -> int:
        try:
            number = int(value)
        except ValueError:
            raise BadSetting(f"{name} must be a whole number, not {value!r}.") from None
        if not least <= number <= most:
            raise BadSetting(f"{name} must be between {least} and {most}, not {number}.")
        return number

    return parse


def milliseconds(most: float) -> Parse:
    """Return a reader of seconds above 0, with or without a fraction, as the milliseconds our settings count."""

    def parse(name: str, value: str) -> int:
        try:
            seconds = float(value)
        except ValueError:
            raise BadSetting(f"{name} must be a number of seconds, not {value!r}.") from None
        if not 0 < seconds <= most:
            raise BadSetting(f"{name} must be above 0 and at most {most:g}, not {value}.")
        return max(1, round(seconds * 1000))

    return parse


def among(*values: str) -> Parse:
    """Return a reader of values that are one of these, case ignored."""

    def parse(name: str, value: str) -> str:
        if value.strip().lower() not in values:
            raise BadSetting(f"{name} must be one of {', '.join(values)}, not {value!r}.")
        return value.strip().lower()

    return parse


def as_it_is(name: str, value: str) -> str:
    """Return the value unchanged."""
    return value
