"""The rules that leave files out of a collection: its own globs, and rule files in .gitignore's syntax."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate

from commonplace.text.glob_patterns import Matcher, matcher, plain_matcher, split_union

RULE_FILE, GIT_RULE_FILE = ".commonplaceignore", ".gitignore"
LARGEST_RULE_FILE = 1 << 20
_AROUND = re.compile(r"\A(?:\.?/)+|/+\Z")


@dataclass(frozen=True, slots=True)
class Rule:
    """One line of a rule file. It is matched against paths relative to the folder of that file."""

    matches: Matcher
    folders_only: bool
    keeps: bool
    """A line with `!`: a path it matches is not ignored after all."""


def read_rules(text: str) -> list[Rule]:
    """Return the rules of a file, in order. Lines that are no rule are passed over."""
    return [rule for line in text.splitlines() if (rule := _rule(line)) is not None]


def verdict(rules: Sequence[Rule], path: str, is_folder: bool) -> bool | None:
    """Return whether the last rule that matches a path ignores it; None where no rule matches."""
    for rule in reversed(rules):
        if (is_folder or not rule.folders_only) and rule.matches(path):
            return not rule.keeps
    return None


def ignoring(globs: Sequence[str], path: str) -> str | None:
    """Return the first glob that matches a path or a folder it is in, or None."""
    prefixes = list(_prefixes(path))
    for glob in globs:
        matches = leaving_out(glob)
        if any(matches(prefix) for prefix in prefixes):
            return glob
    return None


@lru_cache(maxsize=256)
def leaving_out(glob: str) -> Matcher:
    """Return the matcher of an ignore glob. ./drafts, /drafts and drafts/ all mean drafts in the folder."""
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
    """Return a line without blanks at its end, except one that a backslash escapes."""
    stripped = line.rstrip(" \t")
    escapes = (len(stripped) - len(stripped.rstrip("\\"))) % 2
    return line[: len(stripped) + escapes]
