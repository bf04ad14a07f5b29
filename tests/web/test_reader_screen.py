"""The reader: addresses, pages, marks, outline, editors, and what is gone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.datastructures import QueryParams

from commonplace.library import Library
from commonplace.model import Draft, parse_uri, uri_of
from commonplace.server.principal import OWNER
from commonplace.settings import Settings
from commonplace.web import prose
from commonplace.web.frame import Answer, Redirect, Sheet, rendered
from commonplace.web.paths import ITEMS, address_at, item_path
from commonplace.web.reader_screen import read, read_by_address
from commonplace.web.visits import Visit


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    home = tmp_path / "home"
    with Library.open(home, settings=Settings(home=home, models=tmp_path / "models", model="static")) as library:
        yield library


def visit(library: Library, address: str, *, is_owner: bool = True) -> Visit:
    path, _, query = address.partition("?")
    return Visit(
        unquote(path), path, QueryParams(query), "http://127.0.0.1:8377", OWNER, "s" * 43, library.settings, is_owner
    )


def answer(library: Library, address: str) -> Answer:
    asked = visit(library, address)
    return (read if asked.path.startswith(ITEMS) else read_by_address)(library, asked)


def sheet(library: Library, address: str) -> Sheet:
    shown = answer(library, address)
    assert isinstance(shown, Sheet)
    return shown


def page(library: Library, address: str) -> str:
    return rendered(sheet(library, address), visit(library, address))


LOCKS = """---
owner: Marta
---
# Distributed locks

We use *advisory* locks.

## Rules

- Leases last thirty seconds.
- Election needs fencing tokens, or a paused process writes.

## Open questions

