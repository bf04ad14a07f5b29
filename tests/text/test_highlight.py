"""Where what was looked for stands, marked."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.text.highlight import Highlighter, Sought, marked


def show(text: str, sought: Sought, length: int = 300) -> str:
    return marked(text, Highlighter(sought, ("en",)).find(text), length)


@pytest.mark.parametrize(
    ("text", "sought", "expected"),
    [
        ("Zoë runs.", Sought(words=["zoe", "run"]), "<mark>Zoë</mark> <mark>runs</mark>."),
        ("a real-time thing", Sought(words=["real-time"]), "a <mark>real-time</mark> thing"),
        ("a real time thing", Sought(words=["real-time"]), "a <mark>real time</mark> thing"),
        ("a real-time thing", Sought(phrases=["real time"]), "a <mark>real-time</mark> thing"),
        ("in F#, not f", Sought(words=["F#"]), "in <mark>F#</mark>, not <mark>f</mark>"),
        ("languages abound", Sought(beginnings=["lang"]), "<mark>languages</mark> abound"),
        ("hot, green tea", Sought(phrases=["green tea"]), "hot, <mark>green tea</mark>"),
        ("東京都庁に行った", Sought(words=["都庁"]), "東京<mark>都庁</mark>に行った"),
        ("昔のﾃﾚﾋﾞです", Sought(words=["テレビ"]), "昔の<mark>ﾃﾚﾋﾞ</mark>です"),
        ("ฉันดื่มน้ำทุกวัน", Sought(phrases=["น้ำ"]), "ฉันดื่ม<mark>น้ำ</mark>ทุกวัน"),
        ("it’s late", Sought(words=["it's"]), "<mark>it’s</mark> late"),
        ("two  spaces\tstay", Sought(words=["stay"]), "two  spaces\t<mark>stay</mark>"),
        ("(👩‍👩‍👧) here", Sought(words=["👩"]), "(<mark>👩‍👩‍👧</mark>) here"),
        ("a 👍🏽, a 🇩🇪!", Sought(words=["👍", "🇩🇪"]), "a <mark>👍🏽</mark>, a <mark>🇩🇪</mark>!"),
        ("(ന്\u200d)", Sought(words=["ന്"]), "(<mark>ന്\u200d</mark>)"),
        ("some 🍵tea, tea🍵", Sought(words=["tea"]), "some <mark>🍵tea</mark>, <mark>tea</mark>🍵"),
        ("nothing of it", Sought(words=["unheard"]), "<mark>nothing</mark> of it"),
    ],
)
def test_matches_are_marked_and_the_rest_is_verbatim(text: str, sought: Sought, expected: str) -> None:
    assert show(text, sought) == expected


def test_distant_matches_are_shown_together() -> None:
    text = "alpha " + "filler " * 200 + "omega"
    shown = show(text, Sought(words=["alpha", "omega"]))
    assert "<mark>alpha</mark>" in shown
    assert "<mark>omega</mark>" in shown
    assert " … " in shown


TEXTS = st.lists(
    st.sampled_from(["tea", "hot", "a-b", "東京都", "x" * 90, "é", "👩‍👩‍👧", "\n", "..."]), min_size=1, max_size=150
)


@given(TEXTS, st.integers(60, 300))
def test_a_highlight_is_short_has_a_mark_and_quotes_the_text(words: list[str], length: int) -> None:
    text = " ".join(words)
    shown = show(text, Sought(words=["tea", "東京", "xxxx"], phrases=["hot tea"]), length)
    if not text.strip():
        return
    assert "<mark>" in shown
    plain = re.sub("</?mark>", "", shown)
    assert len(plain) <= length
    for part in plain.split(" … "):
        assert part in text


@pytest.mark.parametrize("long", ["a" + "x" * 250, " ".join(["many words of one phrase"] * 8)])
def test_what_is_longer_than_its_stretch_is_marked_as_far_as_it_is_shown(long: str) -> None:
    text = f"{long} {'filler ' * 60}{long[::-1]}"
    sought = Sought(phrases=[long, long[::-1]])
    shown = show(text, sought)
    assert shown.count("<mark>") == shown.count("</mark>") == 2
    assert len(re.sub("</?mark>", "", shown)) <= 300
