"""The interchange record of the five kinds, in both directions: from a line of JSON and to one.

A record names its item by `uid`, else by `id`, else by what it says. `put_record` stores it, in one transaction;
`records` gives everything back so that storing it again changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal
from uuid import uuid4

from commonplace.errors import AlreadyExists, InvalidInput
from commonplace.ingest.prepare import prepare
from commonplace.kinds.knowledge.cards_and_prompts import (
    CHARACTER_FIELDS,
    PROMPT_FIELDS,
    character_record,
    prompt_record,
    shape_character,
    shape_prompt,
)
from commonplace.kinds.knowledge.conversations import (
    CONVERSATION_FIELDS,
    conversation_record,
    leave_character,
    messages_of,
    put_messages,
    shape_conversation,
)
from commonplace.kinds.knowledge.drawer import Records
from commonplace.kinds.knowledge.kinds import (
    KINDS,
    MOST_NUMBER,
    NUMBERED,
    Shaped,
    by_id,
    checked_id,
    checked_uid,
    clean_tags,
    mapping,
    moment_text,
    number_of,
    optional,
    read_moment,
    shape_note,
    shown_id,
    strings,
    truth,
    whole,
)
from commonplace.kinds.knowledge.media import MEDIA_FIELDS, media_record, shape_media
from commonplace.model import JSON, Draft, Item
from commonplace.store.attachments import Attachments
from commonplace.store.base import Store
from commonplace.store.chunks import Chunks
from commonplace.store.items import Items
from commonplace.store.lasting_names import LastingNames
from commonplace.store.messages import Messages

Status = Literal["created", "updated", "unchanged", "deleted"]

_BATCH = 200
_COMMON = ("kind", "id", "uid", "title", "body", "tags", "metadata", "created_at", "updated_at", "version", "deleted")
_OWN: Mapping[str, tuple[str, ...]] = {
    "note": (),
    "media": MEDIA_FIELDS,
    "conversation": CONVERSATION_FIELDS,
    "character": CHARACTER_FIELDS,
    "prompt": PROMPT_FIELDS,
}
_EXPORTED = ("character", "note", "media", "conversation", "prompt")
"""Characters before the conversations that name them."""
_NAMED = frozenset({"character", "prompt"})
"""Kinds whose title is called `name`, and whose body is made of other fields."""


@dataclass(frozen=True, slots=True)
class RecordOutcome:
    """The result of storing or deleting one record."""

    uri: str
    status: Status
    item_id: int
    version: int
    warnings: tuple[str, ...] = ()


@dataclass(slots=True)
class References:
    """Ids of a file that were taken, with the keys used instead, so that later lines of the file follow."""

    moved: dict[tuple[str, str], str] = field(default_factory=dict)

    def key(self, kind: str, key: str) -> str:
        """Return the key used here for an id of the file."""
        return self.moved.get((kind, key), key)


@dataclass(frozen=True, slots=True)
class _Identified:
    """The item that a record stands for, if there is one, and the uid and key it asks for."""

    item: Item | None
    uid: str | None = None
    key: str | None = None


def put_record(
    store: Store,
    record: Mapping[str, JSON],
    *,
    target: Item | None = None,
    references: References | None = None,
    expected_version: int | None = None,
) -> RecordOutcome:
    """Store a record, whole or not at all. `target` is the item it stands for, where the caller knows better.

    Raise InvalidInput with a sentence that names no place: the caller knows the file and the line.
    """
    kind = record.get("kind")
    if kind not in KINDS:
        raise InvalidInput(f'"kind" must be one of {", ".join(KINDS)}.', argument="kind")
    references = references if references is not None else References()
    if truth(record, "deleted"):
        return delete_record(store, record)
    record, warnings = _with_unknown_in_metadata(kind, record)
    with store.transaction():
        return _Put(store, kind, record, references, warnings).run(target, expected_version)


def create_record(store: Store, record: Mapping[str, JSON]) -> RecordOutcome:
    """Store a record as a new item, whatever is there already. Raise AlreadyExists where its id is taken."""
    kind = str(record["kind"])
    with store.transaction():
        if record.get("id") is not None:
            key = checked_id(record["id"], kind)
            if store.drawer(Items).find(kind, None, key, body=False) is not None:
                raise AlreadyExists(
                    f'There is a {kind} "{key}" already. Choose another id, or leave it out.', code="conflict"
                )
        return _Put(store, kind, record, References(), []).run(None, None, new=True)


def delete_record(store: Store, record: Mapping[str, JSON]) -> RecordOutcome:
    """Delete the item a record names. Where there is none, everything stays unchanged."""
    kind = str(record.get("kind"))
    with store.transaction():
        identified = _identify(store, kind, record, None)
        if identified.item is None:
            return RecordOutcome("", "unchanged", 0, 0)
        delete_item(store, identified.item)
        return RecordOutcome(identified.item.uri, "deleted", identified.item.id, identified.item.version + 1)


def delete_item(store: Store, item: Item, expected_version: int | None = None) -> None:
    """Delete an item with what hangs on it: a conversation's messages; a character leaves its conversations."""
    with store.transaction():
        store.drawer(Items).delete([item.id], expected_version)
        if item.kind == "conversation":
            store.drawer(Items).delete(store.drawer(Messages).of(item.key))
        elif item.kind == "character":
            for conversation, _ in store.drawer(Messages).conversations_with(item.key):
                leave_character(store, conversation)


