"""Summaries by quotation: what is said, where it stands, and nothing twice."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.text.summary import extract
from commonplace.text.token_estimates import estimate

NOTE = """# Migration of the payment service

The payment service moves to the new cluster on 12 May. Anna owns the migration and Boris reviews it.
Lunch was good, by the way.

- The payment service keeps its database; only the workers move.
- The payment service keeps its database, and only the workers move.
- Nobody deploys on Fridays until the migration of the payment service is over.

The weather in Vienna was mild. Someone brought cake. The cake had raisins.
Open: the alerts of the payment service still point to the old cluster, and Anna will change them after the migration.
"""


def test_it_quotes_what_matters_in_the_order_of_the_text() -> None:
    summary = extract(NOTE, 70)
    assert "payment service" in summary
    assert "cake" not in summary
    assert "Lunch" not in summary
    places = [NOTE.find(sentence[:30]) for sentence in summary.split(". ") if sentence]
    assert places == sorted(places)


def test_nothing_is_said_twice() -> None:
    assert extract(NOTE, 200).count("only the workers move") == 1
    assert extract("The same words again and again.\n" * 50, 500) == "The same words again and again."


def test_marks_of_lists_and_headings_are_left_out() -> None:
    assert extract("# Plan\n\n- **Ship** the *new* version in June.", 50) == "Plan Ship the new version in June."


def test_one_long_sentence_is_cut_at_a_word() -> None:
    summary = extract("word " * 400, 20)
    assert summary.endswith("word…")
    assert estimate(summary) <= 20


@pytest.mark.parametrize("text", ["", " \n ", "---\n***\n", "!!! ???"])
def test_where_nothing_is_said_there_is_nothing_to_summarise(text: str) -> None:
    assert extract(text, 100) == ""


def test_scripts_without_blanks_are_summarised() -> None:
    text = "支付服务将于五月迁移到新集群。" + "天气很好。" * 3 + "安娜负责支付服务的迁移。新集群的告警由安娜修改。"
    summary = extract(text, 40)
    assert "支付服务" in summary
    assert estimate(summary) <= 40


_TEXTS = st.one_of(
    st.text(max_size=800),
    st.lists(st.sampled_from(["tea", "boils.", "Oolong", "\n", "- x", "水。", "no!", "a b c d e"]), max_size=120).map(
        " ".join
    ),
)


@given(_TEXTS, st.integers(1, 120))
def test_a_summary_keeps_to_its_tokens_and_invents_no_word(text: str, tokens: int) -> None:
    summary = extract(text, tokens)
    assert estimate(summary) <= tokens + 1
    assert set(summary.rstrip("…").split()) <= set(" ".join(_unmarked(text)).split()) or "…" in summary


def _unmarked(text: str) -> list[str]:
    """The text as it is, and without the marks that a summary leaves out."""
    from commonplace.text.summary import _END, _MARKS

    return [part for line in text.split("\n") for part in _END.split(_MARKS.sub("", line)) if part]


def test_a_very_long_text_takes_no_very_long_time() -> None:
    text = " ".join(f"Sentence {n} tells of item {n % 97} and of thing {n % 13}." for n in range(20_000))
    assert estimate(extract(text, 500)) <= 501
