"""Commands for the tools of tables, the instances that serve them, and their search."""

from __future__ import annotations

import functools
import json
import re
import time
from collections.abc import Callable, Mapping
from typing import Any, cast

import click

from commonplace.cli.common import painted, with_library
from commonplace.errors import CommonplaceError, InvalidInput
from commonplace.kinds.tables.jobs import MOST_ATTEMPTS
from commonplace.kinds.tables.rows import TableRow
from commonplace.kinds.tables.table_catalog import TYPES
from commonplace.kinds.tables.tools import PROFILE
from commonplace.kinds.tables.tools.bound import search_tool
from commonplace.kinds.tables.tools.types import run_tool
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


WAIT_S = 0.1


# tools


@command(
    tool,
    "create",
    click.argument("table"),
    click.argument("type", type=click.Choice(TYPES)),
    click.argument("name"),
    AT,
    click.option("--description"),
)
def tool_create(
    library: Library, table: str, type: str, name: str, json_path: str, description: str | None, as_json: bool
) -> None:
    """Create a tool."""
    answer = call(
        library, "tool_create", table_id=table, type=type, name=name, json_path=json_path, description=description
    )
    show(answer, as_json, lambda: click.echo(f"Created: {name} ({answer['tool']['tool_id']})"))


@command(tool, "list", click.option("--table"), click.option("--instance"), click.option("--type", "kind"))
def tool_list(library: Library, table: str | None, instance: str | None, kind: str | None, as_json: bool) -> None:
    """The tools."""
    answer = listed(library, "tool_list", "tools", table_id=table, instance_id=instance, type=kind)

    def lines() -> None:
        for one in answer["tools"]:
            click.echo(f"{one['name']}  {one['tool_id']}  {one['type']} at {one['table_id']}:{one['json_path']}")

    show(answer, as_json, lines)


@command(
    tool,
    "update",
    click.argument("tool"),
    click.option("--name"),
    click.option("--description"),
    click.option("--at", "json_path", metavar="POINTER"),
)
def tool_update(
    library: Library, tool: str, name: str | None, description: str | None, json_path: str | None, as_json: bool
) -> None:
    """Change a tool's name, description or place."""
    answer = call(library, "tool_update", tool_id=tool, name=name, description=description, json_path=json_path)
    show(answer, as_json, lambda: click.echo(f"Changed: {answer['tool']['name']}"))


@command(tool, "delete", click.argument("tool"))
def tool_delete(library: Library, tool: str, as_json: bool) -> None:
    """Delete a tool and its bindings."""
    answer = call(library, "tool_delete", tool_id=tool)
    show(answer, as_json, lambda: click.echo(f"Deleted: {tool} and {answer['bindings_deleted']} bindings"))


# instances


def _keyed(answer: Mapping[str, JSON], as_json: bool) -> None:
    def lines() -> None:
        if "api_key" in answer:
            click.echo(answer["api_key"])
            click.echo("Keep it safe: it is not shown again. Send it as `Authorization: Bearer …`.", err=True)
        else:
            click.echo(f"Changed: {answer['instance']['name']}")

    show(answer, as_json, lines)


@command(
    instance,
    "create",
    click.argument("name"),
    click.option("--tool", "tool_ids", multiple=True, help="A tool to bind; may be repeated."),
    click.option("--description"),
)
def instance_create(
    library: Library, name: str, tool_ids: tuple[str, ...], description: str | None, as_json: bool
) -> None:
    """Create an instance and print its key, this once."""
    _keyed(
        call(library, "instance_create", name=name, tool_ids=list(tool_ids) or None, description=description), as_json
    )


@command(instance, "list")
def instance_list(library: Library, as_json: bool) -> None:
    """List the instances and the tools that they serve."""
    answer = listed(library, "instance_list", "instances")

    def lines() -> None:
        for one in answer["instances"]:
            bound = ", ".join(binding["name"] for binding in one["bindings"]) or "nothing bound"
            key = f"key …{one['key_hint']}" if one["key_hint"] else "no key yet"
            click.echo(f"{one['name']}  {one['status']}, {key}: {bound}")

    show(answer, as_json, lines)


@command(
    instance,
    "update",
    click.argument("instance"),
    click.option("--name"),
    click.option("--description"),
    click.option("--status", type=click.Choice(["enabled", "disabled"])),
    click.option("--rotate-key", is_flag=True, help="Create a new key; the old one stops working at once."),
)
def instance_update(
    library: Library,
    instance: str,
    name: str | None,
    description: str | None,
    status: str | None,
    rotate_key: bool,
    as_json: bool,
) -> None:
    """Change an instance, or give it a new key."""
    given = {"name": name, "description": description, "status": status, "rotate_key": rotate_key}
    _keyed(call(library, "instance_update", instance_id=instance, **given), as_json)


