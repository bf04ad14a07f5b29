"""The tools that write: store, update and delete context, one at a time or in batches."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from commonplace.errors import CommonplaceError, InvalidInput, NotFound
from commonplace.kinds.memories import UNSET, BatchFailed, Image, New, NoEntry, Revised, Revision, Stored
from commonplace.kinds.memories.entry import Unset
from commonplace.kinds.memories.tools.arguments import MIB, Wrong, number, own_numbers, refusal, short
from commonplace.kinds.memories.tools.dates import parse_date
from commonplace.kinds.memories.tools.images import Limits, read_images
from commonplace.kinds.memories.tools.parameters import REVISED, STORED
from commonplace.model import JSON
from commonplace.tools.tool import Call

Given = Mapping[str, JSON]
_DAY_MICROS = 86_400_000_000
_SHOWN_IDS = 100
_UPDATED = ("text", "metadata", "metadata_patch", "tags", "images", "expires_at", "ttl_seconds")


# one entry


def store_context(call: Call, given: Given) -> dict[str, JSON]:
    try:
        new = _new(given, call)
    except Wrong as problem:
        raise refusal("store_context", [problem]) from None
    made = _stored(call.library.memories.store([new])[0])
    return {
        "success": True,
        "context_id": made.number,
        "thread_id": made.thread,
        "message": _message(made, len(new.images or ())),
        "uri": f"memory://{made.number}",
        "version": made.version,
        "deduplicated": made.deduplicated,
    }


def _message(made: Stored, images: int) -> str:
    said = "Context updated" if made.deduplicated else "Context stored"
    if images:
        said += f" with {images} images"
    generated = [f"embedding {made.embedding}"] if made.embedding != "none" else []
    if made.summary_made:
        generated.append("summary generated")
    elif made.summary_kept:
        generated.append("summary preserved")
    return f"{said} ({', '.join(generated)})" if generated else said


def update_context(call: Call, given: Given) -> dict[str, JSON]:
    try:
        revision = _revision(given, call)
    except Wrong as problem:
        raise refusal("update_context", [problem]) from None
    made = call.library.memories.revise([revision])[0]
    if not isinstance(made, Revised):
        raise made
    return {
        "success": True,
        "context_id": made.number,
        "updated_fields": list(made.changed),
        "message": f"Successfully updated {len(made.changed)} field(s)",
        "version": made.version,
    }


def delete_context(call: Call, given: Given) -> dict[str, JSON]:
    if "context_ids" not in given and "thread_id" not in given:
        raise InvalidInput("Must provide either context_ids or thread_id")
    if "context_ids" in given and "thread_id" in given:
        raise InvalidInput("Provide either context_ids or thread_id, not both")
    threads = [given["thread_id"]] if "thread_id" in given else None
    return _delete(call, given["dry_run"], numbers=given.get("context_ids"), threads=threads)


def delete_context_batch(call: Call, given: Given) -> dict[str, JSON]:
    counted = {"context_ids": "IDs", "thread_ids": "threads"}
    used = [f"{name}: {len(given[name])} {what}" for name, what in counted.items() if name in given]
    used += [f"{name}: {given[name]}" for name in ("source", "older_than_days") if name in given]
    if not used:
        raise InvalidInput(
            "At least one deletion criterion must be provided: context_ids, thread_ids, source, or older_than_days"
        )
    if used == [f"source: {given.get('source')}"]:
        raise InvalidInput(
            "source filter must be combined with another criterion (context_ids, thread_ids, or older_than_days)"
        )
    before = None
    if "older_than_days" in given:
        before = max(time.time_ns() // 1000 - given["older_than_days"] * _DAY_MICROS, -(1 << 62))
    reply = _delete(
        call,
        given["dry_run"],
        numbers=given.get("context_ids"),
        threads=given.get("thread_ids"),
        source=given.get("source"),
        before=before,
    )
    return {**reply, "criteria_used": used}


def _delete(call: Call, dry_run: bool, **criteria: Any) -> dict[str, JSON]:
    memories = call.library.memories
    found = memories.find(**criteria)
    if dry_run:
        return {
            "success": True,
            "deleted_count": 0,
            "message": f"Would delete {len(found)} context entries",
            "would_delete": len(found),
            "dry_run": True,
            "context_ids": found[:_SHOWN_IDS],
        }
    deleted = memories.delete(found)
    return {"success": True, "deleted_count": deleted, "message": f"Successfully deleted {deleted} context entries"}


# batches


def store_context_batch(call: Call, given: Given) -> dict[str, JSON]:
    entries = [_read_entry(entry, call) for entry in given["entries"]]
    wrong = {place: entry for place, entry in enumerate(entries) if isinstance(entry, str)}
    good = [entry for entry in entries if isinstance(entry, New)]
    if given["atomic"]:
        if wrong:
            raise _invalid(wrong)
        try:
            made = call.library.memories.store(good, batch=True)
        except BatchFailed as failure:
            raise _invalid({failure.place: str(failure)}, failure) from failure
    else:
        made = call.library.memories.store(good, atomic=False, batch=True)
    written = iter(made)
    results = []
    for place, entry in enumerate(entries):
        result = entry if isinstance(entry, str) else next(written)
        stored = isinstance(result, Stored)
        number = result.number if isinstance(result, Stored) else None
        error = None if stored else str(result)
        results.append({"index": place, "success": stored, "context_id": number, "error": error})
    return _batch_reply(results, "Stored")


def update_context_batch(call: Call, given: Given) -> dict[str, JSON]:
    updates = [_read_update(update, call) for update in given["updates"]]
    if given["atomic"]:
        for place, update in enumerate(updates):
            if isinstance(update, str):
                raise InvalidInput(f"{update} at index {place}")
    good = [update for update in updates if isinstance(update, Revision)]
    try:
        made = call.library.memories.revise(good, atomic=given["atomic"], batch=True)
    except BatchFailed as failure:
        raise _placed(failure) from failure
    written = iter(made)
    results = []
    for place, update in enumerate(updates):
        result = update if isinstance(update, str) else next(written)
        revised = result if isinstance(result, Revised) else None
        results.append(
            {
                "index": place,
                "context_id": _named(given["updates"][place], call),
                "success": revised is not None,
                "updated_fields": list(revised.changed) if revised else None,
                "error": None if revised else _sentence(result),
                "version": revised.version if revised else None,
            }
        )
    return _batch_reply(results, "Updated")


def _batch_reply(results: Sequence[Mapping[str, JSON]], did: str) -> dict[str, JSON]:
    total, succeeded = len(results), sum(result["success"] for result in results)
    return {
        "success": succeeded == total,
        "total": total,
        "succeeded": succeeded,
        "failed": total - succeeded,
        "results": list(results),
        "message": f"{did} {succeeded}/{total} entries successfully",
    }


def _invalid(wrong: Mapping[int, str], cause: CommonplaceError | None = None) -> CommonplaceError:
    first = min(wrong)
    error = InvalidInput(
        f"Validation failed for {len(wrong)} entries. First error at index {first}: {wrong[first]}",
        code=cause.code if cause else None,
        details={"errors": [{"index": place, "error": sentence} for place, sentence in sorted(wrong.items())]},
    )
    error.status = cause.status if cause else error.status
    return error


def _placed(failure: BatchFailed) -> CommonplaceError:
    error = InvalidInput(
        f"{_sentence(failure.error)} at index {failure.place}", code=failure.code, details={"index": failure.place}
    )
    error.status = failure.status
    return error


def _sentence(result: object) -> str:
    return f"Context entry {result.number} not found" if isinstance(result, NoEntry) else str(result)


def _named(update: JSON, call: Call) -> int | None:
    """The number that an item of a batch names, where it names one."""
    if not isinstance(update, Mapping):
        return None
    try:
        named = number(update.get("context_id"), "context_id")
        found: int = own_numbers(call, {"context_id": named})["context_id"]
    except (Wrong, NotFound):
        return None
    return found


def _read_entry(entry: JSON, call: Call) -> New | str:
    """An entry of a batch, or what is wrong with it."""
    if not isinstance(entry, Mapping):
        return "Entry must be an object"
    for name in entry:
        if name not in STORED:
            return f"Unknown field: {short(name)}"
    for name in ("thread_id", "source", "text"):
        if name == "source" and entry.get(name) not in ("user", "agent"):
            return 'Missing or invalid source (must be "user" or "agent")'
        if entry.get(name) is None:
            return f"Missing required field: {name}"
    try:
        given = {name: STORED[name].read(value, name) for name, value in entry.items() if value is not None}
        return _new(own_numbers(call, given), call)
    except (Wrong, InvalidInput, NotFound) as problem:
        return str(problem)


def _read_update(update: JSON, call: Call) -> Revision | str:
    if not isinstance(update, Mapping):
        return "Update must be an object"
    for name in update:
        if name not in REVISED:
            return f"Unknown field: {short(name)}"
    if update.get("context_id") is None:
        return "Missing required field: context_id"
    try:
        given = {name: REVISED[name].read(value, name) for name, value in update.items() if value is not None}
        return _revision(own_numbers(call, given), call)
    except (Wrong, InvalidInput, NotFound) as problem:
        return str(problem)


# from arguments to what memory takes


def _new(given: Given, call: Call) -> New:
    text = given["text"]
    _fits(text, call)
    expires = _expiry(given)
    return New(
        given["thread_id"],
        given["source"],
        text,
        images=_images(given, call),
        metadata=given.get("metadata"),
        tags=tuple(given["tags"]) if "tags" in given else None,
        expires_at=None if isinstance(expires, Unset) else expires,
        supersedes=tuple(dict.fromkeys(given.get("supersedes", ()))),
    )


def _revision(given: Given, call: Call) -> Revision:
    if not any(name in given for name in _UPDATED):
        raise Wrong("At least one field must be provided for update", alone=True)
    if "metadata" in given and "metadata_patch" in given:
        raise Wrong(
            "Cannot use both metadata and metadata_patch parameters together. Use metadata for full replacement or "
            "metadata_patch for partial updates.",
            alone=True,
        )
    text = given.get("text")
    if text is not None:
        _fits(text, call)
    return Revision(
        given["context_id"],
        text=text,
        metadata=given.get("metadata"),
        patch=given.get("metadata_patch"),
        tags=tuple(given["tags"]) if "tags" in given else None,
        images=_images(given, call),
        expires_at=_expiry(given),
        expected_version=given.get("expected_version"),
    )


def _fits(text: str, call: Call) -> None:
    most = call.library.settings.memory_max_text_mb
    if len(text) > most * MIB // 4 and len(text.encode()) > most * MIB:  # a character has four bytes at most
        raise Wrong(f"text must be at most {most} MiB as UTF-8")


def _images(given: Given, call: Call) -> tuple[Image, ...] | None:
    return read_images(given["images"], Limits.of(call.library.settings)) if "images" in given else None


def _expiry(given: Given) -> datetime | Unset | None:
    """When an entry expires: a moment, never (None), or as before (UNSET)."""
    if "expires_at" in given and "ttl_seconds" in given:
        raise Wrong("Use expires_at or ttl_seconds, not both", alone=True)
    if "ttl_seconds" in given:
        try:
            return datetime.now(UTC) + timedelta(seconds=given["ttl_seconds"]) if given["ttl_seconds"] else None
        except OverflowError:
            raise Wrong("ttl_seconds reaches beyond the year 9999") from None
    if "expires_at" not in given:
        return UNSET
    moment = parse_date(given["expires_at"], "expires_at", end=True)
    if moment <= datetime.now(UTC):
        raise Wrong("expires_at must be in the future", alone=True)
    return moment


def _stored(result: Stored | CommonplaceError) -> Stored:
    if isinstance(result, CommonplaceError):
        raise result
    return result
