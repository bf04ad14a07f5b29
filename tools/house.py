"""Print how the source is laid out: modules, lines, names that repeat, and the largest of each thing.

`tests/test_house.py` holds each figure below a limit.
Run `python tools/house.py --list FIGURE` to see what a figure counts.
"""

import argparse
import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1] / "src"
PACKAGE = "commonplace"
RIDDLES = ("What ", "Whether ", "Who ", "How ", "It ", "Those ", "Where ")
SHARED_BASENAMES = frozenset(
    {"__init__", "__main__", "tools", "drawer", "sqlite", "postgres", "rows", "commands"},
)  # the same part of several kinds may have the same name

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Module:
    """One parsed source file."""

    name: str
    path: Path
    lines: int
    tree: ast.Module


@dataclass(frozen=True)
class Figure:
    """A count, and what was counted as readable lines, largest first where there is a size."""

    value: float
    items: Sequence[str]


def read_modules(source: Path = SOURCE) -> list[Module]:
    """Return every module of the package under `source`, sorted by name."""
    modules = []
    for path in sorted((source / PACKAGE).rglob("*.py")):
        text = path.read_text("utf-8")
        name = ".".join(path.relative_to(source).with_suffix("").parts).removesuffix(".__init__")
        modules.append(Module(name, path, len(text.splitlines()), ast.parse(text)))
    return modules


def figures(modules: Sequence[Module]) -> dict[str, Figure]:
    """Return every figure by its name."""
    classes = _classes(modules)
    sizes = {name: len(_public_methods(name, classes)) for name in classes}
    bases = {name: len(node.bases) for name, (_, node) in classes.items()}
    return {
        "modules": Figure(len(modules), [module.name for module in modules]),
        "lines": Figure(sum(module.lines for module in modules), []),
        "longest_file": _largest({module.name: module.lines for module in modules}),
        "longest_function": _largest(_function_lengths(modules)),
        "largest_interface": _largest(sizes),
        "most_bases": _largest(bases),
        "private_imports": _private_imports(modules),
        "repeated_classes": _repeated_classes(modules),
        "repeated_basenames": _repeated_basenames(modules),
        "lazy_dataclass_importers": _importers(modules, "lazy_dataclass"),
        "riddle_docstrings_percent": _riddles(modules),
    }


def _largest(sizes: Mapping[str, int]) -> Figure:
    ranked = sorted(sizes.items(), key=lambda pair: (-pair[1], pair[0]))
    return Figure(ranked[0][1], [f"{size:>6}  {name}" for name, size in ranked[:40]])


def _classes(modules: Sequence[Module]) -> dict[str, tuple[Module, ast.ClassDef]]:
    return {
        f"{module.name}.{node.name}": (module, node)
        for module in modules
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ClassDef)
    }


def _public_methods(name: str, classes: Mapping[str, tuple[Module, ast.ClassDef]]) -> set[str]:
    """Return the public methods of a class, those of its bases in the package included."""
    by_short_name: dict[str, list[str]] = defaultdict(list)
    for full in classes:
        by_short_name[full.rpartition(".")[2]].append(full)
    methods: set[str] = set()
    seen: set[str] = set()
    todo = [name]
    while todo:
        current = todo.pop()
        if current in seen:
            continue
        seen.add(current)
        module, node = classes[current]
        methods |= {part.name for part in node.body if isinstance(part, Function) and not part.name.startswith("_")}
        for base in node.bases:
            short = ast.unparse(base).split("[")[0].rpartition(".")[2]
            full = _imported_name(module, short)
            todo += [full] if full in classes else [other for other in by_short_name[short] if other != current][:1]
    return methods


def _imported_name(module: Module, short: str) -> str:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                if (alias.asname or alias.name) == short:
                    return f"{node.module}.{alias.name}"
    return f"{module.name}.{short}"


def _functions(modules: Sequence[Module]) -> Iterator[tuple[str, Function]]:
    for module in modules:
        for node in ast.walk(module.tree):
            if isinstance(node, Function):
                yield f"{module.name}:{node.name}", node


def _function_lengths(modules: Sequence[Module]) -> dict[str, int]:
    return {name: (node.end_lineno or node.lineno) - node.lineno + 1 for name, node in _functions(modules)}


def _private_imports(modules: Sequence[Module]) -> Figure:
    items = [
        f"{module.name} imports {node.module}.{alias.name}"
        for module in modules
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(PACKAGE)
        for alias in node.names
        if alias.name.startswith("_") and not alias.name.startswith("__")
    ]
    return Figure(len(items), items)


def _repeated_classes(modules: Sequence[Module]) -> Figure:
    places: dict[str, list[str]] = defaultdict(list)
    for module in modules:
        for node in module.tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(module.name)
    items = [f"{name}: {', '.join(found)}" for name, found in sorted(places.items()) if len(found) > 1]
    return Figure(len(items), items)


def _repeated_basenames(modules: Sequence[Module]) -> Figure:
    places: dict[str, list[str]] = defaultdict(list)
    for module in modules:
        if module.path.stem not in SHARED_BASENAMES:
            places[module.path.stem].append(module.name)
    items = [f"{name}: {', '.join(found)}" for name, found in sorted(places.items()) if len(found) > 1]
    return Figure(len(items), items)


def _importers(modules: Sequence[Module], target: str) -> Figure:
    items = [
        module.name
        for module in modules
        if any(
            isinstance(node, ast.ImportFrom) and node.module == f"{PACKAGE}.{target}" for node in ast.walk(module.tree)
        )
    ]
    return Figure(len(items), items)


def _riddles(modules: Sequence[Module]) -> Figure:
    """Return the percentage of docstrings of functions and classes that do not begin with what is returned or done."""
    total, items = 0, []
    for module in modules:
        for node in ast.walk(module.tree):
            if isinstance(node, Function | ast.ClassDef) and (text := ast.get_docstring(node)):
                total += 1
                if text.startswith(RIDDLES):
                    items.append(f"{module.name}:{node.name}: {text.splitlines()[0]}")
    return Figure(round(100 * len(items) / max(total, 1), 1), items)


def main() -> None:
    """Print all figures, or what one of them counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--list", metavar="FIGURE", help="print what this figure counts")
    listed = parser.parse_args().list
    all_figures = figures(read_modules())
    if listed:
        print("\n".join(all_figures[listed].items))
        return
    for name, figure in all_figures.items():
        print(f"{name:28} {figure.value:>8g}")


if __name__ == "__main__":
    main()