@command(instance, "delete", click.argument("instance"))
def instance_delete(library: Library, instance: str, as_json: bool) -> None:
    """Delete an instance."""
    answer = call(library, "instance_delete", instance_id=instance)
    show(answer, as_json, lambda: click.echo(f"Deleted: {instance}"))


def _bound(answer: Mapping[str, JSON], as_json: bool) -> None:
    def lines() -> None:
        for one in answer["bindings"]:
            click.echo(f"{one['name']}  {one['type']}, {one['status']}")

    show(answer, as_json, lines)


@command(
    instance,
    "bind",
    click.argument("instance"),
    click.argument("tool_ids", nargs=-1, required=True),
    click.option("--status", type=click.Choice(["enabled", "disabled"]), default="enabled", show_default=True),
)
def bind(library: Library, instance: str, tool_ids: tuple[str, ...], status: str, as_json: bool) -> None:
    """Serve tools at an instance."""
    _bound(call(library, "instance_bind", instance_id=instance, tool_ids=list(tool_ids), status=status), as_json)


@command(instance, "unbind", click.argument("instance"), click.argument("tool_ids", nargs=-1, required=True))
def unbind(library: Library, instance: str, tool_ids: tuple[str, ...], as_json: bool) -> None:
    """Stop serving tools at an instance."""
    _bound(call(library, "instance_unbind", instance_id=instance, tool_ids=list(tool_ids)), as_json)


# search


@command(
    tables,
    "search",
    click.argument("name", metavar="TOOL"),
    click.argument("query"),
    click.option("--top-k", type=int),
)
def search(library: Library, name: str, query: str, top_k: int | None, as_json: bool) -> None:
    """Find passages with a search tool."""
    given = {"query": query} if top_k is None else {"query": query, "top_k": top_k}
    answer = run_tool(library, search_tool(library.tables, name), given)

    def lines() -> None:
        for hit in answer["results"]:
            click.echo(f"{painted(hit['json_path'] or '(all)', fg='cyan')}  {round(hit['score'] * 100)}%")
            click.echo(f"    {' '.join(hit['chunk']['chunk_text'].split())[:300]}\n")
        if not answer["results"]:
            click.echo("No results found.")

    show(answer, as_json, lines)


@command(
    tables,
    "reindex",
    click.argument("name", metavar="TOOL|TABLE"),
    click.option("--force", is_flag=True, help="Rebuild all of it."),
    click.option("--wait", is_flag=True, help="Wait until it is done."),
)
def reindex(library: Library, name: str, force: bool, wait: bool, as_json: bool) -> None:
    """Repair the index of a tool's or a table's data, or rebuild it."""
    table = _table_of(library, name)
    answer = call(library, "search_reindex", table_id=table.id, force=force)
    if wait:
        while library.tables.job_rows.jobs(table.number):
            if not library.tables.jobs.step(table.number):
                _check_failed(library, table.number)
                time.sleep(WAIT_S)  # another process is at it, or it pauses after a failure
        library.lexical.catch_up()  # or the first search would wait for it
        answer = {**answer, "tools": call(library, "search_status", table_id=table.id)["tools"]}
    show(answer, as_json, lambda: click.echo(f"{'Indexed' if wait else 'Begun'}: {table.name}"))


def _check_failed(library: Library, table: int) -> None:
    for job in library.tables.job_rows.jobs(table):
        if job.attempts >= MOST_ATTEMPTS:
            raise InvalidInput(f"Indexing failed: {job.error}")


def _table_of(library: Library, name: str) -> TableRow:
    try:
        return library.tables.table(name)
    except CommonplaceError:
        return library.tables.catalog.table_of(library.tables.tool(name))


@command(tables, "status")
def status(library: Library, as_json: bool) -> None:
    """Show whether the search tools are ready."""
    answer = call(library, "search_status")

    def lines() -> None:
        for one in answer["tools"]:
            index = one["search_index"]
            done, total = index["indexed_chunks_count"], index["chunks_count"]
            click.echo(f"{one['name']}  {index['status']}, {done} of {total} chunks, generation {index['generation']}")
            if index["last_error"]:
                click.echo(f"    {index['last_error']}")

    show(answer, as_json, lines)


@command(tables, "cleanup", click.option("--dry-run", is_flag=True, help="Only count."))
def cleanup(library: Library, dry_run: bool, as_json: bool) -> None:
    """Remove index rows that belong to no table any more."""
    answer = call(library, "search_cleanup", dry_run=dry_run)
    missed = f", not reachable: {answer['unreachable']} tables" if answer["unreachable"] else ""
    show(answer, as_json, lambda: click.echo(f"Removed: {answer['removed']}, kept: {answer['kept']}{missed}"))
