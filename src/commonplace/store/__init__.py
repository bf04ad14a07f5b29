"""The truth: items, chunks, vectors and the log they are written to."""

from commonplace.store.base import Store
from commonplace.store.rows import Attachment, Job, Model, Passage, Write
from commonplace.store.sqlite.store import SqliteStore

__all__ = ["Attachment", "Job", "Model", "Passage", "SqliteStore", "Store", "Write"]
