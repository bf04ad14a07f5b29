"""Encodings of before UTF-8: 1. texts in them are read right and found; 2. UTF-8 is never taken for one of them,
whatever is broken in it; 3. UTF-16 needs no mark, and binary files stay so; 4. what was read badly is read once more.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commonplace.ingest.files import read
from commonplace.ingest.files.read import decode, is_binary, read_text
from commonplace.library import Library
from support.folder_files import build

TEXTS = {
    "de": "Über die Brücke führt eine schmale Straße, und am Ende hängt ein großes Schild für die Gäste.\n",
    "fr": "L'élève a préparé un gâteau à la crème brûlée; ses frères ont préféré les pêches, ça va sans dire.\n",
    "pl": "Zażółć gęślą jaźń: dziś rano żółw przyszedł do źródła, żeby napić się świeżej wody i usiąść w cieniu.\n",
    "cs": "Příliš žluťoučký kůň úpěl ďábelské ódy, zatímco děti čekaly před školou na svého učitele.\n",
    "ru": "Чай заваривают три минуты в тёплом чайнике, а потом разливают по чашкам и пьют с вареньем.\n",
    "uk": "Їжак приніс яблуко до хатинки, де його чекали діти, і розповів їм казку про зелений ліс.\n",
    "el": "Το τσάι βράζει για τρία λεπτά και μετά σερβίρεται ζεστό με λίγο μέλι και ένα κομμάτι ψωμί.\n",
    "tr": "Çayı demlemek için suyu kaynatın, üç dakika bekleyin ve ışığın altında ince belli bardaklara doldurun.\n",
    "he": "את התה חולטים שלוש דקות בקומקום חם, ואחר כך מוזגים לכוסות ושותים עם מעט דבש ועוגה.\n",
    "ar": "ينقع الشاي ثلاث دقائق في إبريق ساخن، ثم يصب في الأكواب ويشرب مع قليل من العسل والخبز.\n",
    "lt": "Arbatą užplikykite karštu vandeniu, palaukite tris minutes ir gerkite su medumi ąžuolo pavėsyje.\n",
    "th": "ชงชาในกาน้ำร้อนสามนาที แล้วรินใส่ถ้วย ดื่มกับน้ำผึ้งและขนมปังในตอนเช้า\n",
    "ja": "お茶は八十度の湯で三分ほど蒸らしてから、温めた湯呑みに注いで、和菓子と一緒にいただきます。\n",
    "zh": "茶要用八十度的热水泡三分钟,然后倒进温热的杯子里,和点心一起慢慢品尝。\n",
    "tw": "茶要用八十度的熱水泡三分鐘,然後倒進溫熱的杯子裡,和點心一起慢慢品嚐。\n",
    "ko": "차는 팔십 도의 물에 삼 분 동안 우려낸 다음 따뜻한 찻잔에 따라 과자와 함께 천천히 마십니다.\n",
}
WRITTEN = [
    ("de", "cp1252"), ("de", "iso8859-1"), ("de", "iso8859-15"), ("fr", "cp1252"), ("pl", "cp1250"),
    ("pl", "iso8859-2"),
    ("cs", "cp1250"), ("cs", "iso8859-2"), ("ru", "cp1251"), ("ru", "koi8-r"), ("uk", "koi8-u"), ("ru", "iso8859-5"),
    ("el", "cp1253"), ("el", "iso8859-7"), ("tr", "cp1254"), ("he", "cp1255"), ("ar", "cp1256"), ("lt", "cp1257"),
    ("th", "cp874"), ("ja", "cp932"), ("ja", "euc_jp"), ("zh", "gbk"), ("tw", "big5"), ("ko", "cp949"),
]  # fmt: skip


@pytest.mark.parametrize(("language", "encoding"), WRITTEN)
def test_a_text_is_read_in_the_encoding_it_was_written_in(language: str, encoding: str) -> None:
    assert decode(TEXTS[language].encode(encoding)) == (TEXTS[language], 0)
    prose = f"{'The kettle is on, and nobody waits for it. ' * 2_000}\n{TEXTS[language]}"
    assert decode(prose.encode(encoding)) == (prose, 0), "however late it begins"


def test_files_in_old_encodings_are_found_by_their_words(library: Library, root: Path) -> None:
    build(root, {f"{language}-{encoding}.txt": TEXTS[language].encode(encoding) for language, encoding in WRITTEN})
    report = library.add_folder(root)
    assert (report.added, report.warnings, report.skipped) == (len(WRITTEN), [], [])
    found = {hit.item.key for hit in library.search("Straße", mode="lexical", limit=50).hits}
    assert found == {"de-cp1252.txt", "de-iso8859-1.txt", "de-iso8859-15.txt"}
    assert library.search("чайнике", mode="lexical").hits[0].item.key.startswith("ru-")


@pytest.mark.parametrize(
    "text",
    ["20 °C", "§ 5", "½ cup", "3 × 4", "café", "# Ñandú", "à la carte", "it’s fine", "“Yes”", "10 €", "© Müller\n"],
)
def test_a_few_bytes_say_too_little_and_are_the_commonest_encodings(text: str) -> None:
    assert decode(text.encode("cp1252")) == (text, 0)


def test_a_word_may_be_all_there_is() -> None:
    assert decode("Чай".encode("cp1251"))[0] == "Чай"
    assert decode("お茶".encode("cp932"))[0] == "お茶"


@pytest.mark.parametrize("language", TEXTS)
@pytest.mark.parametrize("broken", [b"\xff", b"\xe9", b"\x80", b"\xc3", b"\xf0\x9f"])
def test_utf_8_with_broken_bytes_stays_utf_8(language: str, broken: bytes) -> None:
    data = TEXTS[language].encode()
    before, after = data[:-1].decode(), "\n"
    assert decode(data[:-1] + broken + b"\n") == (f"{before}\ufffd{after}", 1)


@settings(max_examples=300)
@given(st.sampled_from(sorted(TEXTS.values())), st.data())
def test_utf_8_that_lost_a_byte_keeps_its_other_characters(text: str, data: st.DataObject) -> None:
    written = text.encode()
    at = data.draw(st.integers(0, len(written) - 1))
    body, _ = decode(written[:at] + written[at + 1 :])
    assert set(body) <= {*text, "\ufffd"}


def test_a_file_that_was_cut_in_a_character_is_utf_8() -> None:
    assert decode("it’s".encode()[:-2]) == ("it\ufffd", 1)


@pytest.mark.parametrize("language", [language for language in TEXTS if language not in ("th", "ja", "zh", "tw")])
@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf_16_needs_no_mark(language: str, encoding: str) -> None:
    text = TEXTS[language] * 3
    assert read_text(text.encode(encoding), "a.txt").body == text


@pytest.mark.parametrize(
    "data",
    [
        b"x\0", b"name\0" * 50, b"a b c d\0" * 40, b"x" * 100 + b"\0" + b"y" * 300, bytes(range(256)) * 4,
        b"\x7fELF\x02\x01\x01" + b"\0" * 9, b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", b"PK\3\4\x14\0\0\0",
    ],
)  # fmt: skip
def test_what_is_binary_is_no_text_in_any_encoding(data: bytes) -> None:
    assert is_binary(data)


def test_files_that_were_read_badly_are_read_once_more(
    library: Library, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, wide, bad = TEXTS["de"].encode("cp1252"), TEXTS["ru"].encode("utf-16-le"), "größer: \xff".encode("latin-1")
    build(root, {"old.txt": old, "wide.txt": wide, "bad.txt": "größer, ".encode() + bad[-1:], "new.txt": b"Tea\n"})
    with monkeypatch.context() as before:
        before.setattr(read, "guessed_encoding", lambda data: "")
        before.setattr(read, "wide_encoding", lambda data: "")
        before.setattr(read, "CHARSET", 0)
        read.folder_stamp_of.cache_clear()
        report = library.add_folder(root)
        assert [code for _, code in report.skipped] == ["BINARY"]
        assert len(report.warnings) == 2
    read.folder_stamp_of.cache_clear()
    report = library.folders.update("notes")
    assert (report.added, report.updated, report.unchanged, report.skipped) == (1, 1, 2, [])
    assert [path for path, _ in report.warnings] == ["bad.txt"]
    change = library.store.last_change()
    assert library.folders.update("notes").unchanged == 4
    assert library.store.last_change() == change
