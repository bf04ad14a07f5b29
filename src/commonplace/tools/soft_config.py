"""The knobs a caller may set, the sources of their values, and which source wins.

    explicit argument  >  session defaults  >  safe config of the request  >  settings

A number out of range is moved into it, and the knob is named as clamped. The safe config never fails a call: what is
no knob, or no value for one, is ignored with a warning that names the key and never says its value.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from commonplace.errors import InvalidInput
from commonplace.model import JSON

MOST_ENCODED = 4096
"""Characters of a config in base64."""
MOST_WARNINGS = 20
_LONGEST_NAME = 64

Origin = Literal["argument", "session", "config", "settings"]
Order = Literal["relevance", "recent"]
Shape = Literal["full", "compact"]


@dataclass(frozen=True, slots=True)
class Number:
    """A knob that is a number."""

    default: float
    least: int
    most: int
    whole: bool = True

    def read(self, value: JSON) -> tuple[JSON, bool]:
        """Return the value within the bounds, and whether it was moved. Raise ValueError with the accepted type."""
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if number and isinstance(value, float):
            number = math.isfinite(value) and (not self.whole or value.is_integer())
        if not number:
            raise ValueError("a whole number" if self.whole else "a number")
        moved = min(max(value, self.least), self.most)
        return int(moved) if self.whole else moved, moved != value


@dataclass(frozen=True, slots=True)
class Choice:
    """A knob that is one of a few words, or on or off."""

    default: JSON
    among: tuple[JSON, ...]

    def read(self, value: JSON) -> tuple[JSON, bool]:
        """Return the value, which is never moved, and False. Raise ValueError with the accepted values."""
        for accepted in self.among:
            if type(value) is type(accepted) and value == accepted:
                return accepted, False
        raise ValueError(" or ".join(json.dumps(accepted) for accepted in self.among))


DEFAULTS: Mapping[str, Number | Choice] = {
    "snippet_length": Number(300, 20, 1000),
    "max_tokens": Number(5000, 1, 200_000),
    "sibling_window": Number(2, 0, 10),
    "order_by": Choice("relevance", ("relevance", "recent")),
    "chars_per_token": Number(4, 1, 20, whole=False),
}
"""The knobs that a session may keep for its caller."""

KNOBS: Mapping[str, Number | Choice] = {
    **DEFAULTS,
    "dedupe": Choice(True, (True, False)),
    "shape": Choice("full", ("full", "compact")),
    "max_session_uris": Number(500, 10, 5000),
}

_COMPACT = Choice(False, (True, False))


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))


_SPELLINGS = {spelling: name for name in (*KNOBS, "compact_shape") for spelling in (name, _camel(name))}


@dataclass(frozen=True, slots=True)
class SoftConfig:
    """The knobs of a request's config by name, and warnings for what was ignored."""

    values: Mapping[str, JSON] = field(default_factory=dict)
    clamped: frozenset[str] = frozenset()
    warnings: tuple[Mapping[str, JSON], ...] = ()

    @property
    def defaults(self) -> dict[str, JSON]:
        """The values that a session may keep."""
        return {name: value for name, value in self.values.items() if name in DEFAULTS}

    def over(self, other: SoftConfig) -> SoftConfig:
        """Return both combined; where the two differ, this one's value wins."""
        others_clamped = other.clamped - self.values.keys()
        return SoftConfig(
            {**other.values, **self.values}, self.clamped | others_clamped, self.warnings + other.warnings
        )


def parse_config(given: JSON) -> SoftConfig:
    """Return the config of a request, which is an object or base64 of one. Never raises."""
    if given is None:
        return SoftConfig()
    config = _decoded(given) if isinstance(given, str) else given
    if not isinstance(config, Mapping):
        return SoftConfig(warnings=(_ignored("config", "is not a JSON object, nor base64 of one"),))
    values: dict[str, JSON] = {}
    clamped: set[str] = set()
    ignored: list[tuple[str, str]] = []
    for key, value in config.items():
        name = _SPELLINGS.get(key)
        try:
            if name == "compact_shape":
                if _COMPACT.read(value)[0]:
                    values["shape"] = "compact"
            elif name:
                values[name], moved = KNOBS[name].read(value)
                (clamped.add if moved else clamped.discard)(name)
            else:
                ignored.append((str(key), "is none of the keys it may have"))
        except ValueError as accepted:
            ignored.append((str(key), f"must be {accepted}"))
    return SoftConfig(values, frozenset(clamped), tuple(_warnings(ignored)))


