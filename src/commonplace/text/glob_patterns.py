"""Globs as every surface reads them: `*` and `?` stop at `/`, `**` crosses it, `[a-z]`, `{a,b}`; case-sensitive.

Letters are compared as names are, in NFC: some systems write `é` in two characters, and nobody types it so.

A pattern may come from an agent, so matching takes no more than a moment whatever it is: alternatives are bounded, and
what a star has skipped is never tried twice. Between two stars stands a text of fixed length, so the first place where
it fits is as good as any later one; a look-ahead and a back-reference keep it, as `re` of Python 3.11.2 has no sound
way to say "no second thoughts".
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import lru_cache

from commonplace.errors import InvalidInput
from commonplace.text.normal import normalized

MOST_ALTERNATIVES = 1000
MOST_CHARACTERS = 50_000
"""Of all alternatives of a pattern together: as many are compiled in some seconds."""
SPECIAL = frozenset("*?[{")
_FOLDER = "[^/]+/"
_SLASHES = re.compile("//+")
_LETTER = re.compile(r"\[[^\]]*\]|[^\x00-\x7f]")
_AROUND = re.compile(r"\A(?:\.?/)+|/+\Z")
_NAMED = re.compile(r"\[:([^]/]{0,20}):\]")  # bounded: it is looked for at every character
_NAMES = {
    "alnum": "0-9A-Za-z", "alpha": "A-Za-z", "blank": " \\t", "cntrl": "\\x00-\\x1f\\x7f", "digit": "0-9",
    "graph": "!-~", "lower": "a-z", "print": " -~", "punct": "!-/:-@\\[-`{-~", "space": "\\t-\\r ", "upper": "A-Z",
    "xdigit": "0-9A-Fa-f",
}  # fmt: skip
"""The characters of each name between `[:` and `:]` in a class, for `re`: of ASCII alone, as git has it."""

Matcher = Callable[[str], object]
"""Truthy for a path that matches."""


@lru_cache(maxsize=256)
def matcher(pattern: str) -> Matcher:
    """Return a test of whole paths, `/` between their components. Commas outside braces and brackets make a union."""
    heads: dict[str, list[str]] = defaultdict(list)
    names = iter(range(1_000_000))
    for part in split_union(_composed(pattern)):
        for plain in expand(part):
            head, tail = _translate(plain, names)
            heads[head].append(tail)
    whole = "|".join(f"{head}(?:{'|'.join(dict.fromkeys(tails))})" for head, tails in heads.items())
    return _matching(f"(?:{whole})")


def plain_matcher(pattern: str) -> Matcher:
    """Return such a test for one pattern in which commas and braces are themselves, as in an ignore file."""
    head, tail = _translate(_composed(pattern), iter(range(1_000_000)))
    return _matching(head + tail)


def folded_path(path: str) -> str:
    """Return a path as filters compare it: composed, and without case."""
    return path.lower() if path.isascii() else _composed(_composed(path).casefold())


@lru_cache(maxsize=256)
def place_matcher(pattern: str) -> Matcher:
    """Return a test of folded paths: a folder and all below it, a file, or a glob. Case is folded.

    Raise InvalidInput where the pattern names nothing. A name with signs of a glob is itself, too.
    """
    names, globs = _places(pattern)
    folders = tuple(f"{name}/" for name in names)
    matches = matcher(",".join(globs)) if globs else lambda path: False
    return lambda path: path in names or path.startswith(folders) or matches(path)


@lru_cache(maxsize=256)
def place_regex(pattern: str) -> str:
    """Return the same test as a regular expression that PostgreSQL reads."""
    names, globs = _places(pattern)
    named = (f"{re.escape(name)}(?:/.*)?" for name in sorted(names))
    plain = (_regular(one) for part in globs for one in expand(part))
    return _LETTER.sub(_in_both_cases, f"^(?:{'|'.join(dict.fromkeys((*named, *plain)))})$")


def _in_both_cases(match: re.Match[str]) -> str:
    """Return a letter beyond ASCII as a class of its small and capital form. A database folds it by its collation."""
    letter = match[0]
    return f"[{letter}{letter.upper()}]" if len(letter) == len(letter.upper()) == 1 else letter


def _places(pattern: str) -> tuple[frozenset[str], list[str]]:
    """Return the names in a pattern and the globs in it, without the slashes and dots around them."""
    folded = folded_path(pattern)
    parts = [inner for part in split_union(folded) if (inner := _AROUND.sub("", part))]
    if not parts:
        raise InvalidInput(f"A path names a folder, a file or a glob, such as ops/archive/**: not {pattern!r}.")
    globs = [part for part in parts if is_glob(part)]
    return frozenset({_AROUND.sub("", folded.strip()), *parts}.difference(globs if len(parts) > 1 else ())), globs


def _regular(pattern: str) -> str:
    *folders, last = _SLASHES.sub("/", pattern).split("/")
    head = "".join(f"(?:{_FOLDER})*" if part == "**" else "[^/]*".join(_between_stars(part)) + "/" for part in folders)
    tail = f"(?:{_FOLDER})*[^/]+" if last == "**" else "[^/]*".join(_between_stars(last))
    return (head + tail).replace(r"\x00", r"\x01")  # which no text of a database holds


def _matching(source: str) -> Matcher:
    matches = re.compile(f"{source}\\Z", re.DOTALL).match
    return lambda path: matches(path if path.isascii() else _composed(path))


def _composed(text: str) -> str:
    return normalized("NFC", text)


def split_union(pattern: str) -> list[str]:
    """Return the patterns between commas that stand outside braces and brackets, without the blanks around them."""
    return [part for part in map(str.strip, _split(pattern)) if part]


def is_glob(text: str) -> bool:
    """Return whether a text has signs of a glob, and so matches more than itself."""
    return not SPECIAL.isdisjoint(text)


def expand(pattern: str) -> list[str]:
    """Return a pattern's alternatives, braces resolved. Braces without a comma are themselves."""
    pending = [pattern]
    alternatives: list[str] = []
    while pending:
        text = pending.pop()
        braces = _first_braces(text)
        if braces is None:
            alternatives.append(text)
        else:
            start, end, parts = braces
            pending += [f"{text[:start]}{part}{text[end:]}" for part in reversed(parts)]
        if len(pending) + len(alternatives) > MOST_ALTERNATIVES:
            raise InvalidInput(f"The pattern has more than {MOST_ALTERNATIVES} alternatives. Use fewer braces.")
        if sum(map(len, pending)) + sum(map(len, alternatives)) > MOST_CHARACTERS:
            raise InvalidInput(
                f"The alternatives of the pattern have more than {MOST_CHARACTERS} characters. Use a shorter one."
            )
    return alternatives


