"""Vectors and summaries of entries: made after the write, within bounds, or in strict mode before it.

Summaries that are pending are jobs in the store, so that they outlive every process.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from commonplace.errors import CommonplaceError
from commonplace.ingest.embedding import Embedding
from commonplace.kinds.memories.drawer import EntryRows
from commonplace.kinds.memories.entry import GenerationFailed
from commonplace.model import Filter
from commonplace.models import EXTRACTIVE, open_summarizer
from commonplace.models.hurry import hurried
from commonplace.models.providers.replies import RequestRefused, TooLong
from commonplace.models.roles import Generator
from commonplace.settings import Settings
from commonplace.store.base import Store
from commonplace.store.embeddings import Embeddings
from commonplace.store.items import Items
from commonplace.store.job_queue import JobQueue
from commonplace.store.listing import Listing
from commonplace.store.rows import Job, Model, Write
from commonplace.text.summary import extract
from commonplace.text.token_estimates import estimate, reach, safe_cut

log = logging.getLogger(__name__)

JOB = "summary"
MOST_READ = 24_000
"""Tokens of a text that a generator reads; of a longer text it reads the most telling sentences."""
LEAST_READ = 200
SHARE, LEAST_QUOTED = 5, 60
"""A summary by quotation has a `SHARE`th of its text's tokens, and `LEAST_QUOTED` tokens at least."""
FIRST_RETRY_S, LONGEST_RETRY_S = 30.0, 3600.0
MOST_ATTEMPTS = 12
_SCAN = 200

SYSTEM = """You summarise notes that agents leave for each other. Say what the text is about, what was decided, found \
or done, by whom and when, and what is open. Keep names, numbers, paths and identifiers exactly. Use the language of \
the text. Write plain prose without headings, preamble or opinion, and nothing that the text does not say."""


class Summaries:
    """The summaries of one library. Pending ones are jobs in the store, so that they outlive every process."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self._store, self._settings = store, settings
        self._quotes = settings.memory_summarizer == EXTRACTIVE
        self._generator = open_summarizer(settings) if settings.memory_summaries else None

    @property
    def enabled(self) -> bool:
        """Return whether there is a writer of summaries."""
        return self._settings.memory_summaries and (self._quotes or self._generator is not None)

    @property
    def writer(self) -> tuple[str | None, str | None]:
        """Return the provider and the model that write them, None for either that there is not."""
        if not self.enabled:
            return None, None
        if self._generator is None:
            return EXTRACTIVE, None
        provider, _, model = self._generator.name.partition(":")
        return provider, model

    @property
    def problem(self) -> str:
        """Return why no summaries are written, "" where they are. No provider is contacted for this."""
        if not self.enabled:
            return "No generator is configured."
        return getattr(self._generator, "problem", "")

    def wants(self, text: str) -> bool:
        """Return whether a text is long enough to be summarized here."""
        return self.enabled and len(text) >= self._settings.memory_summary_least

    def make(self, text: str) -> str:
        """Return the summary of a text, "" where there is nothing to say. Raise Unavailable where it cannot be had."""
        most = self._settings.memory_summary_tokens
        if self._generator is None:
            return extract(text, min(most, max(LEAST_QUOTED, estimate(text) // SHARE)))
        summary = self._generated(self._generator, text, most)
        return summary[: safe_cut(summary, reach(summary, 0, 4 * most))].strip()

    def _generated(self, generator: Generator, text: str, most: int) -> str:
        excerpt = text if estimate(text) <= MOST_READ else extract(text, MOST_READ)
        system = self._settings.memory_summary_prompt or SYSTEM
        while True:
            try:
                return generator.generate(f"<text>\n{excerpt}\n</text>", system=system, max_tokens=most)
            except TooLong:
                shorter = estimate(excerpt) // 2
                if shorter < LEAST_READ:
                    raise
                excerpt = extract(excerpt, shorter)

    # pending summaries

    def queue(self, item_ids: Sequence[int]) -> None:
        """Queue the summaries of these items. Call it in the transaction that stores them, so that neither is lost."""
        for item_id in item_ids:
            self._store.drawer(JobQueue).enqueue(JOB, {"item": item_id})

    def work(self, stopping: Callable[[], bool] = lambda: False) -> bool:
        """Write queued summaries until none is due or `stopping` returns true. Return whether some are left.

        After a provider fails once it is not asked about the rest: all of it is retried later.
        """
        while self.enabled and self._store.drawer(JobQueue).total() and not stopping():
            job = self._store.drawer(JobQueue).claim(JOB, self._lease)
            if job is None:
                break
            try:
                self._do(job)
            except CommonplaceError as error:
                self._again(job, error)
                break
            self._store.drawer(JobQueue).finish(job)
        return self.enabled and self._store.drawer(JobQueue).total() > 0

    def catch_up(self, progress: Callable[[int, int], None] | None = None) -> int:
        """Summarize every entry that should have a summary and has none, and return how many gained one."""
        if not self.enabled:
            return 0
        filter, after, gained, walked = Filter(kinds=("memory",)), 0, 0, 0
        total = len(self._store.drawer(Listing).select(filter))
        while items := self._store.drawer(Listing).scan(filter, after=after, limit=_SCAN, body=True):
            for item in items:
                body = item.body or ""
                if self.wants(body) and not str(item.fields.get("summary") or "").strip():
                    gained += self._store.drawer(EntryRows).set_summary(item.id, body, self.make(body))
            after, walked = items[-1].id, walked + len(items)
            if progress:
                progress(walked, total)
        self.work()  # removes jobs whose summaries were just written
        return gained

    @property
    def _lease(self) -> float:
        return self._settings.generator_attempts * self._settings.generator_timeout_ms / 1000 + 60

    def _do(self, job: Job) -> None:
        """Write the summary of a job's item, where it still needs one."""
        items = self._store.drawer(Items).get([int(job.payload["item"])], body=True)
        if not items or str(items[0].fields.get("summary") or "").strip():
            return
        body = items[0].body or ""
        if self.wants(body):
            self._store.drawer(EntryRows).set_summary(items[0].id, body, self.make(body))

    def _again(self, job: Job, error: CommonplaceError) -> None:
        """Schedule a retry of a job that failed, or drop it after too many attempts where the text is at fault."""
        if job.attempts >= MOST_ATTEMPTS and _is_about_the_text(error):  # all else may pass
            log.warning("An entry stays without a summary after %d attempts: %s", job.attempts, error)
            self._store.drawer(JobQueue).finish(job)
            return
        log.info("A summary is put off: %s", error)
        self._store.drawer(JobQueue).fail(
            job, str(error), min(LONGEST_RETRY_S, FIRST_RETRY_S * 2 ** (job.attempts - 1))
        )


