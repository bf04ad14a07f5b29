"""How lexical queries are read.

1. AND, OR, NOT, parentheses, phrases and beginnings mean what the contract says; repairs are told.
2. An exclusion never becomes a requirement and never disappears.
3. Any text can be read, in every mode, however deep it nests.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.index.words.wanted import Atom, Group, Wanted, atoms, fold, shown
from commonplace.kinds.memories.word_query import LexicalMode, read
from commonplace.search.request import NO_WORD

MODES: tuple[LexicalMode, ...] = ("match", "prefix", "phrase", "boolean")


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("tea", "tea"),
        ("green tea", "green AND tea"),
        ("green AND tea", "green AND tea"),
        ("green OR tea", "green OR tea"),
        ("a OR b c", "a OR b AND c"),
        ("(a OR b) c", "(a OR b) AND c"),
        ("a NOT b", "a AND NOT b"),
        ("a AND NOT b", "a AND NOT b"),
        ("NOT a", "NOT a"),
        ("NOT a OR b", "NOT a OR b"),
        ("NOT (a OR b)", "NOT (a OR b)"),
        ("a OR NOT b", "a OR NOT b"),
        ("NOT (NOT a)", "a"),
        ('"hot water" tea*', '"hot water" AND tea*'),
        ("and or not", "and AND or AND not"),
        ("And Or Not", "And AND Or AND Not"),
        ("a a", "a"),
        ("((a))", "a"),
        ("foo(bar)", "foo AND bar"),
    ],
)
def test_a_boolean_query_is_read_as_the_contract_says(query: str, expected: str) -> None:
    reading = read(query, "boolean")
    assert reading.wanted is not None
    assert (shown(reading.wanted), reading.warnings) == (expected, ())


@pytest.mark.parametrize(
    ("query", "expected", "repair"),
    [
        ('a "b c', 'a AND "b c"', "A missing closing quote was added"),
        ('a NOT "b c', 'a AND NOT "b c"', "A missing closing quote was added"),
        ("(a OR b", "a OR b", "A missing closing parenthesis was added"),
        ("a NOT (b OR c", "a AND NOT (b OR c)", "A missing closing parenthesis was added"),
        ("a)", "a", "A closing parenthesis without an opening one was dropped"),
        ("a ()", "a", "Empty parentheses were dropped"),
        ("a AND", "a", "A dangling AND was dropped"),
        ("OR a", "a", "A dangling OR was dropped"),
        ("a OR OR b", "a OR b", "A dangling OR was dropped"),
        ("a NOT", "a", "A dangling NOT was dropped"),
        ("a NOT OR b", "a AND NOT b", "A dangling OR was dropped"),
        ("a NOT NOT b", "a AND NOT b", "A repeated NOT was read once"),
        ("a NOT ?!", "a", "NOT ?! refuses nothing, for there is no word in it to look for"),
    ],
)
def test_a_repair_is_a_warning_that_shows_the_query_as_read(query: str, expected: str, repair: str) -> None:
    reading = read(query, "boolean")
    assert reading.wanted is not None
    assert shown(reading.wanted) == expected
    assert f"{repair}. The query was read as: {expected}" in reading.warnings


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("query", ["?!", '""', "( )", "*", "…"])
def test_a_query_without_a_word_looks_for_nothing_and_says_so(query: str, mode: LexicalMode) -> None:
    reading = read(query, mode)
    assert reading.wanted is None
    assert reading.warnings == (NO_WORD,)


def test_in_match_mode_only_balanced_quotes_are_more_than_text() -> None:
    wanted = read('tea NOT (hot) "just off" the "boil', "match").wanted
    assert wanted is not None
    assert shown(wanted) == 'tea AND NOT AND (hot) AND "just off" AND the AND boil'


def test_a_prefix_query_may_end_its_words_in_a_star_and_a_phrase_may_stand_in_quotes() -> None:
    beginnings, phrase = read("oolo* wat", "prefix").wanted, read('"just off"', "phrase").wanted
    assert beginnings is not None
    assert shown(beginnings) == "oolo* AND wat*"
    assert phrase == Atom("phrase", "just off")


OPERANDS = st.sampled_from(["alpha", "beta", "gamma", '"two words"', "pre*"])
EXPRESSIONS = st.recursive(
    OPERANDS,
    lambda inner: st.one_of(
        inner.map(lambda one: f"({one})"),
        st.tuples(inner, st.sampled_from([" ", " AND ", " OR "]), inner).map("".join),
        st.tuples(inner, inner).map(lambda pair: f"{pair[0]} NOT ({pair[1]})"),
    ),
    max_leaves=8,
)


@given(EXPRESSIONS)
def test_what_is_shown_reads_the_same_again(query: str) -> None:
    first = read(query, "boolean")
    assert first.wanted is not None
    assert first.warnings == ()
    again = read(shown(first.wanted), "boolean")
    assert again.wanted is not None
    assert shown(again.wanted) == shown(first.wanted)


BROKEN = st.lists(
    st.sampled_from(["AND", "OR", "NOT", "(", ")", '"', "word", "other", "beg*", "?!"]), min_size=1, max_size=14
)


@given(BROKEN)
def test_an_exclusion_survives_whatever_else_is_broken(tokens: list[str]) -> None:
    """`NOT` right before a plain word outside quotes and other exclusions refuses that word, in any company."""
    text = " ".join([*(token for token in tokens if token not in ('"', "NOT", "(", ")")), "NOT", "secret"])
    wanted = read(text, "boolean").wanted
    assert wanted is not None
    assert Atom("word", "secret") in set(atoms(wanted, sought=False))
    assert Atom("word", "secret") not in set(atoms(wanted, sought=True))


WORDS = ("alpha", "beta", "gamma", "delta")
Meaning = Callable[[frozenset[str]], bool]
MEANT: st.SearchStrategy[tuple[str, Meaning]] = st.recursive(
    st.sampled_from(WORDS).map(lambda word: (word, lambda held: word in held)),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda two: (f"({two[0][0]}) ({two[1][0]})", _both(*two))),
        st.tuples(inner, inner).map(lambda two: (f"({two[0][0]}) OR ({two[1][0]})", _either(*two))),
        inner.map(lambda one: (f"NOT ({one[0]})", _neither(one))),
    ),
    max_leaves=8,
)


def _both(one: tuple[str, Meaning], other: tuple[str, Meaning]) -> Meaning:
    return lambda held: one[1](held) and other[1](held)


def _either(one: tuple[str, Meaning], other: tuple[str, Meaning]) -> Meaning:
    return lambda held: one[1](held) or other[1](held)


def _neither(one: tuple[str, Meaning]) -> Meaning:
    return lambda held: not one[1](held)


def holds(wanted: Wanted, held: frozenset[str]) -> bool:
    joins = {"and": all, "or": any, "not": lambda parts: not next(iter(parts))}
    return fold(wanted, lambda atom: atom.text in held, lambda join, parts: joins[join](parts))


@given(MEANT, st.frozensets(st.sampled_from(WORDS)))
def test_a_query_selects_what_its_operators_mean(query: tuple[str, Meaning], held: frozenset[str]) -> None:
    text, meaning = query
    wanted = read(text, "boolean").wanted
    assert wanted is not None
    assert holds(wanted, held) == meaning(held)


@given(st.text(max_size=200), st.sampled_from(MODES))
def test_any_text_can_be_read(text: str, mode: LexicalMode) -> None:
    reading = read(text, mode)
    assert (reading.wanted is None) == (reading.warnings == (NO_WORD,))


@pytest.mark.parametrize("query", ["(a OR NOT " * 900 + "b", "(" * 9_999 + "a", "NOT (" * 1_999 + "a", ") " * 5_000])
def test_depth_is_no_problem(query: str) -> None:
    reading = read(query, "boolean")
    assert reading.warnings
    assert reading.wanted is None or len(shown(reading.wanted)) < 20_000


def depth(wanted: Wanted) -> int:
    return 1 + max(map(depth, wanted.parts)) if isinstance(wanted, Group) else 0


def test_groups_of_one_join_are_one_group() -> None:
    wanted = read("(a AND (b AND (c AND d)))", "boolean").wanted
    assert wanted is not None
    assert depth(wanted) == 1
