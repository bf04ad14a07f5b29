"""Commands that bring notes, media, chats, characters and prompts in and out."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from contextlib import closing, nullcontext
from pathlib import Path
from typing import IO, Any, BinaryIO
from urllib.parse import urlsplit

import click

from commonplace.cli.common import OUTPUT, WordOrFile, counted, progress_bar, with_library, written
from commonplace.cli.lazy import SomePath, ours
from commonplace.errors import InvalidInput
from commonplace.ingest.imports.import_file import Record, moment
from commonplace.ingest.imports.import_formats import FORMATS, KINDS
from commonplace.ingest.imports.import_inputs import ArchiveLimits, named
from commonplace.ingest.imports.import_run import ImportOptions, Put, Summary, import_paths
from commonplace.ingest.imports.json_lines import import_lines
from commonplace.kinds.knowledge.kinds import KIND_OF, SOURCES
from commonplace.kinds.knowledge.records import RecordOutcome, References, put_record, records
from commonplace.kinds.memories.entry_imports import Imported
from commonplace.kinds.memories.tools.entry_json import export_lines, import_file
from commonplace.kinds.tables import has_tables
from commonplace.library import Library
from commonplace.model import Item

_LANGUAGE = re.compile("[a-z]{2}")
_PATHS = click.argument("paths", nargs=-1, required=True, type=SomePath(path_type=Path))
_FORMAT = click.option("--format", type=click.Choice(FORMATS), help="Read every file as this format.")
_TAGS = click.option("--tags", default="", help="Tags for everything that comes in, with commas between.")
_DRY_RUN = click.option("--dry-run", is_flag=True, help="Store nothing, only say what would be stored.")
_STRICT = click.option("--strict", is_flag=True, help="Store nothing at all if anything fails.")
_JSON = click.option("--json", "as_json", is_flag=True, help="Print the outcome as one JSON object.")


def _kind_command(kind: str) -> click.Command:
    @click.command(kind, help=f"Bring in {kind}: {KINDS[kind].takes}, in folders and .zip files too.")
    @_PATHS
    @_FORMAT
    @_TAGS
    @_DRY_RUN
    @_STRICT
    @_JSON
    @with_library
    def command(
        library: Library, paths: tuple[Path, ...], format: str | None, tags: str, dry_run: bool, strict: bool,
        as_json: bool, **fields: str | None,
    ) -> int:  # fmt: skip
        options = ImportOptions(format, tuple(tags.split(",")) if tags else (), _fields(fields), dry_run, strict)
        limits = ArchiveLimits(library.settings.import_max_bytes)
        with progress_bar(f"Importing {kind}, KiB") as progress:
            summary = import_paths(library.store, _put(library), kind, paths, limits, options, progress)
        return _report(summary, as_json=as_json, dry_run=dry_run)

    return command


def _media_command() -> click.Command:
    command = _kind_command("media")
    wanted = {
        "--type": ("media_type", "What it is, such as podcast, whatever its file says."),
        "--title": ("title", "Its title."),
        "--url": ("url", "Where it is on the web."),
        "--author": ("author", "Who made it."),
        "--date": ("created_at", "When it was recorded or published, as 2024-05-01 or 2024-05-01T09:30:00Z."),
        "--language": ("language", "Its language, as an ISO 639-1 code."),
    }
    command.params += [click.Option([flag, name], help=help) for flag, (name, help) in wanted.items()]
    return command


def _fields(given: dict[str, str | None]) -> dict[str, str]:
    fields = {name: value for name, value in given.items() if value}
    if date := fields.get("created_at"):
        created_at = moment(date)
        if created_at is None:
            raise InvalidInput(
                f'--date "{date}" is not an ISO 8601 date; write 2024-05-01 or 2024-05-01T09:30:00Z.', argument="date"
            )
        fields["created_at"] = created_at
    if (language := fields.get("language")) and not _LANGUAGE.fullmatch(language):
        raise InvalidInput(f'--language "{language}" is no ISO 639-1 code; write en or ja.', argument="language")
    if (url := fields.get("url")) and not _is_on_the_web(url):
        raise InvalidInput(f'--url "{url}" is no http or https address.', argument="url")
    return fields


def _is_on_the_web(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname) and not any(map(str.isspace, url))


def _put(library: Library) -> Put:
    """Return the function that stores records; where an id is taken, references to it follow the new one."""
    references = References()

    def put(record: Record, target: Item | None) -> RecordOutcome:
        return put_record(library.store, record, target=target, references=references)

    return put


def _report(summary: Summary, *, as_json: bool, dry_run: bool) -> int:
    """Print what an import did on stdout and its warnings and errors on stderr; return the exit code."""
    for problem in (*summary.warnings, *summary.errors):
        click.echo(str(problem), err=True)
    nothing = summary.exit_code == 2 and not summary.errors
    if nothing:
        click.echo(
            f"There is nothing to read; commonplace import {summary.kind} takes {_takes(summary.kind)}.", err=True
        )
    if as_json:
        click.echo(json.dumps(summary.shown(), ensure_ascii=False))
    elif not nothing:
        click.echo(f"{'Would have ' if dry_run else ''}{summary.line()}")
    return summary.exit_code


def _takes(kind: str) -> str:
    return KINDS[kind].takes if kind in KINDS else "JSON Lines"


@click.command("jsonl")
@click.argument("source", type=click.Path(path_type=Path, allow_dash=True))
@_DRY_RUN
@_STRICT
@_JSON
@with_library
def import_jsonl(library: Library, source: Path, dry_run: bool, strict: bool, as_json: bool) -> int:
    """Import what `export` wrote, from FILE or, for -, from standard input."""
    options = ImportOptions(dry_run=dry_run, strict=strict)
    most = library.settings.import_max_bytes
    try:
        with nullcontext(sys.stdin.buffer) if str(source) == "-" else closing(source.open("rb")) as stream:
            lines = _lines(stream, most)
            summary = import_lines(library.store, _put(library), lines, named(source), options, most)
    except OSError as error:
        raise InvalidInput(f"{named(source)}: it cannot be read ({error.strerror or error}).") from None
    return _report(summary, as_json=as_json, dry_run=dry_run)


def _lines(stream: BinaryIO, most: int) -> Iterator[bytes]:
    """Yield lines, an overlong one cut just beyond `most` bytes: it is refused, not held in memory."""
    while line := stream.readline(most + 1):
        yield line
        while len(line) > most and not line.endswith(b"\n") and (rest := stream.readline(most)):
            line = rest if len(rest) == most else b""


@click.command("kinds")
@click.argument("kinds", nargs=-1, type=click.Choice(SOURCES))
@OUTPUT
@with_library
def export_kinds(library: Library, kinds: tuple[str, ...], target: str) -> None:
    """Write notes, media, chats, characters and prompts, or those that are named, as lines of JSON."""
    with written(target) as output:
        for record in records(library.store, [KIND_OF[kind] for kind in kinds or SOURCES]):
            output.write(json.dumps(record, ensure_ascii=False) + "\n")


_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)


@click.command("memory")
@click.option("--thread", help="Only the entries of this thread.")
@OUTPUT
@with_library
def export_memory(library: Library, thread: str | None, target: str) -> None:
    """Write memory entries as lines of JSON, by id, images included."""
    with written(target) as output:
        for line in export_lines(library, thread.strip() if thread is not None else None):
            output.write(line + "\n")


_RENUMBER = click.option("--renumber", is_flag=True, help="Give every entry a new id and print the mapping.")


@click.command("memory")
@click.argument("source", type=click.File("rb"))
@_DRY_RUN
@_RENUMBER
@with_library
def import_memory(library: Library, source: IO[bytes], dry_run: bool, renumber: bool) -> None:
    """Import what `export memory` wrote, from a file or, for -, from standard input."""
    _report_entries(import_file(library, source, renumber=renumber, dry_run=dry_run), dry_run=dry_run)


@click.command("context-server")
@click.argument("source", type=_FILE)
@_DRY_RUN
@_RENUMBER
@with_library
def import_context_server(library: Library, source: Path, dry_run: bool, renumber: bool) -> None:
    """Import the entries of an mcp-context-server's SQLite file. The file is only read."""
    done = library.memories.import_context_server(source, renumber=renumber, dry_run=dry_run)
    if done.raw_metadata:
        listed = ", ".join(map(str, done.raw_metadata[:20])) + (", …" if len(done.raw_metadata) > 20 else "")
        click.echo(f"Metadata that is no JSON object is kept as import_raw_metadata in {listed}.", err=True)
    _report_entries(done, dry_run=dry_run)


