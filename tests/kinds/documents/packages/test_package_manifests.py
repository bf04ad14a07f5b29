"""Reading manifests: whatever JSON there is, it becomes a manifest or one sentence that names the place."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from commonplace.errors import InvalidInput
from commonplace.kinds.documents.packages.manifest import (
    ManifestEntry,
    ManifestLocation,
    PackageManifest,
    list_documents,
    read_manifest,
    written,
)

TEXTS = st.sampled_from(["", "a.md", "../x", "/x", "**/*.md", "https://example.org/x", "file:///x", "0" * 64, "\0"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["path", "url", "id", "hash", "glob"]), inner, max_size=3)
    ),
    max_leaves=6,
)
ENTRIES = TEXTS | st.fixed_dictionaries({}, optional={"path": TEXTS, "url": TEXTS, "id": TEXTS, "hash": TEXTS}) | VALUES
SOURCES = st.fixed_dictionaries(
    {}, optional={"files": st.lists(ENTRIES, max_size=3) | VALUES, "glob": st.lists(TEXTS, max_size=2) | VALUES}
)
MANIFESTS = st.fixed_dictionaries(
    {"name": st.just("guide") | VALUES, "version": st.just("1") | VALUES, "sources": SOURCES | VALUES},
    optional={"description": VALUES, "baseUrl": VALUES, "metadata": VALUES},
)


@settings(deadline=None, max_examples=100)
@given(MANIFESTS | VALUES)
def test_any_json_is_a_manifest_or_one_sentence_that_names_the_place(given_: Any) -> None:
    try:
        manifest = read_manifest(json.dumps(given_).encode(), "here", most=10)
    except InvalidInput as error:
        assert "here" in str(error)  # noqa: PT017  a refusal is one of the two right answers
        return
    listing = list_documents(manifest, ManifestLocation(base="https://example.org/docs/"))
    for listed in listing.documents.values():
        assert listed.url.startswith(("https://example.org/", "http://"))


@settings(deadline=None, max_examples=100)
@given(st.binary(max_size=50))
def test_any_bytes_are_a_manifest_or_a_refusal(data: bytes) -> None:
    try:
        read_manifest(data, "here", most=10)
    except InvalidInput as error:
        assert "here" in str(error)  # noqa: PT017  as above


def test_what_is_written_is_read_as_it_was() -> None:
    files = (ManifestEntry(path="a.md", hash="a" * 64), ManifestEntry(url="https://example.org/b.md", id="b"))
    manifest = PackageManifest("guide", "1", "Tea – 茶", "https://example.org/", {"k": [1, None]}, None, files)
    assert read_manifest(written(manifest, iter(files)), "here", most=10) == manifest
