"""Normal forms as the standard library makes them, whatever is put behind a letter, and in no more than a moment."""

from __future__ import annotations

import time
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from commonplace.text.normal import Form, normalized

FORMS = ("NFC", "NFD", "NFKC", "NFKD")
MARKS = "\u0301\u0327\u0323\u0344\u0345\u05b0\u0f71\u0f73\u0f81\u3099\uff9e\uff9f\u0dd9\u0dca\u1100\u1161\u20dd\u034f"


@pytest.mark.parametrize("form", FORMS)
@given(st.text("ae\u00e9か ", max_size=3), st.text(MARKS, min_size=60, max_size=200), st.text("b\u00a8", max_size=2))
@example("", "\u0301\u0327" * 100, "")
@example("か", "\uff9e\u0301" * 100, "")
@example("a", "\u0f73\u0f71" * 100, "")
def test_it_answers_as_the_standard_library_does(form: Form, before: str, marks: str, after: str) -> None:
    text = before + marks + after
    assert normalized(form, text) == unicodedata.normalize(form, text)


@pytest.mark.parametrize("pair", ["\u0301\u0327", "\uff9e\u0301", "\u0f73\u0f71", "\u0301\u0f81"])
@pytest.mark.parametrize("form", FORMS)
def test_no_number_of_marks_takes_long(form: Form, pair: str) -> None:
    begun = time.process_time()
    normalized(form, "a" + pair * 200_000)
    assert time.process_time() - begun < 10  # minutes in the standard library, and the whole process waits
