"""The documents tools as a test calls them: through their declarations, every answer held against its schema."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

from commonplace.library import Library
from commonplace.profiles.registry import profile
from commonplace.server.calls import Failure, run
from commonplace.server.service import with_text
from commonplace.tools.profile import Registry
from commonplace.tools.tool import Call, Reply, View
from kit.answers import present

REGISTRY = Registry(profile("documents"), writable=False)


class Tools:
    """Calls by the short name of a tool: `search`, `get_section`."""

    def __init__(self, library: Library, view: View = View()) -> None:
        self.library, self.view = library, view

    def narrowed(self, *names: str) -> Tools:
        return Tools(self.library, self.view.only(names))

    def reply(self, name: str, /, **arguments: Any) -> Reply:
        """The whole answer, its text included."""
        tool = REGISTRY.find(f"documents_{name}")
        assert tool is not None
        answer = run(tool, Call(self.library, view=self.view), arguments)
        assert not isinstance(answer, Failure), answer
        reply = with_text(answer)
        Draft202012Validator(present(tool.output)).validate(reply.structured)
        return reply

    def __call__(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        structured = self.reply(name, **arguments).structured
        assert structured is not None
        return structured

    def refused(self, name: str, /, **arguments: Any) -> Failure:
        tool = REGISTRY.find(f"documents_{name}")
        assert tool is not None
        answer = run(tool, Call(self.library, view=self.view), arguments)
        assert isinstance(answer, Failure), answer
        assert answer.code != "internal"
        return answer


def first_line(reply: Reply) -> str:
    return str(reply.content[0]["text"]).split("\n", 1)[0]


def parsed(reply: Reply) -> Any:
    """The text of an answer as the JSON it is."""
    return json.loads(reply.content[0]["text"])


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode("utf-8"))
    return root


GUIDE = {
    "tea/oolong.md": (
        "Before any heading: a word about kettles.\n\n# Oolong\n\nOolong is a tea between green and black.\n\n"
        "## Brewing\n\nUse water just off the boil and steep for three minutes.\n\n### Water\n\nSoft water is best.\n\n"
        "## Storing\n\nKeep the leaves dry and dark.\n\n# Notes\n\n## Brewing\n\nA gaiwan works as well as a pot.\n"
    ),
    "tea/green.md": "---\ntitle: Green tea\n---\n\nGreen tea wants cooler water, about eighty degrees.\n",
    "bread.md": "Bread\n=====\n\nKnead the dough and let it rise overnight.\n\nOven\n----\n\nBake it in a hot oven.\n",
    "plain.txt": "Nothing but words about bicycles and chains.\n",
    "windows.md": "# One\r\n\r\ntext\r\n\r\n## Two\r\n\r\nmore\r\n",
    "Zebra.md": "# Zebra\n\nStripes.\n",
    "über/größe.md": "# Größe\n\nMaße und Gewichte.\n",
}
MANUAL = {
    "setup.md": "# Setup\n\nInstall the router and restart the modem.\n\n## Linux\n\nRun the installer.\n",
    "usage.md": "# Usage\n\nBrew tea with the kettle command.\n\n## Brewing\n\nThe water boils by itself.\n",
}
