"""Read JSON exactly, and refuse what could not be stored exactly."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any

from commonplace.errors import InvalidInput, TooLarge
from commonplace.kinds.tables.pointers import render
from commonplace.kinds.tables.shredding import dumps, size_of
from commonplace.model import JSON

DEEPEST = 100
DEEPEST_MESSAGE = 150
"""Deepest nesting of a message with data for a table: readers of JSON give up soon after."""

LARGEST = 64 * 1024 * 1024
MOST_DIGITS = 4300
"""Digits of an integer: to write more as text, a limit that guards the whole process would have to be lifted."""

_HALF = "has a lone surrogate, which is no character"
_INFINITE = (float("inf"), float("-inf"))
_BLANKS = re.compile(r"[ \t\r\n]*")
_PLAIN = re.compile(r'[^\s,:\[\]{}"]+')


def read(text: str, argument: str = "content", *, line: int | None = None) -> JSON:
    """Return the value of a JSON text. Raise InvalidInput, with line and pointer, for what cannot be stored as it is.

    `line`: the number of the line, of a text that has one value in each.
    """
    if not _is_text(text):
        raise InvalidInput(f"{argument} {_HALF}.", argument=argument)
    if size_of(text) > LARGEST:
        raise TooLarge(_too_large(argument, size_of(text)), argument=argument)
    try:
        value = json.loads(
            text, object_pairs_hook=_object, parse_constant=_constant, parse_int=_integer, parse_float=_number
        )
    except (_Unkept, RecursionError) as problem:
        raise _located(text, argument, str(problem), line=line) from None
    except json.JSONDecodeError as error:
        place = f"line {line or error.lineno}, column {error.colno}"
        raise InvalidInput(f"{argument} is not JSON: {error.msg} at {place}.", argument=argument) from None
    check(value, argument, line=line)
    return value


def parsed(text: str, argument: str, *, within: Sequence[str]) -> JSON:
    """Return the value of a JSON text whose arguments are the members of the object at `within`.

    Raise InvalidInput, which names the argument, where a reader would have to drop or change something that is
    written there, or would give up for its depth, and ValueError where it is not JSON.
    """
    try:
        value = json.loads(text, object_pairs_hook=_object, parse_constant=_constant)
        if is_deeper(value, DEEPEST_MESSAGE):
            raise RecursionError
        return value
    except json.JSONDecodeError:
        raise
    except (_Unkept, RecursionError, ValueError) as problem:  # ValueError: a number that is too long to be read
        raise _located(text, argument, str(problem), within, DEEPEST_MESSAGE) from None


def half(text: str, argument: str, *, within: Sequence[str]) -> InvalidInput:
    """Return the error for a JSON text with half of a surrogate pair, with its argument and place. See `parsed`."""
    return _located(text, argument, _HALF, within, DEEPEST_MESSAGE)


def check(value: JSON, argument: str = "data", *, depth: int = 0, line: int | None = None) -> None:
    """Raise InvalidInput for a value that JSON cannot hold or that is too deep, TooLarge for one that is too large."""
    try:
        _walk(value, depth)
    except _Unkept as problem:
        where = _where(problem, line)
        raise InvalidInput(f"{argument} {problem}{where}.", argument=argument, json_pointer=problem.pointer) from None
    if isinstance(value, dict | list | str) and (size := size_of(dumps(value))) > LARGEST:
        raise TooLarge(_too_large(argument, size), argument=argument)


def is_deeper(value: JSON, most: int) -> bool:
    """Return whether containers nest deeper than `most`. It goes level by level, since a stack has its end too."""
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(most):
        inner = [one for outer in level for one in (outer.values() if isinstance(outer, dict) else outer)]
        level = [one for one in inner if isinstance(one, dict | list)]
        if not level:
            return False
    return bool(level)


class _Unkept(ValueError):
    """An error: a value that cannot be stored, and where: the path is put together while the error travels up."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.path: list[str | int] = []

    @property
    def pointer(self) -> str:
        return render(list(reversed(self.path)))


def _walk(value: Any, depth: int) -> None:
    if isinstance(value, str):
        _check_text(value)
    elif isinstance(value, dict | list):
        if depth >= DEEPEST:
            raise _Unkept(f"is nested more than {DEEPEST} deep")
        for key, member in value.items() if isinstance(value, dict) else enumerate(value):
            try:
                if isinstance(value, dict):
                    _check_key(key)
                _walk(member, depth + 1)
            except _Unkept as problem:
                problem.path.append(key if isinstance(key, int | str) and _is_text(key) else "?")
                raise
    elif isinstance(value, float):
        if value != value or value in _INFINITE:
            raise _Unkept(f"has a number that JSON cannot hold ({value})")
    elif isinstance(value, int):
        if value.bit_length() > 3 * MOST_DIGITS and not -(10**MOST_DIGITS) < value < 10**MOST_DIGITS:
            raise _Unkept(f"has a whole number of more than {MOST_DIGITS} digits; use a string")
    elif value is not None:
        raise _Unkept(f"has a {type(value).__name__}, which JSON cannot hold")


