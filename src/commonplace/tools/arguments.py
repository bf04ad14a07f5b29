"""Arguments of a tool: checked against its schema, forgiven where the intent is plain, read as moments."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, date, datetime
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any

from commonplace.errors import InvalidInput
from commonplace.model import JSON
from commonplace.tools.schema import Schema

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError
    from jsonschema.protocols import Validator


def accepts(schema: Schema, value: JSON) -> bool:
    """Return True if the value is valid, False if it is not or a keyword is not known here: jsonschema decides then."""
    return all(keyword in _ANNOTATIONS or _follows(keyword, asked, value, schema) for keyword, asked in schema.items())


def _follows(keyword: str, asked: Any, value: Any, schema: Schema) -> bool:
    if keyword not in _CHECKS:
        return False
    kind, check = _CHECKS[keyword]
    return check(asked, value, schema) if _is(kind, value) else keyword != "enum"


def _is(kind: str, value: Any) -> bool:
    match kind:
        case "integer":
            return type(value) is int or (type(value) is float and value.is_integer())
        case "number":
            return type(value) in (int, float)
        case _:
            return kind == "any" or type(value) is _TYPES.get(kind)


def _is_one_of(kinds: str | list[str], value: Any, schema: Schema) -> bool:
    return any(_is(kind, value) for kind in ([kinds] if isinstance(kinds, str) else kinds))


def _holds(parts: Schema, value: dict[str, Any], schema: Schema) -> bool:
    return all(accepts(parts[name], part) for name, part in value.items() if name in parts)


def _holds_others(asked: bool | Schema, value: dict[str, Any], schema: Schema) -> bool:
    return asked is True or (asked is False and value.keys() <= schema.get("properties", {}).keys())


_ANNOTATIONS = frozenset({"title", "description", "default", "examples"})
_TYPES: dict[str, type] = {"string": str, "boolean": bool, "array": list, "object": dict, "null": type(None)}
_CHECKS: dict[str, tuple[str, Callable[[Any, Any, Schema], bool]]] = {
    "type": ("any", _is_one_of),
    "enum": ("string", lambda asked, value, schema: value in asked),
    "anyOf": ("any", lambda asked, value, schema: any(accepts(part, value) for part in asked)),
    "minimum": ("number", lambda asked, value, schema: value >= asked),
    "maximum": ("number", lambda asked, value, schema: value <= asked),
    "minLength": ("string", lambda asked, value, schema: len(value) >= asked),
    "maxLength": ("string", lambda asked, value, schema: len(value) <= asked),
    "minItems": ("array", lambda asked, value, schema: len(value) >= asked),
    "maxItems": ("array", lambda asked, value, schema: len(value) <= asked),
    "items": ("array", lambda asked, value, schema: all(accepts(asked, part) for part in value)),
    "required": ("object", lambda asked, value, schema: all(name in value for name in asked)),
    "properties": ("object", _holds),
    "additionalProperties": ("object", _holds_others),
}
"""Each keyword with the type it applies to; a value of another type passes, except for enums, which are of strings."""


def moment(name: str, value: str, *, end: bool = False) -> datetime:
    """Return a date or time in UTC, also the default time zone. With `end`, a bare date means its last moment.

    Years out of range become the first or last moment. Raise InvalidInput, naming the argument, for anything else.
    """
    try:
        time = datetime.fromisoformat(value)
    except ValueError:
        raise InvalidInput(
            f'{name} "{value}" is not an ISO 8601 date; write 2026-05-01 or 2026-05-01T09:30:00Z.', argument=name
        ) from None
    if end and is_date(value):
        time = time.replace(hour=23, minute=59, second=59, microsecond=999_999)
    try:
        return time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)
    except OverflowError:
        return (datetime.min if time.year == 1 else datetime.max).replace(tzinfo=UTC)


def is_date(value: str) -> bool:
    """Return whether a text is a date without a time, in any ISO form: 2026-05-01, 20260501, 2026-W18-5."""
    try:
        date.fromisoformat(value)
    except ValueError:
        return False
    return True


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
