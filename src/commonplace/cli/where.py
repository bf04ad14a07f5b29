"""Every path in use, with its size: the command `where`, and what `uninstall` would remove."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import click

import commonplace
from commonplace.cli.client_files import ClientFile, opened
from commonplace.cli.clients import CLIENTS, config_path, is_ours, starts_ours
from commonplace.cli.install import ours_on_path
from commonplace.kinds.documents.packages.declarations import FILE as DECLARATIONS
from commonplace.models.catalog import catalog
from commonplace.settings import PREFIX, Settings, user_path
from commonplace.space import SPACES
from commonplace.store.accounts import FILE as ACCOUNTS
from commonplace.store.opening import DATABASE

Kind = Literal["data", "derived", "command", "program", "named"]
"""data: the user's own. derived: computed or downloaded again when needed. command: written to the PATH by `install`.

named: a file that the user keeps elsewhere and named in the settings.
"""


@dataclass(frozen=True, slots=True)
class UsedPath:
    """A path in use, which may not exist yet."""

    what: str
    path: Path
    kind: Kind

    @property
    def is_there(self) -> bool:
        """True if a file, a folder or a link is there; devices are not ours."""
        return self.path.is_symlink() or self.path.is_file() or self.path.is_dir()

    @property
    def size(self) -> int:
        """The bytes of the files there, links not followed."""
        return size_of(self.path)


def size_of(path: Path) -> int:
    """Return the bytes of a file or of everything below a folder; 0 for what is not there or cannot be looked at."""
    try:
        if path.is_symlink() or not path.is_dir():
            return path.lstat().st_size
        with os.scandir(path) as entries:
            return sum(size_of(Path(entry.path)) for entry in entries)
    except OSError:
        return 0


def places(settings: Settings) -> list[UsedPath]:
    """Return all paths of this home and this user: data, indexes, models, settings and programs."""
    home = settings.home.expanduser().absolute()
    return [
        *_of_spaces(home),
        UsedPath("users and keys", home / ACCOUNTS, "data"),
        UsedPath("declared collections", home / DECLARATIONS, "data"),
        *(UsedPath("libraries of eval", path, "derived") for path in [home / "eval"] if path.is_dir()),
        *_of_models(settings),
        _in_config("settings", _config_file()),
        _in_config("keys of providers", settings.keys.expanduser().absolute()),
        *(UsedPath("qmd command", path, "command") for path in ours_on_path(os.environ)),
        UsedPath("program", _program(), "program"),
    ]


def _of_spaces(home: Path) -> Iterator[UsedPath]:
    """Yield the paths of spaces: the default one even if it does not exist, others only if they are a library's."""
    root = home / SPACES
    names = sorted(path.name for path in root.iterdir() if path.is_dir()) if root.is_dir() else []
    for name in dict.fromkeys(["default", *names]):
        space = root / name
        indexes = sorted(space.glob("index-*"))
        if name != "default" and not indexes and not (space / DATABASE).exists():
            continue
        called = "" if name == "default" else f" of {name}"
        yield UsedPath(f"library{called}", space / DATABASE, "data")
        yield from (UsedPath(f"{DATABASE}{rest.name.removeprefix(DATABASE)}", rest, "data") for rest in _beside(space))
        yield from (UsedPath(f"index{called}", path, "derived") for path in indexes)
        others = [path for path in space.iterdir() if path.name in _OF_A_SPACE] if space.is_dir() else []
        yield from (UsedPath(f"{path.name}{called}", path, "derived") for path in sorted(others))


_OF_A_SPACE = {"locks", "looks", "embed.lock", "mcp.pid", "mcp.log", "mcp.lock"}
"""The files and folders of a space beside its library and indexes, all created again when needed."""


def _beside(space: Path) -> Iterator[Path]:
    """Yield SQLite's own files beside the library, and damaged libraries that were replaced."""
    yield from sorted(path for path in space.glob(f"{DATABASE}?*"))


def _of_models(settings: Settings) -> Iterator[UsedPath]:
    """Yield the folder of models if it is the default one; else each model, as others may keep files there."""
    folder = settings.models.expanduser().absolute()
    if folder == (user_path("cache") / "models").absolute():
        yield UsedPath("models", folder, "derived")
        return
    known = {entry.folder for entry in catalog().values()}
    locks = {f".{name}.lock" for name in known}
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        if path.name in known | locks or path.name.startswith((".partial-", "hf--", ".hf--")):
            yield UsedPath("model", path, "derived")


def _in_config(what: str, path: Path) -> UsedPath:
    return UsedPath(what, path, "data" if path.parent == user_path("config").absolute() else "named")


def _config_file() -> Path:
    named = os.environ.get(f"{PREFIX}CONFIG")
    return (Path(os.path.expanduser(named)) if named else user_path("config") / "config.toml").absolute()


def _program() -> Path:
    """Return the environment made for this program, or the package's folder if it shares one with others."""
    inside = Path(sys.prefix) if sys.prefix != sys.base_prefix else Path(commonplace.__file__).parent
    return inside.absolute()


@dataclass(frozen=True, slots=True)
class ConfiguredClient:
    """A client whose file has entries of ours, with their names."""

    name: str
    path: Path
    names: tuple[str, ...]


def configured_clients() -> Iterator[ConfiguredClient]:
    """Yield the clients that have entries of ours, skipping files that cannot be read."""
    for name, client in CLIENTS.items():
        path = Path(config_path(client, sys.platform, os.environ, os.path.expanduser("~")))
        try:
            names = names_of_ours(opened(client, path).entries(client))
        except (ClientFile, OSError):
            continue
        if names:
            yield ConfiguredClient(name, path, names)


def names_of_ours(entries: dict[str, object]) -> tuple[str, ...]:
    """Return the names of entries that are surely ours: our commands, and an address only under our own name."""
    return tuple(
        name for name, entry in entries.items() if starts_ours(entry) or (name == "commonplace" and is_ours(entry))
    )


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def where(context: click.Context, as_json: bool) -> None:
    """Print every path in use, with its size; `–` is one where nothing is yet.

    The folders that collections read are listed by `commonplace collections list`.
    """
    settings = Settings.load(home=context.obj["home"])
    rows: list[dict[str, Any]] = [
        {"what": "home", "path": str(settings.home.expanduser().absolute()), "kind": "data"},
        *({"what": place.what, "path": str(place.path), "kind": place.kind} for place in places(settings)),
        *(
            {"what": f"{CLIENTS[client.name].title}'s entry", "path": str(client.path), "kind": "entry"}
            | {"names": list(client.names)}
            for client in configured_clients()
        ),
    ]
    for row in rows:
        row["bytes"] = size_of(Path(row["path"]))
    if settings.store:
        rows.insert(1, {"what": "store", "path": "PostgreSQL", "kind": "data", "bytes": None})
    if as_json:
        click.echo(json.dumps(rows, ensure_ascii=False, indent=2))
        return
    shown = [row for row in rows if row["bytes"] or row["kind"] != "derived"]  # locks are files of nothing
    width = max(len(row["what"]) for row in shown)
    for row in shown:
        click.echo(f"{row['what']:<{width}}  {shown_size(row['bytes']):>9}  {row['path']}")


def shown_size(size: int | None) -> str:
    """Return a size for people: `–` where nothing is there."""
    if not size:
        return "–"
    if size < 1000:
        return f"{size} B"
    value = float(size)
    for unit in ("kB", "MB", "GB"):
        value /= 1000
        if value < 999.5 or unit == "GB":
            break
    return f"{value:.0f} {unit}" if value >= 10 else f"{value:.1f} {unit}"


COMMANDS = {"where": where}
