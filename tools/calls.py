"""Count what a warm search of the default profile passes through: modules, calls of our own functions, and their depth.

    python tools/calls.py            the counts
    python tools/calls.py --modules  and the calls in each module
    python tools/calls.py --above    and each call from a room into one above it, which a callback makes

The library has two notes and the model that ships with the package; the search has run often enough that nothing is
opened or compiled. A comprehension is part of the function it stands in, and a generator is called once.
`tests/test_calls.py` holds the counts below a limit.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from inspect import CO_GENERATOR
from pathlib import Path
from types import FrameType
from typing import Any

from commonplace.library import Library
from commonplace.model import Draft
from commonplace.profiles.registry import DEFAULT, profile
from commonplace.server.calls import Failure, run
from commonplace.settings import Settings
from commonplace.tools.tool import Call

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "commonplace"
NOTES = (
    Draft("note", "tea", title="Tea", body="Oolong wants water just off the boil."),
    Draft("note", "bread", title="Bread", body="Knead the dough and bake it. Nothing is needed but time."),
)
WARM_UP = 20
"""Searches before the one that is counted: a noun that is made lazily is compiled once sixteen were made."""
PARTS = frozenset({"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"})
QUERY = {"query": "how hot for oolong", "mode": "auto"}

Function = tuple[str, str, int]
"""Module, qualified name and first line."""


@dataclass
class Passage:
    """What one call passed through."""

    calls: Counter[Function] = field(default_factory=Counter)
    above: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Calls from a function of one module into a function of one in a room above, by both their names."""
    depth: int = 0

    @property
    def modules(self) -> Counter[str]:
        counts: Counter[str] = Counter()
        for (module, _, _), count in self.calls.items():
            counts[module] += count
        return counts


def layers(file: Path = ROOT / "pyproject.toml") -> Sequence[Sequence[str]]:
    """Return the rooms from the highest to the lowest, as the import contract has them."""
    contracts = tomllib.loads(file.read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    rows = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    return [[name.strip(" ()") for name in row.split("|")] for row in rows]


def room_heights() -> dict[str, int]:
    """Return how high each room is: a room may call those that are lower, and those beside it."""
    return {room: -height for height, rooms in enumerate(layers()) for room in rooms}


def passage(work: Callable[[], Any]) -> Passage:
    """Return what `work` passes through, of functions whose source is in the package."""
    heights, seen, stack = room_heights(), Passage(), list[tuple[FrameType, str]]()
    generators: set[FrameType] = set()

    def profiled(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and (module := _module(frame.f_code.co_filename)):
            while stack and not _is_under(frame, stack[-1][0]):
                stack.pop()  # a generator that was left in the middle
            if frame.f_code.co_name not in PARTS and frame not in generators:
                seen.calls[module, frame.f_code.co_qualname, frame.f_code.co_firstlineno] += 1
            if frame.f_code.co_flags & CO_GENERATOR:
                generators.add(frame)
            if stack and _height(heights, module) > _height(heights, stack[-1][1]):
                caller = stack[-1]
                seen.above[f"{caller[1]}.{caller[0].f_code.co_qualname}", f"{module}.{frame.f_code.co_qualname}"] += 1
            stack.append((frame, module))
            seen.depth = max(seen.depth, len(stack))
        elif event == "return" and stack and stack[-1][0] is frame:
            stack.pop()

    sys.setprofile(profiled)
    try:
        work()
    finally:
        sys.setprofile(None)
    return seen


def _is_under(frame: FrameType | None, caller: FrameType) -> bool:
    while frame is not None:
        if frame is caller:
            return True
        frame = frame.f_back
    return False


def _module(filename: str) -> str:
    path = Path(filename)
    if not path.is_relative_to(PACKAGE):
        return ""
    return ".".join(("commonplace", *path.relative_to(PACKAGE).with_suffix("").parts))


def _height(heights: dict[str, int], module: str) -> int:
    parts = module.split(".")
    return next(heights[room] for n in range(len(parts), 0, -1) if (room := ".".join(parts[:n])) in heights)


def warm_search(home: Path) -> Passage:
    """Return what a search passes through in a library of two notes, after the same search has run often."""
    tool = next(tool for tool in profile(DEFAULT).tools if tool.name == "search")
    with Library.open(home, settings=Settings(home=home, model="static")) as library:
        library.put_many(NOTES)
        library.embed()
        call = Call(library)

        def search() -> None:
            answer: Any = run(tool, call, dict(QUERY))
            if isinstance(answer, Failure) or not answer["results"]:
                raise SystemExit(f"The search found nothing: {answer}")

        for _ in range(WARM_UP):
            search()
        return passage(search)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--modules", action="store_true")
    parser.add_argument("--above", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        seen = warm_search(Path(home))
    print(
        f"{seen.calls.total()} calls of {len(seen.calls)} functions in {len(seen.modules)} modules, {seen.depth} deep; "
        f"{seen.above.total()} calls into a room above"
    )
    if options.modules:
        for module, count in seen.modules.most_common():
            print(f"{count:5} {module}")
    if options.above:
        for (caller, called), count in seen.above.most_common():
            print(f"{count:5} {caller} -> {called}")


if __name__ == "__main__":
    main()
