"""Prefixes of models that many people serve: the words that a question or a passage must begin with."""

from __future__ import annotations

from dataclasses import dataclass

_ARCTIC = "Represent this sentence for searching relevant passages: "
_QWEN = "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery: "


@dataclass(frozen=True, slots=True)
class Prefixes:
    query: str = ""
    passage: str = ""


_KNOWN: tuple[tuple[str, Prefixes], ...] = (
    ("nomic-embed", Prefixes("search_query: ", "search_document: ")),
    ("embeddinggemma", Prefixes("task: search result | query: ", "title: none | text: ")),
    ("qwen3-embedding", Prefixes(_QWEN)),
    ("arctic-embed2", Prefixes("query: ")),
    ("arctic-embed-l-v2", Prefixes("query: ")),
    ("arctic-embed-m-v2", Prefixes("query: ")),
    ("arctic-embed", Prefixes(_ARCTIC)),
    ("mxbai-embed", Prefixes(_ARCTIC)),
    ("bge-m3", Prefixes()),
    ("bge-", Prefixes(_ARCTIC)),
    ("multilingual-e5", Prefixes("query: ", "passage: ")),
    ("e5-small", Prefixes("query: ", "passage: ")),
    ("e5-base", Prefixes("query: ", "passage: ")),
    ("e5-large", Prefixes("query: ", "passage: ")),
)
"""Fragments of names, the first that fits counts. `instruct` variants of e5 want an instruction of the user's own."""


def prefixes_of(model: str) -> Prefixes:
    """Return the prefixes of the model with this name, whatever tag, owner or folder stands around it.

    They are empty where none are known.
    """
    name = model.lower()
    if "instruct" in name and "qwen3" not in name:
        return Prefixes()
    return next((prefixes for fragment, prefixes in _KNOWN if fragment in name), Prefixes())
