"""JSON Schema in few words: what a tool takes and gives back."""

from __future__ import annotations

from collections.abc import Mapping

from commonplace.model import JSON

Schema = Mapping[str, JSON]

STRING: Schema = {"type": "string"}
INTEGER: Schema = {"type": "integer"}
NUMBER: Schema = {"type": "number"}
BOOLEAN: Schema = {"type": "boolean"}
STRINGS: Schema = {"type": "array", "items": STRING}
OBJECT: Schema = {"type": "object"}


def obj(*, required: tuple[str, ...] = (), **properties: Schema) -> Schema:
    """An object of exactly these properties."""
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


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


def flag(description: str, *, default: bool = False) -> Schema:
    return {"type": "boolean", "description": description, "default": default}


def texts(description: str, **more: JSON) -> Schema:
    return {"type": "array", "description": description, "items": {"type": "string"}, **more}


def one_or_many(description: str, most: int) -> Schema:
    """A string, or a list of them."""
    several = {"type": "array", "items": {"type": "string", "minLength": 1}, "minItems": 1, "maxItems": most}
    return {"description": description, "anyOf": [{"type": "string", "minLength": 1}, several]}


def maybe(schema: Schema) -> Schema:
    """The same, or null."""
    return {**schema, "type": [schema["type"], "null"]}
