"""The tools that write: store, update and delete context, one at a time or in batches."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from commonplace.errors import CommonplaceError, InvalidInput, NotFound
from commonplace.kinds.memories.entry import UNSET, BatchFailed, Image, New, NoEntry, Revised, Revision, Stored, Unset
from commonplace.kinds.memories.memories import Memories
from commonplace.kinds.memories.tools.argument_readers import MIB, Wrong, number, own_numbers, refusal, short
from commonplace.kinds.memories.tools.entry_json import parse_date
from commonplace.kinds.memories.tools.parameters import REVISED, STORED, ImageLimits, read_images
from commonplace.model import JSON
from commonplace.tools.tool import Call

Args = Mapping[str, JSON]
_DAY_MICROS = 86_400_000_000
_SHOWN_IDS = 100
_UPDATED = ("text", "metadata", "metadata_patch", "tags", "images", "expires_at", "ttl_seconds")


# one entry


def store_context(call: Call, args: Args) -> dict[str, JSON]:
    """Return the reply of the tool of this name."""
    try:
        new = _new(args, call)
    except Wrong as problem:
        raise refusal("store_context", [problem]) from None
    result = _stored(call.space.part(Memories).store([new])[0])
    return {
        "success": True,
        "context_id": result.number,
        "thread_id": result.thread,
        "message": _message(result, len(new.images or ())),
        "uri": f"memory://{result.number}",
        "version": result.version,
        "deduplicated": result.deduplicated,
    }


def _message(made: Stored, images: int) -> str:
    summary = "Context updated" if made.deduplicated else "Context stored"
    if images:
        summary += f" with {images} images"
    generated = [f"embedding {made.embedding}"] if made.embedding != "none" else []
    if made.summary_made:
        generated.append("summary generated")
    elif made.summary_kept:
        generated.append("summary preserved")
    return f"{summary} ({', '.join(generated)})" if generated else summary


def update_context(call: Call, args: Args) -> dict[str, JSON]:
    """Return the reply of the tool of this name."""
    try:
        revision = _revision(args, call)
    except Wrong as problem:
        raise refusal("update_context", [problem]) from None
    result = call.space.part(Memories).revise([revision])[0]
    if not isinstance(result, Revised):
        raise result
    return {
        "success": True,
        "context_id": result.number,
        "updated_fields": list(result.changed),
        "message": f"Successfully updated {len(result.changed)} field(s)",
        "version": result.version,
    }


def delete_context(call: Call, args: Args) -> dict[str, JSON]:
    """Return the reply of the tool of this name."""
    if "context_ids" not in args and "thread_id" not in args:
        raise InvalidInput("Must provide either context_ids or thread_id")
    if "context_ids" in args and "thread_id" in args:
        raise InvalidInput("Provide either context_ids or thread_id, not both")
    threads = [args["thread_id"]] if "thread_id" in args else None
    return _delete(call, args["dry_run"], numbers=args.get("context_ids"), threads=threads)


def delete_context_batch(call: Call, args: Args) -> dict[str, JSON]:
    """Return the reply of the tool of this name. Raise InvalidInput without a criterion, or with source alone."""
    counted = {"context_ids": "IDs", "thread_ids": "threads"}
    criteria = [f"{name}: {len(args[name])} {noun}" for name, noun in counted.items() if name in args]
    criteria += [f"{name}: {args[name]}" for name in ("source", "older_than_days") if name in args]
    if not criteria:
        raise InvalidInput(
            "At least one deletion criterion must be provided: context_ids, thread_ids, source, or older_than_days"
        )
    if criteria == [f"source: {args.get('source')}"]:
        raise InvalidInput(
            "source filter must be combined with another criterion (context_ids, thread_ids, or older_than_days)"
        )
    before = None
    if "older_than_days" in args:
        before = max(time.time_ns() // 1000 - args["older_than_days"] * _DAY_MICROS, -(1 << 62))
    reply = _delete(
        call,
        args["dry_run"],
        numbers=args.get("context_ids"),
        threads=args.get("thread_ids"),
        source=args.get("source"),
        before=before,
    )
    return {**reply, "criteria_used": criteria}


def _delete(call: Call, dry_run: bool, **criteria: Any) -> dict[str, JSON]:
    """Delete the entries that satisfy the criteria, or only count them, and return the reply."""
    memories = call.space.part(Memories)
    numbers = memories.find(**criteria)
    if dry_run:
        return {
            "success": True,
            "deleted_count": 0,
            "message": f"Would delete {len(numbers)} context entries",
            "would_delete": len(numbers),
            "dry_run": True,
            "context_ids": numbers[:_SHOWN_IDS],
        }
    deleted = memories.delete(numbers)
    return {"success": True, "deleted_count": deleted, "message": f"Successfully deleted {deleted} context entries"}


# batches


def store_context_batch(call: Call, args: Args) -> dict[str, JSON]:
    """Return the reply of the tool of this name: a result for each entry, in order."""
    entries = [_read_entry(entry, call) for entry in args["entries"]]
    errors = {place: entry for place, entry in enumerate(entries) if isinstance(entry, str)}
    valid_entries = [entry for entry in entries if isinstance(entry, New)]
    if args["atomic"]:
        if errors:
            raise _invalid(errors)
        try:
            stored_entries = call.space.part(Memories).store(valid_entries, batch=True)
        except BatchFailed as failure:
            raise _invalid({failure.place: str(failure)}, failure) from failure
    else:
        stored_entries = call.space.part(Memories).store(valid_entries, atomic=False, batch=True)
    stored_results = iter(stored_entries)
    results = []
    for place, entry in enumerate(entries):
        result = entry if isinstance(entry, str) else next(stored_results)
        stored = isinstance(result, Stored)
        number = result.number if isinstance(result, Stored) else None
        error = None if stored else str(result)
        results.append({"index": place, "success": stored, "context_id": number, "error": error})
    return _batch_reply(results, "Stored")


def update_context_batch(call: Call, args: Args) -> dict[str, JSON]:
    """Return the reply of the tool of this name: a result for each update, in order."""
    updates = [_read_update(update, call) for update in args["updates"]]
    if args["atomic"]:
        for place, update in enumerate(updates):
            if isinstance(update, str):
                raise InvalidInput(f"{update} at index {place}")
    valid_updates = [update for update in updates if isinstance(update, Revision)]
    try:
        revised_entries = call.space.part(Memories).revise(valid_updates, atomic=args["atomic"], batch=True)
    except BatchFailed as failure:
        raise _placed(failure) from failure
    revised_results = iter(revised_entries)
    results = []
    for place, update in enumerate(updates):
        result = update if isinstance(update, str) else next(revised_results)
        revised = result if isinstance(result, Revised) else None
        results.append(
            {
                "index": place,
                "context_id": _named(args["updates"][place], call),
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


def _invalid(sentences: Mapping[int, str], cause: CommonplaceError | None = None) -> CommonplaceError:
    """Return the error of a batch with invalid entries, by their indexes."""
    first = min(sentences)
    error = InvalidInput(
        f"Validation failed for {len(sentences)} entries. First error at index {first}: {sentences[first]}",
        code=cause.code if cause else None,
        details={"errors": [{"index": place, "error": sentence} for place, sentence in sorted(sentences.items())]},
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
    """Return the number that an item of a batch names, or None."""
    if not isinstance(update, Mapping):
        return None
    try:
        given_id = number(update.get("context_id"), "context_id")
        own_number: int = own_numbers(call, {"context_id": given_id})["context_id"]
    except (Wrong, NotFound):
        return None
    return own_number


def _read_entry(entry: JSON, call: Call) -> New | str:
    """Return an entry of a batch, or a sentence on what is wrong with it."""
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
        args = {name: STORED[name].read(value, name) for name, value in entry.items() if value is not None}
        return _new(own_numbers(call, args), call)
    except (Wrong, InvalidInput, NotFound) as problem:
        return str(problem)


def _read_update(update: JSON, call: Call) -> Revision | str:
    """Return an update of a batch, or a sentence on what is wrong with it."""
    if not isinstance(update, Mapping):
        return "Update must be an object"
    for name in update:
        if name not in REVISED:
            return f"Unknown field: {short(name)}"
    if update.get("context_id") is None:
        return "Missing required field: context_id"
    try:
        args = {name: REVISED[name].read(value, name) for name, value in update.items() if value is not None}
        return _revision(own_numbers(call, args), call)
    except (Wrong, InvalidInput, NotFound) as problem:
        return str(problem)


# from arguments to entries and revisions


def _new(args: Args, call: Call) -> New:
    """Return the entry that the arguments describe. Raise Wrong."""
    text = args["text"]
    _fits(text, call)
    expires = _expiry(args)
    return New(
        args["thread_id"],
        args["source"],
        text,
        images=_images(args, call),
        metadata=args.get("metadata"),
        tags=tuple(args["tags"]) if "tags" in args else None,
        expires_at=None if isinstance(expires, Unset) else expires,
        supersedes=tuple(dict.fromkeys(args.get("supersedes", ()))),
    )


def _revision(args: Args, call: Call) -> Revision:
    """Return the revision that the arguments describe. Raise Wrong."""
    if not any(name in args for name in _UPDATED):
        raise Wrong("At least one field must be provided for update", alone=True)
    if "metadata" in args and "metadata_patch" in args:
        raise Wrong(
            "Cannot use both metadata and metadata_patch parameters together. Use metadata for full replacement or "
            "metadata_patch for partial updates.",
            alone=True,
        )
    text = args.get("text")
    if text is not None:
        _fits(text, call)
    return Revision(
        args["context_id"],
        text=text,
        metadata=args.get("metadata"),
        patch=args.get("metadata_patch"),
        tags=tuple(args["tags"]) if "tags" in args else None,
        images=_images(args, call),
        expires_at=_expiry(args),
        expected_version=args.get("expected_version"),
    )


def _fits(text: str, call: Call) -> None:
    """Raise Wrong where a text is too large."""
    most = call.space.settings.memory_max_text_mb
    if len(text) > most * MIB // 4 and len(text.encode()) > most * MIB:  # a character has four bytes at most
        raise Wrong(f"text must be at most {most} MiB as UTF-8")


def _images(args: Args, call: Call) -> tuple[Image, ...] | None:
    return read_images(args["images"], ImageLimits.of(call.space.settings)) if "images" in args else None


def _expiry(args: Args) -> datetime | Unset | None:
    """Return when an entry expires: a moment, never (None), or as before (UNSET). Raise Wrong."""
    if "expires_at" in args and "ttl_seconds" in args:
        raise Wrong("Use expires_at or ttl_seconds, not both", alone=True)
    if "ttl_seconds" in args:
        try:
            return datetime.now(UTC) + timedelta(seconds=args["ttl_seconds"]) if args["ttl_seconds"] else None
        except OverflowError:
            raise Wrong("ttl_seconds reaches beyond the year 9999") from None
    if "expires_at" not in args:
        return UNSET
    moment = parse_date(args["expires_at"], "expires_at", end=True)
    if moment <= datetime.now(UTC):
        raise Wrong("expires_at must be in the future", alone=True)
    return moment


def _stored(result: Stored | CommonplaceError) -> Stored:
    if isinstance(result, CommonplaceError):
        raise result
    return result