class _Put:
    """One record on its way into the store, inside a transaction."""

    def __init__(
        self, store: Store, kind: str, record: Mapping[str, JSON], references: References, warnings: list[str]
    ) -> None:
        self._store, self._kind, self._record = store, kind, record
        self._references, self._warnings = references, warnings
        self._names = store.drawer(LastingNames)
        self._tags = clean_tags(strings(record, "tags"))
        self._version = whole(record, "version") or 0

    def run(self, target: Item | None, expected_version: int | None, *, new: bool = False) -> RecordOutcome:
        """Store the record and return what became of it."""
        shaped = self._shaped()
        identified = self._found(target, shaped, new=new)
        draft = self._completed(shaped.draft, identified)
        if self._kind == "prompt":
            check_name_free(self._store, draft.title, identified.item)
        before = identified.item.version if identified.item else 0
        item = self._store.drawer(Items).put([prepare(draft, expected_version if identified.item else 0)])[0]
        if item.version != before or identified.item is None:
            self._keep(shaped, item, new=identified.item is None)
        item = self._settled(item, identified)
        status: Status = "created" if identified.item is None else "updated" if item.version != before else "unchanged"
        return RecordOutcome(item.uri, status, item.id, item.version, (*self._warnings, *shaped.warnings))

    def _found(self, target: Item | None, shaped: Shaped, *, new: bool) -> _Identified:
        if new:
            id = self._record.get("id")
            return _Identified(None, None, None if id is None else checked_id(id, self._kind))
        return _Identified(target) if target else _identify(self._store, self._kind, self._record, shaped)

    def _shaped(self) -> Shaped:
        record = self._record
        match self._kind:
            case "note":
                return shape_note(record)
            case "media":
                return shape_media(record)
            case "character":
                return shape_character(record, self._tags)
            case "prompt":
                return shape_prompt(record, self._tags)
            case _:
                return shape_conversation(record, self._character())

    def _character(self) -> str | None:
        """Return the key of a conversation's character. A missing one is left out, with a warning."""
        character_id = self._record.get("character_id")
        if character_id is not None:
            key = self._references.key("character", checked_id(character_id, "character"))
            if self._store.drawer(Items).find("character", "", key, body=False):
                return key
            self._warnings.append(f'There is no character "{character_id}"; the conversation was stored without one.')
            return None
        name = optional(self._record, "character")
        if not name:
            return None
        namesakes = self._store.drawer(Items).get(self._names.named("character", name))
        exact = [item for item in namesakes if item.title == name] or namesakes
        if not exact:
            self._warnings.append(f'There is no character called "{name}"; the name was kept in metadata.')
        return exact[0].key if exact else None

    def _completed(self, draft: Draft, found: _Identified) -> Draft:
        record, item = self._record, found.item
        metadata = mapping(record, "metadata")
        name = optional(record, "character")
        if self._kind == "conversation" and name:
            metadata.setdefault("character", name)
        created = read_moment(record["created_at"], "created_at") if record.get("created_at") else None
        updated = read_moment(record["updated_at"], "updated_at") if record.get("updated_at") else None
        if item is None:
            created = created or updated
            updated = updated or created
        key = item.key if item else self._new_key(found.key)
        parent = item.parent if item else ""
        return replace(
            draft, key=key, parent=parent, metadata=metadata, tags=self._tags, created_at=created, updated_at=updated
        )

    def _new_key(self, wanted: str | None) -> str:
        """Return the key a record asks for if it is free, else a new one, and note that for later lines."""
        if wanted is not None and self._store.drawer(Items).find(self._kind, None, wanted, body=False) is None:
            number = number_of(wanted)
            if self._kind in NUMBERED and number is not None:
                self._names.take_number(self._kind, number)
            return wanted
        key = self._unused_key()
        if wanted is not None:
            self._references.moved[self._kind, wanted] = key
        return key

    def _unused_key(self) -> str:
        """Return a key that no item of the kind has or, for numbered kinds, ever had."""
        if self._kind not in NUMBERED:
            return str(uuid4())
        while True:  # a key that is a number may have come in as one of another spelling
            key = str(self._names.next_number(self._kind))
            if self._store.drawer(Items).find(self._kind, None, key, body=False) is None:
                return key

    def _keep(self, shaped: Shaped, item: Item, *, new: bool) -> None:
        """Store what hangs on an item that was written. For a new item there is nothing to clear."""
        if self._kind == "media" and (shaped.cues or not new):
            self._store.drawer(Records).set_cues(item.id, shaped.cues)
        elif self._kind == "character" and (shaped.avatar or not new):
            self._store.drawer(Attachments).attach(item.id, [(shaped.avatar, {})] if shaped.avatar else [])
        elif shaped.messages is not None:
            put_messages(self._store, item, shaped.messages)

    def _settled(self, item: Item, found: _Identified) -> Item:
        if found.item is not None:
            return item
        if found.uid:
            self._names.set_uid(item.id, found.uid)
        if item.version < self._version <= MOST_NUMBER:
            self._store.drawer(Records).set_version(item.id, self._version)
            return replace(item, version=self._version)
        return item