def _split(text: str) -> Iterator[str]:
    start = depth = 0
    for at, _ in _signs(text):
        mark = text[at]
        if mark == "{":
            depth += 1
        elif mark == "}":
            depth -= depth > 0
        elif mark == "," and not depth:
            yield text[start:at]
            start = at + 1
    yield text[start:]


def _first_braces(text: str) -> tuple[int, int, list[str]] | None:
    """Return the (start, end, alternatives) of the first `{a,b}`."""
    opened: list[tuple[int, bool]] = []  # where, and whether a comma has followed
    ends: dict[int, int] = {}
    for at, _ in _signs(text):
        if text[at] == "{":
            opened.append((at, False))
        elif text[at] == "," and opened:
            opened[-1] = opened[-1][0], True
        elif text[at] == "}" and opened:
            start, parted = opened.pop()
            if parted:
                ends[start] = at
    if not ends:
        return None
    start = min(ends)
    return start, ends[start] + 1, list(_split(text[start + 1 : ends[start]]))


def _signs(text: str) -> Iterator[tuple[int, int]]:
    """Yield where each sign begins and ends. An escaped sign is one, and so is a whole class.

    No class holds a slash.
    """
    at = unclosed = 0  # a bracket that nothing closes is not looked for the end of again at the next one
    while at < len(text):
        end = min(at + 1 + (text[at] == "\\"), len(text))
        if text[at] == "[" and at >= unclosed:
            unclosed = _class_stop(text, at)
            end = unclosed + 1 if text[unclosed : unclosed + 1] == "]" else end
        yield at, end
        at = end


