"""Commands for JSON tables: projects, data, and calling tools as the owner."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from commonplace.cli import table_tools
from commonplace.cli.common import counted, written
from commonplace.cli.table_tools import AT, call, command, listed, project, show, tables
from commonplace.errors import InvalidInput
from commonplace.kinds.tables.edits import FORMATS, MODES
from commonplace.kinds.tables.pointers import parse
from commonplace.kinds.tables.tools.types import run_tool
from commonplace.kinds.tables.values import read
from commonplace.library import Library

__all__ = ["COMMANDS", "table_tools"]  # the import registers its commands


# projects


@command(project, "create", click.argument("name"), click.option("--description"))
def project_create(library: Library, name: str, description: str | None, as_json: bool) -> None:
    """Create a project."""
    answer = call(library, "project_create", name=name, description=description)
    show(answer, as_json, lambda: click.echo(f"Created: {name} ({answer['project']['project_id']})"))


@command(project, "list")
def project_list(library: Library, as_json: bool) -> None:
    """The projects."""
    answer = listed(library, "project_list", "projects")

    def lines() -> None:
        for one in answer["projects"]:
            click.echo(f"{one['name']}  {one['project_id']}")

    show(answer, as_json, lines)


@command(
    project, "delete", click.argument("name"), click.option("--force", is_flag=True, help="Delete its tables, too.")
)
def project_delete(library: Library, name: str, force: bool, as_json: bool) -> None:
    """Delete a project."""
    answer = call(library, "project_delete", project_id=name, force=force)
    show(answer, as_json, lambda: click.echo(f"Deleted: {name} and {counted(answer['tables_deleted'], 'table')}"))


# tables


@command(
    tables,
    "create",
    click.argument("project"),
    click.argument("name"),
    click.argument("file", required=False),
    click.option("--description"),
    click.option(
        "--not-searchable", is_flag=True, help="Leave it out of all searches but those of its own search tools."
    ),
)
def create(
    library: Library,
    project: str,
    name: str,
    file: str | None,
    description: str | None,
    not_searchable: bool,
    as_json: bool,
) -> None:
    """Create a table from a JSON file, or an empty one. `-` reads standard input."""
    data = {} if file is None else {"data": read(_text(file), file)}
    about = {"name": name, "description": description, "searchable": not not_searchable}
    answer = call(library, "table_create", data, project_id=project, **about)
    show(answer, as_json, lambda: click.echo(f"Created: {name} ({answer['table']['table_id']})"))


@command(tables, "list", click.argument("project", required=False))
def list_tables(library: Library, project: str | None, as_json: bool) -> None:
    """List the tables of a project, or all."""
    answer = listed(library, "table_list", "tables", project_id=project)

    def lines() -> None:
        for one in answer["tables"]:
            click.echo(f"{one['name']}  {one['table_id']}  version {one['version']}, {one['size_bytes']} bytes")

    show(answer, as_json, lines)


@command(tables, "get", click.argument("table"), AT, click.option("--query", help="A JMESPath expression."))
def get(library: Library, table: str, json_path: str, query: str | None, as_json: bool) -> None:
    """Print a table's data, a part of it, or the result of a query."""
    if query is None:
        answer = call(library, "table_get", table_id=table, json_path=json_path)
    else:
        row = library.tables.table(table)
        answer = {"data": library.tables.running.query(row, parse(json_path), query), "version": row.version}
    show(answer, as_json, lambda: click.echo(json.dumps(answer["data"], ensure_ascii=False, indent=2)))


@command(tables, "delete", click.argument("table"))
def delete(library: Library, table: str, as_json: bool) -> None:
    """Delete a table with its tools."""
    answer = call(library, "table_delete", table_id=table)
    show(answer, as_json, lambda: click.echo(f"Deleted: {table} and {counted(answer['tools_deleted'], 'tool')}"))


@command(
    tables,
    "import",
    click.argument("table"),
    click.argument("file"),
    AT,
    click.option("--mode", type=click.Choice(MODES), default="replace", show_default=True),
    click.option("--format", "form", type=click.Choice(FORMATS), help="[default: by the file's name, else json]"),
    click.option("--expected-version", type=int, help="Refuse unless the table is at this version."),
)
def import_file(
    library: Library,
    table: str,
    file: str,
    json_path: str,
    mode: str,
    form: str | None,
    expected_version: int | None,
    as_json: bool,
) -> None:
    """Bring a file into a table. `-` reads standard input."""
    ending = Path(file).suffix.lstrip(".").lower().replace("ndjson", "jsonl")
    answer = call(
        library,
        "table_import",
        table_id=table,
        content=_text(file),
        format=form or (ending if ending in FORMATS else "json"),
        mode=mode,
        json_path=json_path,
        expected_version=expected_version,
    )
    show(answer, as_json, lambda: click.echo(f"Imported: {answer['imported']} into {answer['table']['name']}"))


@command(tables, "export", click.argument("table"), click.argument("file", required=False))
def export(library: Library, table: str, file: str | None, as_json: bool) -> None:
    """Write a table's data as JSON, to a file or standard output."""
    row = library.tables.table(table)
    text = library.tables.running.text(row, (), most=None)
    if file is None or file == "-":
        click.echo(text)
    else:
        with written(file) as output:
            output.write(text + "\n")
        click.echo(f"Wrote {row.size} bytes to {file}", err=True)


@command(tables, "run", click.argument("name", metavar="TOOL"), click.argument("arguments", default="{}"))
def run(library: Library, name: str, arguments: str, as_json: bool) -> None:
    """Call a tool with the owner's rights; its arguments are a JSON object."""
    given = read(arguments, "ARGUMENTS")
    if not isinstance(given, dict):
        raise InvalidInput('ARGUMENTS is not an object. Write it as \'{"query": "tea"}\'.')
    answer = run_tool(library, library.tables.tool(name), given)
    click.echo(json.dumps(answer, ensure_ascii=False, indent=2))


def _text(file: str) -> str:
    try:
        data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{file} is not UTF-8: byte {error.start} cannot be read.") from None
    except OSError as error:
        raise InvalidInput(f"{file} cannot be read: {error.strerror}.") from None


COMMANDS = {"tables": tables}
