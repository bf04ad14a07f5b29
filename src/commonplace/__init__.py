"""Commonplace: one local engine that keeps what an agent may need to look up."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from commonplace.library import Library as Library
    from commonplace.model import Draft as Draft
    from commonplace.model import Filter as Filter

__version__ = "0.2.0"
__all__ = ["Draft", "Filter", "Library", "__version__"]

_HOMES = {"Library": "commonplace.library", "Draft": "commonplace.model", "Filter": "commonplace.model"}


def __getattr__(name: str) -> Any:
    """Loaded when first used: `commonplace --help` needs none of it."""
    if name not in _HOMES:
        raise AttributeError(f"module 'commonplace' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
