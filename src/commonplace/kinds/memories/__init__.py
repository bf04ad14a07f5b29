"""What agents tell each other: entries in threads that are stored, found again, revised, replaced and forgotten."""

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
