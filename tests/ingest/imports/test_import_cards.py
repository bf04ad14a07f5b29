"""Character cards inside images and archives.

1. PNG: tEXt, zTXt and iTXt; ccv3 before chara. WebP: EXIF in either byte order, XMP. `.charx`: card.json and its icon.
2. Broken chunks, wrong checksums and bombs are said, never raised and never unpacked in full.
3. Whatever a card says is text: scripts, macros, unknown fields.
"""

from __future__ import annotations

import base64
import json
import struct
import zlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from import_samples import (
    exif,
    international_chunk,
    packed,
    packed_chunk,
    png,
    png_chunk,
    remarks,
    source_of,
    text_chunk,
    webp,
    zipped,
)  # fmt: skip

from commonplace.errors import CommonplaceError
from commonplace.ingest.imports.card_images import LARGEST_TEXT
from commonplace.ingest.imports.cards import read_card
from commonplace.ingest.imports.import_file import Record, Remarks, Unknown, Unreadable, storable

V2 = {"spec": "chara_card_v2", "data": {"name": "Two", "description": "Zwei – 二"}}
V3 = {"spec": "chara_card_v3", "data": {"name": "Three", "description": "d"}}
RAW = json.dumps(V2, ensure_ascii=False)


def read(data: bytes, name: str = "a.png", said: Remarks | None = None) -> Record:
    return next(iter(read_card(source_of(data, name), said or remarks(name)))).record


@pytest.mark.parametrize(
    "chunk",
    [
        text_chunk("chara", packed(V2)),
        text_chunk("Chara", packed(V2)),
        packed_chunk("chara", packed(V2)),
        international_chunk("chara", packed(V2), compressed=False),
        international_chunk("chara", packed(V2), compressed=True),
        international_chunk("chara", RAW.encode(), compressed=False),
    ],
)
def test_a_png_carries_a_card_in_any_text_chunk(chunk: bytes) -> None:
    image = png(chunk)
    record = read(image)
    assert (record["name"], record["description"]) == ("Two", "Zwei – 二")
    assert record["avatar"]["mime_type"] == "image/png"
    assert base64.b64decode(record["avatar"]["base64"]) == image


def test_the_newer_card_wins_wherever_it_stands() -> None:
    assert read(png(text_chunk("chara", packed(V2)), text_chunk("ccv3", packed(V3))))["name"] == "Three"


def test_a_broken_newer_card_gives_way_to_the_older_with_a_warning() -> None:
    said = remarks()
    record = read(png(text_chunk("ccv3", b"!!!not base64"), text_chunk("chara", packed(V2))), said=said)
    assert record["name"] == "Two"
    assert "ccv3" in said.warnings[0].reason


def test_a_wrong_checksum_is_a_warning() -> None:
    said = remarks()
    broken = png_chunk(b"tEXt", b"chara\0" + packed(V2), crc=1)
    assert read(png(broken), said=said)["name"] == "Two"
    assert "checksum" in said.warnings[0].reason


@pytest.mark.parametrize(
    "image",
    [
        png(),
        png(text_chunk("comment", b"hello")),
        png(png_chunk(b"tEXt", b"chara")),
        png(png_chunk(b"zTXt", b"chara\0\0not zlib")),
        png(png_chunk(b"iTXt", b"chara\0")),
        png(png_chunk(b"iTXt", b"chara\0\1\0en\0\0" + b"junk")),
        png(text_chunk("chara", packed(V2)))[:80],
        b"\x89PNG\r\n\x1a\n" + b"\xff" * 40,
        png(text_chunk("chara", packed([1, 2]))),
    ],
)
def test_an_image_without_a_card_that_can_be_read_says_so(image: bytes) -> None:
    with pytest.raises(Unreadable, match="carries no character card"):
        read(image)


def test_a_chunk_that_unpacks_without_end_is_refused() -> None:
    said = remarks()
    bomb = zlib.compress(b"\0" * (64 << 20), 9)
    with pytest.raises(Unreadable):
        read(png(png_chunk(b"zTXt", b"chara\0\0" + bomb)), said=said)
    assert "unpacks to more than" in said.warnings[0].reason


