"""XML from anywhere, read as it comes: no entity is expanded, nothing outside is fetched, no tree is built."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from xml.parsers import expat

Start = Callable[[str, Mapping[str, str]], None]
End = Callable[[str], None]
Text = Callable[[str], None]

DEEPEST = 1000


class BadXml(ValueError):
    """XML that is refused or cannot be read."""


def read_xml(data: bytes, start: Start, end: End, text: Text) -> None:
    """Call back for each element and its text. Names come without their namespace: `w:p` is `p`.

    A document may name its type, as old EPUBs do, but may declare no entity: that is how small files grow without end.
    """
    parser = expat.ParserCreate()
    parser.buffer_text = True
    depth = 0

    def opens(name: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > DEEPEST:
            raise BadXml(f"its elements are nested more than {DEEPEST} deep")
        start(_local(name), {_local(key): value for key, value in attributes.items()})

    def closes(name: str) -> None:
        nonlocal depth
        depth -= 1
        end(_local(name))

    def refuses(*declared: object) -> None:
        raise BadXml("it declares entities, which are refused")

    parser.StartElementHandler, parser.EndElementHandler, parser.CharacterDataHandler = opens, closes, text
    parser.EntityDeclHandler = refuses
    try:
        parser.Parse(data, True)
    except (expat.ExpatError, LookupError, ValueError) as error:
        if isinstance(error, BadXml):
            raise
        raise BadXml(f"its XML is broken: {error}") from error


def _local(name: str) -> str:
    return name.rpartition(":")[2]
