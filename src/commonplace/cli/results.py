"""The output of a search: results look like their source, in color on a terminal and plain in a pipe."""

from __future__ import annotations

import json
import os
import re
import sys
import unicodedata
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from urllib.parse import unquote

import click

from commonplace.cli.common import marked, painted
from commonplace.cli.lazy import as_typed, called, harmless
from commonplace.lazy_dataclass import dataclass
from commonplace.library import Library
from commonplace.model import JSON, Hit, Page, parse_uri
from commonplace.store.items import Items
from commonplace.text.token_estimates import CLUSTER
from commonplace.tools.titles import titled

if TYPE_CHECKING:
    from collections.abc import Sequence

TAB = 4
_USUAL_WIDTH = 80
_AS_PICTURE = "\ufe0f"


def columns() -> int:
    """Return the number of columns: COLUMNS if set, else the terminal's, else 80."""
    given = os.environ.get("COLUMNS", "")
    if given.isdecimal() and int(given) > 0:
        return int(given)
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or _USUAL_WIDTH
    except (OSError, ValueError):
        return _USUAL_WIDTH


def cells(text: str) -> int:
    """Return the number of columns a text takes on a terminal, as `harmless` shows it. A tab takes four."""
    if _is_plain(text):
        return len(text)
    return sum(map(_cells_of, CLUSTER.findall(text)))


def rows(text: str, room: int, hang: int = 0) -> Iterator[tuple[int, int]]:
    """Yield where the rows of a line begin and end, broken between words to take at most `room` columns each.

    Rows after the first have `hang` columns fewer. A word wider than a row is broken inside.
    """
    low, width = 0, room
    while True:
        high = _reach(text, low, width)
        if high < len(text) and text[high] != " ":
            blank = text.rfind(" ", low, high)
            high = blank if text[low : max(low, blank)].strip() else high
        yield low, high
        low, width = high + (text[high : high + 1] == " "), room - hang
        if low >= len(text):
            return


def shortened(text: str, room: int) -> str:
    """Return a text that takes at most so many columns, with an ellipsis at its end where something was left out."""
    return text if cells(text) <= room else text[: _reach(text, 0, room - 1)].rstrip() + "…"


def _reach(text: str, low: int, room: int) -> int:
    """Return the furthest end that fits in `room` columns, after one cluster at least."""
    if _is_plain(text[low : low + room + 1]):
        return min(len(text), low + max(1, room))
    at = low
    for cluster in CLUSTER.finditer(text, low):
        room -= _cells_of(cluster[0])
        if room < 0 and at > low:
            return at
        at = cluster.end()
    return at


def _is_plain(text: str) -> bool:
    return text.isascii() and text.isprintable()


def _cells_of(cluster: str) -> int:
    if cluster == "\t":
        return TAB
    if (shown := harmless(cluster)) != cluster:
        return len(shown)
    if _AS_PICTURE in cluster or (len(cluster) > 1 and "\U0001f1e6" <= cluster[0] <= "\U0001f1ff"):
        return 2  # a sign drawn as a picture, or the two letters of a flag
    return max(map(_cells_of_sign, cluster))


def _cells_of_sign(sign: str) -> int:
    if unicodedata.category(sign) in ("Mn", "Me", "Cf", "Cc"):
        return 0
    return 2 if unicodedata.east_asian_width(sign) in "WF" else 1


_WIDEST = 120
"""The most columns; a title and its score further apart would not read as one line."""
_UNDER = " › "
_NUMBER = 5
_LEAST_TEXT = 16
_ITEM = r"(?:[-*+]|\d{1,9}[.)]|>|#+|//+)?[ \t]*"
_AGES = ((60, "minute"), (60, "hour"), (24, "day"), (7, "week"), (4.35, "month"), (12, "year"))
_NEARNESS = ((0.8, "very close"), (0.4, "close"), (0.1, "somewhat close"))
"""Thresholds on the vector scale, where half of all true pairs reach 1 and unrelated ones stay at 0."""
_BARE = r"[A-Za-z0-9_@%+=:,./-]+"
_UNSAFE = frozenset('"$`\\!')