def _class_stop(text: str, start: int) -> int:
    """Return where the `]` of a class is, or what stands in for it where the bracket is itself."""
    at = start + 1 + (text[start + 1 : start + 2] in ("!", "^"))
    at += text[at : at + 1] == "]"
    while at < len(text) and text[at] not in "]/":
        named = _NAMED.match(text, at)
        at = named.end() if named else at + 1 + (text[at] == "\\")
    return at


def _translate(pattern: str, names: Iterator[int]) -> tuple[str, str]:
    """Return a pattern without braces as a regular expression: up to its last star, and from there to the end."""
    runs: list[list[str]] = [[]]
    for component in _SLASHES.sub("/", pattern).split("/"):
        if component == "**":
            runs.append([])
        else:
            runs[-1].append(component)
    head = ""
    for run in runs[:-1]:
        source = "".join(_whole(component, names) + "/" for component in run)
        head += _kept(f"(?:{_FOLDER})*?{source}", names) if head and source else source
        head = head or "(?:)"
    last = runs[-1]
    if len(runs) > 1:
        head += f"(?:{_FOLDER})*"
        if not last:
            return head + "[^/]+", ""
    front, tail = _open(last[-1], names)
    return head + "".join(_whole(component, names) + "/" for component in last[:-1]) + front, tail


def _whole(component: str, names: Iterator[int]) -> str:
    front, tail = _open(component, names)
    return f"{front}{tail}(?=/)" if component else ""


def _open(component: str, names: Iterator[int]) -> tuple[str, str]:
    """Return a component up to its last star, and what follows it."""
    parts = _between_stars(component)
    front = parts[0]
    for index, part in enumerate(parts[1:], start=1):
        if index == len(parts) - 1:
            return front + ("[^/]*" if len(parts) > 1 else ""), part
        if part:
            front += _kept(f"[^/]*?{part}", names)
    return "", front


def _kept(source: str, names: Iterator[int]) -> str:
    """Return an expression that matches in the first way `source` does, and tries no other."""
    name = f"k{next(names)}"
    return f"(?=(?P<{name}>{source}))(?P={name})"


def _between_stars(component: str) -> list[str]:
    parts = [""]
    for at, end in _signs(component):
        mark = component[at]
        if mark == "*":
            parts.append("")
        elif mark == "?":
            parts[-1] += "[^/]"
        elif mark == "[" and end > at + 1:
            parts[-1] += _class(component[at + 1 : end - 1])
        else:
            parts[-1] += re.escape(component[end - 1])
    return parts


def _class(inner: str) -> str:
    """Return the expression of a class: `[a-z]`, `[!a]`, `[^a]`, `[[:digit:]]`.

    A range that runs backwards matches nothing, as in a shell.
    """
    negated = inner[:1] in ("!", "^")
    text = inner[1:] if negated else inner
    members, at, escaped, ranges = list[tuple[str, bool]](), 0, False, ""
    while at < len(text):
        if named := _NAMED.match(text, at):
            if named[1] not in _NAMES:
                return r"(?!)"
            ranges += _NAMES[named[1]]
            at = named.end()
            continue
        escaped = text[at] == "\\" and at + 1 < len(text)
        at += escaped
        members.append((text[at], escaped))
        at += 1
    at = 0
    while at < len(members):
        if at + 2 < len(members) and members[at + 1] == ("-", False):
            low, high = members[at][0], members[at + 2][0]
            ranges += f"{re.escape(low)}-{re.escape(high)}" if low <= high else ""
            at += 3
        else:
            ranges += re.escape(members[at][0])
            at += 1
    if negated:
        return f"[^/{ranges}]"
    return f"(?!/)[{ranges}]" if ranges else r"(?!)"
