"""Readers of arguments that all thirteen tools share, and one sentence that names everything that is wrong."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from commonplace.errors import InvalidInput
from commonplace.kinds.memories.entry import MOST_METADATA, MOST_TAG, MOST_THREAD, json_size
from commonplace.kinds.memories.entry_imports import id_of, number_called
from commonplace.model import JSON
from commonplace.tools.arguments import Signature
from commonplace.tools.schema import Schema
from commonplace.tools.tool import Call, Check

MIB = 1 << 20
MOST_DEEP = 32
MOST_DIGITS_BITS = 1000
_MOST_ESCAPED, _MOST_NUMBER = 6, 303  # bytes of a character and of a number in JSON
MOST_TAGS, MOST_QUERY = 100, 10_000
MOST_BATCH, MOST_IDS, MOST_FILTERS, MOST_PAGE = 100, 1000, 100, 100

_IDS = ("context_id", "context_ids", "supersedes")
"""The arguments that name entries."""
Read = Callable[[JSON, str], JSON]
"""A reader of an argument: takes its value and its name, returns the value to use, or raises Wrong."""


class Wrong(Exception):
    """An error in one argument. `alone`: the contract has this very sentence, so nothing is added to it."""

    def __init__(self, sentence: str, *, alone: bool = False) -> None:
        super().__init__(sentence)
        self.alone = alone


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a tool: the schema it is declared with, and the reader of its values."""

    schema: Schema
    read: Read


def accept(parameters: Mapping[str, Parameter], required: Iterable[str] = ()) -> Check:
    """Return a check of exactly these parameters. Null means "not given"; defaults of the schemas are filled in."""

    def check(tool: str, signature: Signature, arguments: Mapping[str, JSON]) -> dict[str, JSON]:
        values = {name: arguments[name] for name in parameters if arguments.get(name) is not None}
        problems = [Wrong(f"{name} is required") for name in required if name not in values]
        cleaned = dict(signature.defaults)
        for name, value in values.items():
            try:
                cleaned[name] = parameters[name].read(value, name)
            except Wrong as problem:
                problems.append(problem)
        unknown = (name for name in arguments if name not in parameters)
        problems += [Wrong(f"{short(name)} is not a parameter of this tool") for name in unknown]
        if problems:
            raise refusal(tool, problems)
        return cleaned

    return check


def refusal(tool: str, problems: list[Wrong]) -> InvalidInput:
    """Return one error for everything that is wrong with a call."""
    if len(problems) == 1 and problems[0].alone:
        return InvalidInput(str(problems[0]))
    return InvalidInput(f"Invalid arguments for {tool}: {'; '.join(map(str, problems))}")


# reading one value


def string(value: JSON, name: str) -> str:
    """Return a string that can be stored. Raise Wrong for another type, U+0000 or a lone surrogate."""
    if not isinstance(value, str):
        raise Wrong(f"{name} must be a string")
    if "\0" in value:
        raise Wrong(f"{name} contains U+0000, which cannot be stored", alone=True)
    if not value.isascii():
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            raise Wrong(f"{name} contains a lone surrogate, which cannot be stored", alone=True) from None
    return value


def thread(value: JSON, name: str) -> str:
    """Return the name of a thread, trimmed. Raise Wrong where it is blank or too long."""
    trimmed: str = filled()(value, name).strip()
    if len(trimmed) > MOST_THREAD:
        raise Wrong(f"{name} must have at most {MOST_THREAD} characters, not {len(trimmed)}")
    return trimmed


def filled(blank: str = "empty or whitespace") -> Read:
    """Return a reader of strings that are not blank. `blank` is what the error says they cannot be."""

    def read(value: JSON, name: str) -> str:
        text = string(value, name)
        if not text.strip():
            raise Wrong(f"{name} cannot be {blank}", alone=True)
        return text

    return read


def query(value: JSON, name: str) -> str:
    """Return the text of a query. Raise Wrong where it is blank or too long."""
    text: str = filled()(value, name)
    if len(text) > MOST_QUERY:
        raise Wrong(f"{name} must have at most {MOST_QUERY} characters, not {len(text)}")
    return text


def one_of(*values: str) -> Read:
    """Return a reader of strings that are one of these values."""

    def read(value: JSON, name: str) -> str:
        if not isinstance(value, str) or value not in values:
            raise Wrong(f"{name} must be {' or '.join(json.dumps(one) for one in values)}")
        return value

    return read


def boolean(value: JSON, name: str) -> bool:
    """Return a boolean, given as such or as a JSON string."""
    value = decoded(value, bool, name)
    if not isinstance(value, bool):
        raise Wrong(f"{name} must be true or false")
    return value


def whole(least: int, most: int | None = None) -> Read:
    """Return a reader of integers within bounds, given as a float without a fraction or as a JSON string too."""

    def read(value: JSON, name: str) -> int:
        value = decoded(value, (int, float), name)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            raise Wrong(f"{name} must be a whole number")
        if value < least:
            raise Wrong(f"{name} must be at least {least}")
        if most is not None and value > most:
            raise Wrong(f"{name} must be at most {most}")
        return value

    return read


