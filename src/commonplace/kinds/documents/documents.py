"""The documents of one space. It checks no rights: each method takes the collections that its caller may see."""

from __future__ import annotations

from collections.abc import Callable

from commonplace.kinds.documents.finding import DocumentSearch
from commonplace.kinds.documents.reading import DocumentReader
from commonplace.search.pipeline import Pipeline, Semantic
from commonplace.store.base import Store


class Documents:
    """The reader and the search of one space's documents."""

    def __init__(self, store: Store, pipeline: Pipeline, semantic: Callable[[], Semantic]) -> None:
        self.reading = DocumentReader(store)
        self.finding = DocumentSearch(store, self.reading, pipeline, semantic)
