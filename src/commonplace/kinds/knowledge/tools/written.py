"""The write tools, kind by kind. Listed only where writing is allowed."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from commonplace.errors import NotFound
from commonplace.kinds.knowledge import chats as talks
from commonplace.kinds.knowledge.kinds import checked_id, moment_text, read_moment
from commonplace.kinds.knowledge.messages import append_messages, messages_of
from commonplace.kinds.knowledge.tools.options import ID
from commonplace.kinds.knowledge.tools.results import result
from commonplace.kinds.knowledge.tools.writing import (
    CREATED_AT,
    METADATA,
    TAGS,
    TITLE,
    create,
    create_tool,
    delete,
    delete_tool,
    found,
    once,
    update,
    update_tool,
)
from commonplace.model import JSON
from commonplace.tools.schema import INTEGER, STRING, Schema, flag, many, obj, text, texts
from commonplace.tools.tool import Call, Tool

Record = dict[str, JSON]
Given = Mapping[str, JSON]
LONGEST = 500_000


def _copied(record: Record, given: Given, *names: str, **renamed: str) -> Record:
    """The record with these arguments in it, under their own names or others."""
    made = {**record, **{name: given[name] for name in names if name in given}}
    return {**made, **{field: given[name] for name, field in renamed.items() if name in given}}


def _times(record: Record, given: Given) -> Record:
    """A time of making that is given does not make it changed then."""
    if "created_at" not in given:
        return record
    created = read_moment(given["created_at"], "created_at")
    made = {**record, "created_at": moment_text(created)}
    return made if "uid" in record else {**made, "updated_at": moment_text(max(created, datetime.now(UTC)))}


# notes


def _note(record: Record, given: Given) -> Record:
    made = _copied(record, given, "title", "tags", "metadata", content="body")
    if "uid" not in record and "note_id" in given:
        made["id"] = checked_id(given["note_id"], "note", "note_id")
    return _times(made, given)


def create_note(call: Call, given: Given) -> Record:
    return create(call, "notes.create", "notes", given, _note)


def update_note(call: Call, given: Given) -> Record:
    return update(call, "notes", given["note_id"], given, _note)


def delete_note(call: Call, given: Given) -> Record:
    return delete(call, "notes", given["note_id"], given)


_NOTE_ID = ("note_id", text("The note's id or address.", minLength=1))
_CONTENT = text("Its text, in Markdown.", maxLength=LONGEST)
_NOTE: dict[str, Schema] = {"title": TITLE, "content": _CONTENT, "tags": TAGS, "metadata": METADATA}

# media


def _medium(record: Record, given: Given) -> Record:
    made = _copied(record, given, "title", "media_type", "url", "author", "language", "tags", "metadata")
    if "content" in given or "cues" in given:
        for stale in ("body", "cues", "chunks"):
            made.pop(stale, None)
        if "cues" in given:
            made.pop("duration_ms", None)
        made = _copied(made, given, "cues", content="body")
    return _times(made, given)


def create_medium(call: Call, given: Given) -> Record:
    return create(call, "media.create", "media", given, _medium)


def update_medium(call: Call, given: Given) -> Record:
    return update(call, "media", given["media_id"], given, _medium)


def delete_medium(call: Call, given: Given) -> Record:
    return delete(call, "media", given["media_id"], given)


_MEDIA_ID = ("media_id", {**ID, "description": "The media's id or address."})
_MS = {"type": "integer", "minimum": 0}
_CUE = obj(required=("start_ms", "end_ms", "text"), start_ms=_MS, end_ms=_MS, text=STRING, speaker=STRING)
_MEDIUM: dict[str, Schema] = {
    "title": TITLE,
    "media_type": text("What it is: video, audio, podcast, pdf, epub, article…", minLength=1, maxLength=100),
    "content": text("Its text, or what is said in it."),
    "cues": {**many(_CUE), "description": "What is said when; with content, their texts are found in it in order."},
    "url": text("Where it is."),
    "author": text("Who made it."),
    "language": text("Its language, such as en."),
    "tags": TAGS,
    "metadata": METADATA,
    "created_at": text("When it was recorded or published: 2024-05-01 or 2024-05-01T09:30:00Z."),
}

# chats


def _talk(record: Record, given: Given) -> Record:
    return _copied(record, given, "title", "character_id", "tags", "metadata", "messages")


def create_talk(call: Call, given: Given) -> Record:
    return create(call, "chats.create", "chats", _with_character(call, given), _talk)


def update_talk(call: Call, given: Given) -> Record:
    return update(call, "chats", given["conversation_id"], _with_character(call, given), _talk)


def append_talk(call: Call, given: Given) -> Record:
    def work() -> Record:
        store = call.library.store
        item = found(call, "chats", given["conversation_id"], given.get("expected_version"))
        said = messages_of(store, item, limit=1)
        added = talks.messages_of(given["messages"], said[0].sender if said else "")
        return {"meta": result(append_messages(store, item, added)), "changed": True}

    return once(call, "chats.append", given, work)


def delete_talk(call: Call, given: Given) -> Record:
    return delete(call, "chats", given["conversation_id"], given)


def _with_character(call: Call, given: Given) -> Given:
    """With the key of the character, who has to be there."""
    if "character_id" not in given:
        return given
    key = call.library.knowledge.character(given["character_id"])
    if key is None:
        raise NotFound(f'There is no character "{given["character_id"]}". Find one with characters.search.')
    return {**given, "character_id": key}


_TALK_ID = ("conversation_id", text("The conversation's id or address.", minLength=1))
_MESSAGE = obj(
    required=("sender", "content"),
    sender=text("Who says it.", minLength=1),
    content=STRING,
    role=text("user, assistant, system or tool; told from the sender if left out."),
    timestamp=text("When it was said."),
    id=text("An id of yours.", minLength=1),
)
_MESSAGES = {**many(_MESSAGE), "maxItems": 10_000, "description": "What was said, in order."}
_ABOUT: dict[str, Schema] = {
    "title": TITLE,
    "character_id": {**ID, "description": "The character it is with."},
    "tags": TAGS,
    "metadata": METADATA,
}

# characters

_CARD_TEXTS = (
    "nickname", "description", "personality", "scenario", "first_message", "message_example", "system_prompt",
    "post_history_instructions", "creator_notes", "creator", "character_version", "spec",
)  # fmt: skip


def _card(record: Record, given: Given) -> Record:
    lists = ("alternate_greetings", "group_only_greetings", "tags", "lorebook", "extensions")
    return _copied(record, given, "name", *_CARD_TEXTS, *lists)


def create_card(call: Call, given: Given) -> Record:
    return create(call, "characters.create", "characters", given, _card)


def update_card(call: Call, given: Given) -> Record:
    return update(call, "characters", given["character_id"], given, _card)


def delete_card(call: Call, given: Given) -> Record:
    return delete(call, "characters", given["character_id"], given)


_CARD_ID = ("character_id", {**ID, "description": "The character's id or address."})
_ENTRY = obj(
    index=INTEGER,
    name=STRING,
    keys={"type": "array", "items": STRING},
    secondary_keys={"type": "array", "items": STRING},
    content=STRING,
    enabled=flag("Whether it is in use.", default=True),
    insertion_order={"type": "number"},
)
_CARD: dict[str, Schema] = {
    "name": text("What the character is called.", minLength=1, maxLength=512),
    **dict.fromkeys(_CARD_TEXTS, STRING),
    "alternate_greetings": texts("Other first messages."),
    "group_only_greetings": texts("First messages in groups."),
    "tags": TAGS,
    "lorebook": obj(name=STRING, entries=many(_ENTRY)),
    "extensions": {"type": "object", "description": "Whatever else the card holds."},
}

# prompts


def _prompt(record: Record, given: Given) -> Record:
    return _copied(record, given, "name", "details", "system_prompt", "user_prompt", "author", keywords="tags")


def create_prompt(call: Call, given: Given) -> Record:
    return create(call, "prompts.create", "prompts", given, _prompt)


def update_prompt(call: Call, given: Given) -> Record:
    return update(call, "prompts", given["prompt_id_or_name"], given, _prompt)


def delete_prompt(call: Call, given: Given) -> Record:
    return delete(call, "prompts", given["prompt_id_or_name"], given)


_PROMPT_ID = ("prompt_id_or_name", {**ID, "description": "The prompt's name, id or address."})
_PROMPT: dict[str, Schema] = {
    "name": text("What it is called; no two prompts share a name.", minLength=1, maxLength=512),
    "details": text("What it is for."),
    "system_prompt": text("The system part; {{variables}} are filled in when it is used."),
    "user_prompt": text("The user part."),
    "author": STRING,
    "keywords": TAGS,
}

_CREATES = "It is found by search at once. Answers with its id, address and version."
_UPDATES = "What is left out stays as it is; lists replace. Pass expected_version to change only what you have read."

WRITING: tuple[Tool, ...] = (
    create_tool(
        "notes.create",
        "Create a note",
        f"Keep something as a note of the user's. {_CREATES}",
        create_note,
        ("title", "content"),
        **_NOTE,
        note_id=text("An id of yours: A-Z, a-z, 0-9, dot, dash, underscore and tilde.", minLength=1, maxLength=128),
        created_at=CREATED_AT,
    ),
    update_tool(
        "notes.update",
        "Update a note",
        f"Change a note. {_UPDATES}",
        update_note,
        _NOTE_ID,
        **_NOTE,
        created_at=CREATED_AT,
    ),
    create_tool(
        "media.create",
        "Add media",
        f"Add a media item by its text or its cues. {_CREATES}",
        create_medium,
        ("title", "media_type"),
        **_MEDIUM,
    ),
    update_tool(
        "media.update", "Update media", f"Change a media item. {_UPDATES}", update_medium, _MEDIA_ID, **_MEDIUM
    ),
    create_tool(
        "chats.create",
        "Keep a conversation",
        f"Keep a conversation with its messages. Add to it with chats.append. {_CREATES}",
        create_talk,
        ("title",),
        **_ABOUT,
        messages=_MESSAGES,
    ),
    create_tool(
        "chats.append",
        "Add messages",
        "Add messages at the end of a conversation.",
        append_talk,
        ("conversation_id", "messages"),
        conversation_id=_TALK_ID[1],
        messages={**_MESSAGES, "minItems": 1},
        expected_version={"type": "integer", "minimum": 1, "description": "The version you read."},
    ),
    update_tool(
        "chats.update",
        "Update a conversation",
        f"Change a conversation's title, character, tags or metadata. {_UPDATES}",
        update_talk,
        _TALK_ID,
        **_ABOUT,
    ),
    create_tool(
        "characters.create",
        "Create a character",
        f"Create a character card. {_CREATES}",
        create_card,
        ("name",),
        **_CARD,
    ),
    update_tool(
        "characters.update",
        "Update a character",
        f"Change a character card. {_UPDATES}",
        update_card,
        _CARD_ID,
        **_CARD,
    ),
    create_tool(
        "prompts.create",
        "Create a prompt",
        f"Keep a prompt for later. {_CREATES}",
        create_prompt,
        ("name",),
        **_PROMPT,
    ),
    update_tool(
        "prompts.update",
        "Update a prompt",
        f"Change a prompt, or its name. {_UPDATES}",
        update_prompt,
        _PROMPT_ID,
        **_PROMPT,
    ),
    delete_tool("notes.delete", "Delete a note", "Delete a note for good.", delete_note, _NOTE_ID),
    delete_tool("media.delete", "Delete media", "Delete a media item for good.", delete_medium, _MEDIA_ID),
    delete_tool(
        "chats.delete",
        "Delete a conversation",
        "Delete a conversation and all its messages for good.",
        delete_talk,
        _TALK_ID,
    ),
    delete_tool(
        "characters.delete",
        "Delete a character",
        "Delete a character for good. Its conversations stay, without a character.",
        delete_card,
        _CARD_ID,
    ),
    delete_tool("prompts.delete", "Delete a prompt", "Delete a prompt for good.", delete_prompt, _PROMPT_ID),
)