def _check_key(key: Any) -> None:
    if not isinstance(key, str):
        raise _Unkept("has a key that is no string")
    _check_text(key)


def _check_text(text: str) -> None:
    if not _is_text(text):
        raise _Unkept(_HALF)


def _is_text(text: str | int) -> bool:
    if isinstance(text, int) or text.isascii():
        return True
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        keys: set[str] = set()
        for key, _ in pairs:
            if key in keys:
                raise _Unkept(_twice(key))
            keys.add(key)
    return value


def _constant(name: str) -> Any:
    raise _Unkept(f"has {name}, which JSON cannot hold")


def _integer(digits: str) -> int:
    if len(digits) > MOST_DIGITS and len(digits.lstrip("-")) > MOST_DIGITS:
        raise _Unkept(f"has a whole number of more than {MOST_DIGITS} digits; use a string")
    return int(digits)


def _number(digits: str) -> float:
    number = float(digits)
    if number in _INFINITE:
        raise _Unkept("has a number too large to be kept; use a string")
    return number


def _too_large(argument: str, size: int) -> str:
    return f"{argument} has {size} bytes, and a table holds at most {LARGEST} (64 MiB). Split it over several tables."


def _located(
    text: str,
    argument: str,
    reason: str,
    within: Sequence[str] | None = None,
    deepest: int = DEEPEST,
    line: int | None = None,
) -> InvalidInput:
    """Return the error with its place. The text is walked once more, slowly, which only a refusal pays for.

    `within`: the place of the arguments in the text; the error names the argument, and the place inside it.
    """
    try:
        problem, offset = _find(text, deepest)
    except (ValueError, IndexError):  # it is broken in another way too, further on
        return InvalidInput(f"{argument} {reason}{f' at line {line}' if line else ''}.", argument=argument)
    line = line or text.count("\n", 0, offset) + 1
    outer = list(reversed(problem.path))
    if within is not None and outer[: len(within)] == list(within) and outer[len(within) :]:
        argument = str(outer[len(within)])
        problem.path = list(reversed(outer[len(within) + 1 :]))
    where = _where(problem, line)
    return InvalidInput(f"{argument} {problem}{where}.", argument=argument, json_pointer=problem.pointer, line=line)


def _where(problem: _Unkept, line: int | None) -> str:
    places = [*([problem.pointer] if problem.path else []), *([f"line {line}"] if line else [])]
    return f" at {', '.join(places)}" if places else ""


def _find(text: str, deepest: int) -> tuple[_Unkept, int]:
    """Return the first thing that cannot be stored, and its offset."""
    cursor = _Look(text, deepest)
    while True:
        cursor.at = _BLANKS.match(text, cursor.at).end()  # type: ignore[union-attr]
        try:
            cursor.step()
        except _Unkept as problem:
            problem.path = list(reversed(cursor.path))
            return problem, cursor.at


class _Look:
    """A cursor in a JSON text: the path to what comes next, and the keys of the objects around it."""

    def __init__(self, text: str, deepest: int) -> None:
        self.text, self.at, self._deepest = text, 0, deepest
        self.path: list[Any] = []
        self._keys: list[set[str] | None] = []
        self._expects_key = False

    def step(self) -> None:
        """Read the next sign, string or word."""
        sign = self.text[self.at]
        if sign in "{[":
            self._open(sign)
        elif sign in "}]":
            self._keys.pop()
            self.path.pop()
        elif sign == ",":
            self._expects_key = bool(self._keys) and self._keys[-1] is not None
            if self._keys and self._keys[-1] is None:
                self.path[-1] += 1
        elif sign == '"':
            self._string()
            return
        elif sign != ":":
            word = _PLAIN.match(self.text, self.at).group()  # type: ignore[union-attr]
            json.loads(word, parse_constant=_constant, parse_int=_integer, parse_float=_number)
            self.at += len(word) - 1
        self.at += 1

    def _open(self, sign: str) -> None:
        if len(self._keys) >= self._deepest:
            raise _Unkept(f"is nested more than {DEEPEST} deep")
        self._keys.append(set() if sign == "{" else None)
        self.path.append("" if sign == "{" else 0)
        self._expects_key = sign == "{"

    def _string(self) -> None:
        string, end = scanstring(self.text, self.at + 1)
        keys = self._keys[-1] if self._keys and self._expects_key else None
        if keys is not None:
            self.path.pop()  # an error about a key names the object that it is in
        _check_text(string)
        if keys is not None:
            if string in keys:
                raise _Unkept(_twice(string))
            keys.add(string)
            self.path.append(string)
            self._expects_key = False
        self.at = end


def _twice(key: str) -> str:
    return f"has the key {json.dumps(key, ensure_ascii=True)[:80]} twice in one object"
