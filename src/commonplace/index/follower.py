"""The interface of every index derived from the log, and the error of a damaged one."""

from __future__ import annotations

from typing import Protocol


class Follower(Protocol):
    """An index derived from the log, and disposable: `reset` then `catch_up` rebuilds it."""

    def position(self) -> int:
        """Return the number of the last change in the latest durable commit; 0 when empty."""
        ...

    def catch_up(self) -> int:
        """Apply what is pending and return the position. Safe to kill, to repeat, and to run in many processes."""
        ...

    def reset(self) -> None:
        """Remove everything, the position included."""
        ...


class IndexDamaged(Exception):
    """An index file is missing, cut short or altered. Never reaches a caller: the index is rebuilt from the store."""
