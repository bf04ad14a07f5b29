"""Packages of documents: declared in `context.json`, described by `manifest.json`, read from folders, archives, web
servers and repositories, and kept level by `sync`."""

from __future__ import annotations

from commonplace.kinds.documents.packages.registry import declared

__all__ = ["declared"]