def _report_entries(done: Imported, *, dry_run: bool) -> None:
    for old, new in done.numbers.items():
        click.echo(f"{old} -> {new}")
    did = "Would import" if dry_run else "Imported"
    stored = f"{counted(done.stored, 'entry')} with {counted(done.images, 'image')}"
    click.echo(f"{did}: {stored}; {done.already} {'was' if done.already == 1 else 'were'} here already")
    if done.stored and not dry_run:
        click.echo(f"Run `{ours('embed')}` to find them by meaning too.", err=True)


@click.command("everything")
@click.argument("target", default="-", type=click.Path())
@with_library
def export_everything(library: Library, target: str) -> None:
    """Write every item of the library as a line of JSON: folders, attachments and JSON tables included, keys not."""
    with written(target) as output:
        for line in library.export():
            output.write(line + "\n")


@click.command("everything")
@click.argument("source", type=click.File("r", encoding="utf-8", errors="surrogateescape"))
@with_library
def import_everything(library: Library, source: IO[str]) -> None:
    """Import what `export everything` wrote."""
    click.echo(f"Imported: {counted(library.import_(source), 'item')}")
    for instance in library.tables.instance_rows.instances() if has_tables(library.store) else ():
        if not instance.hint:
            makes = f"`{ours(f'tables instance update {instance.name} --rotate-key')}` makes"
            click.echo(f"The instance {instance.name} has no key yet: {makes} one.", err=True)


_OTHERS: list[Any] = [import_jsonl, import_memory, import_context_server, import_everything]
import_ = click.Group(
    "import",
    commands=[
        *(_media_command() if kind == "media" else _kind_command(kind) for kind in KINDS),
        *_OTHERS,
    ],
    help="Bring in what other programs wrote, or what `export` did.",
)
export = WordOrFile(
    "export",
    export_kinds,
    [export_memory, export_everything],
    help="Write notes, media, chats, characters and prompts, all or those named, as lines of JSON.",
)

COMMANDS = {"export": export, "import": import_}
