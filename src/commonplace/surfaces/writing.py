"""Tools that write: `remember`, `revise` and `forget`. Listed only where writing is allowed."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import uuid4

from commonplace.errors import InvalidInput
from commonplace.library import Library
from commonplace.model import JSON, Draft, Item
from commonplace.surfaces.tool import (
    ADDS,
    CHANGES,
    INTEGER,
    STRING,
    STRINGS,
    Tool,
    answer,
    flag,
    obj,
    one_or_many,
    text,
    texts,
)

_FREE = {"type": "object", "description": "Any JSON object of yours; search filters on it with where."}


def remember(library: Library, given: Mapping[str, JSON]) -> dict[str, JSON]:
    body = given["text"]
    if not body.strip():
        raise InvalidInput("text has nothing in it. Give what is to be remembered.")
    draft = Draft(
        "note",
        given.get("key") or uuid4().hex,
        parent=given.get("collection", ""),
        title=given.get("title") or _first_line(body),
        body=body,
        format="markdown",
        metadata=given.get("metadata", {}),
        tags=tuple(given.get("tags", ())),
    )
    return _written(library.put(draft, expected_version=0 if "key" in given else None))


def revise(library: Library, given: Mapping[str, JSON]) -> dict[str, JSON]:
    if "metadata" in given and "metadata_patch" in given:
        raise InvalidInput("Give metadata to replace it or metadata_patch to change parts of it, not both.")
    item = library.get(given["uri"])
    if item.kind != "note":
        raise InvalidInput(f"{item.uri} is a {item.kind}; only notes can be revised. Change it where it comes from.")
    metadata = given.get("metadata", item.metadata)
    draft = Draft(
        item.kind,
        item.key,
        parent=item.parent,
        title=given.get("title", item.title),
        body=given.get("text", item.body or ""),
        format=item.format,
        fields=item.fields,
        metadata=merge(metadata, given["metadata_patch"]) if "metadata_patch" in given else metadata,
        tags=tuple(given.get("tags", item.tags)),
    )
    return _written(library.put(draft, expected_version=given.get("expected_version", item.version)))


def forget(library: Library, given: Mapping[str, JSON]) -> dict[str, JSON]:
    uris = [given["uri"]] if isinstance(given["uri"], str) else given["uri"]
    if "expected_version" in given and len(uris) > 1:
        raise InvalidInput("expected_version goes with one address, not with several.")
    items = [library.get(uri, body=False) for uri in uris]
    for item in items:
        if item.kind != "note":
            raise InvalidInput(
                f"{item.uri} is a {item.kind}; only notes can be forgotten. Remove it where it comes from."
            )
    if not given["dry_run"]:
        library.store.delete([item.id for item in items], given.get("expected_version"))
    return {
        "forgotten": [] if given["dry_run"] else [item.uri for item in items],
        "found": [item.uri for item in items],
    }


def merge(target: JSON, patch: JSON) -> JSON:
    """A merge patch (RFC 7396): null removes a member, objects merge, everything else replaces."""
    if not isinstance(patch, Mapping):
        return patch
    result = dict(target) if isinstance(target, Mapping) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merge(result.get(name), value)
    return result


def _written(item: Item) -> dict[str, JSON]:
    return {"uri": item.uri, "version": item.version, "title": item.title}


def _first_line(body: str) -> str:
    line = next(line for line in body.splitlines() if line.strip())
    return line.strip().lstrip("# ")[:120] or "Note"


_WRITTEN = answer(uri=STRING, version=INTEGER, title=STRING)
_EXPECTED = {"type": "integer", "minimum": 1, "description": "The version you read; refused if it has changed since."}

REMEMBER = Tool(
    name="remember",
    title="Remember",
    description=(
        "Keep something for later as a note: a fact, a decision, a preference, a summary. Write it so that it makes "
        "sense on its own. It is found by search at once. Returns its address and version."
    ),
    input=obj(
        required=("text",),
        text=text("What to remember, in Markdown or plain text.", minLength=1),
        title=text("A short title; its first line if left out."),
        key=text("A name of your own; refused if it is taken.", minLength=1),
        collection=text("The notebook it belongs to."),
        tags=texts("Words to find it by.", maxItems=100),
        metadata=_FREE,
    ),
    output=_WRITTEN,
    annotations=ADDS,
    handler=remember,
)

REVISE = Tool(
    name="revise",
    title="Revise",
    description="Change a note: its text, title, tags or metadata. What is left out stays as it is; lists replace.",
    input=obj(
        required=("uri",),
        uri=text("The note's address.", minLength=1),
        text=text("The new text, whole.", minLength=1),
        title=text("The new title."),
        tags=texts("The new tags, all of them.", maxItems=100),
        metadata=_FREE,
        metadata_patch={"type": "object", "description": "Members to change; null removes one."},
        expected_version=_EXPECTED,
    ),
    output=_WRITTEN,
    annotations=CHANGES,
    handler=revise,
)

FORGET = Tool(
    name="forget",
    title="Forget",
    description="Remove notes for good, with everything that hangs on them. dry_run only says what would go.",
    input=obj(
        required=("uri",),
        uri=one_or_many("One address or up to 100.", 100),
        expected_version=_EXPECTED,
        dry_run=flag("Remove nothing, only say what is there."),
    ),
    output=answer(forgotten=STRINGS, found=STRINGS),
    annotations={**CHANGES, "idempotentHint": True},
    handler=forget,
)
