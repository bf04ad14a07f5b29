"""Edits of other programs' configuration files that touch one entry and leave every other byte as it is.

Each edit is textual and then proved: the new text is read back, and unless it says what the old one said plus the
entry, it is refused. So a file with comments, odd spacing or both keeps them.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from commonplace.cli.clients import TRANSPORT, Entry, Format

_BLANK = " \t\r\n"
_COMMENT_OR_STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|//[^\r\n]*|/\*.*?\*/', re.DOTALL)
_COMMA_OR_STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|,(?=[ \t\r\n]*[}\]])', re.DOTALL)


class InvalidConfig(ValueError):
    """The error that a text is not in its format. The message ends the sentence "… cannot be read: "."""


class Uneditable(ValueError):
    """The error that a valid text is written in a way that this edit does not understand."""


def read(text: str, format: Format) -> dict[str, Any]:
    """Return the content of a configuration, {} for an empty file. Raise InvalidConfig."""
    try:
        if format == "toml":
            return tomllib.loads(text)
        plain = _strict(text) if format == "jsonc" else text
        value = _DECODER.decode(plain) if plain.strip(_BLANK) else {}
    except (ValueError, RecursionError) as error:
        raise InvalidConfig(str(error)) from error
    if not isinstance(value, dict):
        raise InvalidConfig("it does not hold an object")
    return value


def render(key: str, name: str, entry: Entry, format: Format) -> str:
    """Return a whole configuration with this one entry, for a new file and for `--print`."""
    if format == "toml":
        return f"[{key}.{name}]\n{_toml_lines(entry)}"
    return json.dumps({key: {name: entry}}, indent=2, ensure_ascii=False) + "\n"


def put(text: str, format: Format, key: str, name: str, entry: Entry) -> str:
    """Return the text with `entry` under `key` and `name`, added or replaced. Raise Uneditable."""
    expected = deepcopy(read(text, format))
    servers = expected.setdefault(key, {})
    if not isinstance(servers, dict):
        raise Uneditable(f"{key} is not {'a table' if format == 'toml' else 'an object'} there")
    if servers.get(name) == entry:
        return text
    servers[name] = entry
    edit = _put_toml if format == "toml" else _put_json
    edited = edit(text, key, name, entry)
    try:
        proved = _comparable(read(edited, format)) == _comparable(expected)
    except InvalidConfig:
        proved = False
    if not proved:
        raise Uneditable("it is written in a way that only a person can edit safely")
    return edited


def drop(text: str, format: Format, key: str, name: str, *, keep_empty: bool = True) -> str:
    """Return the text without the entry under `key` and `name`; raise Uneditable where only a person can take it out.

    Comments stay, but for those inside the entry. `keep_empty` says whether `key` stays when the entry was all it had;
    a TOML table that has no line of its own goes anyway.
    """
    expected = deepcopy(read(text, format))
    servers = expected.get(key)
    if not isinstance(servers, dict) or name not in servers:
        return text
    del servers[name]
    if not servers and not keep_empty:
        del expected[key]
    edited = _drop_toml(text, key, name) if format == "toml" else _drop_json(text, [key, name])
    if not servers and not keep_empty and format != "toml":
        edited = _drop_json(edited, [key])
    left = read(edited, format)
    if not servers and format == "toml":
        left.pop(key, None)
        expected.pop(key, None)
    if _comparable(left) != _comparable(expected):
        raise Uneditable("it is written in a way that only a person can edit safely")
    return edited


def alike(text: str, other: str, format: Format) -> bool:
    """Return whether two texts differ in nothing but blanks and commas between what they say, comments included."""
    return _bare(text) == _bare(other) and _comparable(read(text, format)) == _comparable(read(other, format))


def _bare(text: str) -> str:
    return re.sub(r"[\s,]+", "", text)


def _comparable(value: dict[str, Any]) -> str:
    return json.dumps(value, sort_keys=True, default=str)


# JSON, with or without comments


def _constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_constant)


@dataclass(frozen=True, slots=True)
class _Member:
    key: str
    at: int
    value_at: int
    end: int


def _strict(text: str) -> str:
    """Return the text with comments and trailing commas replaced by blanks, everything else in its place."""
    return _blanked(_COMMA_OR_STRING, _blanked(_COMMENT_OR_STRING, text))


def _blanked(pattern: re.Pattern[str], text: str) -> str:
    return pattern.sub(lambda match: match[0] if match[0].startswith('"') else " " * len(match[0]), text)


def _members(plain: str, at: int) -> Iterator[_Member]:
    """Yield the members of the object that opens at `at`, in valid text."""
    at = _skip(plain, at + 1)
    while plain[at] != "}":
        key, end = _DECODER.raw_decode(plain, at)
        value_at = _skip(plain, _skip(plain, end) + 1)
        end = _DECODER.raw_decode(plain, value_at)[1]
        yield _Member(key, at, value_at, end)
        at = _skip(plain, end)
        if plain[at] == ",":
            at = _skip(plain, at + 1)


def _skip(plain: str, at: int) -> int:
    while at < len(plain) and plain[at] in _BLANK:
        at += 1
    return at


def _put_json(text: str, key: str, name: str, entry: Entry) -> str:
    plain = _strict(text)
    root = _skip(plain, 0)
    if root == len(plain):  # nothing, or comments only
        return (
            text + ("\n" if text.strip(_BLANK) and not text.endswith("\n") else "") + render(key, name, entry, "json")
        )
    servers = _last(plain, root, key)
    if servers is None:
        return _insert(text, plain, root, key, {name: entry})
    ours = _last(plain, servers.value_at, name)
    if ours is None:
        return _insert(text, plain, servers.value_at, name, entry)
    written = _dumps(text, entry, _line_indent(text, ours.at), _spread(text[ours.value_at : ours.end]))
    return text[: ours.value_at] + written + text[ours.end :]


def _drop_json(text: str, keys: list[str]) -> str:
    """Return the text without the member that these keys lead to, and without one comma beside it."""
    plain, commas = _strict(text), _blanked(_COMMENT_OR_STRING, text)
    at = _skip(plain, 0)
    for key in keys[:-1]:
        member = _last(plain, at, key)
        if member is None:
            return text
        at = member.value_at
    ours = _last(plain, at, keys[-1])
    if ours is None:
        return text
    before = [member.end for member in _members(plain, at) if member.end <= ours.at]
    start, end = ours.at, ours.end
    if commas[comma := _skip(commas, end)] == ",":
        text = text[:comma] + text[comma + 1 :]
    elif before:  # ours is the last: the comma that led to it goes
        comma = commas.index(",", before[-1])
        text = text[:comma] + text[comma + 1 :]
        start, end = start - 1, end - 1
    return _without_gap(text, start, end)


def _without_gap(text: str, start: int, end: int) -> str:
    """Return the text without a member, the line that this leaves empty, and the blanks up to the next member."""
    head, tail = text[:start], text[end:]
    last = tail.lstrip(_BLANK).startswith("}")
    if last and head.rstrip(_BLANK).endswith("{"):
        return head.rstrip(_BLANK) + tail.lstrip(_BLANK)
    line = head.rfind("\n") + 1
    rest = tail.lstrip(" \t\r")
    if line and not head[line:].strip(_BLANK) and rest.startswith("\n"):
        return head[: line - 1].removesuffix("\r") + tail.lstrip(" \t")
    return head.rstrip(" \t") + tail if last else head + tail.lstrip(" \t")


def _last(plain: str, at: int, key: str) -> _Member | None:
    """Return the member of a key, the last if there are two, as readers do; None without one."""
    members = [member for member in _members(plain, at) if member.key == key]
    return members[-1] if members else None


def _insert(text: str, plain: str, at: int, key: str, value: Any) -> str:
    """Return the text with a new last member after any comment, in the style of the other members."""
    close = _DECODER.raw_decode(plain, at)[1] - 1
    members = list(_members(plain, at))
    inner = text[at + 1 : close]
    end = at + 1 + len(inner.rstrip(_BLANK))
    spread = _spread(inner) or (not members and (_spread(text.strip(_BLANK)) or text.strip(_BLANK) == "{}"))
    outer = _line_indent(text, at)
    pad = outer + _unit(text, plain)
    if members and not text[text.rfind("\n", 0, members[0].at) + 1 : members[0].at].strip(_BLANK):
        pad = _line_indent(text, members[0].at)
    member = f"{json.dumps(key, ensure_ascii=False)}: {_dumps(text, value, pad, spread)}"
    before, after = text[at + 1 : end], text[end:close]
    if members and "," not in _blanked(_COMMENT_OR_STRING, text)[members[-1].end : close]:
        split = members[-1].end - at - 1
        before = before[:split] + "," + before[split:]
    if not spread:
        return text[: at + 1] + before + (" " if members else "") + member + after + text[close:]
    newline = _newline(text)
    after = after if "\n" in after else newline + outer
    return text[: at + 1] + before + newline + pad + member + after + text[close:]


def _dumps(text: str, value: Any, pad: str, spread: bool) -> str:
    if not spread:
        return json.dumps(value, ensure_ascii=False)
    unit = _unit(text, _strict(text))
    return json.dumps(value, ensure_ascii=False, indent=unit).replace("\n", _newline(text) + pad)


def _unit(text: str, plain: str) -> str:
    """Return one step of indentation as in the file's first member; two blanks without one."""
    first = next(_members(plain, _skip(plain, 0)), None)
    if first is None:
        return "  "
    indent = text[text.rfind("\n", 0, first.at) + 1 : first.at]
    return indent if indent and not indent.strip(" \t") and "\n" in text[: first.at] else "  "


