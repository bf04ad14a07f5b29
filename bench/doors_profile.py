"""A profile with one tool that does nothing, so that what is measured is the door."""

from __future__ import annotations

from collections.abc import Mapping

from commonplace.model import JSON
from commonplace.tools.profile import Profile
from commonplace.tools.schema import STRING, answer, obj
from commonplace.tools.tool import READ_ONLY, Call, Tool


def ping(call: Call, given: Mapping[str, JSON]) -> dict[str, JSON]:
    return {"text": given["text"]}


PING = Tool("ping", "Ping", "Answers.", obj(required=("text",), text=STRING), answer(text=STRING), READ_ONLY, ping)
PROFILE = Profile("ping", (PING,), lambda library: "Nothing is here.")
