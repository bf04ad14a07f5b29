"""Which files are taken: 1. by pattern, and never hidden or generated ones; 2. ignore globs and rule files, as git
reads them; 3. links and `..` never leave the root; 4. odd names, sizes and kinds of files; 5. the same as a slow look.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commonplace.errors import InvalidInput
from commonplace.kinds.documents.folders.walk import (
    LARGEST,
    Selection,
    Survey,
    check_pattern,
    ignoring,
    inner_pattern,
    read_rules,
    verdict,
    walk,
)
from commonplace.text.glob_patterns import matcher

GENERATED = {"node_modules", "vendor", "dist", "build", "__pycache__"}


def look(root: Path, pattern: str = "**/*.md", *ignore: str, gitignore: bool = False) -> Survey:
    return walk(Selection(os.path.realpath(root), pattern, ignore, gitignore))


def paths(survey: Survey) -> list[str]:
    return [file.path for file in survey.files]


def make(root: Path, *files: str) -> Path:
    for name in files:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x", "utf-8")
    return root


def test_files_match_the_pattern_and_are_neither_hidden_nor_generated(root: Path) -> None:
    make(root, "a.md", "b.txt", "sub/c.md", ".hidden.md", ".git/d.md", "sub/.cache/e.md", "build", "sub/build.md")
    make(root, *(f"{folder}/x.md" for folder in GENERATED - {"build"}), "sub/dist/y.md", "a.MD")
    assert paths(look(root)) == ["a.md", "sub/build.md", "sub/c.md"]
    assert paths(look(root, "**/*.{md,txt}, build")) == ["a.md", "b.txt", "build", "sub/build.md", "sub/c.md"]
    assert paths(look(root, "*.md")) == ["a.md"]
    assert look(root).skipped == []


def test_ignore_globs_leave_out_paths_and_whole_folders(root: Path) -> None:
    make(root, "a.md", "drafts/b.md", "drafts/deep/c.md", "x/drafts/d.md", "tmp.a.md")
    assert paths(look(root, "**/*.md", "drafts")) == ["a.md", "tmp.a.md", "x/drafts/d.md"]
    assert paths(look(root, "**/*.md", "drafts/")) == ["a.md", "tmp.a.md", "x/drafts/d.md"]
    assert paths(look(root, "**/*.md", "**/drafts/**", "tmp.*")) == ["a.md"]
    assert ignoring(("x/*", "drafts/**"), "drafts/deep/c.md") == "drafts/**"
    assert ignoring(("drafts",), "drafts2/a.md") is None


@pytest.mark.parametrize("glob", ["./drafts", "./drafts/**", "/drafts", "/drafts/", ".//drafts/*", "drafts/,./other"])
def test_an_ignore_glob_means_the_same_however_a_shell_would_write_it(root: Path, glob: str) -> None:
    make(root, "a.md", "drafts/b.md", "drafts/deep/c.md", "x/drafts/d.md")
    assert paths(look(root, "**/*.md", glob)) == ["a.md", "x/drafts/d.md"]
    assert ignoring((glob,), "drafts/b.md") == glob, "as it was written"


def test_rule_files_are_read_in_every_folder_and_git_ones_only_when_asked(root: Path) -> None:
    make(root, "a.md", "b.md", "sub/b.md", "sub/c.md", "sub/keep/b.md")
    (root / ".commonplaceignore").write_text("# remark\nb.md\n", "utf-8")
    (root / "sub" / ".commonplaceignore").write_text("c.md\n!keep/b.md\n", "utf-8")
    (root / ".gitignore").write_text("a.md\n", "utf-8")
    assert paths(look(root)) == ["a.md", "sub/keep/b.md"]
    assert paths(look(root, gitignore=True)) == ["sub/keep/b.md"]


NAMES = ["a", "b", "a.md", "b.md", "c", "a b", "a ", "#a", "!a", "]", "-", "x*"]
TREES = st.sets(st.lists(st.sampled_from(NAMES), min_size=1, max_size=3).map("/".join), min_size=1, max_size=8)
RULE_PIECES = st.sampled_from(
    [
        "a", "b", "c", "*", "a.md", "*.md", "**", "?", "[ab]", "\\a", "a*", "**a", "a**b", "[!a]", "[^b]", "[a-c]",
        "[]a]", "[!]a]", "[a-]", "[z-a]", "[\\]]", "[*]", "x\\*", "a\\ ", "a b", "#a", "!a", "\\#a", "\\!a", "{a,b}",
        ".", "[[:alpha:]]", "[![:space:]b]", "[[:punct:]c]", "[[:none:]a]", "[[:a]", "[a[:]",
    ]
)  # fmt: skip
RULES = st.builds(
    lambda sign, start, parts, end: sign + start + "/".join(parts) + end,
    st.sampled_from(["", "", "!"]), st.sampled_from(["", "", "/"]), st.lists(RULE_PIECES, min_size=1, max_size=3),
    st.sampled_from(["", "", "/", " ", "  ", "/**", "\r"]),
)  # fmt: skip


@pytest.mark.skipif(shutil.which("git") is None, reason="git is what is compared with")
@settings(max_examples=30)
@given(TREES, st.lists(RULES, min_size=1, max_size=4), st.lists(RULES, max_size=2))
def test_rule_files_mean_what_git_says_they_mean(tree: set[str], rules: list[str], inner: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(os.path.realpath(folder))
        files = sorted(path for path in tree if not any(other.startswith(path + "/") for other in tree))
        make(root, *files)
        (root / ".gitignore").write_text("\n".join(rules), "utf-8")
        if inner and (root / "a").is_dir():
            (root / "a" / ".gitignore").write_text("\n".join(inner), "utf-8")
        git = ["git", "-C", str(root), "-c", "core.excludesFile=/dev/null"]
        subprocess.run([*git, "init", "-q"], check=True, capture_output=True)
        listed = subprocess.run(
            [*git, "ls-files", "-z", "--others", "--exclude-per-directory=.gitignore"], check=True, capture_output=True
        )
        expected = sorted(filter(lambda path: path in files, listed.stdout.decode().split("\0")))
        assert paths(look(root, "**", gitignore=True)) == expected


def test_a_class_may_be_named_in_a_rule() -> None:
    rules = read_rules("a[[:digit:]].md\n[[:upper:]_]*.txt\n[![:alnum:]]\n[[:none:]b]\n")
    for name in ("a1.md", "B.txt", "_.txt", "-"):
        assert verdict(rules, name, False), name
    for name in ("ab.md", "b.txt", "b", "1"):
        assert verdict(rules, name, False) is None, name
    started = time.process_time()
    assert read_rules(f"[{'[:' * 100_000}")
    assert time.process_time() - started < 5


def test_blanks_at_the_end_of_a_rule_are_none_unless_escaped_and_take_no_time() -> None:
    for line, name in (("a  ", "a"), ("a\\  ", "a "), ("a\\\\  ", "a\\"), ("a b\t", "a b")):
        assert verdict(read_rules(line), name, False), line
    started = time.process_time()
    assert read_rules(f"a{' ' * 100_000}b")
    assert time.process_time() - started < 5


@settings(max_examples=40)
@given(
    st.sets(
        st.lists(st.sampled_from(["a", "b.md", ".h", "dist", "ü.md", "x y.md"]), min_size=1, max_size=3).map("/".join),
        max_size=10,
    ),
    st.sampled_from(["**/*.md", "*.md", "**", "a/**", "{a,dist}/*.md", "**/b.md,*y.md"]),
    st.lists(st.sampled_from(["a", "a/**", "*.md", "**/b.md", "x*"]), max_size=2),
)
def test_a_walk_finds_what_a_slow_look_at_every_file_finds(tree: set[str], pattern: str, ignore: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(os.path.realpath(folder))
        make(root, *(path for path in tree if not any(other.startswith(path + "/") for other in tree)))
        expected = []
        for path in root.rglob("*"):
            relative = PurePosixPath(path.relative_to(root).as_posix())
            hidden = any(part.startswith(".") for part in relative.parts)
            generated = any(part in GENERATED for part in relative.parts[:-1])
            places = [str(relative), *(str(parent) for parent in relative.parents if str(parent) != ".")]
            left_out = any(matcher(glob)(place) for glob in ignore for place in places)
            if path.is_file() and not hidden and not generated and not left_out and matcher(pattern)(str(relative)):
                expected.append(str(relative))
        assert paths(look(root, pattern, *ignore)) == sorted(expected)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_rule_files_are_text_as_files_are(root: Path, encoding: str) -> None:
    make(root, "a.md", "geheim/tür.md", "tür.md")
    (root / ".commonplaceignore").write_text("geheim\r\ntür.md\r\n", encoding)
    assert paths(look(root)) == ["a.md"]


def test_no_link_leads_out_of_the_root(root: Path, tmp_path: Path) -> None:
    make(root, "in/a.md")
    (tmp_path / "secret.md").write_text("secret", "utf-8")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "b.md").write_text("secret", "utf-8")
    (root / "link.md").symlink_to(tmp_path / "secret.md")
    (root / "relative.md").symlink_to("../secret.md")
    (root / "folder").symlink_to(tmp_path / "outside")
    (root / "folder.md").symlink_to(tmp_path / "outside")
    (root / "inner.md").symlink_to("in/a.md")
    (root / "loop.md").symlink_to("loop.md")
    (root / "in" / "cycle").symlink_to(root)
    (root / "dangling.md").symlink_to("nowhere.md")
    survey = look(root)
    assert paths(survey) == ["in/a.md", "inner.md"]
    assert survey.skipped == [
        ("dangling.md", "ENOENT"), ("link.md", "OUTSIDE_COLLECTION"), ("loop.md", "ELOOP"),
        ("relative.md", "OUTSIDE_COLLECTION"),
    ]  # fmt: skip


def test_a_sibling_whose_name_begins_the_same_is_outside(root: Path, tmp_path: Path) -> None:
    make(tmp_path, "notes-private/a.md")
    (root / "a.md").symlink_to(tmp_path / "notes-private" / "a.md")
    assert look(root).skipped == [("a.md", "OUTSIDE_COLLECTION")]


def test_a_pattern_with_dots_stays_inside(root: Path, tmp_path: Path) -> None:
    make(root, "a.md", "sub/b.md")
    make(tmp_path, "other/c.md")
    assert paths(look(root, "sub/../*.md")) == ["a.md"]
    assert paths(look(root, "../notes/*.md")) == ["a.md"]
    assert paths(look(root, "./sub/./*.md")) == ["sub/b.md"]
    survey = look(root, "../other/*.md, *.md")
    assert paths(survey) == ["a.md"]
    assert survey.skipped == [("../other/*.md", "OUTSIDE_COLLECTION")]
    assert inner_pattern("**/../x", "/r") == ("", ["**/../x"])
    assert inner_pattern("a/../../../r/s/*.md", "/r/s") == ("*.md", [])


@pytest.mark.parametrize("pattern", ["", " , ", "/etc/*", "~/x", "{a,b}" * 12])
def test_a_pattern_that_can_match_nothing_is_refused(pattern: str) -> None:
    with pytest.raises(InvalidInput):
        check_pattern(pattern)


def test_names_that_would_forge_a_line_are_skipped_and_named_safely(root: Path) -> None:
    make(root, "fine.md", "two\nlines.md", "esc\x1b[31m.md", "folder\n/inside.md", "x.txt\n")
    with open(os.path.join(os.fsencode(root), b"latin-\xe9.md"), "wb") as file:
        file.write(b"x")
    survey = look(root)
    assert paths(survey) == ["fine.md"]
    assert {code for _, code in survey.skipped} == {"BAD_NAME"}
    assert len(survey.skipped) == 4
    for path, _ in survey.skipped:
        assert path.isprintable()


def test_only_regular_files_of_a_bearable_size_are_taken(root: Path) -> None:
    os.mkfifo(root / "pipe.md")
    (root / "folder.md").mkdir()
    (root / "large.md").touch()
    os.truncate(root / "large.md", LARGEST + 1)
    (root / "just.md").touch()
    os.truncate(root / "just.md", LARGEST)
    survey = look(root)
    assert paths(survey) == ["just.md"]
    assert survey.skipped == [("large.md", "TOO_LARGE")]


def test_a_root_that_is_missing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        look(tmp_path / "nowhere")


def test_deep_and_wide_folders_do_no_harm(root: Path) -> None:
    deep = root
    for _ in range(60):
        deep = deep / "d"
    make(deep, "a.md")
    make(root, *(f"{number:04}.md" for number in range(2000)))
    assert len(look(root).files) == 2001
