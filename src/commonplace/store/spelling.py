"""A document's name as it is looked up: hashed for its docid, backwards for the ends of paths, folded for any case."""

from __future__ import annotations

import hashlib
import re
from typing import Any

import apsw

from commonplace.text.normal import normalized

_ENDING = re.compile(r"[^./]*\.(?=[^/])")
"""The ending of a path that is written backwards. A name that only begins with a dot has none."""


def name_hash(*name: Any) -> str:
    """What a docid is the beginning of: of a collection and a path."""
    return hashlib.sha256("/".join(name).encode()).hexdigest()


def backwards(file: str) -> str:
    """In NFC, last character first."""
    return (file if file.isascii() else normalized("NFC", file))[::-1]


def name_backwards(*name: Any) -> str:
    return backwards("/".join(name))


def folded(name: str) -> tuple[str, str]:
    """Return the ending of a name that is written backwards, such as `dm.` or '', and the rest, in any case."""
    ending = _ENDING.match(name)
    return (ending[0].casefold(), name[ending.end() :].casefold()) if ending else ("", name.casefold())


def _folded_ending(*name: Any) -> str:
    return folded(name[0])[0]


def _folded_stem(*name: Any) -> str:
    return folded(name[0])[1]


def register(connection: apsw.Connection) -> None:
    """The functions that the triggers of document_names call."""
    connection.create_scalar_function("name_hash", name_hash, 2, deterministic=True)
    connection.create_scalar_function("name_backwards", name_backwards, 2, deterministic=True)
    connection.create_scalar_function("folded_stem", _folded_stem, 1, deterministic=True)
    connection.create_scalar_function("folded_ending", _folded_ending, 1, deterministic=True)
