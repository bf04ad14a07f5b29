"""What a store promises. SQLite implements it here, PostgreSQL in `postgres/`. No SQL is known above this room."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from commonplace.model import JSON, Change, Chunk, Filter, IndexedItem, Item
from commonplace.store.rows import (
    Attachment,
    Cue,
    DocumentRow,
    Ending,
    EntryRow,
    FileRecord,
    FolderChange,
    FolderResult,
    ImportSource,
    Job,
    KeptAnswer,
    Model,
    Moment,
    Name,
    Past,
    Place,
    Returned,
    Said,
    SessionList,
    SessionRow,
    Tally,
    ThreadRow,
    Write,
)

if TYPE_CHECKING:
    from commonplace.text.outline import Outline


class Store(Protocol):
    """The truth. Every method is safe from any thread; a write that has returned is durable."""

    replaced: bool
    """Whether another process has put a backup in its place since it was opened: indexes of the old log are not fit
    for the new one. Known as of the last call of `last_change`."""
    log: str | None
    """Which log that call has seen. The numbers of changes mean something in their own log alone."""

    def close(self) -> None: ...
    def transaction(self) -> AbstractContextManager[None]:
        """What this thread writes inside is durable together when the block ends, or undone when it raises.

        Blocks may be nested: an inner one that raises is undone alone.
        """
        ...

    # items
    def put(self, writes: Sequence[Write]) -> list[Item]:
        """Store all of them in one transaction, or none. One that would not change gets no change number."""
        ...

    def delete(self, item_ids: Sequence[int], expected_version: int | None = None) -> int:
        """Remove items with everything that hangs on them, vectors included; returns how many were there."""
        ...

    def item(self, kind: str, parent: str | None, key: str, *, body: bool = True) -> Item | None: ...
    def items(self, item_ids: Sequence[int], *, body: bool = False) -> list[Item]:
        """The items of these ids that exist, in the order asked for."""
        ...

    def scan(self, filter: Filter, *, after: int = 0, limit: int = 1000, body: bool = False) -> list[Item]:
        """Matching items in id order, from just after an id: the way to walk all of them in bounded steps."""
        ...

    def chunks(self, chunk_ids: Sequence[int]) -> list[Chunk]:
        """The chunks of these ids that exist, in the order asked for."""
        ...

    def chunks_of(self, item_id: int) -> list[Chunk]: ...

    # filters
    def select(self, filter: Filter) -> NDArray[np.int64]:
        """The ids of all matching items, ascending."""
        ...

    def ids_of(self, addresses: Sequence[tuple[str, str | None, str]]) -> list[int]:
        """The ids of the items at these (kind, parent, key) that exist; a parent of None stands for any."""
        ...

    def counts(self) -> dict[str, int]:
        """How many items of each kind there are."""
        ...

    def parents(self, kind: str) -> dict[str, int]:
        """How many items of a kind each parent holds."""
        ...

    def chunk_total(self) -> int: ...

    # the log
    def last_change(self) -> int: ...
    def changes(self, after: int, limit: int) -> list[Change]: ...
    def indexed(self, item_ids: Sequence[int]) -> list[IndexedItem]: ...

    # vectors
    def model(self, fingerprint: str) -> Model | None: ...
    def models(self) -> list[Model]: ...
    def add_model(self, fingerprint: str, name: str, dims: int) -> Model: ...
    def drop_model(self, model_id: int) -> None: ...
    def unembedded(self, model: Model, after: int, limit: int) -> tuple[list[Chunk], int]:
        """Walk the log from just after a change until about `limit` chunks without a vector are found, or it ends.

        Returns the chunks, oldest change first, and the change the walk has reached.
        """
        ...

    def lacking(self, model: Model, item_ids: Sequence[int]) -> list[Chunk]:
        """The chunks of these items that have no vector of a model, in the order of the items."""
        ...

    def add_vectors(self, model: Model, vectors: Sequence[tuple[bytes, bytes]]) -> None:
        """Keep vectors by key and note an `embed` change for every item that gains one."""
        ...

    def drop_vectors(self, model_id: int, item_ids: Sequence[int]) -> None:
        """Forget the vectors of these items' passages, so that they count as lacking."""
        ...

    def set_position(self, model: Model, seq: int) -> None: ...
    def vectors_of(self, model_id: int, item_ids: Sequence[int]) -> tuple[NDArray[np.int64], NDArray[np.float16]]: ...
    def embedded_total(self, model_id: int) -> int:
        """How many chunks have a vector of this model."""
        ...

    # memory entries: items of kind `memory` whose key is a number and whose fields name a source
    def next_entry(self) -> int:
        """The number of the entry that the transaction under way stores next. Numbers rise and are never reused."""
        ...

    def entries(self, numbers: Sequence[int]) -> list[EntryRow]:
        """The entries of these numbers that exist, in the order asked for."""
        ...

    def entries_of(self, item_ids: Sequence[int]) -> list[EntryRow]:
        """The entries that these items are, in the order asked for."""
        ...

    def latest_entries(self, threads: Sequence[str], limit: int) -> Mapping[str, list[Said]]:
        """The newest entries of each of these threads, newest first. A thread without any is left out."""
        ...

    def add_entries(self, writes: Sequence[Write]) -> list[tuple[int, int]]:
        """Store new entries, each under the next number, which is its key whatever its draft says.

        Returns their numbers and their items' ids. Where it fails, the transaction it is a part of must fail too.
        """
        ...

    def entry_numbers(
        self,
        *,
        numbers: Sequence[int] | None = None,
        threads: Sequence[str] | None = None,
        source: str | None = None,
        before: int | None = None,
    ) -> list[int]:
        """The entries that satisfy everything that is given, ascending. `before` is a time of creation."""
        ...

    def expired(self, now: int) -> list[int]:
        """The items of entries whose time is over."""
        ...

    def restore_entry(self, write: Write, version: int) -> int:
        """Store an entry that is not here yet, at the version it had where it was kept; returns its item's id."""
        ...

    def supersede(self, newer: int, older: Sequence[int]) -> None:
        """Note that an entry replaces others; those that are not here are left out."""
        ...

    def has_vectors(self, item_id: int) -> bool:
        """Whether any passage of an item has a vector of any model."""
        ...

    def superseded_items(self) -> list[int]:
        """The items of entries that newer ones have replaced, ascending."""
        ...

    def matching(self, filter: Filter, item_ids: Sequence[int]) -> dict[int, int]:
        """Those of the items that match, each with when it was created."""
        ...

    def entry_times(self, item_ids: Sequence[int] | None = None) -> list[Moment]:
        """The memory entries among these items, or all there are, in the order of their item ids."""
        ...

    def newest(
        self, filter: Filter, *, limit: int, after: Moment | None = None, upto: int | None = None
    ) -> list[Moment]:
        """Matching items, newest first, then by id, descending; from just after one, without those stored later."""
        ...

    def heads(self, item_ids: Sequence[int], length: int) -> list[Item]:
        """The items of these ids that exist, in the order asked for, each with the beginning of its body."""
        ...

    def plan(self, filter: Filter) -> str:
        """How the items that match would be found, newest first, in the database's own words."""
        ...

    def last_item(self) -> int:
        """The largest item id ever given out."""
        ...

    def threads(self, *, limit: int, offset: int) -> tuple[list[ThreadRow], int]:
        """The threads of memory entries, the one with the latest entry first, and how many there are in all."""
        ...

    def metrics(self) -> dict[str, JSON]:
        """How this process has used the database: connections, uses, transactions that failed."""
        ...

    def tags(self) -> dict[str, int]:
        """Return how many items have each tag, the commonest first. One spelling stands for those of any case."""
        ...

    def tally(self) -> Tally:
        """What there is, counted at one moment."""
        ...

    def embedded_entries(self, model_id: int) -> tuple[int, int, int]:
        """Of a model: entries with vectors, their vectors, and entries that still lack some."""
        ...

    def keep_past(self, item_id: int, past: Past, most: int) -> None:
        """Keep what an entry was; of all it ever was only the newest `most`."""
        ...

    def past(self, item_ids: Sequence[int]) -> dict[int, list[Past]]:
        """What entries were, newest first."""
        ...

    def set_summary(self, item_id: int, body: str, summary: str) -> bool:
        """Keep the summary of an entry if this is still its text; returns whether it was kept.

        No other version, and no change: nobody who follows the log has a use for it.
        """
        ...

    def indexed_fields(self) -> list[tuple[str, ...]]:
        """The metadata paths by which entries are found without reading them all."""
        ...

    def index_field(self, path: tuple[str, ...]) -> None:
        """Have filters on a path answered from an index. It changes how fast they are, never what they answer."""
        ...

    def drop_field(self, path: tuple[str, ...]) -> None: ...
    def refresh_statistics(self) -> None:
        """Tell the query planner how much there is. For the end of a bulk write."""
        ...

    # names of documents; each finder returns the first few by name and how many there are
    def documents_by_docid(self, prefix: str, limit: int) -> tuple[list[Name], int]:
        """Documents the SHA-256 of whose `collection/path` begins so."""
        ...

    def documents_by_hash(self, prefix: str, limit: int) -> tuple[list[Name], int]:
        """Documents the SHA-256 of whose body begins so."""
        ...

    def documents_by_end(self, path: str, ending: Ending, limit: int) -> tuple[list[Name], int]:
        """Documents called so, compared in NFC, by whole components."""
        ...

    def documents_in_any_case(self, path: str, limit: int, *, with_ending: bool) -> tuple[list[Name], int]:
        """Documents that end with these components in any case, shortest first; `with_ending` or with any."""
        ...

    def docids(self, item_ids: Sequence[int]) -> dict[int, str]:
        """The short ids of documents: six hexadecimal digits, or the fewest that no other document shares."""
        ...

    def document_files(self) -> tuple[list[int], list[str]]:
        """The id and the `collection/path` of every document, by collection, then path. Reads an index, no text."""
        ...

    def files_of(self, item_ids: Sequence[int]) -> dict[int, str]:
        """The `collection/path` of documents."""
        ...

    def body_sizes(self, item_ids: Sequence[int]) -> dict[int, int]:
        """Bytes of bodies in UTF-8, without reading them."""
        ...

    def unembedded_documents(self, model_id: int | None, parents: Sequence[str] = ()) -> int:
        """How many documents, of these parents where any are named, have a chunk without a vector of the model."""
        ...

    # outlines of documents
    def document_page(self, parent: str, *, limit: int, offset: int) -> tuple[list[DocumentRow], int]:
        """Documents of a parent in the code-point order of their keys, and how many there are. Reads no body."""
        ...

    def document_counts(self, parents: Sequence[str]) -> dict[str, int]:
        """How many documents each of these parents holds; one without any is left out."""
        ...

    def document_rows(self, item_ids: Sequence[int]) -> dict[int, DocumentRow]: ...
    def outline(self, item_id: int) -> Outline | None:
        """The outline that is kept of a document, or None where none is."""
        ...

    def headings_at(self, places: Sequence[tuple[int, int]]) -> list[tuple[str, ...]]:
        """For each (item, line) the last heading at or before that line with those above it; none before the first."""
        ...

    def body_part(self, item_id: int, start: int, end: int) -> str:
        """Characters of a body, from one to just before another; nothing where the item is gone."""
        ...

    def keep_outlines(self, outlines: Sequence[tuple[int, int, Outline]]) -> None:
        """Keep the outlines of items (id, version, outline); of an item at another version by now nothing is kept."""
        ...

    # collections of files
    def collections(self) -> list[Item]:
        """The items that are collections, by name."""
        ...

    def file_records(self, collection: str) -> dict[str, FileRecord]: ...
    def document_versions(self, collection: str) -> dict[str, int]:
        """The version of every document of a collection, by path."""
        ...

    def collection_changed_at(self, collection: str) -> int | None:
        """When a document of it was last added, changed or removed by an update, in microseconds."""
        ...

    def change_folder(self, change: FolderChange) -> FolderResult:
        """All of it in one transaction. Documents that move within the collection keep their vectors."""
        ...

    def drop_collection(self, collection: str) -> int:
        """Remove a collection, its documents and its records; returns how many documents there were."""
        ...

    def rename_collection(self, old: str, new: str) -> None: ...

    # notes, media, conversations, characters and prompts
    def uids(self, item_ids: Sequence[int]) -> dict[int, str]:
        """The UUIDs that export and import know these items by."""
        ...

    def item_of_uid(self, kind: str, uid: str) -> int | None: ...
    def set_uid(self, item_id: int, uid: str) -> None: ...
    def named(self, kind: str, title: str) -> list[int]:
        """The items of a kind with this title, case ignored."""
        ...

    def next_number(self, kind: str) -> int:
        """A number for an item of a kind that none ever had."""
        ...

    def take_number(self, kind: str, number: int) -> None:
        """Give out no number up to this one any more."""
        ...

    def set_version(self, item_id: int, version: int) -> None:
        """Let the last change of an item have made this version of it."""
        ...

    def cues(self, item_id: int) -> list[Cue]: ...
    def set_cues(self, item_id: int, cues: Sequence[Cue]) -> None: ...
    def places(self, item_ids: Sequence[int]) -> dict[int, list[Place]]:
        """Where the chunks of these items are, in order."""
        ...

    def whole(self, item_ids: Sequence[int]) -> list[IndexedItem]:
        """Those of the items that are searched whole, each as if it were one chunk."""
        ...

    def message_ids(self, conversation: str, first: int = 0, limit: int = -1) -> list[int]:
        """The items that are a conversation's messages, in its order, from one on."""
        ...

    def openings(self, conversations: Sequence[str]) -> dict[str, str]:
        """The first messages of these conversations."""
        ...

    def conversations_of(self, character: str) -> list[tuple[int, str]]:
        """The ids and keys of the conversations with a character."""
        ...

    def hidden_nodes(self) -> NDArray[np.int64]:
        """The nodes of tables that are indexed for search tools alone."""
        ...

    def last_modified(self, item_ids: Sequence[int]) -> dict[int, int]:
        """When these were changed, in microseconds; a message without a time of its own when its conversation was."""
        ...

    def media_types(self) -> dict[str, int]:
        """How many media of each type there are."""
        ...

    def latest(self, kind: str, limit: int) -> list[int]:
        """The items of a kind that were changed last, the last first."""
        ...

    def keys(self, kind: str) -> list[tuple[int, str]]:
        """The id and key of every item of a kind."""
        ...

    def titles(self, kind: str, after: str, limit: int) -> list[tuple[int, str]]:
        """Ids and titles of a kind's items in the order of their folded titles, from just after one."""
        ...

    def import_source(self, kind: str, path: str, position: str) -> ImportSource | None: ...
    def import_sources_of(self, item_id: int) -> list[ImportSource]: ...
    def import_sources_at(self, kind: str, path: str) -> list[ImportSource]:
        """All pieces of a path, in the order of their positions."""
        ...

    def set_import_source(self, source: ImportSource) -> None: ...
    def kept_answer(self, owner: str, tool: str, key: str, since: int) -> KeptAnswer | None:
        """What a call with this key was answered at or after a moment."""
        ...

    def keep_answer(self, owner: str, tool: str, key: str, kept: KeptAnswer, *, now: int, since: int) -> None:
        """Keep an answer, and none from before a moment."""
        ...

    # attachments, jobs, settings
    def attach(self, item_id: int, attachments: Sequence[tuple[Attachment, dict[str, JSON]]]) -> None: ...
    def attachments_of_many(self, item_ids: Sequence[int]) -> dict[int, list[tuple[Attachment, dict[str, JSON]]]]: ...
    def attachments_of(self, item_id: int) -> list[tuple[Attachment, dict[str, JSON]]]: ...
    def enqueue(self, kind: str, payload: dict[str, JSON], delay_s: float = 0) -> int: ...
    def claim(self, kind: str, lease_s: float) -> Job | None: ...
    def finish(self, job: Job) -> None:
        """Done. Nothing happens when the lease ran out and another has claimed it since."""
        ...

    def fail(self, job: Job, error: str, retry_s: float) -> None:
        """To be tried again later, unless another has claimed it since."""
        ...

    def job_total(self) -> int:
        """How many jobs are not finished."""
        ...

    def setting(self, name: str) -> JSON: ...
    def set_setting(self, name: str, value: JSON) -> None: ...
    def settle(self, name: str, value: JSON) -> JSON:
        """Set it unless it is set, and return what it is: the same answer to every process that asks at once."""
        ...

    # sessions: the caller brings the time, so that a call has one moment
    def session(self, session: str) -> SessionRow | None: ...
    def add_session(self, session: str, client: str, *, now: int, since: int, most: int) -> SessionRow:
        """The session of this id, made unless there is one that was used since. Who names themselves has it now.

        Where it is made, those not used since go, and then the least recently used until there are `most` of them.
        """
        ...

    def touch_session(self, session: str, now: int) -> None: ...
    def end_session(self, session: str) -> bool:
        """Remove it with all it remembers; False when there was none."""
        ...

    def change_defaults(self, session: str, changes: Mapping[str, JSON], now: int) -> dict[str, JSON]:
        """Merge changes into a session's defaults, None removing one, and return them."""
        ...

    def session_list(self, session: str, key: str) -> SessionList | None: ...
    def seen(self, session: str) -> list[str]:
        """The URIs a session has seen, oldest first."""
        ...

    def mark(self, session: str, returned: Returned, *, now: int, most_uris: int) -> int | None:
        """Remember what was returned, all of it in one transaction; the number of URIs seen then, at most that many.

        None, and nothing is changed, when some of what counts as unseen was returned by another call meanwhile.
        """
        ...

    # care
    def backup(self, target: Path) -> None: ...
    def restore(self, source: Path) -> None:
        """Take over everything from a backup, of a store of any kind, in one transaction."""
        ...

    def check(self) -> list[str]:
        """What is wrong with the store, one sentence each; empty when it is sound."""
        ...

    def leftovers(self, *, drop: bool = False) -> dict[str, int]:
        """How many rows of each sort belong to nothing that is there, and with `drop` are gone now."""
        ...

    def vacuum(self) -> None: ...
