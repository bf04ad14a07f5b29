"""The result of one sync, in the words and the JSON of the command line."""

from __future__ import annotations

from dataclasses import dataclass, field

from commonplace.model import JSON, number_of


@dataclass(slots=True)
class SyncOutcome:
    """The counts of a sync, and the documents that were skipped, warned about or failed."""

    collection: str
    collection_id: str
    added: int = 0
    updated: int = 0
    removed: int = 0
    unchanged: int = 0
    reindexed: int | None = None
    """The number of documents read and chunked again though they had not changed; None where that was not asked for."""
    total: int = 0
    skipped: list[tuple[str, str]] = field(default_factory=list)
    """(id, reason), as in the next two lists."""
    warnings: list[tuple[str, str]] = field(default_factory=list)
    failed: list[tuple[str, str]] = field(default_factory=list)
    error: str | None = None
    commit: str = ""
    redescribed: bool = False
    """True: the manifest has another name, version or description than before."""

    @property
    def changed(self) -> bool:
        """Return whether any document, or the collection's description, was changed."""
        return bool(self.added or self.updated or self.removed or self.redescribed)

    def warn(self, document: str, what: str) -> None:
        """Add a warning, made into a sentence."""
        self.warnings.append((document, f"{what[:1].upper()}{what[1:]}."))

    def line(self) -> str:
        """Return the counts, or the error, as a line for people."""
        if self.error is not None:
            return f"{self.collection}: {self.error}"
        parts = [f"{self.added} added", f"{self.updated} updated", f"{self.removed} removed"]
        parts.append(f"{self.unchanged} unchanged")
        if self.reindexed is not None:
            parts.append(f"{self.reindexed} reindexed")
        for what, count in (("skipped", len(self.skipped)), ("failed", len(self.failed))):
            if count:
                parts.append(f"{count} {what}")
        return f"{self.collection}: {', '.join(parts)}; {number_of('document', self.total)}"

    def record(self) -> dict[str, JSON]:
        """Return everything as JSON."""
        record: dict[str, JSON] = {
            "collection": self.collection,
            "collectionId": self.collection_id,
            "added": self.added,
            "updated": self.updated,
            "removed": self.removed,
            "unchanged": self.unchanged,
            "total": self.total,
            "skipped": [{"document": name, "reason": reason} for name, reason in self.skipped],
            "warnings": [{"document": name, "reason": reason} for name, reason in self.warnings],
            "failed": [{"document": name, "error": reason} for name, reason in self.failed],
            "error": self.error,
        }
        if self.reindexed is not None:
            record["reindexed"] = self.reindexed
        if self.commit:
            record["commit"] = self.commit
        return record
