"""How much of what a browser shows of real web pages the reader keeps, judged by the tree of a browser's parser.

    python -m venv /tmp/judge && /tmp/judge/bin/pip install selectolax
    PYTHONPATH="$(/tmp/judge/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')" \
        python bench/web_pages.py DIR                       every .html below DIR
    ... python bench/web_pages.py DIR --list 20             also the pages of which most is lost, and what
    ... python bench/web_pages.py DIR --every 25 --chromium PROGRAM    what Chromium says is shown, of every 25th

The judge is lexbor, which builds the tree that the HTML standard prescribes; it is no dependency. Words are runs of
letters and digits; a page's score is the share of its shown words, each as often as it is shown, that the reader
keeps. Not shown: what the standard's style sheet hides (`<head>`, scripts, styles, templates, fallbacks of media),
what has the attribute `hidden`, and what says `display: none` or `visibility: hidden` in its own `style`; style
sheets are not read. Left out on purpose: `<nav>`, `<dialog>`, drawings, choices of forms and what stands in for an
`<object>`, but where nobody closed it and it would be most of the page; and where a page has `<main>`, all before the
first and after the last.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import tempfile
import time
import urllib.parse
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from commonplace.ingest.files.charset import page_encoding
from commonplace.ingest.files.html import html_article

GOAL = 0.99
_WORD = re.compile(r"[^\W_]+")
_NOT_SHOWN = frozenset(
    {"head", "script", "style", "template", "noscript", "iframe", "noembed", "noframes", "canvas", "audio", "video"}
    | {"datalist", "textarea", "annotation", "annotation-xml", "title", "area", "param"}
)
_ON_PURPOSE = frozenset({"nav", "svg", "select", "object", "dialog"})
_APART = frozenset(
    {"address", "article", "aside", "blockquote", "body", "br", "caption", "center", "dd", "details", "dialog"}
    | {"dir", "div", "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "frameset", "h1", "h2", "h3"}
    | {"h4", "h5", "h6", "header", "hgroup", "hr", "html", "img", "input", "legend", "li", "listing", "main"}
    | {"menu", "nav", "ol", "optgroup", "option", "p", "plaintext", "pre", "search", "section", "select", "summary"}
    | {"svg", "table", "tbody", "td", "tfoot", "th", "thead", "tr", "ul", "xmp"}
)  # fmt: skip
"""What stands apart from the text beside it, by the standard's style sheet; the elements of nobody do not."""
_NOSCRIPT = re.compile(r"<noscript[\s>].*?</noscript\s*>", re.IGNORECASE | re.DOTALL)
_HIDDEN = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)


@dataclass(frozen=True)
class Piece:
    """Text of a page: the element it is left out with ("nav 3") or "", and the number of its `<main>` or 0."""

    text: str
    left_out: str
    main: int


@dataclass(frozen=True)
class Score:
    """The share of a page's shown words that the reader keeps, and what is missing."""

    name: str
    shown: int
    share: float
    missing: Counter[str]


def shown_words(source: str) -> Counter[str]:
    """Return the words of a page that a browser shows, less what is left out on purpose, each with its count."""
    from selectolax.lexbor import LexborHTMLParser

    root = LexborHTMLParser(_NOSCRIPT.sub("", source)).root  # which browsers that run scripts do not read
    pieces = [] if root is None else _closed(list(_pieces(root)), source)
    kept = _words("".join(piece.text for piece in _in_main(pieces) if not piece.left_out))
    return kept or _words("".join(piece.text for piece in pieces if not piece.left_out))


def _words(text: str) -> Counter[str]:
    return Counter(word.casefold() for word in _WORD.findall(text))


def _closed(pieces: list[Piece], source: str) -> list[Piece]:
    """Take as shown what an element leaves out that nobody closed: it would be most of the page."""
    sizes = Counter[str]()
    for piece in pieces:
        sizes[piece.left_out] += len(_WORD.findall(piece.text))
    unclosed = _unclosed(source)
    shown = {name for name, size in sizes.items() if name.split(" ")[0] in unclosed and size * 2 > sizes.total()}
    return [replace(piece, left_out="") if piece.left_out in shown else piece for piece in pieces]


def _unclosed(source: str) -> list[str]:
    return [tag for tag in sorted(_ON_PURPOSE) if _count(source, f"<{tag}") > _count(source, f"</{tag}")]


def _count(source: str, tag: str) -> int:
    return len(re.findall(rf"{tag}(?=[\s>/])", source, re.IGNORECASE))


def _in_main(pieces: list[Piece]) -> list[Piece]:
    inside = [place for place, piece in enumerate(pieces) if piece.main]
    return pieces[inside[0] : inside[-1] + 1] if inside else pieces


