"""A tool, and what every call has in common: arguments are checked in one place, failures have one shape."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError

from commonplace.errors import InvalidInput
from commonplace.library import Library
from commonplace.model import JSON

Schema = Mapping[str, JSON]
Handler = Callable[[Library, Mapping[str, JSON]], dict[str, JSON]]

READ_ONLY = {"readOnlyHint": True, "destructiveHint": False, "idempotentHint": True, "openWorldHint": False}
ADDS = {"readOnlyHint": False, "destructiveHint": False, "idempotentHint": False, "openWorldHint": False}
CHANGES = {"readOnlyHint": False, "destructiveHint": True, "idempotentHint": False, "openWorldHint": False}


@dataclass(frozen=True)
class Tool:
    """A declaration. Schemas are JSON Schema 2020-12 with object roots."""

    name: str
    title: str
    description: str
    input: Schema
    output: Schema
    annotations: Mapping[str, bool]
    handler: Handler

    @property
    def writes(self) -> bool:
        return not self.annotations["readOnlyHint"]

    def call(self, library: Library, arguments: Mapping[str, JSON]) -> dict[str, JSON]:
        """Check the arguments, then do it. Null means "not given"; defaults of the schema are filled in."""
        given = {name: value for name, value in arguments.items() if value is not None}
        problems = [_sentence(problem) for problem in self._validator.iter_errors(given)]
        if problems:
            raise InvalidInput(f"Invalid arguments for {self.name}: {'; '.join(problems)}.")
        return self.handler(library, {**self._defaults, **given})

    @cached_property
    def _validator(self) -> Draft202012Validator:
        return Draft202012Validator(self.input)

    @cached_property
    def _defaults(self) -> dict[str, JSON]:
        return {name: spec["default"] for name, spec in self.input["properties"].items() if "default" in spec}


class Registry:
    """The tools of a server, by every spelling of their names: `notes.search` and `notes_search` are one tool."""

    def __init__(self, tools: Iterable[Tool], *, writable: bool) -> None:
        self.tools = tuple(tool for tool in tools if writable or not tool.writes)
        self._by_name = {_spelled(tool.name): tool for tool in self.tools}

    def find(self, name: str) -> Tool | None:
        return self._by_name.get(_spelled(name))

    def names(self) -> str:
        return ", ".join(tool.name for tool in self.tools)


def _spelled(name: str) -> str:
    return name.replace(".", "_")


def obj(*, required: tuple[str, ...] = (), **properties: Schema) -> Schema:
    """An object of exactly these properties."""
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


STRING: Schema = {"type": "string"}
INTEGER: Schema = {"type": "integer"}
STRINGS: Schema = {"type": "array", "items": STRING}
OBJECT: Schema = {"type": "object"}


def answer(*, required: tuple[str, ...] = (), **properties: Schema) -> Schema:
    """What a tool gives back: these properties, and others in later versions. Their names say what they are."""
    return {"type": "object", "properties": properties, "required": list(required or properties)}


def many(schema: Schema) -> Schema:
    return {"type": "array", "items": schema}


def text(description: str, **more: JSON) -> Schema:
    return {"type": "string", "description": description, **more}


def integer(description: str, *, default: int, least: int, most: int) -> Schema:
    return {"type": "integer", "description": description, "default": default, "minimum": least, "maximum": most}


def choice(description: str, *values: str) -> Schema:
    """One of these; the first if left out."""
    return {"type": "string", "description": description, "enum": list(values), "default": values[0]}


def flag(description: str) -> Schema:
    return {"type": "boolean", "description": description, "default": False}


def texts(description: str, **more: JSON) -> Schema:
    return {"type": "array", "description": description, "items": {"type": "string"}, **more}


def one_or_many(description: str, most: int) -> Schema:
    """A string, or a list of them."""
    several = {"type": "array", "items": {"type": "string", "minLength": 1}, "minItems": 1, "maxItems": most}
    return {"description": description, "anyOf": [{"type": "string", "minLength": 1}, several]}


def maybe(schema: Schema) -> Schema:
    """The same, or null."""
    return {**schema, "type": [schema["type"], "null"]}


def _sentence(problem: ValidationError) -> str:
    place = ".".join(str(part) for part in problem.absolute_path) or "the arguments"
    rule: Any = problem.validator_value
    given: Any = problem.instance
    schema: Any = problem.schema
    match problem.validator:
        case "additionalProperties":
            accepted = schema["properties"]
            names = ", ".join(sorted(set(given) - set(accepted)))
            return f"{names} is not a parameter of this tool, which takes {', '.join(accepted)}"
        case "required":
            return f"{', '.join(name for name in rule if name not in given)} is required"
        case "type":
            return f"{place} must be of type {rule if isinstance(rule, str) else ' or '.join(rule)}"
        case "enum":
            return f"{place} must be one of {', '.join(map(str, rule))}"
        case "minimum":
            return f"{place} must be at least {rule}, not {given}"
        case "maximum":
            return f"{place} must be at most {rule}, not {given}"
        case "minLength":
            return f"{place} must not be empty"
        case "minItems":
            return f"{place} must have at least {rule} entries"
        case "maxItems":
            return f"{place} must have at most {rule} entries, not {len(given)}"
        case "anyOf":
            return f"{place} must be a string or a list of strings"
        case _:
            return f"{place} is not accepted ({problem.validator})"
