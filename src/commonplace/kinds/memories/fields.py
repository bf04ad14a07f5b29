"""Paths into metadata, as people write them, and which of them are indexed."""

from __future__ import annotations

import logging
import re

from commonplace.settings import BadSetting, Settings
from commonplace.store.base import Store

log = logging.getLogger(__name__)

TYPES = ("string", "integer", "float", "boolean", "array", "object")
_PIECE = re.compile(r"\\(?P<escaped>.?)|(?P<dot>\.)|(?P<plain>[^\\.]+)", re.DOTALL)
_REFUSED = re.compile(r"[\x00-\x1f\x7f-\x9f\[\]]")


def parse_path(text: str) -> tuple[str, ...]:
    """The names on a path, which dots part; `\\.` is a dot inside a name, `\\\\` a backslash. ValueError: why not."""
    names = [""]
    for piece in _PIECE.finditer(text):
        if piece["dot"]:
            names.append("")
        elif piece["plain"] is not None:
            names[-1] += piece["plain"]
        elif piece["escaped"] and piece["escaped"] in ".\\":
            names[-1] += piece["escaped"]
        else:
            raise ValueError("a backslash stands only before a dot or a backslash")
    if not text:
        raise ValueError("a path cannot be empty")
    if not all(names):
        raise ValueError("a path has no empty segment")
    if _REFUSED.search(text):
        raise ValueError("a path has no control characters or square brackets")
    return tuple(names)


def typed_fields(setting: str, name: str = "memory_indexed_fields") -> list[tuple[tuple[str, ...], str]]:
    """The paths and types of a list such as `status,references:object`. `name` is what an error calls the list."""
    found = []
    for part in filter(None, map(str.strip, setting.split(","))):
        before, colon, kind = part.rpartition(":")
        path = before.strip() if colon else part
        try:
            found.append((parse_path(path), kind.strip() if colon else "string"))
        except ValueError as problem:
            raise BadSetting(f"{name} names {path!r}: {problem}.") from None
    return found


def wanted_fields(setting: str) -> list[tuple[str, ...]]:
    """The paths of such a list, each once. A wrong type is logged and read as string."""
    found = typed_fields(setting)
    for path, kind in found:
        if kind.lower() not in TYPES:
            log.warning("%r is no type of an indexed metadata field; %s is read as string", kind, ".".join(path))
    return list(dict.fromkeys(path for path, _ in found))


def sync_fields(store: Store, settings: Settings) -> None:
    """Index the fields that the settings name, as far as the way they are kept in step allows."""
    wanted, there = wanted_fields(settings.memory_indexed_fields), store.indexed_fields()
    mode = settings.memory_index_sync
    missing = [path for path in wanted if path not in there]
    extra = [path for path in there if path not in wanted]
    if not missing and not extra:
        return
    if mode == "strict" and there:
        raise BadSetting(f"memory_indexed_fields differs from what is indexed: {_difference(missing, extra)}.")
    if mode == "warn" and there:
        log.warning("The indexed metadata fields differ from the setting: %s", _difference(missing, extra))
        return
    for path in missing:
        store.index_field(path)
    for path in extra if mode == "auto" else ():
        store.drop_field(path)


def _difference(missing: list[tuple[str, ...]], extra: list[tuple[str, ...]]) -> str:
    parts = [("not indexed: ", missing), ("indexed beyond it: ", extra)]
    return "; ".join(said + ", ".join(".".join(path) for path in paths) for said, paths in parts if paths)
