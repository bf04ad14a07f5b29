"""What is left out of a collection: globs that belong to it, and files of rules in .gitignore's syntax."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import accumulate

from commonplace.lazy_dataclass import dataclass
from commonplace.text.globs import Matcher, matcher, plain_matcher, split_union

RULE_FILE, GIT_RULE_FILE = ".commonplaceignore", ".gitignore"
LARGEST_RULE_FILE = 1 << 20
_AROUND = re.compile(r"\A(?:\.?/)+|/+\Z")


@dataclass(frozen=True, slots=True)
class Rule:
    """One line of a rule file. It speaks of paths below the folder of its file."""

    matches: Matcher
    folders_only: bool
    keeps: bool
    """A line with `!`: what it matches is taken after all."""


def read_rules(text: str) -> list[Rule]:
    """The rules of a file, in order. What cannot be a rule is none."""
    return [rule for line in text.splitlines() if (rule := _rule(line)) is not None]


def verdict(rules: Sequence[Rule], path: str, is_folder: bool) -> bool | None:
    """Whether a path is ignored, by the last rule that speaks of it; None where none does."""
    for rule in reversed(rules):
        if (is_folder or not rule.folders_only) and rule.matches(path):
            return not rule.keeps
    return None


def ignoring(globs: Sequence[str], path: str) -> str | None:
    """The glob that leaves a path out: one that matches the path itself or a folder it is in."""
    places = list(_prefixes(path))
    for glob in globs:
        matches = leaving_out(glob)
        if any(matches(place) for place in places):
            return glob
    return None


@lru_cache(maxsize=256)
def leaving_out(glob: str) -> Matcher:
    """What a glob leaves out. It speaks of paths inside the folder: ./drafts, /drafts and drafts/ are all drafts."""
    return matcher(",".join(filter(None, (_AROUND.sub("", part) for part in split_union(glob)))))


def _prefixes(path: str) -> Iterator[str]:
    return accumulate(path.split("/"), "{}/{}".format)


def _rule(line: str) -> Rule | None:
    line = _without_trailing_blanks(line)
    if not line or line.startswith("#"):
        return None
    keeps = line.startswith("!")
    pattern = line[1:] if keeps else line
    folders_only = pattern.endswith("/")
    pattern = pattern.rstrip("/") if folders_only else pattern
    if not pattern:
        return None
    anchored = "/" in pattern
    pattern = pattern.removeprefix("/") if anchored else f"**/{pattern}"
    return Rule(plain_matcher(pattern), folders_only, keeps)


def _without_trailing_blanks(line: str) -> str:
    """A backslash keeps the blank after it."""
    kept = line.rstrip(" \t")
    escapes = (len(kept) - len(kept.rstrip("\\"))) % 2
    return line[: len(kept) + escapes]
