"""How many texts in encodings of before UTF-8 are read right, and whether UTF-8 with broken bytes stays UTF-8.

    python bench/charset.py [--gettext /usr/share/locale] [--manuals /usr/share/man] [--judged FOLDER]

Texts are translations of programs (thresholds were chosen on half of these, so the other half counts), manual pages
and passages of judged collections. Each is written in every encoding that its language was written in, with
the quotes and dashes an encoding lacks replaced, and is right when every character is.
"""

from __future__ import annotations

import argparse
import gettext
import gzip
import json
import random
import time
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from commonplace.ingest.files.read import decode

LANGUAGES = {
    "cp1252": "fr de es it pt_BR pt sv da nl fi nb is ca gl eu", "iso8859-1": "fr de es it pt_BR sv da nl",
    "iso8859-15": "fr fi de", "cp1250": "pl cs hu sk hr sl", "iso8859-2": "pl cs hu sk hr sl",
    "cp1251": "ru uk bg sr be mk", "koi8-r": "ru", "koi8-u": "uk", "iso8859-5": "ru bg", "cp1253": "el",
    "iso8859-7": "el", "cp1254": "tr", "iso8859-9": "tr", "cp1255": "he", "cp1256": "ar fa", "cp1257": "lt lv et",
    "cp874": "th", "cp932": "ja", "euc_jp": "ja", "gbk": "zh_CN", "gb18030": "zh_CN", "big5": "zh_TW", "cp949": "ko",
    "euc_kr": "ko",
}  # fmt: skip
JUDGED = {
    "de": "xquad_de", "ar": "xquad_ar", "th": "xquad_th", "ja": "jsquad_ja", "ko": "korquad_ko", "zh_CN": "cmrc2018_zh",
}  # fmt: skip
PLAIN = str.maketrans(
    {"‘": "'", "’": "'", "“": '"', "”": '"', "„": '"', "…": "...", "–": "-", "—": "-", "\xa0": " ", "\u202f": " "}
)
SIZES = (60, 150, 400, 1000, 3000)
LEAST = 4
"""Bytes above ASCII that a text needs to be counted."""


def translations(folder: Path, language: str, size: int, half: int) -> Iterator[str]:
    """Yield a text of some size for each program of a half of them."""
    for path in sorted(folder.glob(f"{language}/LC_MESSAGES/*.mo")):
        if zlib.crc32(path.stem.encode()) % 2 != half or path.stem.startswith("iso_"):
            continue
        try:
            with path.open("rb") as file:
                catalog = gettext.GNUTranslations(file)._catalog  # type: ignore[attr-defined]
        except UnicodeDecodeError:  # it says nothing of its encoding, and is not in ours
            continue
        strings = [text for key, text in catalog.items() if key and isinstance(text, str) and len(text) > 20]
        random.Random(path.stem).shuffle(strings)
        lines: list[str] = []
        while strings and sum(map(len, lines)) < size:
            lines.append(strings.pop())
        if sum(map(len, lines)) >= size:
            yield "\n".join(lines)


def manuals(folder: Path, language: str, most: int = 25) -> Iterator[str]:
    """Yield pages that are UTF-8 themselves; some are UTF-8 that was encoded twice."""
    pages = [path for path in sorted(folder.glob(f"{language}/man*/*.gz")) if not path.is_symlink()]
    for path in pages[:most]:
        text = gzip.decompress(path.read_bytes()).decode("utf-8", "replace")
        if "\ufffd" not in text and "Ã" not in text:
            yield text


def passages(folder: Path, language: str, most: int = 60) -> Iterator[str]:
    path = folder / JUDGED.get(language, "") / "corpus.jsonl"
    if language in JUDGED and path.exists():
        yield from (json.loads(line)["text"] for line in path.read_text("utf-8").splitlines()[:most])


def written(text: str, encoding: str) -> bytes | None:
    """Return a text as somebody would have written it, or None where the encoding cannot say it or it is UTF-8 too."""
    for form in (text, text.translate(PLAIN)):
        try:
            data = form.encode(encoding)
            break
        except UnicodeEncodeError:
            continue
    else:
        return None
    if sum(byte > 127 for byte in data) < LEAST:
        return None
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return data
    return None


def report(name: str, texts: dict[str, list[str]]) -> None:
    right, wrong, seconds = 0, Counter[str](), 0.0
    for encoding, languages in LANGUAGES.items():
        for text in (text for language in languages.split() for text in texts[language]):
            if (data := written(text, encoding)) is None:
                continue
            before = time.process_time()
            body, _ = decode(data)
            seconds += time.process_time() - before
            right += (same := body == data.decode(encoding))
            wrong[encoding] += not same
    total = right + wrong.total()
    worst = ", ".join(f"{count} {encoding}" for encoding, count in wrong.most_common(4) if count)
    share, each = right / max(1, total), 1000 * seconds / max(1, total)
    print(f"{name:24} {right:5} of {total:5} right, {share:.1%}; {each:.2f} ms each; {worst}")


def broken(name: str, texts: dict[str, list[str]]) -> None:
    """One byte of each text is lost, changed or too many."""
    chance, total, taken = random.Random(1), 0, 0
    for text in (text for several in texts.values() for text in several):
        data = bytearray(text.encode())
        places = [at for at, byte in enumerate(data) if byte > 127]
        if len(places) < 2 * LEAST:
            continue
        at = chance.choice(places)
        data[at : at + 1] = chance.choice((b"", b"\xff", b"\x80", b"\xe9", bytes([data[at], 0x92])))
        total += 1
        taken += decode(bytes(data))[0] != data.decode("utf-8-sig", "replace")
    print(f"{name:24} {taken:5} of {total:5} in UTF-8 with a broken byte taken for another encoding")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gettext", type=Path, default=Path("/usr/share/locale"))
    parser.add_argument("--manuals", type=Path, default=Path("/usr/share/man"))
    parser.add_argument("--judged", type=Path, default=Path("data"))
    parser.add_argument(
        "--half", type=int, default=1, help="0: the half of the programs that thresholds were chosen on."
    )
    given = parser.parse_args()
    names = sorted({name for names in LANGUAGES.values() for name in names.split()})
    sets = {
        f"translations, {size}": {name: list(translations(given.gettext, name, size, given.half)) for name in names}
        for size in SIZES
    }
    sets["manuals"] = {name: list(manuals(given.manuals, name)) for name in names}
    sets["judged passages"] = {name: list(passages(given.judged, name)) for name in names}
    for name, texts in sets.items():
        report(name, texts)
    for name, texts in sets.items():
        broken(name, texts)


if __name__ == "__main__":
    main()
