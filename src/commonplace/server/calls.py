"""One call of one tool, whichever door it came through: an answer, or an error in words."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from uuid import uuid4

from commonplace.errors import CommonplaceError
from commonplace.library import Library
from commonplace.model import JSON
from commonplace.surfaces.tool import Tool

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Failure:
    """What went wrong, as every door says it. `status` is the HTTP one."""

    code: str
    message: str
    status: int

    def record(self) -> dict[str, JSON]:
        return {"error": {"code": self.code, "message": self.message}}


def run(tool: Tool, library: Library, arguments: Mapping[str, JSON]) -> dict[str, JSON] | Failure:
    """Never raises: a bug is logged under a number, and the caller gets the number."""
    try:
        return tool.call(library, arguments)
    except CommonplaceError as error:
        return Failure(error.code, str(error), error.status)
    except Exception:
        reference = uuid4().hex[:8]
        log.exception("%s failed (%s)", tool.name, reference)
        sentence = f"{tool.name} failed unexpectedly. The log has the details under {reference}."
        return Failure("internal", sentence, 500)
