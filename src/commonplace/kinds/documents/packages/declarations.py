"""Read and write `context.json`, in which a project, or the user, declares collections under aliases."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from commonplace.errors import AlreadyExists, Denied, InvalidInput, NotFound
from commonplace.index.sealed_files import room_on_disk, write_atomically
from commonplace.kinds.documents.packages.manifest import read_json, texts
from commonplace.kinds.documents.packages.package_paths import check_globs
from commonplace.kinds.documents.packages.source import PackageSource, read_source

FILE = "context.json"
LARGEST = 1 << 20
Scope = Literal["project", "global"]
_ALIAS = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_KEYS = ("url", "glob", "exclude")


@dataclass(frozen=True, slots=True)
class Declaration:
    """One alias as a file declares it."""

    alias: str
    url: str
    glob: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    scope: Scope = "project"
    folder: Path = Path()
    """The folder that a relative path starts from."""

    def source(self) -> PackageSource:
        """Return its source, resolved anew each time: a link in its path may lead elsewhere by now."""
        return read_source(self.url, self.folder)


def find_project(start: str | Path = os.curdir) -> Path | None:
    """Return the nearest folder at or above `start` that has a context.json, or None, as for a folder that is gone."""
    try:
        start = Path(os.path.realpath(start))
    except FileNotFoundError:
        return None
    return next((folder for folder in (start, *start.parents) if (folder / FILE).is_file()), None)


def declarations(folder: Path, scope: Scope) -> tuple[Declaration, ...]:
    """Return the declarations of a folder's context.json, in its order; none where there is no such file.

    An unchanged file is parsed once. Raise NotFound where it cannot be read, InvalidInput where it is malformed.
    """
    file = folder / FILE
    try:
        status = os.stat(file)
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise NotFound(f"{file} cannot be read: {error.strerror}.") from None
    return _declarations(file, scope, (status.st_mtime_ns, status.st_size, status.st_ino))


def declare(folder: Path, declaration: Declaration, *, force: bool = False) -> None:
    """Write an alias into the context.json of a folder, which is made where there is none.

    Raise AlreadyExists for an alias that is there, unless `force` is set; InvalidInput for a bad one.
    """
    check_alias(declaration.alias, str(folder / FILE))
    content = _content(folder / FILE)
    collections = content.setdefault("collections", {})
    if declaration.alias in collections and not force:
        raise alias_exists(declaration.alias, folder / FILE)
    record: dict[str, Any] = {"url": declaration.url}
    for key, patterns in (("glob", declaration.glob), ("exclude", declaration.exclude)):
        if patterns:
            record[key] = list(patterns)
    collections[declaration.alias] = record
    write_json(folder / FILE, content)


def alias_exists(alias: str, file: Path) -> AlreadyExists:
    """Return the error for an alias that a file has already."""
    return AlreadyExists(f"{file} has {alias} already. Use another alias, or --force to replace it.")


def withdraw(folder: Path, alias: str) -> None:
    """Remove an alias from the context.json of a folder. Raise NotFound where it is not there."""
    content = _content(folder / FILE)
    if content.get("collections", {}).pop(alias, None) is None:
        raise NotFound(f"{folder / FILE} has no {alias}.")
    write_json(folder / FILE, content)


def write_json(file: Path, content: Mapping[str, Any]) -> None:
    """Write a JSON file, all or nothing: whoever reads meanwhile sees the old one. Raise InvalidInput or Denied."""
    try:
        data = (json.dumps(content, ensure_ascii=False, indent=2) + "\n").encode()
    except UnicodeEncodeError:
        raise InvalidInput(
            f"{file} was not written: it is UTF-8, and a name in it is not. Rename the folder, or give --name."
        ) from None
    try:
        with room_on_disk(file.parent):
            file.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(file, data)
    except OSError as error:
        raise Denied(f"{file} cannot be written: {error.strerror}.") from None


def check_alias(alias: str, place: str) -> None:
    """Raise InvalidInput for an alias that is not allowed; `place` is where it stands."""
    if not _ALIAS.fullmatch(alias):
        raise InvalidInput(
            f"{place}: an alias has 1–64 letters, digits, dots, dashes and underscores and begins with a letter or "
            f"digit: not {alias!r}."
        )


@lru_cache(maxsize=64)
def _declarations(file: Path, scope: Scope, stamp: tuple[int, ...]) -> tuple[Declaration, ...]:
    content = _content(file)
    return tuple(_declaration(alias, value, file, scope) for alias, value in content.get("collections", {}).items())


def _content(file: Path) -> dict[str, Any]:
    try:
        with open(file, "rb") as stream:
            data = stream.read(LARGEST + 1)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise NotFound(f"{file} cannot be read: {error.strerror}.") from None
    if len(data) > LARGEST:
        raise InvalidInput(f"{file} is larger than {LARGEST >> 20} MiB, which no list of collections is.")
    content = read_json(data, str(file))
    if not isinstance(content, dict) or not isinstance(content.get("collections", {}), dict):
        raise InvalidInput(f'{file} is an object with "collections", which is an object with aliases.')
    for key in content:
        if key != "collections":
            raise InvalidInput(f"{file}: {key} is not known. The only member is collections.")
    return content


def _declaration(alias: str, value: Any, file: Path, scope: Scope) -> Declaration:
    place = f"{file}: collections.{alias}"
    check_alias(alias, f"{file}: collections")
    record = {"url": value} if isinstance(value, str) else value
    if not isinstance(record, dict):
        raise InvalidInput(f"{place} is a source, or an object with url, glob and exclude.")
    for key in record:
        if key not in _KEYS:
            raise InvalidInput(f"{place}.{key} is not known. There are {', '.join(_KEYS)}.")
    url = record.get("url")
    if not isinstance(url, str) or not url.strip():
        raise InvalidInput(f"{place}.url is the source, a text.")
    patterns = {
        key: check_globs(texts(record[key], f"{place}.{key}"), f"{place}.{key}") for key in _KEYS[1:] if key in record
    }
    declaration = Declaration(alias, url, scope=scope, folder=file.parent, **patterns)
    try:
        declaration.source()
    except InvalidInput as error:
        raise InvalidInput(f"{place}.url: {error}") from None
    return declaration
