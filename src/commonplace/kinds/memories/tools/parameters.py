"""Parameters of the tools that write: the schema of each, and the reader of its values, images included."""

from __future__ import annotations

import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass

from commonplace.kinds.memories.entry import MOST_THREAD, Image
from commonplace.kinds.memories.tools.argument_readers import (
    MIB,
    MOST_BATCH,
    MOST_IDS,
    MOST_TAGS,
    Parameter,
    Wrong,
    boolean,
    decoded,
    filled,
    listed,
    mapping,
    number,
    numbers,
    one_of,
    short,
    storable,
    string,
    tags,
    thread,
    whole,
)
from commonplace.model import JSON
from commonplace.settings import Settings
from commonplace.tools.schema import STRING, Schema, flag, text, texts

# images


MOST_IMAGES = 100
DEFAULT_TYPE = "image/png"
_FIELDS = ("data", "mime_type", "metadata")
_TYPE = re.compile(r"image/[a-z0-9][a-z0-9.+_-]*|application/octet-stream", re.IGNORECASE)
_URL = re.compile(r"data:(?P<type>[^;,]*)(?P<parameters>[^,]*),")
_BREAKS = str.maketrans("", "", "\r\n")


@dataclass(frozen=True, slots=True)
class ImageLimits:
    """Limits of images, in MiB, decoded: of one, and of all of an entry."""

    image_mb: int
    images_mb: int

    @classmethod
    def of(cls, settings: Settings) -> ImageLimits:
        return cls(settings.memory_max_image_mb, settings.memory_max_images_mb)


def given_images(value: JSON, name: str) -> list[JSON]:
    """Return the list of images, undecoded: their limits are the library's. Raise Wrong where there are too many."""
    value = decoded(value, list, name)
    if not isinstance(value, list):
        raise Wrong(f"{name} must be a list")
    if len(value) > MOST_IMAGES:
        raise Wrong(f"At most {MOST_IMAGES} images per entry", alone=True)
    return value


def read_images(records: list[JSON], limits: ImageLimits) -> tuple[Image, ...]:
    """Return every image, decoded. Raise Wrong for the first that cannot be stored, with its index."""
    images, total = [], 0
    for place, one in enumerate(records):
        image = _image(one, f"Image {place}", limits)
        total += len(image.data)
        if total > limits.images_mb * MIB:
            raise Wrong(f"Total image size exceeds {limits.images_mb}MB limit", alone=True)
        images.append(image)
    return tuple(images)


def _image(record: JSON, name: str, limits: ImageLimits) -> Image:
    if not isinstance(record, Mapping):
        raise Wrong(f"{name} must be an object with data, mime_type and metadata", alone=True)
    for field in record:
        if field not in _FIELDS:
            raise Wrong(f'{name} has unknown field "{short(field)}"', alone=True)
    data, kind = record.get("data"), record.get("mime_type")
    if data is None:
        raise Wrong(f'{name} is missing required "data" field', alone=True)
    if not isinstance(data, str):
        raise Wrong(f"{name} has invalid base64 encoding", alone=True)
    if not data.strip():
        raise Wrong(f'{name} has empty "data" field', alone=True)
    url = _URL.match(data)
    if url and kind is None and url["type"]:
        kind = url["type"].lower()
    kind = DEFAULT_TYPE if kind is None else kind
    if not isinstance(kind, str) or not _TYPE.fullmatch(kind):
        raise Wrong(f'{name} has unsupported mime_type "{short(str(kind))}"', alone=True)
    if url and not url["parameters"].lower().endswith(";base64"):
        raise Wrong(f"{name} has invalid base64 encoding", alone=True)
    return Image(_decoded(data[url.end() :] if url else data, name, limits), kind, _metadata(record, name))


def _decoded(text: str, name: str, limits: ImageLimits) -> bytes:
    encoded = text.translate(_BREAKS)
    if not encoded:
        raise Wrong(f'{name} has empty "data" field', alone=True)
    most = limits.image_mb * MIB
    too_large = Wrong(f"{name} exceeds {limits.image_mb}MB limit", alone=True)
    invalid = Wrong(f"{name} has invalid base64 encoding", alone=True)
    if len(encoded) > 4 * -(-most // 3):
        raise too_large
    try:
        data = binascii.a2b_base64(encoded, strict_mode=True)
    except ValueError:  # also what is not ASCII
        raise invalid from None
    if len(data) > most:
        raise too_large
    if len(encoded) != 4 * -(-len(data) // 3):  # the decoder lets padding pass where none is due
        raise invalid
    return data


def _metadata(record: Mapping[str, JSON], name: str) -> str | dict[str, JSON] | None:
    metadata = record.get("metadata")
    if metadata is not None and not isinstance(metadata, str | dict):
        raise Wrong(f"{name} has metadata that is neither a string nor an object", alone=True)
    storable(metadata, f"The metadata of {name}")
    return string(metadata, name) if isinstance(metadata, str) else metadata


# schemas and readers


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