def number(value: JSON, name: str) -> int | str:
    """Return the number of an entry from `12`, `"12"` or `"memory://12"`, or the text of an imported id."""
    text = value.strip().removeprefix("memory://") if isinstance(value, str) else ""
    if text.isascii() and text.isdigit() and len(text) <= 400:
        value = int(text)
    elif id := id_of(text):
        return id
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        label = "context_id" if name == "context_ids" else name
        raise Wrong(f"{label} must be a positive integer", alone=True)
    return value


def own_numbers(call: Call, args: Mapping[str, JSON]) -> Mapping[str, JSON]:
    """Return the same arguments with our entry numbers in place of ids that came with an import."""
    own: dict[str, JSON] = {}
    for name in _IDS:
        value = args.get(name)
        if isinstance(value, str):
            own[name] = number_called(call.space.store, value)
        elif isinstance(value, list) and any(isinstance(each, str) for each in value):
            own[name] = [number_called(call.space.store, each) if isinstance(each, str) else each for each in value]
    return {**args, **own} if own else args


def numbers(most: int = MOST_IDS, least: int = 1) -> Read:
    """Return a reader of lists of entry numbers."""
    return listed(number, most=most, least=least)


def listed(member: Read, *, most: int, least: int = 0) -> Read:
    """Return a reader of lists, given as such or as a JSON string."""

    def read(value: JSON, name: str) -> list[JSON]:
        value = decoded(value, list, name)
        if not isinstance(value, list):
            raise Wrong(f"{name} must be a list")
        if len(value) < least:
            raise Wrong(f"{name} must contain at least one item", alone=True)
        if len(value) > most:
            raise Wrong(f"{name} must have at most {most} items, not {len(value)}")
        return [member(one, name) for one in value]

    return read


def tag(value: JSON, name: str) -> str:
    """Return a tag. Raise Wrong where it is no string or too long."""
    if not isinstance(value, str):
        raise Wrong(f"{name} must be a list of strings")
    if len(string(value, name)) > MOST_TAG:
        raise Wrong(f"a tag must have at most {MOST_TAG} characters, not {len(value)}")
    return value


tags = listed(tag, most=MOST_TAGS)


def mapping(value: JSON, name: str) -> dict[str, JSON]:
    """Return an object that can be stored (finite, not too deep, not too large), given as such or as a JSON string."""
    value = decoded(value, dict, name)
    if not isinstance(value, dict):
        raise Wrong(f"{name} must be an object")
    if storable(value, name) > MOST_METADATA and json_size(value) > MOST_METADATA:
        raise Wrong(f"{name} must be at most {MOST_METADATA // MIB} MiB as JSON")
    return value


def anything(value: JSON, name: str) -> JSON:
    """Return any value that can be stored: a member of a list that is looked at later."""
    storable(value, name)
    return value


def storable(value: JSON, name: str, depth: int = 0) -> int:
    """Return the most bytes that a value may take as JSON. Raise Wrong where no JSON text or no store can hold it."""
    if isinstance(value, str):
        if "\0" in value or not value.isascii():
            string(value, name)
        return _MOST_ESCAPED * len(value) + 2
    if isinstance(value, dict | list):
        if depth >= MOST_DEEP:
            raise Wrong(f"{name} must be nested at most {MOST_DEEP} deep")
        size = 2
        if isinstance(value, dict):
            for key in value:
                if "\0" in key or not key.isascii():
                    string(key, name)
                size += _MOST_ESCAPED * len(key) + 3
        for member in value.values() if isinstance(value, dict) else value:
            if type(member) is str and member.isascii() and "\0" not in member:  # as most are
                size += _MOST_ESCAPED * len(member) + 3
            else:
                size += storable(member, name, depth + 1) + 1
        return size
    if isinstance(value, float):
        if not math.isfinite(value):
            raise Wrong(f"{name} must hold finite numbers only")
    elif isinstance(value, int) and value.bit_length() > MOST_DIGITS_BITS:
        raise Wrong(f"{name} must not hold numbers of more than 300 digits")
    return _MOST_NUMBER


def decoded(value: JSON, kind: type | tuple[type, ...], name: str) -> JSON:
    """Return a value that came as a JSON string, encoded once or twice; the value itself where that is no `kind`."""
    inner = value
    for _ in range(2):
        if not isinstance(inner, str):
            break
        try:
            inner = json.loads(inner)
        except ValueError:
            return value
        except RecursionError:
            raise Wrong(f"{name} must be nested at most {MOST_DEEP} deep") from None
    return inner if isinstance(inner, kind) else value


def short(name: str) -> str:
    """Return a name of the caller's as an error may repeat it: at most 60 characters, no lone surrogates."""
    readable = name.encode("utf-8", "replace").decode()
    return readable if len(readable) <= 60 else f"{readable[:60]}…"
