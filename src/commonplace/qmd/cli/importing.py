"""`import`: the collections of another qmd, from its index.yml."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from commonplace.cli.common import with_library
from commonplace.cli.folders import index_collection
from commonplace.cli.lazy import SomePath
from commonplace.errors import AlreadyExists, CommonplaceError, InvalidInput, NotFound
from commonplace.kinds.documents.folders.folder_collections import check_name, checked
from commonplace.library import Library
from commonplace.qmd.cli.collection_commands import PATTERN, print_indexed, print_needed

LARGEST = 1024 * 1024
_KNOWN = {"global_context", "collections", "editor_uri", "editor_uri_template", "models"}
_KNOWN_OF_ONE = {"path", "pattern", "ignore", "context", "update", "includeByDefault"}


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """A collection of another qmd's index.yml."""

    name: str
    root: Path
    pattern: str = PATTERN
    ignore: tuple[str, ...] = ()
    included: bool = True
    contexts: Mapping[str, str] = field(default_factory=dict)
    command: str = ""


@dataclass(frozen=True, slots=True)
class IndexFile:
    """The content of an index.yml, and the keys in it that are not known here."""

    collections: tuple[IndexEntry, ...]
    context: str = ""
    unknown: tuple[str, ...] = ()


def read_index_file(path: Path) -> IndexFile:
    """Return the content of a file, all of it checked before anything is done. Raise NotFound or InvalidInput."""
    import yaml  # the only command that needs it

    class Words(yaml.SafeLoader):
        """A loader that keeps plain values as text: YAML 1.1 would convert `no`, `12:30` and dates."""

        yaml_implicit_resolvers = {}

    try:
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)
    except OSError as error:
        raise NotFound(f"{path} cannot be read: {error.strerror}.") from error
    if len(data) > LARGEST:
        raise InvalidInput(f"{path} has more than {LARGEST:,} bytes: it is no index.yml.")
    try:
        content = yaml.load(data, Words)  # noqa: S506 - a safe loader, and safer
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        line = getattr(getattr(error, "problem_mark", None), "line", None)
        where = f" at line {line + 1}" if line is not None else ""
        raise InvalidInput(f"{path} is no YAML{where}.") from error
    return _index_file(_mapping(content or {}, str(path)))


def _index_file(content: Mapping[str, Any]) -> IndexFile:
    entries = _mapping(_given(content, "collections") or {}, "collections")
    unknown = [name for name in content if name not in _KNOWN]
    collections = []
    for name, entry in entries.items():
        unknown += [f"{name}.{key}" for key in _mapping(entry, name) if key not in _KNOWN_OF_ONE]
        collections.append(_index_entry(name, entry))
    return IndexFile(tuple(collections), _text(_given(content, "global_context"), "global_context"), tuple(unknown))


def _index_entry(name: str, entry: Mapping[str, Any]) -> IndexEntry:
    check_name(name)
    if not _given(entry, "path"):
        raise InvalidInput(f"{name} has no path in this file.")
    ignore, included = _given(entry, "ignore") or [], _given(entry, "includeByDefault") or "true"
    contexts = _mapping(_given(entry, "context") or {}, f"{name}.context")
    if not isinstance(ignore, list) or included not in ("true", "false"):
        raise InvalidInput(f"{name}: ignore is a list of globs, and includeByDefault true or false.")
    return IndexEntry(
        name,
        Path(os.path.expanduser(_text(entry["path"], f"{name}.path"))),
        _text(_given(entry, "pattern") or PATTERN, f"{name}.pattern"),
        tuple(_text(glob, f"{name}.ignore") for glob in ignore),
        included == "true",
        dict(checked(path, text) for path in contexts if (text := _text(_given(contexts, path), f"{name}.context"))),
        _text(_given(entry, "update"), f"{name}.update"),
    )


def _given(entry: Mapping[str, Any], name: str) -> Any:
    """Return a value of the file; "" for a missing one or any null of YAML's."""
    value = entry.get(name, "")
    return "" if value in ("null", "~") else value


def _mapping(value: Any, what: str) -> Mapping[str, Any]:
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        raise InvalidInput(f"{what} is no table of names and values, as an index.yml has it.")
    return value


def _text(value: Any, what: str) -> str:
    if not isinstance(value, str):
        raise InvalidInput(f"{what} is a text, not {value!r}.")
    return value


def usual_place(index: str, environment: Mapping[str, str] = os.environ) -> Path:
    """Return the path where another qmd keeps the file of this index."""
    name = "index" if index == "default" else index
    if folder := environment.get("QMD_CONFIG_DIR"):
        return Path(folder) / f"{name}.yml"
    return Path(environment.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "qmd" / f"{name}.yml"


@click.command("import")
@click.argument("file", type=SomePath(path_type=Path), required=False)
@click.option("--trust-hooks", is_flag=True, help="Take over the update commands, too: `qmd update` will run them.")
@click.pass_context
@with_library
def import_(library: Library, context: click.Context, file: Path | None, trust_hooks: bool) -> int:
    """Take over collections, masks, ignores, contexts and flags of another qmd, and index them.

    FILE is its index.yml, in its usual place if left out. Done again, it brings over what has changed.
    """
    listing = read_index_file(file or usual_place(context.obj["space"]))
    for name in listing.unknown:
        click.echo(f"{name} is nothing this qmd knows. It is left out.", err=True)
    if listing.context:
        library.folders.set_context(None, "", listing.context)
    failed = 0
    for one in listing.collections:
        try:
            _take(library, one, trust_hooks)
        except CommonplaceError as error:
            click.echo(f"{one.name} was not imported. {error}", err=True)
            failed += 1
    print_needed(library)
    return 1 if failed else 0


def _take(library: Library, one: IndexEntry, trust_hooks: bool) -> None:
    folders = library.folders
    try:
        found = folders.get(one.name)
    except NotFound:
        folders.add(one.root, one.name, pattern=one.pattern, ignore=one.ignore, gitignore=False, included=one.included)
    else:
        if found.root != one.root.resolve():
            raise AlreadyExists(f"Collection '{one.name}' already exists: it is {found.root}.")
        folders.change(one.name, pattern=one.pattern, ignore=one.ignore, included=one.included)
    for path, text in one.contexts.items():
        folders.set_context(one.name, path, text)
    if one.command and trust_hooks:
        folders.set_update_command(one.name, one.command)
    elif one.command:
        click.echo(f"{one.name}: its update command is left out; --trust-hooks takes it: {one.command}", err=True)
    click.echo(f"Imported {one.name} ({one.root})")
    print_indexed(index_collection(library, one.name))


COMMANDS: dict[str, Any] = {"import": import_}
