"""Every path of this machine that Commonplace uses, and what each is."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import commonplace
from commonplace.cli import qmd_command as shim
from commonplace.cli.client_files import ClientFile, opened
from commonplace.cli.clients import CLIENTS, config_path, is_ours, starts_ours
from commonplace.kinds.documents.packages.context import FILE as DECLARATIONS
from commonplace.lazy_dataclass import dataclass
from commonplace.library import SPACES
from commonplace.models.catalog import catalog
from commonplace.settings import PREFIX, Settings, user_path
from commonplace.store.accounts import FILE as ACCOUNTS
from commonplace.store.opening import DATABASE

Kind = Literal["data", "derived", "command", "program", "named"]
"""data: a person's own. derived: made or fetched again when needed. command: what `install` wrote to the path.

named: a file that a person keeps in a place of their own and only told us of.
"""


@dataclass(frozen=True, slots=True)
class Place:
    """A path in use. It may not be there yet."""

    what: str
    path: Path
    kind: Kind

    @property
    def is_there(self) -> bool:
        """Whether a file, a folder or a link is there; a device is none of ours."""
        return self.path.is_symlink() or self.path.is_file() or self.path.is_dir()

    @property
    def size(self) -> int:
        """How many bytes the files there have, links not followed."""
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


def places(settings: Settings) -> list[Place]:
    """Return all places of this home and this user: what is kept, what was made from it, settings and programs."""
    home = settings.home.expanduser().absolute()
    return [
        *_of_spaces(home),
        Place("users and keys", home / ACCOUNTS, "data"),
        Place("declared collections", home / DECLARATIONS, "data"),
        *(Place("libraries of eval", path, "derived") for path in [home / "eval"] if path.is_dir()),
        *_of_models(settings),
        _in_config("settings", _config_file()),
        _in_config("keys of providers", settings.keys.expanduser().absolute()),
        *(Place("qmd command", path, "command") for path in shim.ours_on_path(os.environ)),
        Place("program", _program(), "program"),
    ]


def _of_spaces(home: Path) -> Iterator[Place]:
    """The default space is named even where it is not there yet; of others only folders that are a library's."""
    root = home / SPACES
    names = sorted(path.name for path in root.iterdir() if path.is_dir()) if root.is_dir() else []
    for name in dict.fromkeys(["default", *names]):
        space = root / name
        indexes = sorted(space.glob("index-*"))
        if name != "default" and not indexes and not (space / DATABASE).exists():
            continue
        called = "" if name == "default" else f" of {name}"
        yield Place(f"library{called}", space / DATABASE, "data")
        yield from (Place(f"{DATABASE}{rest.name.removeprefix(DATABASE)}", rest, "data") for rest in _beside(space))
        yield from (Place(f"index{called}", path, "derived") for path in indexes)
        others = [path for path in space.iterdir() if path.name in _OF_A_SPACE] if space.is_dir() else []
        yield from (Place(f"{path.name}{called}", path, "derived") for path in sorted(others))


_OF_A_SPACE = {"locks", "looks", "embed.lock", "mcp.pid", "mcp.log", "mcp.lock"}
"""What stands in a space's folder beside its library and its indexes, and is made again."""


def _beside(space: Path) -> Iterator[Path]:
    """SQLite's own files beside the library, and a damaged library that was replaced."""
    yield from sorted(path for path in space.glob(f"{DATABASE}?*"))


def _of_models(settings: Settings) -> Iterator[Place]:
    """The folder where it is the usual one; elsewhere, where others may keep files too, each model by itself."""
    folder = settings.models.expanduser().absolute()
    if folder == (user_path("cache") / "models").absolute():
        yield Place("models", folder, "derived")
        return
    known = {entry.folder for entry in catalog().values()}
    locks = {f".{name}.lock" for name in known}
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        if path.name in known | locks or path.name.startswith((".partial-", "hf--", ".hf--")):
            yield Place("model", path, "derived")


def _in_config(what: str, path: Path) -> Place:
    return Place(what, path, "data" if path.parent == user_path("config").absolute() else "named")


def _config_file() -> Path:
    named = os.environ.get(f"{PREFIX}CONFIG")
    return (Path(os.path.expanduser(named)) if named else user_path("config") / "config.toml").absolute()


def _program() -> Path:
    """The environment that was made for it, or the package where it shares one with other programs."""
    inside = Path(sys.prefix) if sys.prefix != sys.base_prefix else Path(commonplace.__file__).parent
    return inside.absolute()


@dataclass(frozen=True, slots=True)
class Told:
    """A client whose file has entries of ours, by name."""

    client: str
    path: Path
    names: tuple[str, ...]


def told_clients() -> Iterator[Told]:
    """Yield the clients that have entries of ours. A file that cannot be read has none that we know of."""
    for name, client in CLIENTS.items():
        path = Path(config_path(client, sys.platform, os.environ, os.path.expanduser("~")))
        try:
            found = names_of_ours(opened(client, path).entries(client))
        except (ClientFile, OSError):
            continue
        if found:
            yield Told(name, path, found)


def names_of_ours(entries: dict[str, object]) -> tuple[str, ...]:
    """Return the names of entries that are surely ours: our commands, and an address only under our own name."""
    return tuple(
        name for name, entry in entries.items() if starts_ours(entry) or (name == "commonplace" and is_ours(entry))
    )
