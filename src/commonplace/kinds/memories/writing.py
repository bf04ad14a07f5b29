"""Prepare one entry for the store, update its twin, or change it by a revision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from commonplace.errors import InvalidInput
from commonplace.ingest.prepare import check_json, merge, prepare
from commonplace.kinds.memories.entry import (
    MOST_METADATA,
    UNSET,
    EntryChanged,
    Image,
    New,
    NoEntry,
    Revised,
    Revision,
    Stored,
    json_size,
    normal_tags,
)
from commonplace.model import JSON, Draft, Item, Span
from commonplace.store.base import Store
from commonplace.store.filters import micros
from commonplace.store.rows import Past, Said, Write
from commonplace.text.chunk import ChunkRules, chunk
from commonplace.text.languages import UNKNOWN


@dataclass(frozen=True, slots=True)
class EntryRules:
    """Rules for entries: how they are cut, how many past versions are kept, the language of texts that show none."""

    chunks: ChunkRules
    history: int
    language: str


def draft_of(new: New, rules: EntryRules) -> Write:
    """Return an entry cut into passages and checked, all but its number: all that needs no transaction."""
    fields: dict[str, JSON] = {"source": new.source}
    if new.expires_at is not None:
        fields["expires_at"] = micros(new.expires_at)
    if new.supersedes:
        fields["supersedes"] = sorted(set(new.supersedes))
    draft = Draft(
        "memory",
        "0",
        parent=new.thread,
        body=new.text,
        fields=fields,
        metadata=new.metadata or {},
        tags=normal_tags(new.tags or ()),
        spans=_spans(new.text, rules),
    )
    return _prepared(draft, rules)


def cut(draft: Draft, rules: EntryRules) -> Write:
    """Return a draft with its passages, cut by the rules of this kind."""
    return _prepared(replace(draft, spans=_spans(draft.body, rules)), rules)


def _prepared(draft: Draft, rules: EntryRules) -> Write:
    write = prepare(draft)
    return replace(write, language=rules.language) if write.language == UNKNOWN else write


def _spans(text: str, rules: EntryRules) -> tuple[Span, ...]:
    return tuple(chunk(text, "text", rules.chunks))


def store_again(store: Store, new: New, twin: Said, rules: EntryRules) -> Stored:
    """Update the twin of an entry: fields that were given are replaced; text, summary and creation time stay."""
    item = store.items([twin.item_id], body=True)[0]
    fields = dict(item.fields)
    if new.expires_at is not None:
        fields["expires_at"] = micros(new.expires_at)
    if new.supersedes:
        fields["supersedes"] = sorted({*fields.get("supersedes", ()), *new.supersedes})
    metadata = item.metadata if new.metadata is None else new.metadata
    tags = item.tags if new.tags is None else normal_tags(new.tags)
    written = _rewrite(store, item, rules, fields=fields, metadata=metadata, tags=tags, images=new.images)
    has_summary = bool(item.fields.get("summary"))
    return Stored(
        twin.number, item.id, new.thread, written.version, True, len(new.images or ()), summary_kept=has_summary
    )


def revise_entry(store: Store, revision: Revision, rules: EntryRules, prepared: Write | None) -> Revised:
    """Change what a revision names and keep the version before. `prepared` is its text, cut, where it has one.

    Raise NoEntry, EntryChanged, or InvalidInput where the patched metadata is too large.
    """
    rows = store.entries([revision.number])
    if not rows:
        raise NoEntry(revision.number)
    row = rows[0]
    item = store.items([row.item_id], body=True)[0]
    if revision.expected_version not in (None, item.version):
        raise EntryChanged(revision.number, revision.expected_version or 0, item.version)
    fields = dict(item.fields)
    if revision.expires_at is None:
        fields.pop("expires_at", None)
    elif revision.expires_at is not UNSET:
        fields["expires_at"] = micros(revision.expires_at)
    other_text = revision.text is not None and revision.text != item.body
    summarized = other_text and fields.pop("summary", None) is not None
    if other_text and prepared is not None and "summary" in prepared.draft.fields:
        fields["summary"], summarized = prepared.draft.fields["summary"], True
    metadata: JSON = item.metadata if revision.metadata is None else revision.metadata
    if revision.patch is not None:
        check_json(revision.patch, f"The metadata of memory '{item.key}'")  # it has to be JSON to be measured
        metadata = merge(metadata, revision.patch)
        if json_size(metadata) > MOST_METADATA:
            raise InvalidInput(f"metadata must be at most {MOST_METADATA >> 20} MiB as JSON")
    tags = item.tags if revision.tags is None else normal_tags(revision.tags)
    text = prepared if other_text else None
    embedded = other_text and store.has_vectors(item.id)
    written = _rewrite(
        store, item, rules, fields=fields, metadata=metadata, tags=tags, images=revision.images, text=text
    )
    illustrated = row.images > 0 if revision.images is None else len(revision.images) > 0
    touched = {
        "text_content": revision.text is not None,
        "metadata": revision.metadata is not None or revision.patch is not None,
        "tags": revision.tags is not None,
        "images": revision.images is not None,
        "content_type": illustrated != (row.images > 0),
        "expires_at": revision.expires_at is not UNSET,
        "summary": summarized,
        "embedding": embedded,
    }
    changed = tuple(name for name, is_so in touched.items() if is_so)
    return Revised(revision.number, item.id, written.version, changed, other_text)


def _rewrite(
    store: Store,
    item: Item,
    rules: EntryRules,
    *,
    fields: Mapping[str, JSON],
    metadata: Mapping[str, JSON],
    tags: Sequence[str],
    images: Sequence[Image] | None,
    text: Write | None = None,
) -> Item:
    """Store the next version of an entry and return it; the one before goes into its history."""
    if rules.history:
        attached = store.attachments_of(item.id)
        hashes = tuple((file.hash.hex(), file.media_type) for file, _ in attached)
        was = Past(item.version, micros(item.updated_at), item.body or "", dict(item.metadata), item.tags, hashes)
        store.keep_past(item.id, was, rules.history)
    draft = Draft(
        "memory",
        item.key,
        parent=item.parent,
        body=text.draft.body if text else item.body or "",
        format=item.format,
        fields=fields,
        metadata=metadata,
        tags=tuple(tags),
        updated_at=max(datetime.now(UTC), item.updated_at + timedelta(microseconds=1)),
    )
    if text is not None:
        draft = replace(draft, spans=tuple(passage.span for passage in text.passages))
        write = _prepared(draft, rules)
    else:
        write = cut(draft, rules)
    written = store.put([write])[0]
    if images is not None:
        store.attach(item.id, [image.attachment() for image in images])
    return written
