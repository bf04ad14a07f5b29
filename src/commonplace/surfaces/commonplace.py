"""The surface of this project's own: one small set of tools over everything."""

from __future__ import annotations

from collections.abc import Mapping

from commonplace.library import Library
from commonplace.model import JSON, Filter
from commonplace.surfaces.tool import READ_ONLY, Tool, choice, integer, obj, text, texts
from commonplace.text.tokens import estimate


def search(library: Library, given: Mapping[str, JSON]) -> dict[str, JSON]:
    filter = Filter(
        kinds=tuple(given.get("kinds", ())),
        parents=tuple(given.get("collections", ())),
        tags=tuple(given.get("tags", ())),
    )
    page = library.search(given["query"], mode=given["mode"], filter=filter, limit=given["limit"])
    return {
        "results": [hit.record() for hit in page.hits],
        "notes": [
            *page.notes,
            *(f"{stage.name}: {stage.reason}" for stage in page.stages if stage.name == "vector" and stage.reason),
        ],
    }


def fetch(library: Library, given: Mapping[str, JSON]) -> dict[str, JSON]:
    item = library.get(given["uri"])
    lines = (item.body or "").split("\n")
    first = min(given["from_line"], len(lines))
    kept: list[str] = []
    used = 0
    for line in lines[first - 1 :]:
        used += estimate(line) + 1
        if kept and used > given["max_tokens"]:
            break
        kept.append(line)
    after = first + len(kept)
    return {
        "uri": item.uri,
        "title": item.title,
        "text": "\n".join(kept),
        "from_line": first,
        "next_line": after if after <= len(lines) else None,
        "lines": len(lines),
        "tags": list(item.tags),
        "metadata": dict(item.metadata),
        "version": item.version,
        "updated_at": item.updated_at.isoformat(),
    }


SEARCH = Tool(
    name="search",
    title="Search",
    description=(
        "Find passages in the user's library (notes, documents, chats, memories and more) by words and by meaning. "
        'Ask in plain words; "quotes" require a phrase and -word excludes one. Returns the best passage of each item '
        "with its address, line and a score from 0 to 1: above 0.8 is surely about it, below 0.2 only shares a word. "
        "Read more of a result with fetch."
    ),
    input=obj(
        required=("query",),
        query=text("What to look for, in plain words.", minLength=1),
        limit=integer("How many results.", default=10, least=1, most=100),
        mode=choice("auto uses words and, where there are vectors, meaning.", "auto", "lexical", "semantic", "hybrid"),
        kinds=texts("Only these kinds: document, note, media, message, character, prompt, memory, table."),
        collections=texts("Only items of these collections, threads or conversations."),
        tags=texts("Only items with any of these tags."),
    ),
    output={
        "type": "object",
        "properties": {
            "results": {
                "type": "array",
                "items": obj(
                    uri=text("Its address, for fetch."),
                    title=text("Its title."),
                    score={"type": "number", "description": "0 to 1."},
                    line={"type": "integer", "description": "The line of the match."},
                    headings=texts("The headings above the passage."),
                    snippet=text("The passage around the match."),
                ),
            },
            "notes": texts("What the search could not do, and why."),
        },
        "required": ["results", "notes"],
    },
    annotations=READ_ONLY,
    handler=search,
)  # fmt: skip

FETCH = Tool(
    name="fetch",
    title="Fetch",
    description=(
        "Read an item of the library by its address (the uri of a search result), from any line, within a token "
        "budget. next_line says where to go on; it is null at the end."
    ),
    input=obj(
        required=("uri",),
        uri=text("The item's address, such as qmd://docs/guide.md or notes://tea.", minLength=1),
        from_line=integer("The first line to read, from 1.", default=1, least=1, most=100_000_000),
        max_tokens=integer("How much to read at most.", default=4000, least=1, most=200_000),
    ),
    output={
        "type": "object",
        "properties": {
            "uri": text("The item's address."),
            "title": text("Its title."),
            "text": text("The lines read."),
            "from_line": {"type": "integer"},
            "next_line": {"type": ["integer", "null"]},
            "lines": {"type": "integer", "description": "How many lines the item has."},
            "tags": texts("Its tags."),
            "metadata": {"type": "object"},
            "version": {"type": "integer"},
            "updated_at": text("When it was last changed, ISO 8601."),
        },
        "required": ["uri", "title", "text", "from_line", "next_line", "lines"],
    },
    annotations=READ_ONLY,
    handler=fetch,
)

TOOLS = (SEARCH, FETCH)


def instructions(library: Library) -> str:
    """What is inside, for an agent that has never seen the server."""
    status = library.status()
    counts = ", ".join(f"{count} {kind}s" for kind, count in status.items.items()) or "nothing yet"
    collections = ", ".join(list(status.collections)[:30])
    lines = [
        f"Commonplace keeps what the user wants found again. It holds {counts}.",
        f"Collections: {collections}." if collections else "",
        "Use search to find passages and fetch to read on.",
    ]
    if status.coverage.pending:
        pending, total = status.coverage.pending, status.coverage.total
        lines.append(f"{pending} of {total} passages are found by their words only, not by meaning.")
    return "\n".join(line for line in lines if line)[:2000]
