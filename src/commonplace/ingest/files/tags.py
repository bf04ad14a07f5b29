"""Reading tags from anywhere: HTML in time that grows with the page and no faster, XML without entities or a tree.

The interpreter's own parser of HTML takes hours for a hundred kilobytes of `<a <a <a`. This one calls the same three
methods and agrees with browsers on what the end of a page cuts short: a comment, a script or a tag that is never closed
hides the rest. A slash at its end closes a tag where XML is spoken: in a page that says so, as chapters of books do,
and of drawings and formulas anywhere.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from html import unescape
from xml.parsers import expat

Attributes = list[tuple[str, str | None]]

_NAME = re.compile(r"[a-zA-Z][^\s/>]*")
_QUOTE_OR_END = re.compile(r"(=\s*)?([\"'])|>")
_ATTRIBUTE = re.compile(r"([^\s\"'>/=]+)(?:\s{0,20}=\s{0,20}(\"[^\"]*\"|'[^']*'|[^\s\"'>]+))?")
_COMMENT_END = re.compile("--!?>")
_XML = re.compile(r"\A\s*<\?xml\s|<html\s[^>]*\bxmlns\s*=", re.IGNORECASE)
_HEAD = 2000
"""Characters in which a page says that it is XML."""
_FOREIGN = ("svg", "math")
_HIDDEN = ("script", "style", "noframes", "noembed", "xmp", "iframe")
_CLOSING = {
    name: re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE) for name in (*_HIDDEN, "title", "textarea", "noscript")
}
_SAY_SOMETHING = frozenset({"html", "meta", "link", "ol", "li", "math", "dialog"})
"""The tags whose attributes are read; those of others tell nothing about a text."""
Start = Callable[[str, Mapping[str, str]], None]
End = Callable[[str], None]
Text = Callable[[str], None]
DEEPEST = 1000


class Tags:
    """A reader of a page's tags and text. Subclasses override the three methods below."""

    def handle_starttag(self, tag: str, attrs: Attributes) -> None: ...
    def handle_endtag(self, tag: str) -> None: ...
    def handle_data(self, data: str) -> None: ...

    def read(self, source: str) -> None:
        """Read all of a page."""
        at = 0
        self._is_xml = _XML.search(source, 0, _HEAD) is not None
        self._never_closed: set[str] = set()
        while at < len(source):
            start = source.find("<", at)
            if start < 0:
                start = len(source)
            if start > at:
                self.handle_data(unescape(source[at:start]))
            at = self._markup(source, start) if start < len(source) else start

    def _markup(self, source: str, start: int) -> int:
        """Read what begins with `<`, and return where the text goes on."""
        if source.startswith("<!--", start):
            return _after_comment(source, start)
        if source.startswith(("<!", "<?"), start):
            return _after(source.find(">", start), 1, source)
        closing = source.startswith("</", start)
        name = _NAME.match(source, start + 1 + closing)
        if name is None and closing and start + 2 < len(source):
            return _after(source.find(">", start), 1, source)  # a comment
        if name is None:
            self.handle_data("<")
            return start + 1
        tag, end = name[0].lower(), _end_of_tag(source, name.end())
        if closing:
            self.handle_endtag(tag)
            return end
        attributes = source[name.end() : end - 1] if tag in _SAY_SOMETHING else ""
        self.handle_starttag(tag, _attributes(attributes))
        if (self._is_xml or tag in _FOREIGN) and source.startswith("/>", end - 2):
            self.handle_endtag(tag)
            return end
        return self._raw(source, tag, end) if tag in _CLOSING else end

    def _raw(self, source: str, tag: str, start: int) -> int:
        """Read the inside of an element in which tags are text, and return where its closing tag begins."""
        closing = None if tag in self._never_closed else _CLOSING[tag].search(source, start)
        if closing is None and tag not in _HIDDEN:
            self._never_closed.add(tag)
            return start  # a title that is never closed hides nothing
        end = closing.start() if closing else len(source)
        if tag not in _HIDDEN and tag != "noscript":
            self.handle_data(unescape(source[start:end]))
        return end


def _after_comment(source: str, start: int) -> int:
    """Return the place just after a comment that begins here."""
    end = _COMMENT_END.search(source, start + 2)
    if end and end[0] == "--!>" and end.start() < start + 4:
        end = _COMMENT_END.search(source, start + 4)
    return end.end() if end else len(source)


def _after(place: int, size: int, source: str) -> int:
    return place + size if place >= 0 else len(source)


def _end_of_tag(source: str, at: int) -> int:
    """Return the place just after the `>` of a tag. One inside a quoted value ends nothing."""
    while (match := _QUOTE_OR_END.search(source, at)) is not None:
        if match[2] is None:
            return match.end()
        closing = source.find(match[2], match.end()) if match[1] else match.end()
        if closing < 0:  # a quote that is never closed was none
            return _after(source.find(">", match.end()), 1, source)
        at = closing + 1 if match[1] else closing
    return len(source)


def _attributes(source: str) -> Attributes:
    return [
        (match[1].lower(), unescape(match[2].strip("\"'")) if match[2] is not None else None)
        for match in _ATTRIBUTE.finditer(source)
    ]


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
