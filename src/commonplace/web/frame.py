"""What surrounds every screen: templates, the style sheet and script under names that never change their content."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from importlib import resources
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from commonplace.model import JSON
from commonplace.web import wording
from commonplace.web.visits import Visit

STATIC = "/static/"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Vary": "Accept, Cookie",
}
"""The headers of every answer that is not a static file."""
_TYPES = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8"}
_BAR = 42
"""The width of a score's bar in pixels."""


@dataclass(frozen=True, slots=True)
class Sheet:
    """A screen to be shown: its template with what it says, all of which its JSON twin says too."""

    template: str
    title: str
    record: Mapping[str, JSON]
    section: str = ""
    """The name of the navigation's entry it belongs to."""
    status: int = 200
    markdown: str | None = None
    """Its twin in Markdown, where it has one."""
    beside: Mapping[str, Any] = field(default_factory=dict)
    """What only the HTML needs."""
    wanted: str = ""
    """The media type to answer in, where the address names one."""
    refresh: int = 0
    """The seconds after which a browser without script loads it again; 0: never."""


@dataclass(frozen=True, slots=True)
class Redirect:
    """The answer that the browser goes elsewhere, as after every form."""

    location: str
    status: int = 303


@dataclass(frozen=True, slots=True)
class Download:
    """A file to be saved."""

    name: str
    text: str
    media_type: str = "application/x-ndjson"


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file that hangs on an item, to be shown as a picture or saved, and never to do anything."""

    data: bytes
    media_type: str


Answer = Sheet | Redirect | Download | StoredFile
PICTURES = ("image/png", "image/jpeg", "image/gif", "image/webp")
"""The types of files that a page shows; any other is saved."""
SANDBOX = {"Content-Security-Policy": "sandbox; default-src 'none'"}


@dataclass(frozen=True, slots=True)
class StaticFile:
    """A file of the page, as it is and compressed."""

    path: str
    content: bytes
    compressed: bytes
    media_type: str


@cache
def static_files() -> dict[str, StaticFile]:
    """Return the style sheet and the script by name. Their paths contain a hash of their content."""
    folder = resources.files("commonplace.web").joinpath("static")
    files = {}
    for file in folder.iterdir():
        stem, _, ending = file.name.rpartition(".")
        if ending in _TYPES:
            content = file.read_bytes()
            path = f"{STATIC}{stem}.{hashlib.sha256(content).hexdigest()[:16]}.{ending}"
            files[file.name] = StaticFile(path, content, gzip.compress(content, 9, mtime=0), _TYPES[ending])
    return files


def static_file(path: str) -> StaticFile | None:
    """Return the file at a path, or None."""
    return next((file for file in static_files().values() if file.path == path), None)


@cache
def environment() -> Environment:
    """Return the templates. Everything in them is escaped, and a name that nothing defines is an error."""
    made = Environment(
        loader=PackageLoader("commonplace.web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters |= {
        "when": wording.when,
        "likelihood": wording.likelihood,
        "several": wording.several,
        "size": wording.size,
        "marked": marked,
        "bar": bar,
        "day": lambda moment: datetime.fromisoformat(moment).astimezone().strftime("%Y-%m-%d %H:%M"),
        "number": lambda count: f"{count:,}",
    }
    made.globals |= {
        "number_of": wording.number_of,
        "counted": wording.counted,
        "static": {name: file.path for name, file in static_files().items()},
    }
    return made


def rendered(sheet: Sheet, visit: Visit) -> str:
    """Return a screen as HTML."""
    template = environment().get_template(sheet.template)
    frame = {"title": sheet.title, "section": sheet.section, "visit": visit, "refresh": sheet.refresh}
    return template.render({**frame, **sheet.record, **sheet.beside})


def as_json(record: Mapping[str, JSON]) -> str:
    """Return a screen's twin for programs."""
    return json.dumps(record, ensure_ascii=False, indent=1, default=_plain)


def _plain(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(f"a screen cannot say a {type(value).__name__}")


def marked(text: str, marks: Sequence[Sequence[int]]) -> Markup:
    """Return a text as HTML, with each of these (start, end) in `<mark>`. Marks that overlap become one."""
    out, done = list[str](), 0
    for start, end in _joined(marks):
        out += [escape(text[done:start]), "<mark>", escape(text[start:end]), "</mark>"]
        done = end
    return Markup("".join([*out, escape(text[done:])]))  # noqa: S704 - every part is escaped


def _joined(marks: Sequence[Sequence[int]]) -> list[tuple[int, int]]:
    joined: list[tuple[int, int]] = []
    for start, end in sorted((mark[0], mark[1]) for mark in marks):
        if joined and start <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        elif start < end:
            joined.append((start, end))
    return joined


def bar(share: float) -> Markup:
    """Return a bar that is filled to a share between 0 and 1: a picture, because no style may be written in place."""
    filled = round(_BAR * min(max(share, 0.0), 1.0))
    return Markup(  # noqa: S704 - two numbers of our own
        f'<svg class="bar" width="{_BAR}" height="5" viewBox="0 0 {_BAR} 5" aria-hidden="true">'
        f'<rect class="all" width="{_BAR}" height="5" rx="2.5"/>'
        f'<rect class="part" width="{filled}" height="5" rx="2.5"/></svg>'
    )
