"""The safe config and the order of precedence.

1. Objects and base64 in either alphabet, padded or not, mean the same; camelCase is understood.
2. Nothing fails a call: what is not understood is named in a warning, and its value is nowhere.
3. Numbers out of range are moved into it, wherever they come from, and the knob is named.
4. Explicit argument, session, safe config, settings: the first that has a knob decides.
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.errors import InvalidInput
from commonplace.tools.soft_config import DEFAULTS, KNOBS, Number, SoftConfig, choose, parse_config, read_defaults


def encoded(value: Any, *, urlsafe: bool = False, padded: bool = True) -> str:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    text = (base64.urlsafe_b64encode if urlsafe else base64.b64encode)(data).decode()
    return text if padded else text.rstrip("=")


def reasons(config: SoftConfig) -> list[str]:
    assert all(warning["code"] == "config_ignored" and warning["source"] is None for warning in config.warnings)
    return [str(warning["reason"]) for warning in config.warnings]


# 1

knob_values = st.fixed_dictionaries(
    {},
    optional={
        name: st.integers(knob.least, knob.most) if isinstance(knob, Number) else st.sampled_from(knob.among)
        for name, knob in KNOBS.items()
    },
)


@given(values=knob_values, urlsafe=st.booleans(), padded=st.booleans(), noise=st.text())
def test_every_way_of_writing_a_config_means_the_same(
    values: dict[str, Any], urlsafe: bool, padded: bool, noise: str
) -> None:
    assert parse_config(values) == SoftConfig(values)
    written = {**values, "zzz": noise}  # any text, so that every character of the alphabets occurs
    if len(text := encoded(written, urlsafe=urlsafe, padded=padded)) <= 4096:
        assert parse_config(text).values == values
        assert parse_config(text.replace("+", " ")).values == values


@pytest.mark.parametrize("name", KNOBS)
def test_camel_case_is_understood(name: str) -> None:
    camel = name.title().replace("_", "")
    camel = camel[0].lower() + camel[1:]
    assert parse_config({camel: KNOBS[name].default}) == SoftConfig({name: KNOBS[name].default})


def test_compact_shape_is_another_word_for_the_shape() -> None:
    assert parse_config({"compactShape": True}) == SoftConfig({"shape": "compact"})
    assert parse_config({"compactShape": False}) == SoftConfig()
    assert reasons(parse_config({"compactShape": "yes"})) == [
        'config key "compactShape" must be true or false; it was ignored.'
    ]


def test_no_config_is_an_empty_one() -> None:
    assert parse_config(None) == parse_config({}) == SoftConfig()


def test_a_whole_number_may_be_written_as_a_float_and_characters_per_token_may_be_broken() -> None:
    parsed = parse_config({"snippet_length": 250.0, "charsPerToken": 3.5})
    assert parsed == SoftConfig({"snippet_length": 250, "chars_per_token": 3.5})
    assert isinstance(parsed.values["snippet_length"], int)


# 2


@pytest.mark.parametrize(
    "given",
    [
        "", "%%%", "é", "a", "AAAAA", encoded(b"not json"), encoded(b"\xff\xfe"), encoded([1]), encoded("text"),
        encoded(None), encoded({"snippet_length": 100, "x": "y" * 4096}), encoded(b"[" * 3000), encoded(b"{" * 3000),
        7, [1], True, 1.5,
    ],
)  # fmt: skip
def test_a_config_that_cannot_be_read_is_ignored_as_a_whole(given: Any) -> None:
    parsed = parse_config(given)
    assert parsed.values == {}
    assert reasons(parsed) == ["config is not a JSON object, nor base64 of one; it was ignored."]


SECRET = "hunter2-s3cret"


@pytest.mark.parametrize(
    "key",
    ["token", "api_key", "apiKey", "password", "user_id", "db_path", "authorization", "limit", "Snippet_Length", ""],
)
def test_what_is_no_key_is_named_and_its_value_is_nowhere(key: str) -> None:
    parsed = parse_config({key: SECRET, "snippet_length": 99})
    assert parsed.values == {"snippet_length": 99}
    assert reasons(parsed) == [f'config key "{key}" is none of the keys it may have; it was ignored.']
    assert SECRET not in repr(parsed)


@pytest.mark.parametrize("name", KNOBS)
@pytest.mark.parametrize("value", [SECRET, None, [], {}, float("nan"), float("inf")])
def test_a_wrong_type_is_ignored_and_not_repeated(name: str, value: Any) -> None:
    parsed = parse_config({name: value})
    assert parsed.values == {}
    assert len(reasons(parsed)) == 1
    assert reasons(parsed)[0].startswith(f'config key "{name}" must be ')
    assert SECRET not in repr(parsed)


@pytest.mark.parametrize(
    "given", [{"snippet_length": True}, {"snippet_length": 20.5}, {"dedupe": 1}, {"order_by": "Recent"}]
)
def test_nothing_is_coerced(given: dict[str, Any]) -> None:
    assert parse_config(given).values == {}


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text() | st.sampled_from([*KNOBS]), inner, max_size=4)
    ),
    max_leaves=8,
)


@given(given=anything | st.binary().map(encoded) | anything.map(encoded))
def test_no_config_fails_a_call(given: Any) -> None:
    parsed = parse_config(given)
    assert parsed.values.keys() <= KNOBS.keys()
    for name, value in parsed.values.items():
        assert KNOBS[name].read(value) == (value, False)
    choose({}, None, parsed)


def test_many_keys_do_not_make_many_warnings() -> None:
    said = reasons(parse_config({f"k{n}": n for n in range(5000)} | {"x" * 500: 1}))
    assert len(said) == 21
    assert said[-1] == "config has 4981 more keys that are none of its own; it was ignored."
    assert reasons(parse_config({"x" * 500: 1})) == [
        f'config key "{"x" * 64}…" is none of the keys it may have; it was ignored.'
    ]


# 3


@pytest.mark.parametrize(
    ("name", "given", "applied"),
    [
        ("snippet_length", 5, 20), ("snippet_length", 10**400, 1000), ("max_tokens", 0, 1),
        ("max_tokens", 10**6, 200_000),
        ("sibling_window", -1, 0), ("sibling_window", 11, 10), ("chars_per_token", 0.5, 1), ("chars_per_token", 99, 20),
        ("max_session_uris", 1, 10), ("max_session_uris", 5001, 5000),
    ],
)  # fmt: skip
def test_a_number_out_of_range_is_moved_into_it_and_named(name: str, given: float, applied: float) -> None:
    parsed = parse_config({name: given})
    assert parsed == SoftConfig({name: applied}, frozenset({name}))
    chosen = choose({}, None, parsed)
    assert (getattr(chosen, name), chosen.clamped) == (applied, (name,))
    if name in DEFAULTS:
        assert read_defaults({name: given}) == ({name: applied}, {name})
        chosen = choose({name: given})
        assert (getattr(chosen, name), chosen.clamped, chosen.origin[name]) == (applied, (name,), "argument")
        chosen = choose({}, settings={name: given})
        assert (getattr(chosen, name), chosen.clamped) == (applied, (name,))


def test_session_defaults_say_what_they_take() -> None:
    assert read_defaults({"snippet_length": None, "order_by": "recent"}) == (
        {"snippet_length": None, "order_by": "recent"},
        frozenset(),
    )
    with pytest.raises(InvalidInput, match=r'no "session_defaults\.dedupe"\. It takes: snippet_length,') as bad:
        read_defaults({"dedupe": True})
    assert (bad.value.code, bad.value.details) == ("unknown_argument", {"argument": "session_defaults.dedupe"})
    with pytest.raises(InvalidInput, match=r"session_defaults\.max_tokens must be a whole number\."):
        read_defaults({"max_tokens": "many"})
    with pytest.raises(InvalidInput, match=r'session_defaults\.order_by must be "relevance" or "recent"\.'):
        read_defaults({"order_by": "newest"})


# 4


@dataclass(frozen=True)
class Caller:
    defaults: dict[str, Any] = field(default_factory=dict)
    clamped: frozenset[str] = frozenset()


@given(
    argument=st.none() | st.integers(20, 1000),
    session=st.none() | st.integers(20, 1000),
    config=st.none() | st.integers(20, 1000),
    setting=st.none() | st.integers(20, 1000),
)
def test_the_first_that_has_a_knob_decides(
    argument: int | None, session: int | None, config: int | None, setting: int | None
) -> None:
    def having(value: int | None) -> dict[str, Any]:
        return {} if value is None else {"snippet_length": value}

    chosen = choose(having(argument), Caller(having(session)), parse_config(having(config)), having(setting))
    ranked = [("argument", argument), ("session", session), ("config", config), ("settings", setting or 300)]
    origin, value = next((origin, value) for origin, value in ranked if value is not None)
    assert (chosen.origin["snippet_length"], chosen.snippet_length) == (origin, value)


def test_without_anything_the_contract_decides() -> None:
    chosen = choose({})
    assert [getattr(chosen, name) for name in KNOBS] == [300, 5000, 2, "relevance", 4, True, "full", 500]
    assert (chosen.clamped, set(chosen.origin.values())) == ((), {"settings"})


def test_what_was_clamped_counts_only_where_it_was_chosen() -> None:
    config = parse_config({"snippet_length": 1, "max_tokens": 0})
    chosen = choose({"snippet_length": 50}, Caller({"max_tokens": 9}), config)
    assert chosen.clamped == ()
    assert choose({}, Caller({"max_tokens": 9}, frozenset({"max_tokens"}))).clamped == ("max_tokens",)


def test_an_argument_of_the_wrong_type_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"snippet_length must be a whole number\."):
        choose({"snippet_length": "long"})


def test_of_two_configs_one_goes_over_the_other() -> None:
    near, far = (
        parse_config({"shape": "compact", "max_tokens": 7, "a": 1}),
        parse_config({"max_tokens": 0, "snippet_length": 1}),
    )
    both = near.over(far)
    assert both.values == {"shape": "compact", "max_tokens": 7, "snippet_length": 20}
    assert (both.clamped, len(both.warnings)) == ({"snippet_length"}, 1)
    assert both.defaults == {"max_tokens": 7, "snippet_length": 20}
