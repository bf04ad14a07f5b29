"""Memories: entries in threads that agents store for each other, find again, revise, replace and let expire."""

from commonplace.kinds.memories.entry import (
    UNSET,
    BatchFailed,
    Entry,
    EntryChanged,
    GenerationFailed,
    Image,
    New,
    NoEntry,
    Revised,
    Revision,
    Stored,
    normal_tags,
)
from commonplace.kinds.memories.memories import Memories

__all__ = [
    "UNSET",
    "BatchFailed",
    "Entry",
    "EntryChanged",
    "GenerationFailed",
    "Image",
    "Memories",
    "New",
    "NoEntry",
    "Revised",
    "Revision",
    "Stored",
    "normal_tags",
]