def _decoded(text: str) -> JSON:
    """Return the JSON that base64 holds; None when it holds none."""
    if len(text) > MOST_ENCODED:
        return None
    # A plus sign in a query string arrives as a blank.
    plain = text.strip().replace(" ", "+").replace("-", "+").replace("_", "/").rstrip("=")
    try:
        return json.loads(base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True))
    except (ValueError, RecursionError):
        return None


def _warnings(ignored: list[tuple[str, str]]) -> Iterator[Mapping[str, JSON]]:
    for key, reason in ignored[:MOST_WARNINGS]:
        name = key if len(key) <= _LONGEST_NAME else key[:_LONGEST_NAME] + "…"
        yield _ignored(f"config key {json.dumps(name, ensure_ascii=not name.isprintable())}", reason)
    if len(ignored) > MOST_WARNINGS:
        yield _ignored("config", f"has {len(ignored) - MOST_WARNINGS} more keys that are none of its own")


def _ignored(what: str, reason: str) -> Mapping[str, JSON]:
    return {"source": None, "code": "config_ignored", "reason": f"{what} {reason}; it was ignored."}


def read_defaults(given: Mapping[str, JSON]) -> tuple[dict[str, JSON], frozenset[str]]:
    """Return session defaults from an argument, None for one to remove, and the names that were clamped."""
    values: dict[str, JSON] = {}
    clamped: set[str] = set()
    for name, value in given.items():
        knob, place = DEFAULTS.get(name), f"session_defaults.{name}"
        if knob is None:
            raise InvalidInput(
                f'There is no "{place}". It takes: {", ".join(DEFAULTS)}.', code="unknown_argument", argument=place
            )
        values[name], moved = (None, False) if value is None else _read(knob, value, place)
        if moved:
            clamped.add(name)
    return values, frozenset(clamped)


def _read(knob: Number | Choice, value: JSON, place: str) -> tuple[JSON, bool]:
    try:
        return knob.read(value)
    except ValueError as accepted:
        raise InvalidInput(f"{place} must be {accepted}.", argument=place) from None


class HasDefaults(Protocol):
    """The part of a session that `choose` reads."""

    @property
    def defaults(self) -> Mapping[str, JSON]: ...
    @property
    def clamped(self) -> frozenset[str]: ...


@dataclass(frozen=True, slots=True)
class Chosen:
    """The value of every knob for one call."""

    snippet_length: int
    max_tokens: int
    sibling_window: int
    order_by: Order
    chars_per_token: float
    dedupe: bool
    shape: Shape
    max_session_uris: int
    clamped: tuple[str, ...]
    """The knobs whose value was out of range at its source."""
    origin: Mapping[str, Origin]
    """The source of each knob's value."""


def choose(
    given: Mapping[str, JSON],
    session: HasDefaults | None = None,
    config: SoftConfig = SoftConfig(),
    settings: Mapping[str, JSON] | None = None,
) -> Chosen:
    """Return every knob, each from the first of argument, session, safe config and settings that has it.

    `given` holds only what the call itself gave: no default of a schema. A knob that `settings` does not name has the
    default of this module.
    """
    values: dict[str, JSON] = {}
    origin: dict[str, Origin] = {}
    clamped: list[str] = []
    for name, knob in KNOBS.items():
        moved = False
        if given.get(name) is not None:
            (values[name], moved), origin[name] = _read(knob, given[name], name), "argument"
        elif session is not None and name in session.defaults:
            values[name], moved, origin[name] = session.defaults[name], name in session.clamped, "session"
        elif name in config.values:
            values[name], moved, origin[name] = config.values[name], name in config.clamped, "config"
        else:
            (values[name], moved), origin[name] = knob.read((settings or {}).get(name, knob.default)), "settings"
        if moved:
            clamped.append(name)
    return Chosen(**values, clamped=tuple(clamped), origin=origin)
