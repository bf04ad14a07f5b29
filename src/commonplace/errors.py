"""Every error a caller can see. Each says what is so and what to do about it.

CommonplaceError
├── InvalidInput          what was asked cannot be read
├── NotFound              there is no such item, collection, model or file
├── AlreadyExists         the name, or the thing itself, is there already
├── VersionConflict       someone else wrote first
├── WritesDisabled        the tool writes, and writing is off
├── Denied                the caller may not do that
├── RateLimited           the caller asks too often
├── TooLarge              more than one call may send
├── Busy                  another process holds what this call needs
├── StorageFull           the disk has no room
├── StorageBroken         the store itself cannot be read; restore a backup
└── Unavailable           a model or service this call needs is not there
    ├── DownloadFailed    a model file could not be fetched or does not match its checksum
    └── Offline           it would need the network, which the setting `offline` forbids
"""

from __future__ import annotations

from typing import Any

LONE_SURROGATE = "What was asked holds a lone surrogate, which is no character. Remove it."
"""The answer to text that JSON can escape and UTF-8 cannot write."""

NUMBER_TAKEN = "The number of a memory is its own in the whole library, and this one is another's. Give it another."


class CommonplaceError(Exception):
    """The root: one sentence for the caller, a stable code for programs."""

    code = "error"
    status = 500
    exit_code = 1

    def __init__(self, message: str, *, code: str | None = None, **details: Any) -> None:
        super().__init__(message)
        self.code = code or type(self).code
        self.details = details
        """Values for a program beside the sentence, such as the `argument` that is meant."""

    @property
    def reason(self) -> str:
        """Return the sentence as a part of another one, which has its own full stop."""
        return str(self).removesuffix(".")

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the error for other processes, which have the sentence, but not what it was made of."""
        return Exception.__new__, (type(self), *self.args), vars(self)


class InvalidInput(CommonplaceError):
    code, status, exit_code = "invalid_argument", 400, 2


class NotFound(CommonplaceError):
    code, status, exit_code = "not_found", 404, 1


class AlreadyExists(CommonplaceError):
    code, status, exit_code = "already_exists", 409, 1


class VersionConflict(CommonplaceError):
    code, status, exit_code = "conflict", 409, 4

    def __init__(self, uri: str, expected: int, actual: int) -> None:
        self.uri, self.expected, self.actual = uri, expected, actual
        super().__init__(f"{uri} is at version {actual}, not {expected}. Fetch it and repeat the change.")


class WritesDisabled(CommonplaceError):
    code, status, exit_code = "writes_disabled", 403, 77

    def __init__(self, tool: str) -> None:
        super().__init__(
            f"{tool} writes to the library and writing is off. Start with --allow-writes or set allow_writes = true."
        )


class Denied(CommonplaceError):
    code, status, exit_code = "denied", 403, 77


class RateLimited(CommonplaceError):
    code, status, exit_code = "rate_limited", 429, 75

    def __init__(self, tool: str, retry_after: float) -> None:
        self.retry_after = retry_after
        super().__init__(
            f"{tool} was called too often. Try again in {retry_after:.0f} s.", retry_after=round(retry_after, 1)
        )


class TooLarge(CommonplaceError):
    code, status, exit_code = "too_large", 413, 2


class Busy(CommonplaceError):
    code, status, exit_code = "busy", 503, 75


class StorageFull(CommonplaceError):
    code, status, exit_code = "storage_full", 507, 74


class StorageBroken(CommonplaceError):
    code, status, exit_code = "storage_broken", 500, 74


class Unavailable(CommonplaceError):
    code, status, exit_code = "unavailable", 503, 69


class DownloadFailed(Unavailable):
    code = "download_failed"


class Offline(Unavailable):
    code = "offline"
