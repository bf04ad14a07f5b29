"""Globs: 1. stars stop at slashes and double stars do not; 2. unions and braces; 3. the same answers as two others
give, one slow and one wcmatch; 4. no pattern takes long.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from wcmatch import glob

from commonplace.errors import InvalidInput
from commonplace.text.glob_patterns import expand, is_glob, matcher, split_union

COMPONENTS = st.text("ab.-", min_size=1, max_size=4)
PATHS = st.lists(COMPONENTS, min_size=1, max_size=4).map("/".join)
PIECES = st.sampled_from(
    ["a", "b", ".", "-", "*", "?", "[ab]", "[!a]", "[a-b]", "ab", "{a,b}", "{a,b*,}", "{a,{b,ab}}"]
)
PATTERN_COMPONENTS = st.one_of(st.just("**"), st.lists(PIECES, min_size=1, max_size=4).map("".join))
PATTERNS = st.lists(PATTERN_COMPONENTS, min_size=1, max_size=4).map("/".join).filter(lambda text: text.count("{") < 5)


@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        ("*.md", "a.md", True),
        ("*.md", "x/a.md", False),
        ("**/*.md", "a.md", True),
        ("**/*.md", "x/y/a.md", True),
        ("**/*.md", "x/y/a.mdx", False),
        ("x/**", "x/a", True),
        ("x/**", "x", False),
        ("x/**/y", "x/y", True),
        ("x/**/y", "x/1/2/y", True),
        ("a**b", "axxb", True),
        ("a**b", "a/b", False),
        ("?.md", "a.md", True),
        ("?.md", "/.md", False),
        ("[a-c].md", "b.md", True),
        ("[!a-c].md", "b.md", False),
        ("[^a].md", "b.md", True),
        ("[]a].md", "].md", True),
        ("[z-a]", "m", False),
        ("[", "[", True),
        ("a[.-0]b", "a/b", False),
        ("*.{md,txt}", "a.txt", True),
        ("{docs,src}/**/*.{md,rst}", "docs/a/b.rst", True),
        ("{a}", "{a}", True),
        ("{a", "{a", True),
        ("a,b", "b", True),
        ("*.md, *.txt", "a.txt", True),
        ("{a,b},c", "c", True),
        ("[,],x", ",", True),
        (r"\*.md", "*.md", True),
        (r"\*.md", "a.md", False),
        (r"a\,b", "a,b", True),
        ("A.md", "a.md", False),
        ("**", "x/a", True),
        ("**/", "x/a", False),
        ("日*", "日本", True),
        ("caf\u00e9/*", "cafe\u0301/a", True),
        ("cafe\u0301/*", "caf\u00e9/a", True),
        ("caf?/*", "cafe\u0301/a", True),
        ("cafe*/*", "cafe\u0301/a", False),
        ("*", "a\nb", True),
    ],
)
def test_a_glob_matches_what_it_says(pattern: str, path: str, matches: bool) -> None:
    assert bool(matcher(pattern)(path)) is matches


@given(PATTERNS, PATHS)
@example("*a*b", "aab")
@example("**/a/**/b", "a/a/b")
@example("**/*a/b", "aa/a/b")
def test_a_glob_answers_as_a_slow_reading_of_it_does(pattern: str, path: str) -> None:
    alternatives = [re.sub("//+", "/", alternative).split("/") for alternative in expand(pattern)]
    expected = any(_slowly(alternative, path.split("/")) for alternative in alternatives)
    assert bool(matcher(pattern)(path)) is expected


@given(PATTERNS, PATHS)
def test_a_glob_answers_as_wcmatch_does(pattern: str, path: str) -> None:
    flags = glob.GLOBSTAR | glob.BRACE | glob.DOTGLOB
    if ".." in pattern or "." in path.split("/") or ".." in path.split("/"):
        return  # wcmatch gives components of dots a meaning of their own
    if any("//" in alternative or alternative.endswith("/") for alternative in expand(pattern)):
        return  # and takes an empty component for one, which no path has, and `**/` for every path
    assert bool(matcher(pattern)(path)) is any(
        bool(glob.compile(part, flags=flags).match(path)) for part in split_union(pattern)
    )


def test_a_comma_inside_braces_or_brackets_is_no_union() -> None:
    assert split_union("a, {b,c} ,[,]x,,") == ["a", "{b,c}", "[,]x"]
    assert is_glob("a*")
    assert not is_glob("a,b.md")


def test_no_pattern_takes_long_and_too_many_alternatives_are_refused() -> None:
    started = time.process_time()
    matcher("*a" * 300 + "b")("a" * 2000)
    matcher("**/a*/" * 100 + "b")("a/" * 500 + "c")
    matcher("**/*a" * 50)("/".join(["aaaa"] * 200) + "!")
    assert time.process_time() - started < 5
    with pytest.raises(InvalidInput, match="more than 1000 alternatives"):
        matcher("{a,b}" * 20)
    with pytest.raises(InvalidInput, match="more than 50000 characters"):
        matcher("{a,b}" * 9 + "*a" * 100)


@pytest.mark.parametrize("sign", ["{", "[", "[\\]", "{a,", "[\\/", "{{a},", "{a,b}"])
def test_what_is_begun_and_never_ended_takes_no_time(sign: str) -> None:
    started = time.process_time()
    with suppress(InvalidInput):
        matcher(sign * 20_000)
    assert time.process_time() - started < 10  # minutes where the end is looked for from each of them


def test_a_long_list_in_braces_is_one_pattern() -> None:
    names = [f"a file of a rather long name {number:03}.md" for number in range(1000)]
    assert all(map(matcher(f"{{{','.join(names)}}}"), names))


def _slowly(pattern: list[str], path: list[str]) -> bool:
    """By trying everything."""
    if not pattern:
        return not path
    if pattern == ["**"]:
        return bool(path)
    if pattern[0] == "**":
        return any(_slowly(pattern[1:], path[start:]) for start in range(len(path) + 1))
    return bool(path) and _component(list(_tokens(pattern[0])), path[0]) and _slowly(pattern[1:], path[1:])


def _component(tokens: list[str], text: str) -> bool:
    if not tokens:
        return not text
    if tokens[0] == "*":
        return any(_component(tokens[1:], text[start:]) for start in range(len(text) + 1))
    if not text:
        return False
    fits = {"?": True, "[ab]": text[0] in "ab", "[a-b]": text[0] in "ab", "[!a]": text[0] != "a"}
    return fits.get(tokens[0], tokens[0] == text[0]) and _component(tokens[1:], text[1:])


def _tokens(component: str) -> Iterator[str]:
    while component:
        size = component.index("]") + 1 if component[0] == "[" else 1
        yield component[:size]
        component = component[size:]
