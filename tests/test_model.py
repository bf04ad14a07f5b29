"""The nouns: ids that can be read off each other, and addresses that name just one thing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.model import MOST_CHUNKS, SCHEMES, Filter, chunk_id, fingerprint, item_of, parse_uri, uri_of

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
WITH_PARENT = {"document", "message", "table"}


@given(st.integers(1, 2**43 - 2), st.integers(0, MOST_CHUNKS - 1))
def test_a_chunk_s_id_is_its_item_and_its_place(item: int, ordinal: int) -> None:
    assert item_of(chunk_id(item, ordinal)) == item
    assert chunk_id(item, ordinal) < 2**63
    assert chunk_id(item, ordinal) < chunk_id(item + 1, 0)


@given(st.sampled_from(sorted(SCHEMES)), TEXT, TEXT.filter(bool))
def test_an_address_leads_back_to_what_it_names(kind: str, parent: str, key: str) -> None:
    uri = uri_of(kind, parent, key)
    assert uri.isascii()
    assert parse_uri(uri) == (kind, parent if kind in WITH_PARENT else None, key)


@pytest.mark.parametrize(
    ("address", "uri"),
    [
        (("document", "notes", "a/b c.md"), "docs://notes/a/b%20c.md"),
        (("memory", "thread", "12"), "memory://12"),
        (("message", "talk", "m/1"), "chats://talk/m%2F1"),
        (("conversation", "", "talk"), "chats://talk"),
        (("note", "", "é"), "notes://%C3%A9"),
    ],
)
def test_addresses_look_as_documented(address: tuple[str, str, str], uri: str) -> None:
    assert uri_of(*address) == uri


@pytest.mark.parametrize("uri", ["docs://notes/a/b%20c.md", "qmd://notes/a/b%20c.md"])
def test_a_document_is_named_in_either_scheme(uri: str) -> None:
    assert parse_uri(uri) == ("document", "notes", "a/b c.md")


@given(st.text(max_size=30))
def test_any_text_is_an_address_or_is_not(text: str) -> None:
    for uri in (text, f"notes://{text}", f"docs://{text}", f"chats://{text}"):
        parts = parse_uri(uri)
        assert parts is None or (parts[0] in SCHEMES and parts[2])


@pytest.mark.parametrize("uri", ["", "notes", "notes://", "docs://x", "docs://x/", "qmd://x", "nothing://x", "://x"])
def test_what_is_no_address_of_ours_is_none(uri: str) -> None:
    assert parse_uri(uri) is None


def test_a_filter_is_true_when_it_asks_for_anything() -> None:
    assert not Filter()
    assert Filter(kinds=("note",))


@given(st.lists(st.text(max_size=5) | st.binary(max_size=5), max_size=4), st.lists(st.text(max_size=5), max_size=4))
def test_parts_of_a_fingerprint_cannot_run_into_each_other(a: list[str | bytes], b: list[str]) -> None:
    def encoded(parts: list[str | bytes]) -> list[bytes]:
        return [part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part for part in parts]

    assert (fingerprint(*a) == fingerprint(*b)) == (encoded(a) == encoded(list(b)))
    assert len(fingerprint(*a, size=8)) == 8