def check_name_free(store: Store, name: str, item: Item | None) -> None:
    """Raise AlreadyExists where another prompt has this name, ignoring case."""
    others = [other for other in store.drawer(LastingNames).named("prompt", name) if item is None or other != item.id]
    if others:
        raise AlreadyExists(
            f'There is a prompt called "{name}" already. Choose another name or update that one.', code="conflict"
        )


def _identify(store: Store, kind: str, record: Mapping[str, JSON], shaped: Shaped | None) -> _Identified:
    """Return the item a record stands for: by a known uid, else by id if it has no uid, else by content."""
    key = checked_id(record["id"], kind) if record.get("id") is not None else None
    if record.get("uid") is not None:
        uid = checked_uid(record["uid"])
        known_id = store.drawer(LastingNames).item_of_uid(kind, uid)
        if known_id is not None:
            return _Identified(store.drawer(Items).get([known_id], body=True)[0], uid, key)
        namesake = _by_name(store, record) if kind == "prompt" else None
        return _Identified(namesake, uid, key)
    if key is not None:
        return _Identified(store.drawer(Items).find(kind, None, key), None, key)
    if kind == "prompt":
        return _Identified(_by_name(store, record))
    return _Identified(_alike(store, kind, shaped) if shaped else None)


def _by_name(store: Store, record: Mapping[str, JSON]) -> Item | None:
    ids = store.drawer(LastingNames).named("prompt", str(record.get("name", "")))
    namesakes = store.drawer(Items).get(ids, body=True)
    return namesakes[0] if namesakes else None


