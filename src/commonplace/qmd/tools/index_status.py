"""The state of collections, documents and vectors, and the instructions that clients get when they connect."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from commonplace.kinds.documents.folders.folder_collections import all_collections, changed_at, global_context, packages
from commonplace.model import JSON
from commonplace.space import Space
from commonplace.store.listing import Listing
from commonplace.tools.tool import Call, Reply

LONGEST = 1500


@dataclass(frozen=True, slots=True)
class CollectionState:
    """A collection, and how many documents it has."""

    name: str
    path: str
    pattern: str
    documents: int
    last_updated: datetime | None


@dataclass(frozen=True, slots=True)
class State:
    """The state of all collections, and of their vectors."""

    documents: int
    needs_embedding: int
    has_vectors: bool
    folders: tuple[CollectionState, ...]


def state(space: Space) -> State:
    """Return the state of a library's collections. Loads no model."""
    counts = _counts(space)
    folders = tuple(
        CollectionState(
            one.name, str(one.root), one.pattern, counts.get(one.name, 0), changed_at(space.store, one.name)
        )
        for one in all_collections(space.store)
    )
    has_vectors = space.embedding.coverage().embedded > 0
    return State(sum(counts.values()), lacking(space), has_vectors, folders)


def lacking(space: Space) -> int:
    """Return the number of documents with a passage without a vector, without those of packages."""
    if not packages(space.store):
        return space.embedding.documents_lacking()
    parents = tuple(_counts(space))
    return space.embedding.documents_lacking(parents) if parents else 0


def _counts(space: Space) -> dict[str, int]:
    packaged = packages(space.store)
    return {
        name: count for name, count in space.store.drawer(Listing).parents("document").items() if name not in packaged
    }


def record(found: State) -> dict[str, JSON]:
    """Return a state as the tool, HTTP and `--json` give it."""
    return {
        "totalDocuments": found.documents,
        "needsEmbedding": found.needs_embedding,
        "hasVectorIndex": found.has_vectors,
        "collections": [
            {
                "name": folder.name,
                "path": folder.path,
                "pattern": folder.pattern,
                "documents": folder.documents,
                "lastUpdated": moment(folder.last_updated),
            }
            for folder in found.folders
        ],
    }


def moment(when: datetime | None) -> str | None:
    """Return a time in UTC with milliseconds, `2025-06-18T12:34:56.789Z`, or None."""
    return when.isoformat(timespec="milliseconds").replace("+00:00", "Z") if when else None


def status(call: Call, given: Mapping[str, JSON]) -> Reply:
    found = state(call.space)
    return Reply([{"type": "text", "text": as_text(found)}], record(found))


def as_text(found: State) -> str:
    """Return a state as the tool and the command line print it."""
    lines = [
        "QMD Index Status:",
        f"  Total documents: {found.documents}",
        f"  Needs embedding: {found.needs_embedding}",
        f"  Vector index: {'yes' if found.has_vectors else 'no'}",
        f"  Collections: {len(found.folders)}",
        *(f"    - {folder.path} ({folder.documents} docs) as {folder.name}" for folder in found.folders),
    ]
    return "\n".join(lines)


def instructions(space: Space) -> str:
    """Return what is in the collections and which tool to use, for an agent that is new to the server."""
    found = state(space)
    names = ", ".join(folder.name for folder in found.folders)
    lines = [
        f"QMD searches {found.documents} documents in folders of Markdown and other text on this machine.",
        _cut(global_context(space.store), 400),
        f"Collections: {_cut(names, 400)}." if names else "There are no collections yet.",
        "search finds words and phrases, at once. vsearch finds meanings. query does both and ranks best. "
        "get reads one document by the file of a result, file:120:40 forty lines of it; multi_get reads many by "
        "globs or lists; status says what there is.",
    ]
    if not found.has_vectors:
        lines.append("There is no vector index: vsearch fails and query goes by words. `qmd embed` makes one.")
    elif found.needs_embedding:
        lines.append(f"{found.needs_embedding} documents have no vectors yet and are found by words only.")
    return "\n".join(filter(None, lines))[: LONGEST - 1]


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