See [Marta](../People/Marta.md), [nobody](Nobody.md), [a site](https://example.com/a?b=c&d=e).
"""


def test_a_document_is_shown_with_its_outline_marks_and_links(library: Library) -> None:
    library.put(
        Draft("document", "Ops/Locks.md", parent="vault", title="Distributed locks", body=LOCKS, format="markdown")
    )
    library.put(Draft("document", "People/Marta.md", parent="vault", title="Marta", body="Marta.", format="markdown"))
    uri = uri_of("document", "vault", "Ops/Locks.md")
    shown = sheet(library, item_path(uri, line=11, q="fencing tokens"))
    assert shown.record["marks"] == 2
    assert [one["title"] for one in shown.record["outline"]] == ["Distributed locks", "Rules", "Open questions"]
    assert [one["on"] for one in shown.record["outline"]] == [False, True, False]
    html = page(library, item_path(uri, line=11, q="fencing tokens"))
    text = html[html.index('<div class="text">') :]
    assert "<mark>fencing</mark> <mark>tokens</mark>" in text
    assert re.search(r'<(li|p) id="here">', text)
    assert "owner: Marta" not in text  # the front matter is no text
    assert len(re.findall("<h1", html)) == 1
    assert '<h2 id="L8">Rules</h2>' in text
    marta = uri_of("document", "vault", "People/Marta.md")
    assert f'<a href="{item_path(marta)}"' in text
    assert '<a class="nowhere"' in text
    assert 'href="https://example.com/a?b=c&amp;d=e"' in text


def test_an_item_has_twins_in_markdown_and_json_also_where_its_own_name_ends_so(library: Library) -> None:
    library.put(Draft("document", "a.md", parent="docs", title="A", body="# A\n\nbody", format="markdown"))
    path = item_path(uri_of("document", "docs", "a.md"))
    assert sheet(library, path).wanted == ""
    assert sheet(library, f"{path}.md").wanted == "text/markdown"
    assert sheet(library, f"{path}.md").markdown == "# A\n\nbody"
    assert sheet(library, f"{path}.json").wanted == "application/json"
    assert sheet(library, f"{path}.json").record["text"] == "# A\n\nbody"


def test_every_spelling_of_an_address_leads_to_the_one_path(library: Library) -> None:
    library.put(Draft("document", "Zürich/café.md", parent="docs", title="Z", body="z", format="markdown"))
    uri = uri_of("document", "docs", "Zürich/café.md")
    path = item_path(uri)
    assert isinstance(answer(library, path), Sheet)
    moved = answer(library, path.replace("%C3%A9", "é"))
    assert isinstance(moved, Redirect)
    assert moved.location == path
    assert answer(library, f"/item?uri={uri}") == Redirect(path)
    assert answer(library, f"/item?uri={uri}&q=zed") == Redirect(f"{path}?q=zed")


_KEY = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=20)


@given(st.sampled_from(["document", "note", "memory", "message"]), _KEY, _KEY)
def test_a_path_means_the_address_it_was_made_of(kind: str, parent: str, key: str) -> None:
    uri = uri_of(kind, parent, key)
    path = urlsplit(f"http://x{item_path(uri)}").path
    if path.startswith(ITEMS):
        assert address_at(path.removeprefix(ITEMS)) == uri
    parts = parse_uri(uri)
    assert parts is not None
    assert parts[2] == key


@pytest.mark.parametrize("key", ["a/../b.md", ".", "a//b.md", "x/."])
def test_a_name_that_browsers_rewrite_is_reached_by_its_address(key: str, library: Library) -> None:
    library.put(Draft("document", key, parent="docs", title="Odd", body="odd", format="markdown"))
    path = item_path(uri_of("document", "docs", key))
    assert path.startswith("/item?uri=")
    assert sheet(library, path).record["title"] == "Odd"


def test_what_is_gone_says_so_and_what_is_near(library: Library) -> None:
    library.put(Draft("document", "notes/kettles.md", parent="docs", title="Kettles", body="k", format="markdown"))
    gone = sheet(library, item_path(uri_of("document", "docs", "notes/kettle.md")))
    assert gone.status == 410
    assert [one["title"] for one in gone.record["near"]] == ["Kettles"]
    for address in ("/i/nonsense", "/i/nonsense/x", "/i/%FF/%FE", "/item", "/item?uri=x"):
        assert sheet(library, address).status == 410


def test_a_long_document_is_cut_into_pages_at_its_headings(library: Library) -> None:
    body = "".join(f"## Part {number}\n\n{'word ' * 1200}\n\n" for number in range(12))
    library.put(Draft("document", "long.md", parent="docs", title="Long", body=body, format="markdown"))
    path = item_path(uri_of("document", "docs", "long.md"))
    first = sheet(library, path).record
    assert first["pages"] == 4
    seen = [sheet(library, f"{path}?page={number}").record["lines"] for number in range(1, first["pages"] + 1)]
    assert seen[0][0] == 1
    assert all(later[0] == earlier[1] + 1 for earlier, later in pairwise(seen))
    lines = body.split("\n")
    assert all(lines[start - 1].startswith("## ") for start, _ in seen)
    assert sheet(library, f"{path}?line={seen[2][0] + 1}").record["page"] == 3
    assert "Page 2 →" in page(library, path)


@given(
    st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=60), max_size=60),
    st.sets(st.integers(1, 60)),
    st.integers(8, 400),
)
def test_pages_are_within_their_size_and_leave_nothing_out(lines: list[str], headings: set[int], most: int) -> None:
    body = "\n".join(line.replace("\n", " ").replace("\r", " ") for line in lines)
    parts = prose.cut(body, headings, most)
    assert "".join(body[part.start : part.end] for part in parts) == body
    assert all(len(body[part.start : part.end].encode()) <= most for part in parts)


def test_code_has_numbered_lines_and_plain_text_its_paragraphs(library: Library) -> None:
    code = "def a():\n    return '<b>'\n"
    library.put(Draft("document", "a.py", parent="docs", title="a.py", body=code, format="python"))
    library.put(Draft("document", "b.txt", parent="docs", title="b", body="One <i>.\nTwo.\n\nThree.", format="text"))
    html = page(library, item_path(uri_of("document", "docs", "a.py"), line=2))
    assert '<span class="row" id="here"><b>2</b>    return &#x27;&lt;b&gt;&#x27;' in html
    html = page(library, item_path(uri_of("document", "docs", "b.txt")))
    assert '<p class="plain" id="L1">One &lt;i&gt;.\nTwo.</p><p class="plain" id="L4">Three.</p>' in html


def test_files_of_a_folder_open_in_editors_for_the_owner_alone(library: Library, tmp_path: Path) -> None:
    folder = tmp_path / "my notes"
    folder.mkdir()
    (folder / "a b.md").write_text("# A b\n\ntext")
    library.add_folder(folder, "notes")
    path = item_path(uri_of("document", "notes", "a b.md"), line=3)
    html = page(library, path)
    assert f'href="vscode://file{str(folder).replace(" ", "%20")}/a%20b.md:3"' in html
    others = visit(library, path, is_owner=False)
    assert "vscode:" not in rendered(read(library, others), others)  # type: ignore[arg-type]
    (folder / ".obsidian").mkdir()
    assert 'href="obsidian://open?path=' in page(library, path)


def test_a_chat_a_memory_and_an_empty_note_can_be_read(library: Library) -> None:
    library.put(Draft("conversation", "c1", title="About tea", body=""))
    library.put(Draft("message", "m1", parent="c1", body="How hot?", fields={"sender": "ann"}))
    library.put(Draft("note", "empty", title="Empty", body=""))
    assert "How hot?" in page(library, "/i/chats/c1")
    assert "It has no text." in page(library, "/i/notes/empty")


def test_a_page_is_rendered_once_and_anew_when_the_item_changes(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = list[str]()
    render = prose.markdown

    def counting(text: str, *rest: object, **named: object) -> str:
        calls.append(text)
        return render(text, *rest, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(prose, "markdown", counting)
    library.put(Draft("note", "tea", title="Tea", body="One.", format="markdown"))
    for _ in range(3):
        assert "<mark>One</mark>." in page(library, "/i/notes/tea?q=one&line=1")
    assert len(calls) == 1
    library.put(Draft("note", "tea", title="Tea", body="Two.", format="markdown"))
    assert "Two." in page(library, "/i/notes/tea")
    assert len(calls) == 2
