"""Read and write `manifest.json`: the name of a package and the files that are its documents."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from commonplace.errors import InvalidInput
from commonplace.kinds.documents.packages.globs import IMPLIED, Globs, check_globs
from commonplace.model import JSON

LARGEST = 8 << 20
_HASH = re.compile(r"[0-9a-fA-F]{64}")
_LISTS = ("glob", "exclude", "files")


@dataclass(frozen=True, slots=True)
class ManifestEntry:
    """One element of `sources.files`: it has exactly one of `path` and `url`."""

    path: str = ""
    url: str = ""
    id: str = ""
    hash: str = ""


@dataclass(frozen=True, slots=True)
class PackageManifest:
    """The name and version of a package, and its documents: globs, single files, or both."""

    name: str
    version: str = ""
    description: str = ""
    base_url: str = ""
    metadata: Mapping[str, JSON] = field(default_factory=dict)
    globs: Globs | None = None
    files: tuple[ManifestEntry, ...] = ()


def implied(name: str, take: tuple[str, ...] = (), leave: tuple[str, ...] = ()) -> PackageManifest:
    """Return a manifest for a source without one: all files that `take` matches, by default Markdown and text."""
    return PackageManifest(name, globs=Globs(take or IMPLIED, leave))


def read_manifest(data: bytes, place: str, *, most: int) -> PackageManifest:
    """Return a manifest. Raise InvalidInput, with `place` and the key, where it is none or has over `most` files."""
    given = _table(read_json(data, place), place)
    sources = _table(given.get("sources"), f"{place}: sources")
    for key in sources:
        if key not in _LISTS:
            raise InvalidInput(f"{place}: sources.{key} is not known. sources has {', '.join(_LISTS)}.")
    if "glob" not in sources and "files" not in sources:
        raise InvalidInput(f"{place}: sources has neither glob nor files, so the package has no documents. Add one.")
    files = sources.get("files", [])
    if not isinstance(files, list) or len(files) > most:
        raise InvalidInput(f"{place}: sources.files is a list of at most {most} files.")
    return PackageManifest(
        name=_text(given, "name", place, required=True),
        version=_text(given, "version", place, required=True),
        description=_text(given, "description", place),
        base_url=_text(given, "baseUrl", place),
        metadata=_table(given.get("metadata", {}), f"{place}: metadata"),
        globs=_globs(sources, place),
        files=tuple(_entry(value, f"{place}: sources.files[{at}]") for at, value in enumerate(files)),
    )


def read_json(data: bytes, place: str) -> Any:
    """Return parsed JSON: UTF-8, perhaps with a BOM. Raise InvalidInput, also for a name that an object has twice."""
    try:
        value = json.loads(data.decode("utf-8-sig"), object_pairs_hook=lambda pairs: _once(pairs, place))
        json.dumps(value, ensure_ascii=False).encode()  # an escape such as \ud800 is no character: it cannot be stored
        return value
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{place} is no JSON ({error}). Mend it.") from None


def texts(value: Any, place: str) -> tuple[str, ...]:
    """Return a list of texts as a tuple. Raise InvalidInput where the value is none."""
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise InvalidInput(f"{place} is a list of texts.")
    return tuple(value)


def _once(pairs: list[tuple[str, Any]], place: str) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) < len(pairs):
        names = [name for name, _ in pairs]
        raise InvalidInput(f"{place} has {max(names, key=names.count)!r} twice in one object. Keep one.")
    return record


def _table(value: Any, place: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InvalidInput(f"{place} is an object in braces.")
    return value


def _text(given: Mapping[str, Any], key: str, place: str, *, required: bool = False) -> str:
    value = given.get(key, "")
    if not isinstance(value, str) or "\0" in value or (required and not value.strip()):
        raise InvalidInput(f"{place}: {key} is a text{' and has to be there' if required else ''}.")
    return value.strip()


def _globs(sources: Mapping[str, Any], place: str) -> Globs | None:
    leave = check_globs(texts(sources.get("exclude", []), f"{place}: sources.exclude"), f"{place}: sources.exclude")
    if "glob" not in sources:
        return None
    take = check_globs(texts(sources["glob"], f"{place}: sources.glob"), f"{place}: sources.glob")
    return Globs(take, leave)


def _entry(value: Any, place: str) -> ManifestEntry:
    if isinstance(value, str):
        return ManifestEntry(path=value)
    given = _table(value, place)
    for key, inner in given.items():
        if key not in ("path", "url", "id", "hash"):
            raise InvalidInput(f"{place}.{key} is not known. An entry has path or url, id and hash.")
        if not isinstance(inner, str) or not inner:
            raise InvalidInput(f"{place}.{key} is a text.")
    if ("path" in given) == ("url" in given):
        raise InvalidInput(f"{place} has exactly one of path and url.")
    if "hash" in given and not _HASH.fullmatch(given["hash"]):
        raise InvalidInput(f"{place}.hash is a SHA-256 in 64 hexadecimal digits.")
    return ManifestEntry(**{**given, "hash": given.get("hash", "").lower()})


def written(manifest: PackageManifest, entries: Iterator[ManifestEntry]) -> bytes:
    """Return the bytes of a manifest that lists these files one by one: the same bytes for the same package."""
    optional = {"description": manifest.description, "baseUrl": manifest.base_url, "metadata": dict(manifest.metadata)}
    record: dict[str, JSON] = {"name": manifest.name, "version": manifest.version}
    record |= {key: value for key, value in optional.items() if value}
    files = [{key: value for key, value in _fields(entry) if value} for entry in entries]
    record["sources"] = {"files": files}
    return (json.dumps(record, ensure_ascii=False, indent=2) + "\n").encode()


def _fields(entry: ManifestEntry) -> tuple[tuple[str, str], ...]:
    return ("path", entry.path), ("url", entry.url), ("id", entry.id), ("hash", entry.hash)
