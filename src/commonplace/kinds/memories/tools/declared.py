"""Declarations of the six tools that write."""

from __future__ import annotations

from collections.abc import Mapping

from commonplace.kinds.memories.tools import writing
from commonplace.kinds.memories.tools.arguments import Parameter, accept, own_numbers
from commonplace.kinds.memories.tools.parameters import (
    ATOMIC,
    DELETED,
    DELETED_BATCH,
    ENTRIES,
    REVISED,
    STORED,
    UPDATES,
)
from commonplace.model import JSON
from commonplace.tools.schema import BOOLEAN, INTEGER, OBJECT, STRING, STRINGS, Schema, answer, many, obj
from commonplace.tools.tool import ADDS, CHANGES, Answer, Call, Handler, Tool

_DELETES = {**CHANGES, "idempotentHint": True}
_BATCH = answer(success=BOOLEAN, total=INTEGER, succeeded=INTEGER, failed=INTEGER, results=many(OBJECT), message=STRING)


def declare(
    name: str,
    title: str,
    description: str,
    parameters: Mapping[str, Parameter],
    handler: Handler,
    output: Schema,
    annotations: Mapping[str, bool],
    required: tuple[str, ...] = (),
) -> Tool:
    """Return a tool of this profile: its schema and its check come from the same parameters."""
    properties = {each: parameter.schema for each, parameter in parameters.items()}
    check = accept(parameters, required)

    def handle(call: Call, args: Mapping[str, JSON]) -> Answer:
        return handler(call, own_numbers(call, args))

    return Tool(
        name, title, description, obj(required=required, **properties), output, annotations, handle, check=check
    )


STORE = declare(
    "store_context",
    "Store Context",
    "Keep something for later in a thread: a message, a decision, a result. Storing the thread's latest text again "
    "updates that entry. Found by every search at once.",
    STORED,
    writing.store_context,
    answer(
        success=BOOLEAN,
        context_id=INTEGER,
        thread_id=STRING,
        message=STRING,
        uri=STRING,
        version=INTEGER,
        deduplicated=BOOLEAN,
    ),
    ADDS,
    required=("thread_id", "source", "text"),
)

UPDATE = declare(
    "update_context",
    "Update Context",
    "Change an entry: its text, metadata, tags, images or expiry. What is left out stays; lists replace, [] and {} "
    "clear. Thread, source and creation time never change.",
    REVISED,
    writing.update_context,
    answer(success=BOOLEAN, context_id=INTEGER, updated_fields=STRINGS, message=STRING, version=INTEGER),
    CHANGES,
    required=("context_id",),
)

DELETE = declare(
    "delete_context",
    "Delete Context",
    "Delete entries for good, by their ids or a whole thread. dry_run only says what would go.",
    DELETED,
    writing.delete_context,
    answer(success=BOOLEAN, deleted_count=INTEGER, message=STRING),
    _DELETES,
)

STORE_BATCH = declare(
    "store_context_batch",
    "Store Context (Batch)",
    "Store up to 100 entries at once. atomic: all or none; otherwise each stands alone and results say which failed.",
    {"entries": ENTRIES, "atomic": ATOMIC},
    writing.store_context_batch,
    _BATCH,
    ADDS,
    required=("entries",),
)

UPDATE_BATCH = declare(
    "update_context_batch",
    "Update Context (Batch)",
    "Update up to 100 entries at once, in order. atomic: all or none; otherwise each stands alone.",
    {"updates": UPDATES, "atomic": ATOMIC},
    writing.update_context_batch,
    _BATCH,
    CHANGES,
    required=("updates",),
)

DELETE_BATCH = declare(
    "delete_context_batch",
    "Delete Context (Batch)",
    "Delete all entries that satisfy every criterion given. source goes with another criterion. dry_run only says "
    "what would go.",
    DELETED_BATCH,
    writing.delete_context_batch,
    answer(success=BOOLEAN, deleted_count=INTEGER, message=STRING, criteria_used=STRINGS),
    _DELETES,
)
