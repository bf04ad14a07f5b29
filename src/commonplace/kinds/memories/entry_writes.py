"""Write entries inside a transaction: prepared, stored together, put in place of a twin, or changed by a revision."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial

from commonplace.errors import CommonplaceError, InvalidInput
from commonplace.ingest.prepare import check_json, merge, prepare
from commonplace.kinds.memories.drawer import EntryRows
from commonplace.kinds.memories.entry import (
    MOST_METADATA,
    UNSET,
    BatchFailed,
    EntryChanged,
    Image,
    New,
    NoEntry,
    Past,
    Revised,
    Revision,
    Said,
    Stored,
    json_size,
    normal_tags,
)
from commonplace.model import JSON, Draft, Item, Span
from commonplace.store.attachments import Attachments
from commonplace.store.base import Store
from commonplace.store.embeddings import Embeddings
from commonplace.store.filters import micros
from commonplace.store.items import Items
from commonplace.store.rows import Write
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
    item = store.drawer(Items).get([twin.item_id], body=True)[0]
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
    rows = store.drawer(EntryRows).get([revision.number])
    if not rows:
        raise NoEntry(revision.number)
    row = rows[0]
    item = store.drawer(Items).get([row.item_id], body=True)[0]
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
    embedded = other_text and store.drawer(Embeddings).any_of(item.id)
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
        attached = store.drawer(Attachments).of(item.id)
        hashes = tuple((file.hash.hex(), file.media_type) for file, _ in attached)
        was = Past(item.version, micros(item.updated_at), item.body or "", dict(item.metadata), item.tags, hashes)
        store.drawer(EntryRows).keep_past(item.id, was, rules.history)
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
    written = store.drawer(Items).put([write])[0]
    if images is not None:
        store.drawer(Attachments).attach(item.id, [image.attachment() for image in images])
    return written


# storing several


Pair = tuple[New, Write]


class Storing:
    """A batch of entries that is stored in order, each as if it came alone. Plainly new ones are written together.

    Atomic: the first that fails is raised, in a batch as a `BatchFailed`; otherwise the error stands where its result
    would.
    """

    def __init__(
        self, store: Store, rules: EntryRules, pairs: Sequence[Pair], *, atomic: bool = True, batch: bool = False
    ) -> None:
        self._store, self._rules, self._pairs = store, rules, pairs
        self._atomic, self._batch = atomic, batch
        self._ends: dict[str, Said] = {}
        """The last entry of each thread, as of `_now`."""
        self._now = 0
        self._waiting: list[int] = []
        self._made: dict[int, Stored | CommonplaceError] = {}

    def results(self) -> list[Stored | CommonplaceError]:
        """Store all entries and return a result or an error for each, in order."""
        self._look([new.thread for new, _ in self._pairs])
        for place, (new, _) in enumerate(self._pairs):
            if self._is_new(new):
                self._waiting.append(place)
                self._ends[new.thread] = Said(0, 0, new.source, False, new.text, self._now)
            else:
                self._write_waiting()
                self._attempt([place], partial(self._one, place))
                self._look([other.thread for other, _ in self._pairs] if new.supersedes else [new.thread])
        self._write_waiting()
        return [self._made[place] for place in range(len(self._pairs))]

    def _look(self, threads: Iterable[str]) -> None:
        """Read the last entry of each of these threads."""
        self._now = time.time_ns() // 1000
        latest = self._store.drawer(EntryRows).latest(list(dict.fromkeys(threads)), 1)
        self._ends.update((thread, said[0]) for thread, said in latest.items())

    def _is_new(self, new: New) -> bool:
        """Return whether the entry supersedes nothing and the end of its thread shows that it has no twin."""
        if new.supersedes:
            return False
        end = self._ends.get(new.thread)
        if end is None:
            return True
        if end.created_at > self._now:  # imported, or the clock was put back: what is stored now is not the end
            return False
        return end.source != new.source or not (end.superseded or end.body.strip() == new.text.strip())

    def _write_waiting(self) -> None:
        places, self._waiting = self._waiting, []
        if places:
            self._attempt(places, partial(self._add, places))

    def _attempt(self, places: Sequence[int], write: Callable[[], list[Stored]]) -> None:
        results: Sequence[Stored | CommonplaceError]
        try:
            with nullcontext() if self._atomic else self._store.transaction():
                results = write()
        except CommonplaceError as error:
            if self._atomic and self._batch:
                raise BatchFailed(places[0], error) from error
            if self._atomic:
                raise
            if len(places) > 1:  # one of them failed, and the error does not say which
                for place in places:
                    self._attempt([place], partial(self._add, [place]))
                return
            results = [error]
        self._made.update(zip(places, results, strict=True))

    def _one(self, place: int) -> list[Stored]:
        new = self._pairs[place][0]
        existing = (
            {row.number for row in self._store.drawer(EntryRows).get(new.supersedes)} if new.supersedes else set()
        )
        for number in new.supersedes:
            if number not in existing:
                raise NoEntry(number)
        twin = self._twin(new)
        return self._add([place]) if twin is None else [store_again(self._store, new, twin, self._rules)]

    def _twin(self, new: New) -> Said | None:
        """Return the newest entry of the thread that is not superseded, where it has the same source and text."""
        depth = 1
        while True:
            latest = self._store.drawer(EntryRows).latest([new.thread], depth).get(new.thread, [])
            for said in latest:
                if said.source != new.source:
                    return None
                if not said.superseded and said.number not in new.supersedes:
                    return said if said.body.strip() == new.text.strip() else None
            if len(latest) < depth:
                return None
            depth *= 8

    def _add(self, places: Sequence[int]) -> list[Stored]:
        results = []
        added = self._store.drawer(EntryRows).add([self._pairs[place][1] for place in places])
        for place, (number, item_id) in zip(places, added, strict=True):
            new, write = self._pairs[place]
            if new.images:
                self._store.drawer(Attachments).attach(item_id, [image.attachment() for image in new.images])
            images, summarized = len(new.images or ()), bool(write.draft.fields.get("summary"))
            results.append(Stored(number, item_id, new.thread, 1, False, images, False, summarized))
        return results
