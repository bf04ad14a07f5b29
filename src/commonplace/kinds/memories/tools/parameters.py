"""Parameters of the tools that write: the schema of each, and the reader of its values."""

from __future__ import annotations

from commonplace.kinds.memories.tools.arguments import (
    MOST_BATCH,
    MOST_IDS,
    MOST_TAGS,
    MOST_THREAD,
    Parameter,
    boolean,
    decoded,
    filled,
    listed,
    mapping,
    number,
    numbers,
    one_of,
    string,
    tags,
    thread,
    whole,
)
from commonplace.kinds.memories.tools.images import MOST_IMAGES, given_images
from commonplace.model import JSON
from commonplace.tools.schema import STRING, Schema, flag, text, texts

MOST_SUPERSEDED = 100
ID: Schema = {"anyOf": [{"type": "integer", "minimum": 1}, STRING]}


def _supersedes(value: JSON, name: str) -> list[int | str]:
    """Return the numbers of superseded entries, given as one or as a list."""
    value = decoded(value, list, name)
    superseded: list[int | str] = numbers(MOST_SUPERSEDED, least=0)(value if isinstance(value, list) else [value], name)
    return superseded


def _list(description: str, member: Schema, most: int, least: int = 1) -> Schema:
    return {"type": "array", "description": description, "items": member, "minItems": least, "maxItems": most}


THREAD = Parameter(text("The conversation or task it belongs to.", minLength=1, maxLength=MOST_THREAD), thread)
SOURCE = Parameter(
    {"type": "string", "enum": ["user", "agent"], "description": "Who said it."}, one_of("user", "agent")
)
TAGS = Parameter(texts("Words to find it by.", maxItems=MOST_TAGS), tags)
METADATA = Parameter({"type": "object", "description": "Any JSON object; searches filter on it."}, mapping)
IMAGES = Parameter(
    _list(
        "Images as base64.",
        {
            "type": "object",
            "properties": {"data": STRING, "mime_type": STRING, "metadata": {"type": ["string", "object"]}},
            "required": ["data"],
            "additionalProperties": False,
        },
        MOST_IMAGES,
        least=0,
    ),
    given_images,
)
_EXPIRES = Parameter(text("When it stops being there: an ISO 8601 date or time."), string)
_TTL = "Or in how many seconds."

STORED: dict[str, Parameter] = {
    "thread_id": THREAD,
    "source": SOURCE,
    "text": Parameter(text("What to keep.", minLength=1), filled()),
    "images": IMAGES,
    "metadata": METADATA,
    "tags": TAGS,
    "expires_at": _EXPIRES,
    "ttl_seconds": Parameter({"type": "integer", "minimum": 1, "description": _TTL}, whole(1)),
    "supersedes": Parameter(
        {
            "description": "Older entries that this one replaces.",
            "anyOf": [*ID["anyOf"], {"type": "array", "items": ID}],
        },
        _supersedes,
    ),
}
REVISED: dict[str, Parameter] = {
    "context_id": Parameter({**ID, "description": "Which entry."}, number),
    "text": Parameter(text("The new text, whole.", minLength=1), filled("empty or contain only whitespace")),
    "metadata": Parameter({"type": "object", "description": "The new metadata, all of it."}, mapping),
    "metadata_patch": Parameter(
        {"type": "object", "description": "A merge patch (RFC 7396): members to change, null removes one."}, mapping
    ),
    "tags": Parameter({**TAGS.schema, "description": "The new tags, all of them."}, tags),
    "images": Parameter({**IMAGES.schema, "description": "The new images, all of them."}, given_images),
    "expires_at": _EXPIRES,
    "ttl_seconds": Parameter({"type": "integer", "minimum": 0, "description": f"{_TTL} 0: never."}, whole(0)),
    "expected_version": Parameter(
        {"type": "integer", "minimum": 1, "description": "The version you read; refused if it has changed."}, whole(1)
    ),
}
IDS = Parameter(_list("Which entries.", ID, MOST_IDS), numbers())
ATOMIC = Parameter(flag("All or nothing.", default=True), boolean)
DRY_RUN = Parameter(flag("Delete nothing, only say what would go."), boolean)
ENTRIES = Parameter(
    _list("Each with the fields of store_context.", {"type": "object"}, MOST_BATCH),
    listed(lambda item, name: item, most=MOST_BATCH, least=1),
)
UPDATES = Parameter(
    _list("Each with the fields of update_context.", {"type": "object"}, MOST_BATCH),
    listed(lambda item, name: item, most=MOST_BATCH, least=1),
)
DELETED: dict[str, Parameter] = {"context_ids": IDS, "thread_id": THREAD, "dry_run": DRY_RUN}
DELETED_BATCH: dict[str, Parameter] = {
    "context_ids": IDS,
    "thread_ids": Parameter(
        _list("Everything in these threads.", STRING, MOST_IDS), listed(thread, most=MOST_IDS, least=1)
    ),
    "source": SOURCE,
    "older_than_days": Parameter(
        {"type": "integer", "minimum": 1, "description": "Only what was stored longer ago."}, whole(1)
    ),
    "dry_run": DRY_RUN,
}
