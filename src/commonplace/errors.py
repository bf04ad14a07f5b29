"""Every error a caller can see. Each says what is so and what to do about it.

CommonplaceError
├── InvalidInput          what was asked cannot be read
├── NotFound              there is no such item, collection, model or file
├── VersionConflict       someone else wrote first
├── Busy                  another process holds what this call needs
├── StorageFull           the disk has no room
├── StorageBroken         the store itself cannot be read; restore a backup
└── Unavailable           a model or service this call needs is not there
    └── DownloadFailed    a model file could not be fetched or does not match its checksum
"""

from __future__ import annotations


class CommonplaceError(Exception):
    """The root: one sentence for the caller, a stable code for programs."""

    code = "error"
    status = 500
    exit_code = 1


class InvalidInput(CommonplaceError):
    code, status, exit_code = "invalid_argument", 400, 2


class NotFound(CommonplaceError):
    code, status, exit_code = "not_found", 404, 1


class VersionConflict(CommonplaceError):
    code, status, exit_code = "version_conflict", 409, 4

    def __init__(self, uri: str, expected: int, actual: int) -> None:
        self.uri, self.expected, self.actual = uri, expected, actual
        super().__init__(f"{uri} is at version {actual}, not {expected}. Fetch it and repeat the change.")


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
