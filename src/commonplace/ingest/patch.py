"""Changing part of a JSON value by another one."""

from __future__ import annotations

from collections.abc import Mapping

from commonplace.model import JSON


def merge(target: JSON, patch: JSON) -> JSON:
    """Return a value with a merge patch (RFC 7396): null removes a member, objects merge, all else replaces."""
    if not isinstance(patch, Mapping):
        return patch
    result = dict(target) if isinstance(target, Mapping) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merge(result.get(name), value)
    return result