def _alike(store: Store, kind: str, shaped: Shaped) -> Item | None:
    """Return an item of the kind with the same title and content, or None."""
    draft = shaped.draft
    for item in store.drawer(Items).get(store.drawer(LastingNames).named(kind, draft.title), body=True):
        same = (
            item.fields.get("digest") == draft.fields["digest"] if kind == "conversation" else item.body == draft.body
        )
        if same and item.title == draft.title:
            return item
    return None


def _with_unknown_in_metadata(kind: str, record: Mapping[str, JSON]) -> tuple[Mapping[str, JSON], list[str]]:
    """Return the record with fields unknown to its kind moved into its metadata, and warnings."""
    known_names = {*_COMMON, *_OWN[kind]}
    if kind in _NAMED:
        known_names -= {"title", "body"}
    elif kind == "conversation":
        known_names -= {"body"}
    unknown = {name: value for name, value in record.items() if name not in known_names}
    if not unknown:
        return record, []
    metadata = {**unknown, **mapping(record, "metadata")}
    names = ", ".join(f'"{name}"' for name in unknown)
    known_fields = {name: value for name, value in record.items() if name in known_names}
    warning = f"{names} {'are no fields' if len(unknown) > 1 else 'is no field'} of a {kind}; kept in metadata."
    return {**known_fields, "metadata": metadata}, [warning]


# export


def records(store: Store, kinds: Sequence[str] = KINDS) -> Iterator[dict[str, JSON]]:
    """Yield every item of these kinds as a record, characters before conversations, each kind by id."""
    for kind in _EXPORTED:
        if kind not in kinds:
            continue
        listed = sorted(store.drawer(Records).keys(kind), key=lambda pair: by_id(kind, pair[1]))
        for start in range(0, len(listed), _BATCH):
            batch = [item for item, _ in listed[start : start + _BATCH]]
            uids = store.drawer(LastingNames).uids(batch)
            for item in store.drawer(Items).get(batch, body=True):
                yield _record(store, item, uids[item.id])


def record_of(store: Store, item: Item) -> dict[str, JSON]:
    """Return one item, read with its body, as a record."""
    return _record(store, item, store.drawer(LastingNames).uids([item.id])[item.id])


def _record(store: Store, item: Item, uid: str) -> dict[str, JSON]:
    fields: dict[str, JSON] = {"kind": item.kind, "id": shown_id(item.kind, item.key), "uid": uid}
    if item.kind not in _NAMED:
        fields["title"] = item.title
    if item.kind in ("note", "media"):
        fields["body"] = item.body
    fields |= _own(store, item)
    fields |= {"tags": list(item.tags), "metadata": dict(item.metadata)}
    fields |= {"created_at": moment_text(item.created_at), "updated_at": moment_text(item.updated_at)}
    return {**fields, "version": item.version}


def _own(store: Store, item: Item) -> dict[str, JSON]:
    match item.kind:
        case "media":
            return media_record(item, store.drawer(Records).cues(item.id), store.drawer(Chunks).of(item.id))
        case "character":
            attached = store.drawer(Attachments).of(item.id)
            return character_record(item, attached[0][0] if attached else None)
        case "prompt":
            return prompt_record(item)
        case "conversation":
            key = item.fields.get("character")
            return conversation_record(item, messages_of(store, item), shown_id("character", key) if key else None)
        case _:
            return {}  # a note has no fields of its own
