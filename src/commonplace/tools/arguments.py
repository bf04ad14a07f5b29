"""The check of arguments against a tool's schema: accepted, or refused in one sentence that names the argument."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any

from commonplace.errors import InvalidInput
from commonplace.model import JSON
from commonplace.tools.accepting import accepts
from commonplace.tools.schema import Schema

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError
    from jsonschema.protocols import Validator

_FEW = 10
"""How many wrong entries of a list are examined: one is reported, and a list may have millions."""
_ARTICLES = {"array": "a list", "object": "an object", "integer": "a whole number", "null": "null"}


class Signature:
    """A schema prepared once for checking the arguments of all calls."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self.properties: Schema = schema["properties"]
        self.defaults = {name: spec["default"] for name, spec in schema["properties"].items() if "default" in spec}

    def problems(self, given: Mapping[str, JSON]) -> list[ValidationError]:
        """Return the errors in the arguments, in schema order; of a long list, those of its first wrong entries."""
        return [] if accepts(self._schema, given) else list(self._validator.iter_errors(given))

    @cached_property
    def _validator(self) -> Validator:
        from jsonschema import Draft202012Validator  # a tenth of a start-up, and only what is wrong needs it
        from jsonschema.validators import extend

        validator: Validator = extend(Draft202012Validator, {"items": _few_entries})(self._schema)  # type: ignore[no-untyped-call]
        return validator

    def plain(self, given: Mapping[str, JSON]) -> dict[str, JSON]:
        """Return accepted arguments with 5.0 as 5 where an integer is declared: JSON Schema takes both."""
        arguments: dict[str, JSON] = _plain(self._schema, given)
        return arguments


def _few_entries(validator: Any, items: Schema, value: JSON, schema: Schema) -> Iterator[ValidationError]:
    """Yield the errors in the first wrong entries of a list: an error takes a thousand times an entry's memory."""
    if isinstance(value, list):
        wrong = ((place, part) for place, part in enumerate(value) if not accepts(items, part))
        yield from islice((flaw for place, part in wrong for flaw in validator.descend(part, items, path=place)), _FEW)


def _plain(schema: Schema, value: JSON) -> JSON:
    if isinstance(value, float) and "integer" in (kind := schema.get("type", ())) and "number" not in kind:
        return int(value)
    if isinstance(value, Mapping):
        inner = schema.get("properties", {})
        return {name: _plain(inner.get(name, {}), part) for name, part in value.items()}
    if isinstance(value, list):
        return [_plain(schema.get("items", {}), part) for part in value]
    return value


def check(tool: str, signature: Signature, arguments: Mapping[str, JSON]) -> dict[str, JSON]:
    """Return the arguments with defaults filled in; null is "not given". Raise InvalidInput for an error."""
    given = {name: value for name, value in arguments.items() if value is not None}
    problem = min(signature.problems(given), key=_urgency, default=None)
    if problem is not None:
        raise refusal(tool, problem)
    return {**signature.defaults, **signature.plain(given)}


def refusal(tool: str, problem: ValidationError) -> InvalidInput:
    """Return the error for one problem: its sentence names the argument and the rule."""
    place = place_of(problem)
    schema: Any = problem.schema
    given: Any = problem.instance
    asked: Any = problem.validator_value
    if problem.validator == "additionalProperties":
        accepted = list(schema["properties"])
        unknown = next(name for name in given if name not in accepted)
        full = f"{place}.{unknown}" if place else unknown
        from difflib import get_close_matches

        close = get_close_matches(unknown, accepted, n=1)
        hint = f' Did you mean "{close[0]}"?' if close else ""
        takes = f"It takes: {', '.join(accepted)}." if accepted else "It takes none."
        return InvalidInput(f'{tool} has no argument "{full}".{hint} {takes}', code="unknown_argument", argument=full)
    if problem.validator == "required":
        missing = next(name for name in asked if name not in given)
        full = f"{place}.{missing}" if place else missing
        return InvalidInput(f'{tool} needs "{full}".', argument=full)
    return InvalidInput(f"{place or 'The arguments'} {rule(problem)}.", argument=place)


def place_of(problem: ValidationError) -> str:
    return ".".join(str(part) for part in problem.absolute_path)


def rule(problem: ValidationError) -> str:
    """Return the rule a value broke, as the end of a sentence that begins with the argument's name."""
    asked: Any = problem.validator_value
    given: Any = problem.instance
    schema: Any = problem.schema
    match problem.validator:
        case "type":
            kinds = [asked] if isinstance(asked, str) else asked
            return f"must be {' or '.join(_ARTICLES.get(kind, f'a {kind}') for kind in kinds)}, not {_shown(given)}"
        case "enum":
            return f"must be one of {', '.join(map(str, asked))}, not {_shown(given)}"
        case "minimum" | "maximum" if "minimum" in schema and "maximum" in schema:
            return f"must be between {schema['minimum']} and {schema['maximum']}, not {given}"
        case "minimum":
            return f"must be at least {asked}, not {given}"
        case "maximum":
            return f"must be at most {asked}, not {given}"
        case "minLength":
            return "must not be empty"
        case "maxLength":
            return f"must have at most {asked} characters, not {len(given)}"
        case "minItems":
            return f"must have at least {asked} {'entry' if asked == 1 else 'entries'}"
        case "maxItems":
            return f"must have at most {asked} entries, not {len(given)}"
        case "anyOf":  # what fits one of them but for its length is told so
            for part in problem.context or ():
                if part.validator in ("minLength", "minItems", "maxItems"):
                    return rule(part)
            return "must be a string or a list of strings"
        case other:
            return f"is not accepted ({other})"


def _shown(value: JSON) -> str:
    """Return a scalar as it was sent, at most 60 characters; of a list or an object only its type."""
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    shown = repr(value) if not isinstance(value, str) else f'"{value}"'
    return shown if len(shown) <= 60 else f"{shown[:60]}…"


def _urgency(problem: ValidationError) -> int:
    """Return the rank of a problem, lowest first: a misspelled name explains a missing one."""
    return {"additionalProperties": 0, "required": 1}.get(str(problem.validator), 2)