def _pieces(root: Any) -> Iterator[Piece]:
    left_out_count = main_count = 0
    stack: list[tuple[Any, str, int]] = [(root, "", 0)]
    while stack:
        node, left_out, main = stack.pop()
        if node is None:
            yield Piece(" ", left_out, main)
            continue
        if node.tag == "-text":
            yield Piece(node.text_content or "", left_out, main)
            continue
        if str(node.tag).startswith(("-", "!")) or _is_hidden(node):
            continue
        if node.tag in _ON_PURPOSE and not left_out:
            left_out_count += 1
            left_out = f"{node.tag} {left_out_count}"
        if node.tag == "main":
            main_count += 1
            main = main_count
        if node.tag in _APART:
            yield Piece(" ", left_out, main)
            stack.append((None, left_out, main))
        children, child = [], node.child
        while child is not None:
            children.append((child, left_out, main))
            child = child.next
        stack.extend(reversed(children))


def _is_hidden(node: Any) -> bool:
    attributes = node.attributes
    return node.tag in _NOT_SHOWN or "hidden" in attributes or bool(_HIDDEN.search(attributes.get("style") or ""))


def score(name: str, source: str, shown: Counter[str]) -> Score:
    """Hold the reader's text of a page against the words that are shown."""
    article = html_article(source)
    missing = shown - _words(article.text) - _words(article.title)
    count = shown.total()
    return Score(name, count, 1 - missing.total() / count if count else 1.0, missing)


def chromium_words(program: str, source: str) -> Counter[str]:
    """Return the words that Chromium shows of a page, by its `innerText`, without network, scripts and style sheets."""
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder, "page.html")
        page.write_text(_ASKING.replace("UNCLOSED", " ".join(_unclosed(source))) + source, encoding="utf-8")
        command = [program, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}/profile"]
        command += ["--host-resolver-rules=MAP * ~NOTFOUND", "--dump-dom", page.as_uri()]
        told = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    answer = re.search(r'<meta name="shown" content="([^"]*)"', told)
    if answer is None:
        raise ValueError("Chromium said nothing of the page.")
    return _words(urllib.parse.unquote(answer[1]))


_ASKING = """<!doctype html><meta charset=utf-8>
<meta http-equiv=Content-Security-Policy content="default-src 'none'; style-src 'unsafe-inline';
script-src 'nonce-judge'">
<script nonce=judge>addEventListener("DOMContentLoaded", () => {
  const mains = [...document.querySelectorAll("main")], unclosed = "UNCLOSED".split(" ");
  const isMost = part => part.textContent.length * 2 > document.body.textContent.length;
  const before = (one, other) => one.compareDocumentPosition(other) & Node.DOCUMENT_POSITION_FOLLOWING;
  for (const left of document.querySelectorAll("nav, svg, select, object, dialog"))
    if (!unclosed.includes(left.localName) || !isMost(left)) left.remove();
  if (mains.length && mains.some(main => main.innerText.trim()))
    for (const other of document.body.querySelectorAll("*"))
      if (!mains.some(main => main.contains(other) || other.contains(main))
          && (before(other, mains[0]) || before(mains.at(-1), other))) other.remove();
  const shown = encodeURIComponent(document.body.innerText.toWellFormed());
  document.documentElement.replaceChildren(document.createElement("head"));
  document.head.append(Object.assign(document.createElement("meta"), {name: "shown", content: shown}));
})</script>
"""


def text_of(page: Path) -> str:
    """Return a page as the reader decodes it."""
    data = page.read_bytes()
    return data.decode(page_encoding(data) or "utf-8", errors="replace")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("--list", type=int, default=0, metavar="N", help="name the N pages of which most is lost")
    arguments.add_argument("--chromium", metavar="PROGRAM", help="let this Chromium judge instead")
    arguments.add_argument("--every", type=int, default=1, metavar="N", help="judge every Nth page only")
    args = arguments.parse_args()
    pages = sorted(page for page in args.folder.rglob("*") if page.suffix in (".html", ".htm"))[:: args.every]
    scores, spent = [], 0.0
    for page in pages:
        source = text_of(page)
        shown = chromium_words(args.chromium, source) if args.chromium else shown_words(source)
        started = time.process_time()
        scores.append(score(str(page.relative_to(args.folder)), source, shown))
        spent += time.process_time() - started
    _print(scores, args.list)
    print(f"reading: {spent:.2f} s of CPU")


def _print(scores: list[Score], count: int) -> None:
    scores.sort(key=lambda score: score.share)
    good = sum(score.share >= GOAL for score in scores)
    shown = sum(score.shown for score in scores)
    kept = sum(score.share * score.shown for score in scores)
    print(f"{len(scores):,} pages, {shown:,} words shown: {kept / shown:.4%} kept")
    print(f"pages with at least {GOAL:.0%}: {good:,}; the worst: {scores[0].share:.1%}, {scores[0].name}")
    for score in scores[:count]:
        lost = ", ".join(f"{word} {times}" for word, times in score.missing.most_common(12))
        print(f"{score.share:7.1%} of {score.shown:6,}  {score.name}: {lost}")


if __name__ == "__main__":
    main()
