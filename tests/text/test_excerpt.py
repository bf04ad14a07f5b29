"""Excerpts: never more than a model reads, and whatever was looked for is in them."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from commonplace.text.excerpt import excerpt
from commonplace.text.highlight import GAP
from commonplace.text.snippet import Match
from commonplace.text.token_estimates import estimate

FILLERS = ["and", "so", "forth", "茶壺", "früh", "\n\n", "x" * 30]
SOUGHT = ["alpha", "beta", "gamma", "delta"]


def places(text: str) -> list[Match]:
    found = []
    for term, word in enumerate(SOUGHT):
        at = text.find(word)
        while at >= 0:
            found.append((at, at + len(word), term))
            at = text.find(word, at + 1)
    return sorted(found)


def test_a_short_text_is_taken_whole() -> None:
    assert excerpt("alpha and beta", [], 512) == "alpha and beta"
    assert excerpt("", [], 512) == ""
    exactly = "word " * 409 + "end"
    assert excerpt(exactly, [], 512) == exactly


def test_without_a_match_it_is_the_beginning() -> None:
    text = " ".join(f"word{number}" for number in range(2000))
    found = excerpt(text, [], 512)
    assert text.startswith(found)
    assert estimate(found) > 480


def test_what_stands_together_is_taken_in_one_long_stretch() -> None:
    text = "filler " * 2000 + "alpha then beta " + "filler " * 2000
    found = excerpt(text, places(text), 512)
    assert "alpha then beta" in found
    assert GAP not in found
    assert 480 < estimate(found) <= 512


def test_what_stands_far_apart_is_all_kept() -> None:
    text = "alpha " + "filler " * 3000 + "beta " + "filler " * 3000 + "gamma"
    found = excerpt(text, places(text), 512)
    assert [word for word in SOUGHT if word in found] == SOUGHT[:3]
    assert found.count(GAP) == 2
    assert 470 < estimate(found) <= 512


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.one_of(st.sampled_from(FILLERS), st.sampled_from(SOUGHT)), min_size=1, max_size=60),
    st.integers(1, 60),
    st.integers(40, 200),
)
def test_it_fits_is_verbatim_and_keeps_every_term(words: list[str], spread: int, tokens: int) -> None:
    text = " ".join(word if word in SOUGHT else " ".join([word] * spread) for word in words)
    found = excerpt(text, places(text), tokens)
    assert estimate(found) <= tokens
    assert all(stretch in text for stretch in found.split(GAP))
    assert all(word in found for word in SOUGHT if word in text)
