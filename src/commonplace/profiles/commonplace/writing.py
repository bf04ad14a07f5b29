"""Tools that write: `remember`, `revise` and `forget`. Listed only where writing is allowed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from uuid import uuid4

from commonplace.errors import AlreadyExists, CommonplaceError, InvalidInput, NotFound, VersionConflict
from commonplace.ingest.prepare import check_json, merge
from commonplace.kinds.documents.locating import locate
from commonplace.kinds.memories.entry import (
    MOST_TAG,
    MOST_THREAD,
    UNSET,
    EntryChanged,
    New,
    NoEntry,
    Revision,
    normal_tags,
)
from commonplace.kinds.memories.memories import Memories
from commonplace.model import JSON, Draft, Item
from commonplace.space import Space
from commonplace.store.items import Items
from commonplace.store.listing import Listing
from commonplace.text.structure import front_matter_title
from commonplace.tools.arguments import moment
from commonplace.tools.schema import INTEGER, STRING, STRINGS, answer, choice, flag, obj, one_or_many, text, texts
from commonplace.tools.tool import ADDS, CHANGES, Call, Tool

THREAD = "main"
"""The thread of a memory that names none."""
_OURS = ("note", "memory")
"""The kinds of items that these tools write."""
_KEPT = ("text", "title", "key", "collection", "tags", "metadata", "metadata_patch")
"""Arguments that are stored as they are."""
_CHANGES = ("text", "title", "tags", "metadata", "metadata_patch", "expires_at")
"""The arguments of a revision, of which it needs one."""


def remember(call: Call, given: Mapping[str, JSON]) -> dict[str, JSON]:
    _check(given)
    return _remember_memory(call, given) if given["kind"] == "memory" else _remember_note(call, given)


def _check(given: Mapping[str, JSON]) -> None:
    if "text" in given and not given["text"].strip():
        raise InvalidInput("text is empty. Give what is to be remembered.", argument="text")
    for name in _KEPT:
        try:
            check_json(given.get(name), name)
        except InvalidInput as error:
            raise InvalidInput(str(error), argument=name) from None


def _remember_note(call: Call, given: Mapping[str, JSON]) -> dict[str, JSON]:
    _refuse(given, ("expires_at", "supersedes"), "goes with kind memory; a note stays until it is forgotten")
    draft = Draft(
        "note",
        given.get("key") or uuid4().hex,
        parent=given.get("collection", ""),
        title=given.get("title") or _first_line(given["text"]),
        body=given["text"],
        format="markdown",
        metadata=given.get("metadata", {}),
        tags=tuple(given.get("tags", ())),
    )
    with call.space.store.transaction():
        if "key" in given:
            _check_free(call.space, draft)
        return _written(call.space.put(draft, expected_version=0 if "key" in given else None))


def _check_free(space: Space, draft: Draft) -> None:
    """Raise AlreadyExists if any notebook has a note with this key: an address does not name the notebook."""
    if space.store.drawer(Listing).ids_of([(draft.kind, None, draft.key)]):
        raise AlreadyExists(
            f'There is a note "{draft.key}" already. Choose another key, or revise that one.', code="conflict"
        )


def _remember_memory(call: Call, given: Mapping[str, JSON]) -> dict[str, JSON]:
    _refuse(given, ("title", "key"), "goes with kind note; a memory is known by its number")
    new = New(
        thread=_thread(given),
        source="agent",
        text=given["text"],
        metadata=given.get("metadata"),
        tags=_tags(given),
        expires_at=_expiry(given),
        supersedes=tuple(_number(uri) for uri in _several(given.get("supersedes", []))),
    )
    with _errors_by_address():
        (entry,) = call.space.part(Memories).store([new])
        if isinstance(entry, CommonplaceError):
            raise entry
    return _written(call.space.get(f"memory://{entry.number}", body=False))


@contextmanager
def _errors_by_address() -> Iterator[None]:
    """Turn errors about entry numbers into errors about addresses, as these tools name entries."""
    try:
        yield
    except NoEntry as error:
        raise NotFound(f"There is no memory://{error.number}. Find it with a search.") from None
    except EntryChanged as error:
        raise VersionConflict(error.uri, error.expected, error.actual) from None


def _thread(given: Mapping[str, JSON]) -> str:
    """Return a thread that the memory profile can name too: stripped, and no longer than it allows."""
    thread: str = given.get("collection", "").strip() or THREAD
    if len(thread) > MOST_THREAD:
        sentence = f"collection must have at most {MOST_THREAD} characters for a memory, not {len(thread)}."
        raise InvalidInput(sentence, argument="collection")
    return thread


def _tags(given: Mapping[str, JSON]) -> tuple[str, ...] | None:
    if "tags" not in given:
        return None
    tags = normal_tags(given["tags"])
    if longest := max((len(tag) for tag in tags if len(tag) > MOST_TAG), default=0):
        sentence = f"tags of a memory must have at most {MOST_TAG} characters each, not {longest}."
        raise InvalidInput(sentence, argument="tags")
    return tags


def revise(call: Call, given: Mapping[str, JSON]) -> dict[str, JSON]:
    if "metadata" in given and "metadata_patch" in given:
        raise InvalidInput("Give metadata to replace it or metadata_patch to change parts of it, not both.")
    if given.keys().isdisjoint(_CHANGES):
        raise InvalidInput(f"There is nothing to change. Give one at least of {', '.join(_CHANGES)}.")
    _check(given)
    item = _item(call.space, given["uri"], "revise")
    if item.kind == "memory":
        return _revise_memory(call, item, given)
    _owned(item, "revised")
    _refuse(given, ("expires_at",), "goes with memories; a note stays until it is forgotten")
    metadata = given.get("metadata", item.metadata)
    draft = Draft(
        item.kind,
        item.key,
        parent=item.parent,
        title=_title(item, given),
        body=given.get("text", item.body or ""),
        format=item.format,
        fields=item.fields,
        metadata=merge(metadata, given["metadata_patch"]) if "metadata_patch" in given else metadata,
        tags=tuple(given.get("tags", item.tags)),
    )
    return _written(call.space.put(draft, expected_version=given.get("expected_version", item.version)))


def _title(item: Item, given: Mapping[str, JSON]) -> str:
    """Return the title of a revised note: one that was its first line follows the text, any other stays."""
    follows = "text" in given and item.title == _first_line(item.body or "")
    title: str = given.get("title", _first_line(given["text"]) if follows else item.title)
    return title


def _revise_memory(call: Call, item: Item, given: Mapping[str, JSON]) -> dict[str, JSON]:
    _refuse(given, ("title",), "goes with notes; a memory has none")
    revision = Revision(
        number=_number(item.uri),
        text=given.get("text"),
        metadata=given.get("metadata"),
        patch=given.get("metadata_patch"),
        tags=_tags(given),
        expires_at=_expiry(given) if "expires_at" in given else UNSET,
        expected_version=given.get("expected_version", item.version),
    )
    with _errors_by_address():
        call.space.part(Memories).revise([revision])
    return _written(call.space.get(item.uri, body=False))


def forget(call: Call, given: Mapping[str, JSON]) -> dict[str, JSON]:
    uris = dict.fromkeys(_several(given["uri"]))
    if "expected_version" in given and len(uris) > 1:
        raise InvalidInput("expected_version goes with one address, not with several.")
    named = (_item(call.space, uri, "forget", body=False) for uri in uris)
    items = {item.id: item for item in named}  # one address may be spelled in many ways
    for item in items.values():
        _owned(item, "forgotten")
    if not given["dry_run"]:
        call.space.store.drawer(Items).delete(list(items), given.get("expected_version"))
    found = [item.uri for item in items.values()]
    return {"forgotten": [] if given["dry_run"] else found, "found": found}


def _item(space: Space, uri: str, tool: str, *, body: bool = True) -> Item:
    """Return the item at an address. Raise InvalidInput for a part of one: naming a part does not mean all of it."""
    try:
        return space.get(uri, body=body)
    except NotFound:
        item = locate(space, uri, body=body).item
    if item.kind not in _OURS or item.uri == uri:
        return item
    address = item.uri
    raise InvalidInput(f"{uri} is a part of {address}, and {tool} takes whole items. Give {address}.", argument="uri")


def _several(uris: JSON) -> list[str]:
    return [uris] if isinstance(uris, str) else list(uris)


def _owned(item: Item, what: str) -> None:
    if item.kind not in _OURS:
        raise InvalidInput(
            f"{item.uri} is a {item.kind}, which is changed where it comes from. Only notes and memories can be {what}."
        )


def _refuse(given: Mapping[str, JSON], names: tuple[str, ...], reason: str) -> None:
    for name in names:
        if name in given:
            raise InvalidInput(f"{name} {reason}.", argument=name)


def _expiry(given: Mapping[str, JSON]) -> datetime | None:
    """Return when a memory expires; None for never, which an empty text in a revision means. Raise InvalidInput."""
    if not given.get("expires_at"):
        return None
    expires = moment("expires_at", given["expires_at"], end=True)
    if expires <= datetime.now(UTC):
        raise InvalidInput("expires_at must be in the future.", argument="expires_at")
    return expires


def _number(uri: str) -> int:
    digits = uri.removeprefix("memory://")
    if not digits.isascii() or not digits.isdigit() or len(digits) > 18:
        raise InvalidInput(f"{uri} is no memory. Memories have addresses such as memory://12.")
    return int(digits)


def _written(item: Item) -> dict[str, JSON]:
    return {"uri": item.uri, "version": item.version, "title": item.title}


def _first_line(body: str) -> str:
    """Return a title from a text: that of its front matter, or its first line with words, up to 120 characters."""
    lines = (line.strip().lstrip("# ") for line in body.splitlines() if line.strip().strip("-+=*_# "))
    return (front_matter_title(body) or next(lines, "Note"))[:120]


_WRITTEN = answer(uri=STRING, version=INTEGER, title=STRING)
_FREE = {"type": "object", "description": "JSON object to filter on."}
_EXPIRES = text("Until when, as 2026-05-01.")
_EXPECTED = {"type": "integer", "minimum": 1, "description": "The version you read; refused if newer."}

REMEMBER = Tool(
    name="remember",
    title="Remember",
    description=(
        "Save what should be known next time: a note, or a memory that may expire or replace older ones. Write text "
        "that makes sense on its own. Search finds it at once. Returns its uri and version."
    ),
    input=obj(
        required=("text",),
        text=text("Markdown or plain text.", minLength=1),
        kind=choice("What to save it as.", "note", "memory"),
        title=text("A note's title; default: its first line."),
        key=text("A note's name; must be free.", minLength=1),
        collection=text("The note's notebook or memory's thread."),
        expires_at=_EXPIRES,
        supersedes=one_or_many("Memories it replaces.", 100),
        tags=texts("Words to filter by.", maxItems=100),
        metadata=_FREE,
    ),
    output=_WRITTEN,
    annotations=ADDS,
    handler=remember,
)

REVISE = Tool(
    name="revise",
    title="Revise",
    description=(
        "Correct a note or a memory. What you leave out stays; a title from the text follows it; lists are "
        "replaced whole."
    ),
    input=obj(
        required=("uri",),
        uri=text("Its address.", minLength=1),
        text=text("The whole new text.", minLength=1),
        title=text("The new title."),
        tags=texts("All its tags from now on.", maxItems=100),
        metadata=_FREE,
        metadata_patch={"type": "object", "description": "Members to change; null removes."},
        expires_at=_EXPIRES,
        expected_version=_EXPECTED,
    ),
    output=_WRITTEN,
    annotations=CHANGES,
    handler=revise,
)

FORGET = Tool(
    name="forget",
    title="Forget",
    description="Delete notes and memories for good. Ask the user first unless they asked for it.",
    input=obj(
        required=("uri",),
        uri=one_or_many("One address, or up to 100.", 100),
        expected_version=_EXPECTED,
        dry_run=flag("Only list what would go."),
    ),
    output=answer(forgotten=STRINGS, found=STRINGS),
    annotations={**CHANGES, "idempotentHint": True},
    handler=forget,
)
