"""Values that a JSON Schema accepts, or nearly: what an agent might send."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


def arguments(schema: Any, texts: st.SearchStrategy[str], *, wild: bool = False) -> st.SearchStrategy[dict[str, Any]]:
    """Objects for a tool's input schema: every required argument, any of the others. `wild` breaks the rules too."""
    properties = {name: values(spec, texts) for name, spec in schema["properties"].items()}
    if wild:
        properties = {name: made | ANYTHING for name, made in properties.items()}
    required = {name: properties[name] for name in schema.get("required", ())}
    optional = {name: made for name, made in properties.items() if name not in required}
    tame = st.fixed_dictionaries(required, optional=optional)
    return tame | st.dictionaries(st.text(max_size=8), ANYTHING, max_size=3) if wild else tame


def values(schema: Any, texts: st.SearchStrategy[str]) -> st.SearchStrategy[Any]:
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    for name in ("anyOf", "oneOf"):
        if name in schema:
            return st.one_of([values(part, texts) for part in schema[name]])
    kinds = schema.get("type", "any")
    if isinstance(kinds, list):
        return st.one_of([values({**schema, "type": kind}, texts) for kind in kinds])
    match kinds:
        case "string":
            return texts
        case "boolean":
            return st.booleans()
        case "null":
            return st.none()
        case "integer":
            return st.integers(schema.get("minimum", -3), min(schema.get("maximum", 200), 200))
        case "number":
            return st.floats(schema.get("minimum", -3), schema.get("maximum", 200), allow_nan=False)
        case "array":
            return st.lists(values(schema.get("items", {}), texts), min_size=schema.get("minItems", 0), max_size=3)
        case "object" if "properties" in schema:
            return arguments(schema, texts)
        case "object":
            return st.dictionaries(texts, texts | st.integers(), max_size=2)
        case _:
            return texts | st.integers() | st.booleans()
