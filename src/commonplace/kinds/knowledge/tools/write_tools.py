"""The write tools, kind by kind. Listed only where writing is allowed."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from commonplace.errors import NotFound
from commonplace.kinds.knowledge.conversations import append_messages, messages_from, messages_of
from commonplace.kinds.knowledge.kinds import checked_id, moment_text, read_moment
from commonplace.kinds.knowledge.knowledge import Knowledge
from commonplace.kinds.knowledge.tools.item_answers import result
from commonplace.kinds.knowledge.tools.item_writes import (
    CREATED_AT,
    METADATA,
    TAGS,
    TITLE,
    create,
    create_tool,
    delete,
    delete_tool,
    item_at_version,
    once,
    update,
    update_tool,
)
from commonplace.kinds.knowledge.tools.options import ID
from commonplace.model import JSON
from commonplace.tools.schema import INTEGER, STRING, Schema, flag, many, obj, text, texts
from commonplace.tools.tool import Call, Tool

Record = dict[str, JSON]
Args = Mapping[str, JSON]
LONGEST = 500_000


def _copied(record: Record, args: Args, *names: str, **renamed: str) -> Record:
    """Return the record with these arguments in it, under their own names or others."""
    merged = {**record, **{name: args[name] for name in names if name in args}}
    return {**merged, **{field: args[name] for name, field in renamed.items() if name in args}}


def _times(record: Record, args: Args) -> Record:
    """Return the record with the time it was made. Giving that time does not count as a change at that time."""
    if "created_at" not in args:
        return record
    created = read_moment(args["created_at"], "created_at")
    merged = {**record, "created_at": moment_text(created)}
    return merged if "uid" in record else {**merged, "updated_at": moment_text(max(created, datetime.now(UTC)))}


# notes


def _note(record: Record, args: Args) -> Record:
    merged = _copied(record, args, "title", "tags", "metadata", content="body")
    if "uid" not in record and "note_id" in args:
        merged["id"] = checked_id(args["note_id"], "note", "note_id")
    return _times(merged, args)


def create_note(call: Call, args: Args) -> Record:
    return create(call, "notes.create", "notes", args, _note)


def update_note(call: Call, args: Args) -> Record:
    return update(call, "notes", args["note_id"], args, _note)


def delete_note(call: Call, args: Args) -> Record:
    return delete(call, "notes", args["note_id"], args)


_NOTE_ID = ("note_id", text("The note's id or address.", minLength=1))
_CONTENT = text("Its text, in Markdown.", maxLength=LONGEST)
_NOTE: dict[str, Schema] = {"title": TITLE, "content": _CONTENT, "tags": TAGS, "metadata": METADATA}

# media


def _medium(record: Record, args: Args) -> Record:
    merged = _copied(record, args, "title", "media_type", "url", "author", "language", "tags", "metadata")
    if "content" in args or "cues" in args:
        for stale in ("body", "cues", "chunks"):
            merged.pop(stale, None)
        if "cues" in args:
            merged.pop("duration_ms", None)
        merged = _copied(merged, args, "cues", content="body")
    return _times(merged, args)


def create_medium(call: Call, args: Args) -> Record:
    return create(call, "media.create", "media", args, _medium)


def update_medium(call: Call, args: Args) -> Record:
    return update(call, "media", args["media_id"], args, _medium)


def delete_medium(call: Call, args: Args) -> Record:
    return delete(call, "media", args["media_id"], args)


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


def _talk(record: Record, args: Args) -> Record:
    return _copied(record, args, "title", "character_id", "tags", "metadata", "messages")


def create_talk(call: Call, args: Args) -> Record:
    return create(call, "chats.create", "chats", _with_character(call, args), _talk)


def update_talk(call: Call, args: Args) -> Record:
    return update(call, "chats", args["conversation_id"], _with_character(call, args), _talk)


def append_talk(call: Call, args: Args) -> Record:
    def work() -> Record:
        store = call.space.store
        item = item_at_version(call, "chats", args["conversation_id"], args.get("expected_version"))
        first_messages = messages_of(store, item, limit=1)
        added = messages_from(args["messages"], first_messages[0].sender if first_messages else "")
        return {"meta": result(append_messages(store, item, added)), "changed": True}

    return once(call, "chats.append", args, work)


def delete_talk(call: Call, args: Args) -> Record:
    return delete(call, "chats", args["conversation_id"], args)


def _with_character(call: Call, args: Args) -> Args:
    """Return the arguments with the key of the character. Raise NotFound where there is none."""
    if "character_id" not in args:
        return args
    key = call.space.part(Knowledge).character(args["character_id"])
    if key is None:
        raise NotFound(f'There is no character "{args["character_id"]}". Find one with characters.search.')
    return {**args, "character_id": key}


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


def _card(record: Record, args: Args) -> Record:
    lists = ("alternate_greetings", "group_only_greetings", "tags", "lorebook", "extensions")
    return _copied(record, args, "name", *_CARD_TEXTS, *lists)


def create_card(call: Call, args: Args) -> Record:
    return create(call, "characters.create", "characters", args, _card)


def update_card(call: Call, args: Args) -> Record:
    return update(call, "characters", args["character_id"], args, _card)


def delete_card(call: Call, args: Args) -> Record:
    return delete(call, "characters", args["character_id"], args)


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


def _prompt(record: Record, args: Args) -> Record:
    return _copied(record, args, "name", "details", "system_prompt", "user_prompt", "author", keywords="tags")


def create_prompt(call: Call, args: Args) -> Record:
    return create(call, "prompts.create", "prompts", args, _prompt)


def update_prompt(call: Call, args: Args) -> Record:
    return update(call, "prompts", args["prompt_id_or_name"], args, _prompt)


def delete_prompt(call: Call, args: Args) -> Record:
    return delete(call, "prompts", args["prompt_id_or_name"], args)


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
