"""How many texts are told to be in the language they are in, when they are indexed and by the rules for queries.

    python bench/languages.py                 translations of programs in /usr/share/locale (Debian: gettext catalogs)
    python bench/languages.py --data DIR      and the passages of judged collections, by the language their name ends in

A text of prose is four sentences of at least 60 characters (25 in scripts without blanks), cut at 800; the rows of few
words are cut out of the same texts. `right` is the share told right, `wrong` the share told to be in another language;
the rest is told to be in none. CPU time is of one text.
"""

from __future__ import annotations

import argparse
import gettext
import json
import random
import re
import time
from collections.abc import Callable
from pathlib import Path

from commonplace.text.languages import UNKNOWN, detect
from commonplace.text.told_language import language_of

CATALOGS = Path("/usr/share/locale")
LANGUAGES = tuple(
    "ar be bg ca cs cy da de el es et eu fa fi fr ga gl he hi hr hu id is it ja ka ko lt lv mr nb nl nn pl".split()  # noqa: SIM905
    + "pt_BR ro ru sk sl sr sv th tr uk vi zh_CN".split()  # noqa: SIM905
)
OF_DATA = {"ar", "de", "ja", "ko", "th", "zh"}
TEXTS = 30
_NO_PROSE = re.compile(r"%[-+0-9.$*#lhzjt]*[a-zA-Z]|<[^>]*>|\{[^}]*\}|\\[nt]|--?[a-z][\w-]*|[_&](?=\w)")

Sample = tuple[str, str]


def catalog_texts(language: str, rng: random.Random) -> list[str]:
    """Return texts of four sentences each out of the translations into a language."""
    least = 25 if language in ("ja", "ko", "th", "zh_CN") else 60
    sentences: set[str] = set()
    for path in sorted((CATALOGS / language / "LC_MESSAGES").glob("*.mo")):
        try:
            with path.open("rb") as file:
                messages = gettext.GNUTranslations(file)._catalog  # type: ignore[attr-defined]
        except (UnicodeDecodeError, OSError):  # of a program in an encoding of its own
            continue
        for source, said in messages.items():
            if source and isinstance(said, str) and said != source:
                sentences.add(" ".join(_NO_PROSE.sub(" ", said).split()))
    pool = sorted(sentence for sentence in sentences if len(sentence) >= least)
    rng.shuffle(pool)
    return [" ".join(pool[at : at + 4])[:800] for at in range(0, min(4 * TEXTS, len(pool) - 3), 4)]


def data_texts(folder: Path) -> list[Sample]:
    """Return the first passages of each judged collection; one whose name ends in no language is English."""
    samples = []
    for corpus in sorted(folder.glob("*/corpus.jsonl")):
        ending = corpus.parent.name.rpartition("_")[2]
        language = ending if ending in OF_DATA else "en"
        if "cosqa" not in corpus.parent.name:  # code
            rows = map(json.loads, corpus.read_text(encoding="utf-8").splitlines()[:TEXTS])
            samples += [(language, f"{row['title']}\n{row['text'][:800]}") for row in rows]
    return samples


def cut(samples: list[Sample], least: int, most: int, rng: random.Random) -> list[Sample]:
    """Return some words in a row of each text that has more than twenty."""
    pieces = []
    for language, text in samples:
        words = text.split()
        if len(words) > 20:
            count = rng.randint(least, most)
            start = rng.randint(0, len(words) - count)
            pieces.append((language, " ".join(words[start : start + count])))
    return pieces


def row(name: str, samples: list[Sample], tell: Callable[[str], str]) -> str:
    started = time.process_time()
    told = [(language, tell(text)) for language, text in samples]
    spent = (time.process_time() - started) / len(samples) * 1e6
    right = sum(language == answer for language, answer in told) / len(told)
    wrong = sum(answer not in (language, UNKNOWN) for language, answer in told) / len(told)
    return f"| {name} | {len(told):,} | {right:.1%} | {wrong:.1%} | {spent:.0f} µs |"


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--data", type=Path, help="a folder of judged collections")
    folder = arguments.parse_args().data
    rng = random.Random(7)
    codes = {"nb": "no", "nn": "no", "pt_BR": "pt", "zh_CN": "zh"}
    prose = [(codes.get(code, code), text) for code in LANGUAGES for text in catalog_texts(code, rng)]
    prose += data_texts(folder) if folder else []
    print(f"{len({language for language, _ in prose})} languages\n")
    print("| texts | how many | right | wrong | CPU |\n|---|---|---|---|---|")
    rows = {"prose": prose, "5 to 9 words": cut(prose, 5, 9, rng), "2 to 4 words": cut(prose, 2, 4, rng)}
    language_of(prose[0][1] * 9)  # the model is loaded once
    for name, samples in rows.items():
        print(row(f"{name}, when indexed", samples, language_of))
        print(row(f"{name}, as queries are told", samples, detect))


if __name__ == "__main__":
    main()
