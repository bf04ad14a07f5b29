"""Read images from arguments: base64 or a data URL, of a type that is stored, within their limits."""

from __future__ import annotations

import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass

from commonplace.kinds.memories import Image
from commonplace.kinds.memories.tools.arguments import MIB, Wrong, decoded, short, storable, string
from commonplace.model import JSON
from commonplace.settings import Settings

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
