"""Dates: contracts/memory.md, section 5."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.errors import InvalidInput
from commonplace.kinds.memories.tools.entry_json import parse_date, shown_date

NOON = datetime(2025, 11, 29, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2025-11-29T12:00", NOON),
        ("2025-11-29 12:00", NOON),
        ("2025-11-29T12:00:00", NOON),
        ("2025-11-29T12:00:00Z", NOON),
        ("2025-11-29T14:00:00+02:00", NOON),
        ("2025-11-29T14:00:00+0200", NOON),
        ("2025-11-29T14:00:00+02", NOON),
        ("2025-11-29T06:30-05:30", NOON),
        ("2025-11-29T12:00:00.5Z", NOON + timedelta(milliseconds=500)),
        ("2025-11-29T12:00:00.000001", NOON + timedelta(microseconds=1)),
        ("2025-11-29T12:00:00.000000000", NOON),
        ("0001-01-01T00:00+14:00", datetime.min.replace(tzinfo=UTC)),
        ("9999-12-31T23:59-12:00", datetime.max.replace(tzinfo=UTC)),
    ],
)
def test_the_listed_forms_are_instants(text: str, moment: datetime) -> None:
    assert parse_date(text, "start_date") == moment
    assert parse_date(text, "end_date", end=True) == moment


def test_a_date_alone_is_its_first_or_its_last_instant() -> None:
    assert parse_date("2025-11-29", "start_date") == datetime(2025, 11, 29, tzinfo=UTC)
    assert parse_date("2025-11-29", "end_date", end=True) == datetime(2025, 11, 29, 23, 59, 59, 999999, tzinfo=UTC)
    assert parse_date("9999-12-31", "end_date", end=True) == datetime.max.replace(tzinfo=UTC)


def test_what_is_finer_than_a_microsecond_never_widens_a_range() -> None:
    text = "2025-11-29T12:00:00.0000005"
    assert parse_date(text, "start_date") == NOON + timedelta(microseconds=1)
    assert parse_date(text, "end_date", end=True) == NOON


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "20250101", "2025-W01-1", "2025-001", "2025-13-01", "2025-02-29", "2025-1-1", "2025-01-01T", "today",
        "2025-01-01T24:00", "2025-01-01T12", "2025-01-01T12:60", "2025-01-01T12:00:60", "2025-01-01T12:00z",
        "2025-01-01T12:00:00,5", "2025-01-01T12:00:00.", "2025-01-01T12:00+24:00", "2025-01-01T12:00+02:0",
        "2025-01-01T12:00 +02:00", "2025-01-01Z", " 2025-01-01", "2025-01-01\n", "0000-01-01", "२०२५-०१-०१",
        "2025-01-01t12:00", "2025-01-01T120000",
    ],
)  # fmt: skip
def test_anything_else_is_refused_with_the_contracts_sentence(text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_date(text, "start_date")
    assert str(caught.value) == (
        f'Invalid start_date format: "{text}". Use ISO 8601 format (e.g., "2025-11-29" or "2025-11-29T10:00:00")'
    )


@given(st.datetimes(timezones=st.just(UTC)))
def test_what_is_shown_can_be_asked_for(moment: datetime) -> None:
    text = shown_date(moment)
    assert len(text) == len("2025-11-29T12:00:00.000000Z")
    assert parse_date(text, "start_date") == parse_date(text, "end_date", end=True) == moment


@given(st.text(max_size=30))
def test_any_text_is_a_date_or_refused(text: str) -> None:
    with suppress(InvalidInput):
        assert parse_date(text, "start_date").tzinfo is UTC
