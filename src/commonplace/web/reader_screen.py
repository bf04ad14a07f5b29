"""The reader: one item, page by page, with its outline, what is found in it, and what is related."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast
from urllib.parse import quote

from markupsafe import Markup

from commonplace.errors import CommonplaceError, NotFound
from commonplace.kinds.documents.locating import locate, suggested
from commonplace.kinds.knowledge.item_reading import rendered as as_markdown
from commonplace.library import Library
from commonplace.model import JSON, Item, uri_of
from commonplace.profiles.commonplace.browsing import collection_names
from commonplace.search.plan import plan_lexical
from commonplace.search.request import parse
from commonplace.space import Space
from commonplace.store.items import Items
from commonplace.store.listing import Listing
from commonplace.text.matches import Matcher
from commonplace.text.outline import Heading, contents
from commonplace.tools.titles import beginnings, titled
from commonplace.web import prose
from commonplace.web.frame import Answer, Redirect, Sheet
from commonplace.web.paths import BY_ADDRESS, ITEMS, address_at, item_path, with_query
from commonplace.web.visits import Visit
from commonplace.web.wording import several

MOST_CACHED = 32 * 1024 * 1024
"""The bytes of rendered pages that a server keeps."""
_MOST_HEADINGS = 200
_RELATED, _MOST_RELATED = 5, 500
_PLAIN = ("text", "rst", "org", "html", "pdf", "epub", "docx")
_EDITORS = (
    ("VS Code", "vscode://file{path}:{line}"),
    ("Cursor", "cursor://file{path}:{line}"),
    ("Zed", "zed://file{path}:{line}"),
    ("Obsidian", "obsidian://open?path={path}"),
)
"""Programs that open a file at a line, by links of our own making."""


class _Sized(Protocol):
    @property
    def size(self) -> int:
        """Return about how many bytes it takes."""
        ...


K = TypeVar("K", bound=_Sized)


@dataclass(frozen=True, slots=True)
class _ReaderPage:
    """An item's page, rendered once for all readers."""

    html: str
    first: int
    last: int
    number: int
    total: int
    headings: Sequence[Heading]

    @property
    def size(self) -> int:
        return 2 * len(self.html) + 500


@dataclass(frozen=True, slots=True)
class _Layout:
    """The bounds of the pages of one version of an item."""

    parts: Sequence[prose.Part]
    headings: Sequence[Heading]

    @property
    def size(self) -> int:
        return 500 + 100 * len(self.parts) + 500 * len(self.headings)


