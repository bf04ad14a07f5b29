"""A tool, and what every call has in common: arguments are checked in one place, failures have one shape."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError

from commonplace.errors import InvalidInput
from commonplace.library import Library
from commonplace.model import JSON

Schema = Mapping[str, JSON]
Handler = Callable[[Library, Mapping[str, JSON]], dict[str, JSON]]

READ_ONLY = {"readOnlyHint": True, "destructiveHint": False, "idempotentHint": True, "openWorldHint": False}


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

    def call(self, library: Library, arguments: Mapping[str, JSON]) -> dict[str, JSON]:
        """Check the arguments, then do it. Defaults of the schema are filled in."""
        self.check(arguments)
        given = {name: value for name, value in arguments.items() if value is not None}
        defaults = {name: spec["default"] for name, spec in self.input["properties"].items() if "default" in spec}
        return self.handler(library, {**defaults, **given})

    def check(self, arguments: Mapping[str, JSON]) -> None:
        """Refuse wrong arguments with one sentence that names each of them and what is accepted."""
        given = {name: value for name, value in arguments.items() if value is not None}
        problems = [_sentence(problem, self) for problem in Draft202012Validator(self.input).iter_errors(given)]
        if problems:
            raise InvalidInput(f"Invalid arguments for {self.name}: {'; '.join(problems)}.")


def obj(*, required: tuple[str, ...] = (), **properties: Schema) -> Schema:
    """An object of exactly these properties."""
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


def text(description: str, **more: JSON) -> Schema:
    return {"type": "string", "description": description, **more}


def integer(description: str, *, default: int, least: int, most: int) -> Schema:
    return {"type": "integer", "description": description, "default": default, "minimum": least, "maximum": most}


def choice(description: str, *values: str) -> Schema:
    return {"type": "string", "description": description, "enum": list(values), "default": values[0]}


def texts(description: str) -> Schema:
    return {"type": "array", "description": description, "items": {"type": "string"}}


def _sentence(problem: ValidationError, tool: Tool) -> str:
    place = ".".join(str(part) for part in problem.absolute_path)
    rule: Any = problem.validator_value
    given: Any = problem.instance
    match problem.validator:
        case "additionalProperties":
            names = ", ".join(sorted(set(given) - set(tool.input["properties"])))
            return f"{names} is not a parameter of this tool, which takes {', '.join(tool.input['properties'])}"
        case "required":
            missing = [name for name in rule if name not in given]
            return f"{', '.join(missing)} is required"
        case "type":
            return f"{place} must be of type {rule}"
        case "enum":
            return f"{place} must be one of {', '.join(map(str, rule))}"
        case "minimum":
            return f"{place} must be at least {rule}, not {given}"
        case "maximum":
            return f"{place} must be at most {rule}, not {given}"
        case "minLength":
            return f"{place} must not be empty"
        case _:
            return f"{place} is not accepted ({problem.validator})"
