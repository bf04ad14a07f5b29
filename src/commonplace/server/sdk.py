"""Lazy loading of the MCP SDK: only the parts that serve are loaded.

`mcp` and `mcp.server` import all that the SDK has as soon as one module of theirs is imported: its clients, its other
server, httpx2, cryptography. A server on standard input and output uses none of it, and it is 12 MB and a tenth of a
second. So both packages are registered without being run, and run when somebody asks one of them for a name.

`sse_starlette`, which the SDK imports, loads uvicorn, and with it all that uvicorn may reload code by, to put itself in
the way of its signals. Who serves HTTP says farewell otherwise (`http.Farewell`), so that it is not to find it.
"""

from __future__ import annotations

import sys
import threading
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.abc import Loader

_PACKAGES = ("mcp", "mcp.server")


def load_lazily() -> None:
    """Register the SDK's packages without running them. Call it before the SDK is imported; loaded packages stay."""
    for name in _PACKAGES:
        if name not in sys.modules and (spec := find_spec(name)) and spec.loader:
            parent, _, own = name.rpartition(".")
            module = sys.modules[name] = _deferred_module(spec, spec.loader)
            if parent:
                setattr(sys.modules[parent], own, module)
    _load_without("uvicorn.main", "sse_starlette")


def _load_without(unwanted: str, name: str) -> None:
    """Load a module as if another, which it can do without, were not installed."""
    if unwanted not in sys.modules:
        sys.modules[unwanted] = None  # type: ignore[assignment]  # so importing it raises ImportError
        try:
            import_module(name)
        finally:
            del sys.modules[unwanted]


def _deferred_module(spec: ModuleSpec, loader: Loader) -> ModuleType:
    """Return a package whose modules can be imported; it runs when asked for a name it does not have yet."""
    module, running, begun = module_from_spec(spec), threading.RLock(), False

    def ask(name: str) -> Any:
        nonlocal begun
        with running:  # who comes while it runs waits for the end, but for what it imports itself
            if not begun:
                begun = True
                loader.exec_module(module)
                del module.__getattr__
        if name in module.__dict__:
            return module.__dict__[name]
        raise AttributeError(f"module {spec.name!r} has no attribute {name!r}")

    module.__getattr__ = ask  # type: ignore[method-assign]
    return module
