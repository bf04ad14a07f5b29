"""`context.json`: which collections a project, or the user, has declared, and under which aliases."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from commonplace.errors import AlreadyExists, Denied, InvalidInput, NotFound
from commonplace.index.files import room_on_disk, write_atomically
from commonplace.kinds.documents.packages.globs import check_globs
from commonplace.kinds.documents.packages.manifest import read_json, texts
from commonplace.kinds.documents.packages.source import PackageSource, read_source
from commonplace.lazy_dataclass import dataclass

FILE = "context.json"
LARGEST = 1 << 20
Scope = Literal["project", "global"]
_ALIAS = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_KEYS = ("url", "glob", "exclude")


@dataclass(frozen=True, slots=True)
class Declaration:
    """One alias as a file declares it. The source is made anew each time: a link in its path may lead elsewhere."""

    alias: str
    url: str
    glob: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    scope: Scope = "project"
    folder: Path = Path()
    """Where relative paths start."""

    def source(self) -> PackageSource:
        return read_source(self.url, self.folder)


def find_project(start: str | Path = os.curdir) -> Path | None:
    """The nearest folder at or above one that has a context.json. A current folder that is gone is in no project."""
    try:
        start = Path(os.path.realpath(start))
    except FileNotFoundError:
        return None
    return next((folder for folder in (start, *start.parents) if (folder / FILE).is_file()), None)


def declarations(folder: Path, scope: Scope) -> tuple[Declaration, ...]:
    """What the context.json of a folder declares, in its order; nothing where there is none. Cheap to ask again."""
    file = folder / FILE
    try:
        found = os.stat(file)
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise NotFound(f"{file} cannot be read: {error.strerror}.") from None
    return _declarations(file, scope, (found.st_mtime_ns, found.st_size, found.st_ino))


def declare(folder: Path, declaration: Declaration, *, force: bool = False) -> None:
    """Write an alias into the context.json of a folder, which is made where there is none."""
    check_alias(declaration.alias, str(folder / FILE))
    content = _content(folder / FILE)
    known = content.setdefault("collections", {})
    if declaration.alias in known and not force:
        raise taken(declaration.alias, folder / FILE)
    record: dict[str, Any] = {"url": declaration.url}
    for key, patterns in (("glob", declaration.glob), ("exclude", declaration.exclude)):
        if patterns:
            record[key] = list(patterns)
    known[declaration.alias] = record
    write_json(folder / FILE, content)


def taken(alias: str, file: Path) -> AlreadyExists:
    return AlreadyExists(f"{file} has {alias} already. Use another alias, or --force to replace it.")


def withdraw(folder: Path, alias: str) -> None:
    """Take an alias out of the context.json of a folder."""
    content = _content(folder / FILE)
    if content.get("collections", {}).pop(alias, None) is None:
        raise NotFound(f"{folder / FILE} has no {alias}.")
    write_json(folder / FILE, content)


def write_json(file: Path, content: Mapping[str, Any]) -> None:
    """All of it or nothing: whoever reads meanwhile sees the old file."""
    try:
        written = (json.dumps(content, ensure_ascii=False, indent=2) + "\n").encode()
    except UnicodeEncodeError:
        raise InvalidInput(
            f"{file} was not written: it is UTF-8, and a name in it is not. Rename the folder, or give --name."
        ) from None
    try:
        with room_on_disk(file.parent):
            file.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(file, written)
    except OSError as error:
        raise Denied(f"{file} cannot be written: {error.strerror}.") from None


def check_alias(alias: str, place: str) -> None:
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
        with open(file, "rb") as opened:
            data = opened.read(LARGEST + 1)
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
    given = {"url": value} if isinstance(value, str) else value
    if not isinstance(given, dict):
        raise InvalidInput(f"{place} is a source, or an object with url, glob and exclude.")
    for key in given:
        if key not in _KEYS:
            raise InvalidInput(f"{place}.{key} is not known. There are {', '.join(_KEYS)}.")
    url = given.get("url")
    if not isinstance(url, str) or not url.strip():
        raise InvalidInput(f"{place}.url is the source, a text.")
    patterns = {
        key: check_globs(texts(given[key], f"{place}.{key}"), f"{place}.{key}") for key in _KEYS[1:] if key in given
    }
    declaration = Declaration(alias, url, scope=scope, folder=file.parent, **patterns)
    try:
        declaration.source()
    except InvalidInput as error:
        raise InvalidInput(f"{place}.url: {error}") from None
    return declaration
