"""The library's prompts and resources as MCP has them: prompts with arguments, types of media, every item as text."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from commonplace.errors import InvalidInput, NotFound
from commonplace.kinds.knowledge.cards_and_prompts import filled, variables
from commonplace.kinds.knowledge.drawer import Records
from commonplace.kinds.knowledge.item_reading import rendered
from commonplace.kinds.knowledge.kinds import KIND_OF, SOURCES, moment_text, uri_for
from commonplace.kinds.knowledge.knowledge import Knowledge
from commonplace.kinds.knowledge.media import Format, TranscriptRequest, transcript
from commonplace.model import JSON, Filter, Item, fingerprint, parse_uri
from commonplace.store.attachments import Attachments
from commonplace.store.filters import fold_value
from commonplace.store.items import Items
from commonplace.store.lasting_names import LastingNames
from commonplace.store.listing import Listing
from commonplace.tools.profile import Prompts, Resources
from commonplace.tools.tool import Call

if TYPE_CHECKING:
    from commonplace.space import Space


# prompts, with their placeholders as arguments


PAGE = 50


def prompt_page(call: Call, cursor: str | None) -> tuple[Sequence[Mapping[str, JSON]], str | None]:
    """Return the prompts by name, from after a cursor, and the next cursor. Raise InvalidInput for a wrong cursor."""
    store = call.space.store
    titles = store.drawer(LastingNames).titles("prompt", _read_cursor(cursor) if cursor else "", PAGE + 1)
    items = store.drawer(Items).get([item for item, _ in titles[:PAGE]])
    next_cursor = _written_cursor(fold_value(titles[PAGE - 1][1])) if len(titles) > PAGE else None
    return [_prompt_entry(item) for item in items], next_cursor


def prompts_state(space: Space) -> bytes:
    """Return a value that differs once the list of prompts does: a digest of every prompt and its version."""
    digest, after = b"", 0
    while items := space.store.drawer(Listing).scan(Filter(kinds=("prompt",)), after=after):
        after = items[-1].id
        digest = fingerprint(digest, *(f"{item.id}:{item.version}" for item in items))
    return digest


def get_prompt(call: Call, name: str, args: Mapping[str, str]) -> Mapping[str, JSON]:
    """Return the messages of a prompt, filled in. Raise InvalidInput for an unknown or missing argument."""
    item, _ = call.space.part(Knowledge).item("prompts", name)
    names = variables(item)
    unknown = [argument for argument in args if argument not in names]
    if unknown:
        takes = f"It takes: {', '.join(names)}." if names else "It takes none."
        raise InvalidInput(f'The prompt "{item.title}" has no argument "{unknown[0]}". {takes}', argument=unknown[0])
    missing = [argument for argument in names if argument not in args]
    if missing:
        raise InvalidInput(f'The prompt "{item.title}" needs "{missing[0]}".', argument=missing[0])
    parts = [item.fields.get("system_prompt", ""), item.fields.get("user_prompt", "")]
    texts = [filled(part, args) for part in parts if part] or [item.fields.get("details", "") or item.title]
    messages = [{"role": "user", "content": {"type": "text", "text": text}} for text in texts]
    return {"description": item.fields.get("details", ""), "messages": messages}


def _prompt_entry(item: Item) -> dict[str, JSON]:
    arguments = [{"name": name, "required": True} for name in variables(item)]
    shown: dict[str, JSON] = {"name": item.title, "description": item.fields.get("details", "")}
    return {**shown, "arguments": arguments} if arguments else shown


def _written_cursor(name: str) -> str:
    return base64.urlsafe_b64encode(name.encode()).decode()


def _read_cursor(cursor: str) -> str:
    try:
        return base64.b64decode(cursor.encode(), altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        raise InvalidInput(
            "That cursor is not of this list. List the prompts without one.", argument="cursor"
        ) from None


PROMPTS = Prompts(prompt_page, get_prompt)


# resources


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


def resource_entries(call: Call) -> Sequence[Mapping[str, JSON]]:
    return ENTRIES


def read_resource(call: Call, uri: str) -> Mapping[str, JSON]:
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
    item = call.space.store.drawer(Items).find(*parts) if parts and parts[0] in KIND_OF.values() else None
    if item is None:
        raise NotFound(f'There is no resource "{uri}". Find items with knowledge.search.')
    return item


def _avatar(call: Call, item: Item, uri: str) -> Mapping[str, JSON]:
    attached = call.space.store.drawer(Attachments).of(item.id)
    if not attached:
        raise NotFound(f'There is no resource "{uri}": the character has no image.')
    image = attached[0][0]
    return {"uri": uri, "mimeType": image.media_type, "blob": base64.b64encode(image.data).decode()}


def _types(call: Call) -> dict[str, JSON]:
    counts = {name: count for name, count in call.space.store.drawer(Records).media_types().items() if name}
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
        for item in store.drawer(Items).get(store.drawer(Records).latest("media", RECENT))
    ]


def _json(uri: str, value: JSON) -> Mapping[str, JSON]:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return {"uri": uri, "mimeType": "application/json", "text": text}


RESOURCES = Resources(read_resource, TEMPLATES, resource_entries, missing_by_era=False)
