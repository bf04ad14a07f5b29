"""A document's name as it is looked up: hashed for its docid, backwards for the ends of paths."""

from __future__ import annotations

import hashlib
from typing import Any

import apsw

from commonplace.text.normal import normalized


def name_hash(*name: Any) -> str:
    """What a docid is the beginning of: of a collection and a path."""
    return hashlib.sha256("/".join(name).encode()).hexdigest()


def backwards(file: str) -> str:
    """In NFC, last character first."""
    return (file if file.isascii() else normalized("NFC", file))[::-1]


def name_backwards(*name: Any) -> str:
    return backwards("/".join(name))


def register(connection: apsw.Connection) -> None:
    """The functions that the triggers of document_names call."""
    connection.create_scalar_function("name_hash", name_hash, 2, deterministic=True)
    connection.create_scalar_function("name_backwards", name_backwards, 2, deterministic=True)