@dataclass(frozen=True, slots=True)
class _Layout:
    """The width of the output, and whether it is a terminal."""

    width: int
    on_terminal: bool

    @property
    def gutter(self) -> int:
        """The columns before the text: a line's number, and a bar between blanks or two blanks."""
        return _NUMBER + (3 if self.on_terminal else 2)

    @property
    def text_width(self) -> int:
        return max(_LEAST_TEXT, self.width - self.gutter)


def print_page(library: Library, page: Page, *, ms: float, as_json: bool, explain: bool = False) -> None:
    """Print hits as text or as JSON on stdout, and the notes on them on stderr."""
    for note in page.notes:
        click.echo(as_typed(note), err=True)
    hits = titled(library, page.hits)
    roots = _roots(library, hits)
    if as_json:
        records = [_record(hit, _path_of(hit, roots)) for hit in hits]
        click.echo(json.dumps(records, ensure_ascii=False, indent=2))
        return
    if not hits:
        click.echo("No results found.")
        return
    on_terminal = sys.stdout.isatty()
    layout = _Layout(min(columns(), _WIDEST), on_terminal)
    now = datetime.now(UTC)
    for hit in hits:
        click.echo(_head(hit, layout, now))
        click.echo(painted(_place(hit, _path_of(hit, roots)), fg="cyan"))
        for line in _lines(hit, layout):
            click.echo(line)
        if explain and hit.explain:
            click.echo(f"{' ' * layout.gutter}{reasons(hit.explain)}")
        click.echo()
    click.echo(_foot(page, _command(hits[0], _path_of(hits[0], roots)), ms, layout))


def _roots(library: Library, hits: Sequence[Hit]) -> dict[str, str]:
    """Return the folders of collections by name; reads nothing if no document was found."""
    if not any(hit.kind == "document" for hit in hits):
        return {}
    return {
        item.key: str(item.fields["root"])
        for item in library.store.drawer(Items).collections()
        if "root" in item.fields
    }


def _path_of(hit: Hit, roots: Mapping[str, str]) -> str | None:
    """Return the path of a hit on disk; None if it is no file here."""
    if hit.kind != "document" or hit.parent not in roots:
        return None
    return os.path.join(roots[hit.parent], hit.item.key)


def _record(hit: Hit, path: str | None) -> dict[str, JSON]:
    where = {"path": path} if path is not None else {}
    return {**hit.record(), **where, "updated_at": hit.item.updated_at.isoformat()}


def _head(hit: Hit, layout: _Layout, now: datetime) -> str:
    """Return the first line of a hit: the title on the left, date and score on the right."""
    title = hit.title if hit.item.title or hit.kind == "message" else _named_by_kind(hit)
    names = list(filter(None, dict.fromkeys(" ".join(name.split()) for name in (title, *hit.headings))))
    date = age(hit.item.updated_at, now)
    right = f"{date}   {hit.score:.2f}"
    room = layout.width - len(right) - 2
    title = _fitted(names, room) if layout.on_terminal else _UNDER.join(names)
    gap = " " * max(2, layout.width - cells(title) - len(right))
    return f"{painted(title, bold=True)}{gap}{_faint(date)}   {hit.score:.2f}"


def _named_by_kind(hit: Hit) -> str:
    """Return the heading for a hit without a title, whose beginning is the snippet: "Memory › project"."""
    return _UNDER.join(filter(None, (hit.kind.capitalize(), hit.parent)))


def _fitted(names: list[str], room: int) -> str:
    """Return a title with its headings, shortened in the middle: the first and the last name stay longest."""
    shorter = ([names[0], "…", *names[at:]] for at in range(2, len(names)))
    titles = [_UNDER.join(some) for some in (names, *shorter)]
    cut = shortened(titles[-1], room)
    cut = f"{cut.removesuffix(' ›…')}…" if cut.endswith(" ›…") else cut
    return next((title for title in titles if cells(title) <= room), cut)


def age(moment: datetime, now: datetime) -> str:
    """Return the age of something for people, "2 days ago", or the date of what is in the future."""
    count = (now - moment).total_seconds()
    if count < -60:
        return moment.date().isoformat()
    if count < 60:
        return "just now"
    noun = "second"
    for size, larger in _AGES:
        if count < size:
            break
        count, noun = count / size, larger
    return f"{int(count)} {noun}{'s' if int(count) > 1 else ''} ago"


