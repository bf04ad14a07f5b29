"""Paths into metadata, as people write them, and the indexes on them."""

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
    """Return the names on a path. Dots separate them; `\\.` is a dot inside a name, `\\\\` a backslash.

    Raise ValueError, with the reason, where the path is malformed.
    """
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
    """Return the (path, type) pairs of a list such as `status,references:object`.

    Raise BadSetting where a path is malformed; `name` is what the error calls the list.
    """
    pairs = []
    for part in filter(None, map(str.strip, setting.split(","))):
        before, colon, kind = part.rpartition(":")
        path = before.strip() if colon else part
        try:
            pairs.append((parse_path(path), kind.strip() if colon else "string"))
        except ValueError as problem:
            raise BadSetting(f"{name} names {path!r}: {problem}.") from None
    return pairs


def wanted_fields(setting: str) -> list[tuple[str, ...]]:
    """Return the paths of such a list, each once. Log a type that does not exist and read it as string."""
    pairs = typed_fields(setting)
    for path, kind in pairs:
        if kind.lower() not in TYPES:
            log.warning("%r is no type of an indexed metadata field; %s is read as string", kind, ".".join(path))
    return list(dict.fromkeys(path for path, _ in pairs))


def sync_fields(store: Store, settings: Settings) -> None:
    """Index the metadata fields that the settings name, as far as `memory_index_sync` allows.

    Raise BadSetting where that is `strict` and other fields are indexed.
    """
    wanted_paths, indexed_paths = wanted_fields(settings.memory_indexed_fields), store.indexed_fields()
    mode = settings.memory_index_sync
    missing = [path for path in wanted_paths if path not in indexed_paths]
    extra = [path for path in indexed_paths if path not in wanted_paths]
    if not missing and not extra:
        return
    if mode == "strict" and indexed_paths:
        raise BadSetting(f"memory_indexed_fields differs from what is indexed: {_difference(missing, extra)}.")
    if mode == "warn" and indexed_paths:
        log.warning("The indexed metadata fields differ from the setting: %s", _difference(missing, extra))
        return
    for path in missing:
        store.index_field(path)
    for path in extra if mode == "auto" else ():
        store.drop_field(path)


def _difference(missing: list[tuple[str, ...]], extra: list[tuple[str, ...]]) -> str:
    parts = [("not indexed: ", missing), ("indexed beyond it: ", extra)]
    return "; ".join(label + ", ".join(".".join(path) for path in paths) for label, paths in parts if paths)
