"""The documents of one space. It checks no rights: each method takes the collections that its caller may see."""

from __future__ import annotations

from commonplace.kinds.documents.finding import DocumentSearch
from commonplace.kinds.documents.reading import DocumentReader
from commonplace.space import Space


class Documents:
    """The reader and the search of one space's documents."""

    def __init__(self, space: Space) -> None:
        self.reading = DocumentReader(space.store)
        self.finding = DocumentSearch(space.store, self.reading, space.engine, space.semantic)
