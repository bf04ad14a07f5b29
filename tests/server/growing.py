"""A profile whose lists grow, and a server of it: `python growing.py HOME [PORT]`, without a port on standard input."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from commonplace.errors import NotFound
from commonplace.model import JSON, Draft
from commonplace.profiles import registry
from commonplace.server.auth import make_gate
from commonplace.server.http import serve_http
from commonplace.server.mcp import serve_stdio
from commonplace.server.principal import OWNER
from commonplace.server.service import Service
from commonplace.settings import Settings
from commonplace.space import Space
from commonplace.store.listing import Listing
from commonplace.tools.profile import Profile, Prompts, Resources
from commonplace.tools.schema import choice, obj, text
from commonplace.tools.tool import ADDS, Answer, Call, Tool


def add(call: Call, given: Mapping[str, JSON]) -> Answer:
    call.space.put(Draft(given["kind"], given["name"], body="Something to start from."))
    return {"added": given["name"]}


def count(kind: str) -> Callable[[Space], int]:
    return lambda space: space.store.drawer(Listing).counts().get(kind, 0)


def page(call: Call, cursor: str | None) -> tuple[Sequence[Mapping[str, JSON]], str | None]:
    return [{"name": f"prompt {number}"} for number in range(count("prompt")(call.space))], None


def nothing(call: Call, name: str, *more: object) -> Mapping[str, JSON]:
    raise NotFound(f"There is no {name}.")


ADD = Tool(
    "add",
    "Add",
    "Add an item.",
    obj(required=("name",), kind=choice("What.", "prompt", "note", "message"), name=text("Its name.")),
    None,
    ADDS,
    add,
)
PROFILE = Profile(
    "growing",
    (ADD,),
    lambda library: "Lists that grow.",
    always_writes=True,
    resources=Resources(nothing),
    prompts=Prompts(page, nothing),
    lists={"prompts": count("prompt"), "resources": count("note")},
)

if __name__ == "__main__":
    home, *port = sys.argv[1:]
    registry.PROFILES["growing"] = "growing"
    settings = Settings(home=Path(home), models=Path(home) / "models", model="static")
    if port:
        serve_http(settings, make_gate(settings), "127.0.0.1", int(port[0]))
    else:
        service = Service(settings)
        try:
            serve_stdio(service, "growing", OWNER)
        finally:
            service.close()
