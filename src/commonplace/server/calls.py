"""One call of one tool through any door: an answer, or a failure with its sentence."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from uuid import uuid4

from commonplace.errors import CommonplaceError
from commonplace.model import JSON
from commonplace.tools.tool import Answer, Call, Tool

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Failure:
    """A failed call, in the form that every door serves. `status` is the HTTP status."""

    code: str
    message: str
    status: int
    details: Mapping[str, JSON] = field(default_factory=dict)

    @classmethod
    def of(cls, error: CommonplaceError) -> Failure:
        return cls(error.code, str(error), error.status, error.details)

    def record(self) -> dict[str, JSON]:
        return {"error": {"code": self.code, "message": self.message, **self.details}}


def run(tool: Tool, call: Call, arguments: Mapping[str, JSON]) -> Answer | Failure:
    """Return the tool's answer or a Failure. Never raises: a bug is logged under a number that the caller gets."""
    try:
        return tool.call(call, arguments)
    except CommonplaceError as error:
        return Failure.of(error)
    except Exception:
        reference = uuid4().hex[:8]
        log.exception("%s failed (%s)", tool.name, reference)
        sentence = f"{tool.name} failed unexpectedly. The log has the details under {reference}."
        return Failure("internal", sentence, 500, {"reference": reference})
