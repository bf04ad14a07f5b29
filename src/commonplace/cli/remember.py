"""Commands that write what agents write with tools of the same names: `remember`, `revise` and `forget`."""

from __future__ import annotations

import json
import sys
from typing import Any

import click

from commonplace.cli.common import ask, counted, with_library
from commonplace.errors import InvalidInput
from commonplace.library import Library
from commonplace.profiles.commonplace.writing import FORGET, REMEMBER, REVISE
from commonplace.tools.tool import Call, Tool

_TEXT = click.argument("text", nargs=-1)
_TITLE = click.option("--title", help="A note's title.  [default: its first line]")
_TAG = click.option("-t", "--tag", "tags", multiple=True, help="A word to filter by; may be repeated.")
_METADATA = click.option("--metadata", help='A JSON object to filter on, such as \'{"project": "tea"}\'.')
_EXPIRES = click.option("--expires", "expires_at", help="When a memory expires, as 2026-05-01.")
_VERSION = click.option("--version", "expected_version", type=int, help="Refuse if it is not at this version any more.")
_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.command()
@_TEXT
@click.option("--kind", type=click.Choice(["note", "memory"]), help="What to keep it as.  [default: note]")
@_TITLE
@click.option("--key", help="A note's name, which its address ends with; it must be free.")
@click.option("-c", "--collection", help="The notebook of a note, or the thread of a memory.")
@_TAG
@_METADATA
@_EXPIRES
@click.option("--supersedes", multiple=True, help="The address of a memory that it replaces; may be repeated.")
@_JSON
@with_library
def remember(library: Library, text: tuple[str, ...], as_json: bool, **given: Any) -> None:
    """Keep a text as a note, or as a memory: the words of a sentence, or - for standard input.

    A search finds it at once.
    """
    if not text:
        raise InvalidInput("Say what to remember, or write - to read it from standard input.")
    answer = _called(library, REMEMBER, {"text": _read(text), **_arguments(given)})
    _print(answer, f"Remembered: {answer['uri']}", as_json=as_json)


@click.command()
@click.argument("address")
@_TEXT
@_TITLE
@_TAG
@_METADATA
@click.option(
    "--patch", "metadata_patch", help="Members of the metadata to change, as a JSON object; null removes one."
)
@_EXPIRES
@_VERSION
@_JSON
@with_library
def revise(library: Library, address: str, text: tuple[str, ...], as_json: bool, **given: Any) -> None:
    """Change a note or a memory: its whole text, or - for standard input, and what the options name.

    What is left out stays. Tags are replaced by those given; --tag '' removes them, --expires '' the end of a memory.
    """
    changes = {"text": _read(text)} if text else {}
    answer = _called(library, REVISE, {"uri": address, **changes, **_arguments(given)})
    _print(answer, f"Revised: {answer['uri']}, now at version {answer['version']}", as_json=as_json)


@click.command()
@click.argument("addresses", nargs=-1, required=True, metavar="ADDRESS...")
@_VERSION
@click.option("--dry-run", is_flag=True, help="Delete nothing, only list what would go.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@_JSON
@with_library
def forget(
    library: Library, addresses: tuple[str, ...], expected_version: int | None, dry_run: bool, yes: bool, as_json: bool
) -> None:
    """Delete notes and memories for good."""
    wanted = {"uri": list(addresses), **_arguments({"expected_version": expected_version})}
    there = _called(library, FORGET, {**wanted, "dry_run": True})
    if dry_run:
        _print(there, "\n".join(f"Would forget: {uri}" for uri in there["found"]), as_json=as_json)
        return
    if not yes:
        ask(f"Delete {counted(len(there['found']), 'item')} for good: {', '.join(there['found'])}?")
    answer = _called(library, FORGET, wanted)
    _print(answer, "\n".join(f"Forgotten: {uri}" for uri in answer["forgotten"]), as_json=as_json)


def _read(words: tuple[str, ...]) -> str:
    if words != ("-",):
        return " ".join(words)
    try:
        return sys.stdin.buffer.read().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidInput("Standard input is not UTF-8. Convert it and repeat this.") from None


def _arguments(given: dict[str, Any]) -> dict[str, Any]:
    """Return the options as the tools' arguments. An empty tag means no tags at all."""
    arguments = {name: value for name, value in given.items() if value not in (None, ())}
    for name in ("tags", "supersedes"):
        if name in arguments:
            arguments[name] = [each for each in arguments[name] if each]
    for name in ("metadata", "metadata_patch"):
        if name in arguments:
            arguments[name] = _object(arguments[name], "--patch" if name == "metadata_patch" else "--metadata")
    return arguments


def _object(text: str, option: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise InvalidInput(f'{option} is not a JSON object. Write it as \'{{"project": "tea"}}\'.')
    return value


def _called(library: Library, tool: Tool, arguments: dict[str, Any]) -> dict[str, Any]:
    answer = tool.call(Call(library), arguments)
    assert isinstance(answer, dict)  # noqa: S101  # these three tools answer with nothing else
    return answer


def _print(answer: dict[str, Any], words: str, *, as_json: bool) -> None:
    click.echo(json.dumps(answer, ensure_ascii=False, indent=2) if as_json else words)


COMMANDS = {"remember": remember, "revise": revise, "forget": forget}
"""The commands of this module, by name."""
