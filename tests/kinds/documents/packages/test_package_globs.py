"""Globs of packages: the engine's own, save that hidden and built parts have to be spelled out."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from commonplace.errors import InvalidInput
from commonplace.kinds.documents.folders.walk import SKIPPED_FOLDERS
from commonplace.kinds.documents.packages.package_paths import IMPLIED, Globs, check_globs
from commonplace.text.glob_patterns import matcher

PARTS = ["a", "b.md", "docs", "x.txt", "build", "dist", ".git", ".hidden.md", "node_modules", "a.b"]
PIECES = ["*", "**", "a", "*.md", "docs", "?", "[a-c]*", "{a,docs}", "build", ".git", ".*", "*.{md,txt}", "b*", "dist"]
paths = st.lists(st.sampled_from(PARTS), min_size=1, max_size=5).map("/".join)
patterns = st.lists(st.sampled_from(PIECES), min_size=1, max_size=4).map("/".join)


def is_special(part: str, is_folder: bool) -> bool:
    return part.startswith(".") or (is_folder and part in SKIPPED_FOLDERS)


def specials(path: str) -> list[str]:
    *folders, name = path.split("/")
    return [part for part in folders if is_special(part, True)] + [name] * is_special(name, False)


@settings(deadline=None, max_examples=100)
@given(patterns, paths)
def test_a_glob_takes_what_the_engines_glob_takes_and_no_part_that_it_does_not_spell_out(
    pattern: str, path: str
) -> None:
    taken = Globs((pattern,))(path)
    if taken:
        assert matcher(pattern)(path)
        for part in specials(path):
            assert part in pattern or (part.startswith(".") and ".*" in pattern.split("/"))
    elif not specials(path):
        assert not matcher(pattern)(path)


@settings(deadline=None, max_examples=100)
@given(paths)
def test_a_path_spells_itself_out(path: str) -> None:
    assert Globs((path,))(path)
    assert not Globs((path,), (path,))(path)


@settings(deadline=None, max_examples=100)
@given(patterns, paths)
def test_a_glob_means_the_same_with_the_current_folder_before_it(pattern: str, path: str) -> None:
    for written in (f"./{pattern}", f".//{pattern}", f"././{pattern}"):
        assert Globs((written,))(path) == Globs((pattern,))(path)
        assert Globs((path,), (written,))(path) == Globs((path,), (pattern,))(path)


@settings(deadline=None, max_examples=100)
@given(patterns, paths)
def test_a_folder_that_is_not_entered_holds_nothing_that_is_taken(pattern: str, path: str) -> None:
    assume("/" in path)
    globs = Globs((pattern,))
    if globs(path):
        assert all(globs.enters(part) for part in path.split("/")[:-1])


@pytest.mark.parametrize(
    ("pattern", "path", "taken"),
    [
        ("**/*.md", "a/b.md", True), ("**/*.md", ".github/b.md", False), (".github/**/*.md", ".github/x/b.md", True),
        (".github/**/*.md", ".github/.x/b.md", False), ("**/build/*.md", "a/build/b.md", True),
        ("**/build/*.md", "build/build/b.md", False), ("build/**/*.md", "build/dist/b.md", False),
        ("{build,docs}/*.md", "build/b.md", True), ("b*/*.md", "build/b.md", False), ("vendor/**", "vendor/a", True),
        ("**/.*.md", ".a.md", True), ("a,b.md", "a,b.md", True), ("build", "build", True), ("*.md", "a/b.md", False),
        ("docs/**", "docs", False), ("**", "build", True), ("docs", "docs/x.md", False),
    ],
)  # fmt: skip
def test_what_is_spelled_out_is_taken(pattern: str, path: str, taken: bool) -> None:
    assert Globs((pattern,))(path) is taken


def test_an_excluded_folder_takes_everything_below_it_along() -> None:
    globs = Globs(IMPLIED, ("drafts/", "**/old"))
    assert [globs(path) for path in ("a.md", "drafts/a.md", "x/old/a.md", "x/drafts/a.md")] == [
        True,
        False,
        False,
        True,
    ]


@pytest.mark.parametrize("pattern", ["", "/", "/etc/*", "~/x", "../x", "a/../b", "a\0"])
def test_a_pattern_that_speaks_of_the_outside_is_refused_with_its_place(pattern: str) -> None:
    with pytest.raises(InvalidInput, match=r"^here: a pattern speaks of paths inside the package"):
        check_globs([pattern], "here")
