"""JSON Schema in few words: the arguments and answers of tools."""

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
    """Return the schema of an object with exactly these properties."""
    needed = {"required": list(required)} if required else {}
    return {"type": "object", "properties": properties, **needed, "additionalProperties": False}


def answer(*, required: tuple[str, ...] = (), **properties: Schema) -> Schema:
    """Return the schema of an answer: these properties, all required by default, and more in later versions."""
    return {"type": "object", "properties": properties, "required": list(required or properties)}


def many(schema: Schema) -> Schema:
    return {"type": "array", "items": schema}


def text(description: str, **more: JSON) -> Schema:
    return {"type": "string", "description": description, **more}


def integer(description: str, *, default: int, least: int, most: int) -> Schema:
    return {"type": "integer", "description": description, "default": default, "minimum": least, "maximum": most}


def choice(description: str, *values: str) -> Schema:
    """Return the schema of one of these values; the first is the default."""
    return {"type": "string", "description": description, "enum": list(values), "default": values[0]}


def flag(description: str, *, default: bool = False) -> Schema:
    return {"type": "boolean", "description": description, "default": default}


def texts(description: str, **more: JSON) -> Schema:
    return {"type": "array", "description": description, "items": {"type": "string"}, **more}


def one_or_many(description: str, most: int) -> Schema:
    """Return the schema of a string, or of a list of up to `most` strings."""
    one: Schema = {"type": "string", "minLength": 1}
    several: Schema = {"type": "array", "items": one, "minItems": 1, "maxItems": most}
    return {"description": description, "anyOf": [one, several]}


def outline(schema: Schema, *, levels: int) -> Schema:
    """Return a schema without the properties of objects deeper than `levels`; it accepts all that the full one does."""
    shallow: dict[str, JSON] = dict(schema)
    if "properties" in schema and levels == 0:
        for name in ("properties", "required", "additionalProperties"):
            shallow.pop(name, None)
    elif "properties" in schema:
        inside = schema["properties"].items()
        shallow["properties"] = {name: outline(part, levels=levels - 1) for name, part in inside}
    if isinstance(schema.get("items"), Mapping):
        shallow["items"] = outline(schema["items"], levels=levels)
    if "anyOf" in schema:
        shallow["anyOf"] = [outline(part, levels=levels) for part in schema["anyOf"]]
    return shallow


def parts_of(output: Schema) -> Schema:
    """Return an output schema that only names the parts of an answer, so that failures are valid too.

    Some clients check failures against it, and would show nothing but that check's error if a part were required.
    """
    return {"type": "object", "properties": {name: {} for name in output.get("properties", {})}}


def maybe(schema: Schema) -> Schema:
    """Return the schema of the same type or null."""
    return {**schema, "type": [schema["type"], "null"]}