def _place(hit: Hit, path: str | None) -> str:
    """Return the path as one would type it from here, or the address of a hit without a path."""
    if path is None:
        return readable(hit.uri)
    for folder, start in ((_here(), ""), (os.path.expanduser("~"), "~/")):
        if folder and path.startswith(folder.rstrip("/") + "/"):
            return start + path[len(folder.rstrip("/")) + 1 :]
    return path


def _here() -> str:
    try:
        return os.getcwd()
    except FileNotFoundError:
        return ""


def readable(uri: str) -> str:
    """Return an address decoded, unless that would name something else; any other text as it is."""
    plain = unquote(uri)
    return plain if "://" in uri and parse_uri(plain) == parse_uri(uri) else uri


def _lines(hit: Hit, layout: _Layout) -> Iterator[str]:
    """Yield the lines of the snippet with their numbers, matches marked."""
    done = 0
    for number, line in enumerate(hit.snippet.split("\n") if hit.snippet else (), start=hit.line):
        marks = [(low - done, high - done) for low, high in hit.marks if done <= low < done + len(line)]
        done += len(line) + 1
        if not layout.on_terminal:
            yield f"{number:>{_NUMBER}}  {line}".rstrip()
            continue
        hang = _hang(line, layout.text_width)
        for row, (low, high) in enumerate(rows(line, layout.text_width, hang)):
            gutter = _faint(f"{number if not row else '':>{_NUMBER}} │")
            text = _marked(line, low, high, marks)
            yield f"{gutter} {' ' * hang if row else ''}{text}" if text else gutter


def _hang(line: str, room: int) -> int:
    """Return the columns that the rows of a long line are indented: to its text, after indent and list marker."""
    begin = len(line) - len(line.lstrip())
    mark = re.match(_ITEM, line[begin:])
    hang = cells(line[: begin + (mark.end() if mark else 0)])
    return hang if hang <= room // 2 else 0


def _marked(line: str, low: int, high: int, marks: list[tuple[int, int]]) -> str:
    out = list[str]()
    for start, end in marks:
        start, end = max(start, low), min(end, high)
        if start < end:
            out += [line[low:start], marked(line[start:end])]
            low = end
    return "".join((*out, line[low:high])).replace("\t", " " * TAB)


def reasons(explain: Mapping[str, JSON]) -> str:
    """Return a sentence on the words and the meaning that a hit was found by."""
    words, vector = explain.get("words") or (), explain.get("vector")
    near = "" if vector is None else next((name for least, name in _NEARNESS if vector >= least), "")
    if words:
        said = _faint(", ").join(painted(word, bold=True) for word in words)
        return f"{_faint('found by its words ')}{said}{_faint(f'; {near} in meaning') if near else ''}"
    if vector is None:
        return _faint("found by its title")
    return _faint(f"found by its meaning, which is {near or 'not close'}")


def _faint(text: str) -> str:
    return painted(text, dim=True)


def _foot(page: Page, command: str, ms: float, layout: _Layout) -> str:
    """Return the last line: counts, legs and time, and the command that reads the first result."""
    ran = {stage.name for stage in page.stages if stage.status == "ran"}
    legs = " and ".join(name for leg, name in (("lexical", "words"), ("vector", "meaning")) if leg in ran)
    found = max(page.found, len(page.hits))
    counts = f"{len(page.hits)} of {found:,}{'+' if page.more and found <= len(page.hits) else ''}"
    left = " · ".join(filter(None, (counts, legs and f"by {legs}", f"{max(1, round(ms))} ms")))
    gap = layout.width - len(left) - cells(command)
    between = " " * gap if gap >= 2 else "\n" if layout.on_terminal else "  "
    return f"{_faint(left)}{between}{command}"


def _command(hit: Hit, path: str | None) -> str:
    """Return the command that reads a hit from its line on; a file goes by its collection and path."""
    named = readable(hit.uri) if path is None else f"{hit.parent}/{hit.item.key}"
    return called(f"get {_quoted(f'{named}:{hit.line}' if hit.line > 1 else named)}")


def _quoted(text: str) -> str:
    """Return a text quoted for a shell, in double quotes where that is safe, as every shell knows those."""
    if _UNSAFE.isdisjoint(text):
        return text if re.fullmatch(_BARE, text) else f'"{text}"'
    from shlex import quote  # rare, and it takes a while to load

    return quote(text)
