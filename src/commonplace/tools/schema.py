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
    needed = {"required": list(required)} if required else {}
    return {"type": "object", "properties": properties, **needed, "additionalProperties": False}


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
    one: Schema = {"type": "string", "minLength": 1}
    several: Schema = {"type": "array", "items": one, "minItems": 1, "maxItems": most}
    return {"description": description, "anyOf": [one, several]}


def outline(schema: Schema, *, levels: int) -> Schema:
    """Return a schema without what objects further down than `levels` are made of. All that it allowed, it allows."""
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
    """Return an output schema that names the parts of an answer and no more, so that it is true of failures too.

    Some clients hold failures against it, and would show nothing else of them if a part were required.
    """
    return {"type": "object", "properties": {name: {} for name in output.get("properties", {})}}


def maybe(schema: Schema) -> Schema:
    """The same, or null."""
    return {**schema, "type": [schema["type"], "null"]}
