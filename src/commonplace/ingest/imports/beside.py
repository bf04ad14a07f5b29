"""The files beside `conversations.json` in an export: read where they hold chats, else named with the reason."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

from commonplace.ingest.imports.formats import KINDS, choose, is_export
from commonplace.ingest.imports.source import ImportFile, Problem, Unreadable

_KIND = "chats"
_NAMED = 5
"""Files without any text of a chat that are named one by one; an export may hold thousands of pictures."""


def within_exports(sources: Sequence[ImportFile]) -> set[str]:
    """Return the identities of the files that lie in the folder of an export, or below it, and are not the export."""
    folders = {str(PurePosixPath(source.identity).parent) for source in sources if is_export(source.name)}
    if not folders:
        return set()
    return {
        source.identity
        for source in sources
        if not is_export(source.name) and any(str(above) in folders for above in PurePosixPath(source.identity).parents)
    }


def recognized(sources: Sequence[ImportFile], problems: list[Problem]) -> Iterator[ImportFile]:
    """Yield those that hold chats, told by their content. Why the others are left out is added to `problems`."""
    files_by_folder: dict[str, list[ImportFile]] = defaultdict(list)
    for source in sources:
        try:
            choose(_KIND, source)
        except Unreadable as error:
            if source.ending in KINDS[_KIND].endings:
                problems.append(Problem(source.path, f"{error}, so it was left out"))
            else:
                files_by_folder[str(PurePosixPath(source.path).parent)].append(source)
            continue
        yield source
    for folder, files in files_by_folder.items():
        problems.append(Problem(folder, _said(files)))


def _said(files: Sequence[ImportFile]) -> str:
    names = ", ".join(source.name for source in files[:_NAMED])
    if len(files) > _NAMED:
        return f"{names} and {len(files) - _NAMED} more hold no chats and were left out"
    return f"{names} {'holds no chats and was' if len(files) == 1 else 'hold no chats and were'} left out"
