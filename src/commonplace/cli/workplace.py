"""The library and the project that a command for collections works on, and the options that choose them."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from commonplace.cli.lazy import SomePath
from commonplace.errors import InvalidInput
from commonplace.kinds.documents.packages.declarations import find_project
from commonplace.library import Library
from commonplace.settings import Settings
from commonplace.space import space_folder
from commonplace.store.opening import DATABASE


@dataclass(frozen=True, slots=True)
class Workplace:
    """The library and the project that a command works on, and how it reports."""

    settings: Settings
    space: str
    project: Path | None
    here: Path
    """The folder to work in where none is named: the project's if that is named, else the current one."""
    as_json: bool
    dry: bool

    def file_of(self, everywhere: bool) -> Path:
        """Return the folder whose context.json to use: the project's, or the user's."""
        return self.settings.home if everywhere or self.project is None else self.project

    @contextmanager
    def library(self) -> Iterator[Library]:
        """Yield the library. For a dry run without one, yield an empty one that is removed afterwards."""
        home, kept_elsewhere = self.settings.home, bool(self.settings.store)
        if not self.dry or kept_elsewhere or (space_folder(home, self.space) / DATABASE).exists():
            with Library.open(home, self.space, settings=self.settings) as library:
                yield library
            return
        with (
            tempfile.TemporaryDirectory() as nowhere,
            Library.open(nowhere, self.space, settings=self.settings) as library,
        ):
            yield library

    def say(self, record: Mapping[str, Any], *lines: str) -> None:
        """Print the one object of --json, or the lines for people."""
        if self.as_json:
            click.echo(json.dumps(record, ensure_ascii=False, indent=2))
            return
        for line in lines:
            click.echo(f"{line} (dry run)" if self.dry else line)


def with_workplace(command: Callable[..., Any]) -> Callable[..., Any]:
    """Return a command with the options that all take, and a `Workplace` as its first argument."""

    @click.option("--project", type=SomePath(path_type=Path, file_okay=False), help="The project's folder.")
    @click.option("--json", "as_json", is_flag=True, help="Print JSON.")
    @click.option("--dry-run", "dry", is_flag=True, help="Say what would happen, and change nothing.")
    @click.pass_context
    def run(context: click.Context, /, project: Path | None, as_json: bool, dry: bool, **options: Any) -> Any:
        home, space = context.obj["home"], context.obj["space"]
        settings = Settings.load(home=Path(home) if home else None)
        if project is not None and not project.is_dir():
            raise InvalidInput(f"--project {project} is no folder.")
        root = Path(os.path.realpath(project)) if project else find_project()
        if root is not None and root == Path(os.path.realpath(settings.home)):
            root = None
        return command(Workplace(settings, space, root, project or Path.cwd(), as_json, dry), **options)

    run.__doc__, run.__name__ = command.__doc__, command.__name__
    return run
