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

from collections.abc import Callable
from typing import Any, NamedTuple, Self

LONE_SURROGATE = "What was asked holds a lone surrogate, which is no character. Remove it."
"""The answer to text that JSON can escape and UTF-8 cannot write."""

NUMBER_TAKEN = "The number of a memory is its own in the whole library, and this one is another's. Give it another."


class Command(NamedTuple):
    """A command that helps. A door writes it as its callers type it, with the options they chose."""

    arguments: str
    program: str = "commonplace"

    def __str__(self) -> str:
        return f"{self.program} {self.arguments}"


class Sentence(str):
    """A text for the caller that names commands: readable as it is, and with its parts for a door that types them."""

    parts: tuple[str | Command, ...]

    def __new__(cls, *parts: str | Command) -> Self:
        """Join the parts; those of a sentence inside stay what they are."""
        flat = [one for part in parts for one in (part.parts if isinstance(part, Sentence) else (part,))]
        made = super().__new__(cls, "".join(map(str, flat)))
        made.parts = tuple(flat)
        return made

    def typed(self, how: Callable[[Command], str]) -> str:
        """Return the text with each command as `how` writes it."""
        return "".join(how(part) if isinstance(part, Command) else part for part in self.parts)

    def clause(self) -> Sentence:
        """Return it as a part of another sentence, which has its own full stop."""
        last = self.parts[-1] if self.parts else ""
        return self if isinstance(last, Command) else Sentence(*self.parts[:-1], last.removesuffix("."))

    def capitalized(self) -> Sentence:
        """Return it with a capital at its beginning."""
        first = self.parts[0] if self.parts else ""
        return self if isinstance(first, Command) else Sentence(first[:1].upper() + first[1:], *self.parts[1:])


class CommonplaceError(Exception):
    """The root: one sentence for the caller, a stable code for programs."""

    code = "error"
    status = 500
    exit_code = 1

    def __init__(self, *words: str | Command, code: str | None = None, **details: Any) -> None:
        """Join the words to the sentence: texts, and the commands that help."""
        super().__init__(Sentence(*words))
        self.code = code or type(self).code
        self.details = details
        """Values for a program beside the sentence, such as the `argument` that is meant."""

    @property
    def sentence(self) -> Sentence:
        """Return what it says with the commands that help, for a door that types them in its own way."""
        return Sentence(self.args[0])

    @property
    def reason(self) -> Sentence:
        """Return the sentence as a part of another one, which has its own full stop."""
        return self.sentence.clause()

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the error for other processes, which have the sentence, but not what it was made of."""
        return Exception.__new__, (type(self), *self.args), vars(self)


def said_by(error: Exception) -> Sentence:
    """Return the sentence of any error, as a part of another one."""
    return error.reason if isinstance(error, CommonplaceError) else Sentence(str(error)).clause()


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