def test_many_chunks_unpack_to_no_more_than_one() -> None:
    said = remarks()
    half = png_chunk(b"zTXt", b"chara\0\0" + zlib.compress(b"\0" * (LARGEST_TEXT // 2 + 1), 9))
    with pytest.raises(Unreadable):
        read(png(*[half] * 20), said=said)
    assert len([one for one in said.warnings if "unpacks to more than" in one.reason]) == 19


@pytest.mark.parametrize("chunks", [1, 200])
def test_texts_of_exif_that_are_one_and_the_same_take_no_more_than_one(chunks: int) -> None:
    many, text = 1000, b"x" * (LARGEST_TEXT // 1000 // chunks * 2)
    tag = struct.pack("<HHII", 0x9286, 7, len(text), 10 + 12 * many)
    data = b"II*\0" + struct.pack("<IH", 8, many) + tag * many + text
    with pytest.raises(Unreadable, match="the texts of its EXIF have more than"):
        read(webp(*[(b"EXIF", data)] * chunks), "a.webp")


@pytest.mark.parametrize(
    "comment",
    [
        b"ASCII\0\0\0" + RAW.encode(),
        b"UNICODE\0" + RAW.encode("utf-16-le"),
        b"\0" * 8 + packed(V2),
        b"ASCII\0\0\0" + ",".join(map(str, RAW.encode())).encode(),
        RAW.encode(),
    ],
)
def test_a_webp_carries_a_card_in_its_exif(comment: bytes) -> None:
    record = read(webp((b"VP8L", b"\x2f\0\0\0"), (b"EXIF", exif(comment))), "a.webp")
    assert (record["name"], record["avatar"]["mime_type"]) == ("Two", "image/webp")


def test_exif_may_be_big_endian_and_may_have_a_mark() -> None:
    data = b"Exif\0\0" + exif(b"ASCII\0\0\0" + RAW.encode(), ">")
    assert read(webp((b"EXIF", data)), "a.webp")["name"] == "Two"


def test_a_webp_carries_a_card_in_its_xmp() -> None:
    xmp = f'<x:xmpmeta xmlns:x="x"><r:Description xmlns:r="r" c:chara="{packed(V2).decode()}" xmlns:c="c"/></x:xmpmeta>'
    assert read(webp((b"XMP ", xmp.encode())), "a.webp")["name"] == "Two"
    xmp = f"<a><chara>{packed(V2).decode()}</chara><ccv3>{packed(V3).decode()}</ccv3></a>"
    assert read(webp((b"XMP ", xmp.encode())), "a.webp")["name"] == "Three"


def test_a_charx_keeps_its_icon() -> None:
    card: dict[str, Any] = {"spec": "chara_card_v3", "data": {"name": "X", "assets": [
        {"type": "background", "uri": "embeded://b.png", "name": "main"},
        {"type": "icon", "uri": "embeded://assets/other.png", "name": "other"},
        {"type": "icon", "uri": "embeded://assets/main.webp", "name": "main"},
    ]}}  # fmt: skip
    data = zipped({"card.json": json.dumps(card), "assets/main.webp": b"picture", "assets/other.png": b"no"})
    record = read(data, "x.charx")
    assert record["avatar"] == {"mime_type": "image/webp", "base64": base64.b64encode(b"picture").decode()}


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (zipped({"other.json": "{}"}), "card.json is missing"),
        (zipped({"card.json": "{"}), "no JSON"),
        (zipped({"card.json": json.dumps(V2), "../x": "y"}), "points outside"),
        (b"PK\3\4 broken", "damaged archive"),
        (zipped({"card.json": json.dumps({"spec": "chara_card_v3", "data": {"name": "  "}})}), "no name"),
    ],
)
def test_what_is_wrong_with_a_charx_is_said(data: bytes, reason: str) -> None:
    with pytest.raises(Unreadable, match=reason):
        read(data, "a.charx")


def _markdown_card(text: str) -> tuple[dict[str, Any], list[str]]:
    said = remarks()
    (piece,) = read_card(source_of(text.encode(), "mira.md"), said)
    return piece.record, [warning.reason for warning in said.warnings]


def test_nothing_that_a_card_in_markdown_says_is_lost() -> None:
    named = "# Mira\n\nA sailor.\n\n## First message\n\nAhoy!\n\n## Looks\n\nTall.\n\n## First message\n\nHey!\n"
    record, warnings = _markdown_card(named)
    assert (record["name"], record["first_message"]) == ("Mira", "Ahoy!\n\nHey!")
    assert record["description"].split() == ["A", "sailor.", "##", "Looks", "Tall."]
    record, _ = _markdown_card("# Mira\n\nA sailor.\n\n## Description\n\nTall.\n")
    assert (record["description"], record["extensions"]) == ("Tall.", {"text": "A sailor."})
    record, _ = _markdown_card("---\nname: Mira\ndescription: Short.\n---\nTall.\n")
    assert (record["description"], record["extensions"]) == ("Short.", {"text": "Tall."})
    record, warnings = _markdown_card("---\nname: Mira\ndescription: Short.\n---\n## Description\n\nTall.\n")
    assert record["description"] == "Short."
    assert warnings == ['the front matter has "description" too, so what the section says was left out.']


def test_a_script_in_every_field_is_text() -> None:
    script = "<script>alert('x')</script>"
    names = ("name", "description", "personality", "scenario", "first_mes", "mes_example", "system_prompt", "creator")
    card = dict.fromkeys(names, script) | {"tags": [script], "alternate_greetings": [script], script: script}
    card["character_book"] = {"name": script, "entries": [{"keys": [script], "content": script, "name": script}]}  # type: ignore[assignment]
    record = read(json.dumps({"data": card}).encode(), "a.json")
    assert record["name"] == record["first_message"] == record["tags"][0] == record["alternate_greetings"][0] == script
    assert record["lorebook"]["entries"][0]["content"] == script
    assert record["extensions"] == {script: script}


@pytest.mark.parametrize("card", [{"name": "Min"}, {"data": {"name": "Min"}}, {"name": "Min", "tags": [], "spec": ""}])
def test_a_card_needs_nothing_but_a_name(card: dict[str, Any]) -> None:
    more = card | {"odd": 1}
    assert read(json.dumps(card).encode(), "a.json")["name"] == "Min"
    assert read(png(text_chunk("chara", packed(more))))["name"] == "Min"
    assert read(webp((b"EXIF", exif(packed(more)))), "a.webp")["name"] == "Min"
    assert read(zipped({"card.json": json.dumps(more)}), "a.charx")["extensions"] == {"odd": 1}
    with pytest.raises(Unknown):
        read(json.dumps(card | {"history": [["a", "b"]]}).encode(), "chat.json")


def test_old_names_of_fields_are_understood() -> None:
    card = {"char_name": "P", "char_persona": "d", "world_scenario": "w", "char_greeting": "g", "example_dialogue": "e"}
    record = read(json.dumps(card).encode(), "a.json")
    assert [record[name] for name in ("name", "description", "scenario", "first_message", "message_example")] == list(
        "Pdwge"
    )


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
_names = st.sampled_from(
    ["name", "data", "description", "tags", "first_mes", "alternate_greetings", "character_book", "extensions", "spec",
     "entries", "creation_date", "keys", "content", "lorebook"]
)  # fmt: skip


@settings(deadline=None, max_examples=100)
@given(st.dictionaries(_names, _json | st.dictionaries(_names, _json, max_size=4), max_size=8))
def test_whatever_a_card_holds_it_is_a_record_or_refused(card: dict[str, Any]) -> None:
    try:
        record = read(json.dumps(card).encode(), "a.json")
    except CommonplaceError:
        return
    assert storable(record)[0]["name"].strip()


@settings(deadline=None, max_examples=100)
@given(st.binary(max_size=200), st.integers(0, 200))
def test_damaged_images_are_refused_and_nothing_else(noise: bytes, at: int) -> None:
    for image, name in (
        (png(text_chunk("chara", packed(V2))), "a.png"),
        (webp((b"EXIF", exif(RAW.encode()))), "a.webp"),
    ):
        place = 12 + at % (len(image) - 12)
        try:
            read(image[:place] + noise + image[place + len(noise) :], name)
        except CommonplaceError:
            continue