def _is_about_the_text(error: CommonplaceError) -> bool:
    """Return whether the text is at fault, so that a provider would give the same error tomorrow."""
    return isinstance(error, TooLong) or (isinstance(error, RequestRefused) and error.answered in (400, 413, 422))


# vectors and summaries of one write


MOST_CHUNKS = 64
MOST_S = 2.0
_FAILURES = (CommonplaceError, OSError, RuntimeError, ValueError)
"""Errors a provider may raise, its own library's included. A write that is durable must not fail because of one."""

REST_S = 30.0
"""Seconds for which a provider that failed is left alone."""


class Ahead:
    """Vectors and summaries that were made before a write and are stored with it."""

    def __init__(
        self,
        store: Store,
        vectors: tuple[Model, list[tuple[bytes, bytes]]] | None = None,
        summaries: Sequence[str] = (),
    ) -> None:
        self._store, self._vectors, self._summaries = store, vectors, tuple(summaries)

    def summarized(self, writes: Sequence[Write]) -> list[Write]:
        """Return the same writes with their summaries, where any were made."""
        if not self._summaries:
            return list(writes)
        pairs = zip(writes, self._summaries, strict=True)
        return [_with_summary(write, summary) if summary else write for write, summary in pairs]

    def keep(self) -> None:
        """Store the vectors. Call it in the transaction that has stored their passages."""
        if self._vectors is not None:
            self._store.drawer(Embeddings).add(*self._vectors)


def _with_summary(write: Write, summary: str) -> Write:
    return replace(write, draft=replace(write.draft, fields={**write.draft.fields, "summary": summary}))


class Generation:
    """A maker of vectors and summaries. No failure in it fails a store, except in strict mode."""

    def __init__(self, store: Store, embedding: Embedding, settings: Settings) -> None:
        self._store, self._embedding = store, embedding
        self.summaries = Summaries(store, settings)
        self.enabled = settings.memory_embedding
        self.strict = settings.memory_generation == "strict"
        self._resting_until = 0.0

    def after(self, item_ids: Sequence[int]) -> set[int]:
        """Embed items that were just stored, for at most `MOST_S` seconds.

        Return the items that have all their vectors; the others are left to background work.
        """
        if not self.enabled or not item_ids or time.monotonic() < self._resting_until:
            return set()
        try:
            with hurried(MOST_S):
                return self._embedding.embed_items(item_ids, most=MOST_CHUNKS, seconds=MOST_S)
        except _FAILURES as error:
            log.info("Memories are stored without vectors for now: %s", error)
            self._resting_until = time.monotonic() + REST_S
            return set()

    def before(self, writes: Sequence[Write], *, batch: bool) -> Ahead:
        """Return the vectors and summaries of writes to come in strict mode; nothing otherwise.

        Raise GenerationFailed where one of them cannot be made.
        """
        if not self.strict or not writes:
            return Ahead(self._store)
        failures: dict[str, Exception] = {}
        vectors, summaries = None, list[str]()
        try:
            passages = [passage for write in writes for passage in write.passages]
            vectors = self._embedding.make(passages) if self.enabled and passages else None
        except _FAILURES as error:
            failures["embedding"] = error
        try:
            summaries = [self._summary(write.draft.body) for write in writes]
        except _FAILURES as error:
            failures["summary"] = error
        if failures:
            raise _failed(failures, batch=batch)
        return Ahead(self._store, vectors, summaries if any(summaries) else ())

    def _summary(self, text: str) -> str:
        return self.summaries.make(text) if self.summaries.wants(text) else ""

    def later(self, texts: Mapping[int, str]) -> None:
        """Queue the summaries of items that were just stored, given as texts by item id.

        Call it in their transaction.
        """
        if not self.strict:
            self.summaries.queue([item_id for item_id, text in texts.items() if self.summaries.wants(text)])


def _failed(failures: Mapping[str, Exception], *, batch: bool) -> GenerationFailed:
    parts = []
    for kind, error in failures.items():
        log.info("Nothing is stored: %s", error)
        reason = str(error) if isinstance(error, CommonplaceError) else "the model failed; the log says how"
        parts.append(f"{kind}: {reason.rstrip('.')}" if len(failures) > 1 else f"{kind}: {reason}")
    sentence = f"Generation failed after exhausting configured retries: {'; '.join(parts)}"
    return GenerationFailed(f"{sentence.rstrip('.')}. No data was saved." if batch else sentence)