class _Cache:
    """Rendered pages by library, item, version and page; the least recently read go first."""

    def __init__(self, most: int) -> None:
        self._most, self._used = most, 0
        self._kept: OrderedDict[tuple[object, ...], Any] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: tuple[object, ...], make: Callable[[], K]) -> K:
        """Return what is kept under a key, made where it is not there; two readers may both make it."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return cast(K, self._kept[key])
        made = make()
        with self._lock:
            self._used += made.size if key not in self._kept else 0
            self._kept.setdefault(key, made)
            while self._used > self._most and self._kept:
                _, old = self._kept.popitem(last=False)
                self._used -= old.size
        return made


_cache = _Cache(MOST_CACHED)


def read_by_address(library: Library, visit: Visit) -> Answer:
    """Return the page of `?uri=`: the one that the address has, or, where a browser would rewrite that, this."""
    uri = visit.query.get("uri", "").strip()
    try:
        item = locate(library, uri).item
    except NotFound as error:
        return _gone(library, uri, str(error))
    rest = {name: value for name, value in visit.query.items() if name != "uri"}
    path = item_path(item.uri, **rest)
    return _shown(library, item, visit) if path.startswith(BY_ADDRESS) else Redirect(path)


def read(library: Library, visit: Visit) -> Answer:
    """Return the page of the item that the path names, or of what its path names without `.md` or `.json`."""
    rest = visit.raw_path.partition(ITEMS)[2]
    for end, form in (("", ""), (".md", "text/markdown"), (".json", "application/json")):
        uri = address_at(rest.removesuffix(end)) if rest.endswith(end) else None
        item = _item(library, uri) if uri else None
        if item is not None and uri is not None:
            if end == "" and item_path(item.uri) != f"{ITEMS}{rest}":
                return Redirect(item_path(item.uri, **dict(visit.query)), 308)
            return _shown(library, item, visit, form)
    return _gone(library, address_at(rest) or rest, "")


def _item(library: Library, uri: str) -> Item | None:
    try:
        return library.get(uri)
    except NotFound:
        return None


def _gone(library: Library, uri: str, said: str) -> Sheet:
    """Return the page for an address that leads nowhere now, with what is near."""
    near = []
    for name in suggested(library, uri):
        try:
            item = locate(library, name, body=False).item
        except CommonplaceError:
            continue
        near.append({"uri": item.uri, "title": item.title or item.key, "path": item_path(item.uri)})
    words = " ".join(part for part in uri.replace("/", " ").replace(":", " ").split() if part)
    sentence = said or f"There is no {uri} any more, or there never was."
    error = {"code": "not_found", "message": sentence}
    record = {"error": error, "near": near, "search": with_query("/", q=words[:200])}
    return Sheet("gone.html", "Gone", record, "search", status=410)


def _shown(library: Library, item: Item, visit: Visit, form: str = "") -> Sheet:
    body = as_markdown(library.store, item)
    line = _whole(visit.query.get("line"))
    page = _page(library, item, body, line, _whole(visit.query.get("page")))
    html, marks = prose.at_line(page.html, line) if line else page.html, 0
    text = visit.query.get("q", "").strip()
    if text:
        html, marks = prose.with_marks(html, _finder(library, text))
    names = (
        collection_names(library, library.store.drawer(Listing).parents("document")) if item.kind == "document" else {}
    )
    title = item.title or beginnings(library, [item]).get(item.id, item.key)
    record: dict[str, JSON] = {
        "uri": item.uri,
        "title": title,
        "kind": item.kind,
        "place": f"{names.get(item.parent, item.parent)}/{item.key}" if item.kind == "document" else several(item.kind),
        "tags": [{"name": tag, "path": with_query("/", tag=tag)} for tag in item.tags],
        "properties": {name: _told(value) for name, value in item.metadata.items()},
        "created_at": item.created_at.isoformat(),
        "updated_at": item.updated_at.isoformat(),
        "version": item.version,
        "format": item.format,
        "lines": [page.first, page.last],
        "page": page.number,
        "pages": page.total,
        "marks": marks,
        "outline": _outline(item, page, text, line),
        "related": library.part(_Related).of(item),
        "text": body,
    }
    beside = {
        "html": Markup(html),  # noqa: S704 - it was sanitized, and what was added since is escaped
        "path": item_path(item.uri),
        "markdown_path": f"{item_path(item.uri)}.md" if not item_path(item.uri).startswith(BY_ADDRESS) else "",
        "editors": _editors(library, item, line or page.first) if visit.is_owner else [],
        "memory_path": f"/memories/{item.key}" if item.kind == "memory" else "",
        "others": _others(item, page, text),
        "q": text,
    }
    return Sheet("item.html", title, record, "search", markdown=body, beside=beside, wanted=form)


def _page(library: Library, item: Item, body: str, line: int, number: int) -> _ReaderPage:
    """Return a page of an item: the one with a line, the one with a number, or the first."""
    format = "markdown" if item.kind == "conversation" else item.format
    source = prose.without_front_matter(body) if format == "markdown" else body
    base = (library.folder, item.id, item.version, item.title, hash(body))  # a chat's text is that of its messages
    layout = _cache.get(base, lambda: _layout(source, body, format))
    parts = layout.parts
    at = next((n for n, part in enumerate(parts) if line and part.first <= line <= part.last), number - 1)
    at = min(max(at, 0), len(parts) - 1)
    return _cache.get((*base, at), lambda: _rendered(library, item, format, source, layout, at))


def _layout(source: str, body: str, format: str) -> _Layout:
    headings = contents(body, format)
    return _Layout(prose.cut(source, [heading.line for heading in headings]), headings)


def _rendered(library: Library, item: Item, format: str, source: str, layout: _Layout, at: int) -> _ReaderPage:
    part = layout.parts[at]
    html = _html(library, item, format, source[part.start : part.end], part.first, layout.headings)
    return _ReaderPage(html, part.first, part.last, at + 1, len(layout.parts), layout.headings[:_MOST_HEADINGS])


def _html(library: Library, item: Item, format: str, text: str, first: int, headings: Sequence[Heading]) -> str:
    if format == "markdown":
        firsts = [heading for heading in headings if heading.level == 1]
        lone = len(firsts) == 1 and firsts[0] is headings[0] and firsts[0].title == item.title
        return prose.markdown(text, first, item.title, lambda links: _links(library, item, links), lone_title=lone)
    return prose.plain(text, first) if format in _PLAIN else prose.code(text, first)


def _links(library: Library, item: Item, links: Iterable[str]) -> dict[str, str]:
    """Return where links between the documents of a collection lead, for those that are here."""
    if item.kind != "document":
        return {}
    paths = {link: prose.path_of(link, item.key) for link in links}
    addresses = [("document", item.parent, path) for path in paths.values() if path]
    found = (
        {other.key for other in library.store.drawer(Items).get(library.store.drawer(Listing).ids_of(addresses))}
        if addresses
        else set()
    )
    return {link: item_path(uri_of("document", item.parent, path)) for link, path in paths.items() if path in found}


def _finder(library: Library, text: str) -> prose.Find:
    """Return a function that finds the words of a question in a text, as the index does."""
    plan = library.lexical.ask(lambda words: plan_lexical(parse(text), words))
    terms = [term for term in plan.query.terms if term.weight >= 1 or term.match != "word"] or list(plan.query.terms)
    return Matcher(terms, plan.languages, plan.query.phrases).find


def _outline(item: Item, page: _ReaderPage, text: str, line: int) -> list[dict[str, JSON]]:
    """Return the headings, each with its address; the one that is read is told from the others."""
    headings = [heading for heading in page.headings if heading.title]
    at = line or page.first
    current = max((n for n, heading in enumerate(headings) if heading.line <= at), default=-1)
    least = min((heading.level for heading in headings), default=1)
    return [
        {
            "title": heading.title,
            "line": heading.line,
            "depth": min(3, heading.level - least),
            "path": f"{item_path(item.uri, line=heading.line, q=text)}#here",
            "on": number == current,
        }
        for number, heading in enumerate(headings)
    ]


def _others(item: Item, page: _ReaderPage, text: str) -> dict[str, str]:
    """Return the addresses of the pages before and after, where there are any."""
    others = {}
    if page.number > 1:
        others["before"] = item_path(item.uri, page=page.number - 1, q=text)
    if page.number < page.total:
        others["after"] = item_path(item.uri, page=page.number + 1, q=text)
    return others


class _Related:
    """The items that say something like those that were read last."""

    def __init__(self, space: Space) -> None:
        self._space = space
        self._kept: OrderedDict[tuple[int, int, int], list[dict[str, JSON]]] = OrderedDict()

    def of(self, item: Item) -> list[dict[str, JSON]]:
        """Return a few items that say something like this one. Kept until something changes in the library."""
        key = (item.id, item.version, self._space.store.last_change())
        if (related := self._kept.get(key)) is None:
            hits = titled(cast(Library, self._space), self._space.related(item.uri, limit=_RELATED).hits)
            related = [{"uri": hit.uri, "title": hit.title or hit.uri, "path": item_path(hit.uri)} for hit in hits]
            self._kept[key] = related
            if len(self._kept) > _MOST_RELATED:
                self._kept.pop(next(iter(self._kept)), None)
        return related


def _editors(library: Library, item: Item, line: int) -> list[dict[str, str]]:
    """Return links that open a document's file on this machine."""
    if item.kind != "document":
        return []
    try:
        root = library.folders.get(item.parent).root
    except NotFound:
        return []
    file = root / item.key
    if not file.is_file():
        return []
    path = quote(str(file))
    programs = [program for program in _EDITORS if program[0] != "Obsidian" or _is_vault(root)]
    programs.sort(key=lambda program: program[0] != "Obsidian")
    return [{"name": name, "href": link.format(path=path, line=line)} for name, link in programs]


def _is_vault(root: Path) -> bool:
    return any((place / ".obsidian").is_dir() for place in (root, *root.parents))


def _told(value: JSON) -> str:
    """Return a property's value for people."""
    if isinstance(value, list):
        return ", ".join(map(_told, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def _whole(text: str | None) -> int:
    """Return a positive whole number of an address, 0 for anything else."""
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 10 else 0
