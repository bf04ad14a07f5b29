"""Resources: the types of media, the latest media, and every item as text."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence

from commonplace.errors import NotFound
from commonplace.kinds.knowledge.kinds import KIND_OF, SOURCES, moment_text, uri_for
from commonplace.kinds.knowledge.reading import rendered
from commonplace.kinds.knowledge.transcript import Format, TranscriptRequest, transcript
from commonplace.model import JSON, Item, parse_uri
from commonplace.tools.profile import Resources
from commonplace.tools.tool import Call

SUGGESTED = (
    "video", "audio", "podcast", "pdf", "epub", "docx", "pptx", "html", "markdown", "txt", "image", "article",
)  # fmt: skip
RECENT = 20
_SUBTITLES: Mapping[str, tuple[Format, str]] = {
    "transcript.srt": ("srt", "application/x-subrip"),
    "transcript.vtt": ("vtt", "text/vtt"),
}
_EVERYTHING = 1 << 62
_MARKDOWN = "text/markdown"

ENTRIES = (
    {
        "uri": "media://types",
        "name": "media types",
        "description": "Which types of media there are, and how many of each.",
        "mimeType": "application/json",
    },
    {
        "uri": "media://recent",
        "name": "recent media",
        "description": f"The {RECENT} media that were changed last.",
        "mimeType": "application/json",
    },
)
TEMPLATES = (
    *(
        {
            "uriTemplate": f"{source}://{{id}}",
            "name": KIND_OF[source],
            "description": f"A {KIND_OF[source]} as text.",
            "mimeType": _MARKDOWN,
        }
        for source in SOURCES
    ),
    *(
        {
            "uriTemplate": f"media://{{id}}/{name}",
            "name": name,
            "description": f"What is said in a media item, as {format.upper()}.",
            "mimeType": mime_type,
        }
        for name, (format, mime_type) in _SUBTITLES.items()
    ),
    {"uriTemplate": "characters://{id}/avatar", "name": "avatar", "description": "A character's image."},
)


def entries(call: Call) -> Sequence[Mapping[str, JSON]]:
    return ENTRIES


def read(call: Call, uri: str) -> Mapping[str, JSON]:
    """Return the resource at an address. Raise NotFound."""
    if uri == "media://types":
        return _json(uri, _types(call))
    if uri == "media://recent":
        return _json(uri, _recent(call))
    base, _, last = uri.rpartition("/")
    if last in _SUBTITLES and base.startswith("media://"):
        format, mime_type = _SUBTITLES[last]
        request = TranscriptRequest(format, most_chars=_EVERYTHING)
        result = transcript(call.space.store, _item(call, base, uri), request)
        return {"uri": uri, "mimeType": mime_type, "text": result.content}
    if last == "avatar" and base.startswith("characters://"):
        return _avatar(call, _item(call, base, uri), uri)
    return {"uri": uri, "mimeType": _MARKDOWN, "text": rendered(call.space.store, _item(call, uri, uri))}


def _item(call: Call, address: str, uri: str) -> Item:
    parts = parse_uri(address)
    item = call.space.store.item(*parts) if parts and parts[0] in KIND_OF.values() else None
    if item is None:
        raise NotFound(f'There is no resource "{uri}". Find items with knowledge.search.')
    return item


def _avatar(call: Call, item: Item, uri: str) -> Mapping[str, JSON]:
    attached = call.space.store.attachments_of(item.id)
    if not attached:
        raise NotFound(f'There is no resource "{uri}": the character has no image.')
    image = attached[0][0]
    return {"uri": uri, "mimeType": image.media_type, "blob": base64.b64encode(image.data).decode()}


def _types(call: Call) -> dict[str, JSON]:
    counts = {name: count for name, count in call.space.store.media_types().items() if name}
    return {"media_types": sorted(counts), "counts": counts, "suggested": list(SUGGESTED)}


def _recent(call: Call) -> list[dict[str, JSON]]:
    store = call.space.store
    return [
        {
            "uri": uri_for("media", item.key),
            "title": item.title,
            "media_type": item.fields.get("media_type"),
            "last_modified": moment_text(item.updated_at),
        }
        for item in store.items(store.latest("media", RECENT))
    ]


def _json(uri: str, value: JSON) -> Mapping[str, JSON]:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return {"uri": uri, "mimeType": "application/json", "text": text}


RESOURCES = Resources(read, TEMPLATES, entries, missing_by_era=False)
