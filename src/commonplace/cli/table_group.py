"""Shared parts of the commands for tables: their groups, calls of tools, and error sentences."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Mapping
from typing import Any, cast

import click

from commonplace.cli.common import with_library
from commonplace.errors import CommonplaceError
from commonplace.kinds.tables.tools import PROFILE
from commonplace.library import Library
from commonplace.model import JSON
from commonplace.tools.tool import Call

TOOLS = {tool.name: tool for tool in PROFILE.tools}
_JSON = click.option("--json", "as_json", is_flag=True, help="Print the whole answer as JSON.")
AT = click.option(
    "--at",
    "json_path",
    default="",
    metavar="POINTER",
    help="The part of the data, as a JSON Pointer.  [default: all of it]",
)
_HERE = {
    "project_list": "`commonplace tables project list`",
    "table_list": "`commonplace tables list`",
    "tool_list": "`commonplace tables tool list`",
    "instance_list": "`commonplace tables instance list`",
    "Set force": "Add --force",
    "project_id": "PROJECT",
    "table_id": "TABLE",
    "tool_id": "TOOL",
    "instance_id": "INSTANCE",
    "content": "FILE",
}
"""The names of tools and arguments in commands, for commands without an option or argument of that name."""
_SAID = re.compile(r'"[^"]*"|(?:^|(?<=\. ))(?:Set force|[a-z]+)\b|\b[a-z]+_[a-z_]+\b')
"""Quoted text, which stays; the first words of sentences; and names that only programs use."""
_PAGE = 1000
_OF_THE_SYSTEM = 64
"""Exit codes from here on mean that the machine or the settings are at fault, not the call."""


def as_commands(sentence: str) -> str:
    """Return a sentence about tools and arguments with the names of commands and options instead."""
    names = {**_HERE, **_own_names()}
    return _SAID.sub(lambda found: names.get(found[0], found[0]), sentence)


def _own_names() -> dict[str, str]:
    """Return the options and arguments of the running command by their names in tools: `--at`, `NAME`."""
    context = click.get_current_context(silent=True)
    names: dict[str, str] = {}
    for each in context.command.params if context else ():
        shown = each.opts[0] if isinstance(each, click.Option) else each.human_readable_name
        names |= {str(each.name): shown, shown.strip("-").replace("-", "_"): shown}
    return names


def command(group: click.Group, name: str, *options: Callable[..., Any]) -> Callable[..., Any]:
    """Return a decorator for a command of a group: its options, `--json`, an open library, exit code 1 for refusals."""

    def decorate(function: Callable[..., Any]) -> click.Command:
        @functools.wraps(function)
        def refusing(*args: Any, **kwargs: Any) -> Any:
            try:
                return function(*args, **kwargs)
            except CommonplaceError as error:
                error.args = (as_commands(str(error)),)
                error.exit_code = 1 if error.exit_code < _OF_THE_SYSTEM else error.exit_code
                raise

        wrapped: Any = with_library(refusing)
        for option in reversed((*options, _JSON)):
            wrapped = option(wrapped)
        return group.command(name)(wrapped)

    return decorate


def call(library: Library, name: str, as_given: Mapping[str, JSON] = {}, /, **options: Any) -> dict[str, JSON]:
    """Return a tool's answer. Options of None are left out; arguments in `as_given` may be null."""
    given = {key: value for key, value in options.items() if value is not None and value != ()}
    return cast(dict[str, JSON], TOOLS[name].call(Call(library), {**given, **as_given}))


def listed(library: Library, name: str, what: str, **options: Any) -> dict[str, JSON]:
    """Return a list tool's answer with the entries of all pages."""
    answer = call(library, name, limit=_PAGE, **options)
    while answer["has_more"]:
        more = call(library, name, limit=_PAGE, offset=len(answer[what]), **options)
        answer = {**more, what: [*answer[what], *more[what]]}
    return answer


def show(answer: Mapping[str, JSON], as_json: bool, lines: Callable[[], Any]) -> None:
    if as_json:
        click.echo(json.dumps(answer, ensure_ascii=False, indent=2))
    else:
        lines()


@click.group()
def tables() -> None:
    """Keep JSON tables, and serve tools that each read or change a part of one."""


@tables.group()
def project() -> None:
    """Manage projects, which hold tables."""


@tables.group()
def tool() -> None:
    """Manage tools. Each is one operation on one part of one table."""


@tables.group()
def instance() -> None:
    """Manage instances: MCP endpoints with keys of their own, which serve tools."""