def _line_indent(text: str, at: int) -> str:
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _spread(part: str) -> bool:
    return "\n" in part or "\r" in part


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


# TOML


@dataclass(frozen=True, slots=True)
class _Statement:
    """A header, a key with its value, or another line; `said` is its content when parsed alone."""

    at: int
    end: int
    said: dict[str, Any]
    header: bool


def _statements(text: str) -> Iterator[_Statement]:
    """Yield the statements: the fewest lines that parse alone, as a value left open does not. Raise Uneditable."""
    start = end = 0
    for line in re.findall(r"[^\n]*\n|[^\n]+", text):
        end += len(line)
        try:
            said = tomllib.loads(text[start:end])
        except tomllib.TOMLDecodeError:
            continue
        yield _Statement(start, end, said, header=text[start:end].lstrip(" \t").startswith("["))
        start = end
    if start < end:
        raise Uneditable("its lines cannot be told apart")


def _put_toml(text: str, key: str, name: str, entry: Entry) -> str:
    """Return the text with our table at its end, or with the lines of the one there replaced. Raise Uneditable."""
    newline = _newline(text)
    if name not in tomllib.loads(text).get(key, {}):
        gap = "" if not text else newline if text.endswith("\n") else newline * 2
        return text + gap + render(key, name, entry, "toml").replace("\n", newline)
    pieces, path, replaced = [], [], False
    for statement in _statements(text):
        piece = text[statement.at : statement.end]
        if statement.header:
            path = _path(statement.said)
            replaced = replaced or path == [key, name]
        fields = [path[2]] if len(path) > 2 else list(statement.said)
        if path == [key, name] and statement.header:
            ours = {field: value for field, value in entry.items() if field in TRANSPORT}
            piece = piece.rstrip("\r\n") + newline + _toml_lines(ours).replace("\n", newline)
        elif path[:2] == [key, name] and statement.said and any(f in TRANSPORT or f not in entry for f in fields):
            continue
        pieces.append(piece)
    if not replaced:
        raise Uneditable(f"[{key}.{name}] is not a table of its own there")
    return "".join(pieces)


def _drop_toml(text: str, key: str, name: str) -> str:
    """Return the text without our table, its parts and the empty line before them; comments around it stay."""
    pieces: list[str] = []
    path: list[str] = []
    for statement in _statements(text):
        piece = text[statement.at : statement.end]
        path = _path(statement.said) if statement.header else path
        whole = path if statement.header else [*path, *_path(statement.said)]
        if statement.said and whole[:2] == [key, name]:
            if statement.header and pieces and not pieces[-1].strip():
                pieces.pop()
            continue
        pieces.append(piece)
    return "".join(pieces)


def _path(said: Any) -> list[str]:
    """Return the nested keys of parsed content that has one in each level, such as a header parsed alone."""
    if not isinstance(said, dict) or len(said) != 1:
        return []
    ((key, inner),) = said.items()
    return [key, *_path(inner)]


def _toml_lines(entry: Entry) -> str:
    """Return an entry's strings and lists of strings as TOML; JSON writes both in the same way."""
    return "".join(f"{field} = {_toml_value(value)}\n" for field, value in entry.items())


def _toml_value(value: str | list[str]) -> str:
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
