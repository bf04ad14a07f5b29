"""The documents of one space, for whoever may see them: every method is told in which collections."""

from __future__ import annotations

from collections.abc import Callable

from commonplace.kinds.documents.finding import DocumentSearch
from commonplace.kinds.documents.reading import DocumentReader
from commonplace.search.pipeline import Pipeline, Semantic
from commonplace.store.base import Store


class Documents:
    """How documents are read, and how passages of them are found."""

    def __init__(self, store: Store, pipeline: Pipeline, semantic: Callable[[], Semantic]) -> None:
        self.reading = DocumentReader(store)
        self.finding = DocumentSearch(store, self.reading, pipeline, semantic)
