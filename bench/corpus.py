"""Real prose for measuring, on any machine and without a network: what every Python installation says about itself.

    python bench/corpus.py                 how much there is, a passage and some queries
    python bench/corpus.py --text DIR      the same from your own text

Sentences come from docstrings, comments and manuals. A passage is a few runs of neighbouring sentences, about 150
words (200 tokens), so words stand beside the words they really stand beside. Passage `n` depends on the seed, `n` and
the sentences alone: a corpus is never held in memory, and any part of it can be made again.
"""

from __future__ import annotations

import argparse
import random
import re
import site
import sys
import sysconfig
import textwrap
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import chain
from pathlib import Path
from pydoc_data import topics

PASSAGE_WORDS = 150
SENTENCE_WORDS = range(4, 61)
MOST_SENTENCES = 200_000
MOST_FILE_BYTES = 2_000_000
SAMPLE = 4_000
MID_FREQUENCY = (0.001, 0.03)
"""The share of passages that hold a word of a three-term query: words that tell something and do occur."""

_PROSE = (".txt", ".md", ".rst")
_BARE = frozenset({"copyright", "README", "NEWS", "changelog", "GPL-2", "GPL-3", "LGPL-3", "MPL-2.0", "Apache-2.0"})
_DOCSTRING = re.compile(r'"""(.*?)"""', re.DOTALL)
_COMMENTS = re.compile(r"(?:^[ \t]*#+ .*\n){2,}", re.MULTILINE)
_COMMENT_MARK = re.compile(r"^[ \t]*#+ ?", re.MULTILINE)
_PARAGRAPH = re.compile(r"\n\s*\n")
_MARKUP = re.compile(r"``?|\*\*?|:\w+:(?=`)")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z\"'(])")
_CODE = re.compile(r">>>|[{}=<>|\\]|\(\)|__|^\W")
_WORD = re.compile(r"[A-Za-z]+(?:['-][A-Za-z]+)*")
_OPENINGS = ("how do I", "why does", "what is the", "when should", "where can I find", "is there", "can you explain")


class Corpus:
    """Passages of mixed prose by number, and questions about them."""

    def __init__(self, folder: Path | None = None, seed: int = 7) -> None:
        self.seed = seed
        self._documents = list(_harvest(folder))
        if not self._documents:
            raise SystemExit(f"There is no prose in {folder}: it takes .txt, .md, .rst or .py files with sentences.")
        self._places = [(d, s) for d, document in enumerate(self._documents) for s in range(len(document))]

    def __len__(self) -> int:
        """How many sentences there are."""
        return len(self._places)

    def passage(self, number: int) -> str:
        """About 150 words: runs of two to four neighbouring sentences, a paragraph each."""
        rng = random.Random(self.seed << 32 | number)
        runs: list[str] = []
        words = 0
        while words < PASSAGE_WORDS:
            document, start = self._places[rng.randrange(len(self._places))]
            run = self._documents[document][start : start + rng.randint(2, 4)]
            words += sum(sentence.count(" ") + 1 for sentence in run)
            runs.append(" ".join(run))
        return "\n\n".join(runs)

    def passages(self, count: int) -> Iterator[str]:
        return map(self.passage, range(count))

    def short_queries(self, count: int, size: int) -> list[str]:
        """Three words of middling frequency from one of the first `size` passages."""
        return list(self._queries(count, size, self._short))

    def long_queries(self, count: int, size: int) -> list[str]:
        """Questions of 10 to 15 words: a passage's sentence asked about, with words dropped and moved."""
        return list(self._queries(count, size, self._long))

    def _queries(self, count: int, size: int, make: Callable[[random.Random, str], str]) -> Iterator[str]:
        rng = random.Random(f"{self.seed} {count} {size}")
        made: set[str] = set()
        while len(made) < count:
            query = make(rng, self.passage(rng.randrange(size)))
            if query and query not in made:
                made.add(query)
                yield query

    def _short(self, rng: random.Random, passage: str) -> str:
        words = sorted({word for word in words_of(passage) if word in self._middling})
        return " ".join(rng.sample(words, 3)) if len(words) >= 3 else ""

    def _long(self, rng: random.Random, passage: str) -> str:
        sentences = [words for part in re.split(r"[.!?]\s", passage) if len(words := words_of(part)) >= 12]
        if not sentences:
            return ""
        opening = rng.choice(_OPENINGS).split()
        words = rng.choice(sentences)
        start = rng.randrange(len(words) - 11)
        asked = words[start : start + 16]
        for _ in range(len(asked) - rng.randint(10, 15) + len(opening)):
            del asked[rng.randrange(len(asked))]
        place = rng.randrange(len(asked) - 1)
        asked[place], asked[place + 1] = asked[place + 1], asked[place]
        return " ".join(opening + asked)

    @cached_property
    def _middling(self) -> frozenset[str]:
        found = Counter(chain.from_iterable(set(words_of(self.passage(number))) for number in range(SAMPLE)))
        least, most = (share * SAMPLE for share in MID_FREQUENCY)
        return frozenset(word for word, count in found.items() if least <= count <= most and len(word) >= 4)


def words_of(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def _harvest(folder: Path | None) -> Iterator[list[str]]:
    """Documents as lists of sentences, none seen before, until there are enough."""
    seen: set[int] = set()
    for text in _texts(folder):
        document = []
        for sentence in _sentences(text):
            key = hash(sentence)
            if key not in seen:
                seen.add(key)
                document.append(sentence)
        if len(document) >= 2:
            yield document
        if len(seen) >= MOST_SENTENCES:
            return


def _texts(folder: Path | None) -> Iterator[str]:
    if folder is None:
        yield from topics.topics.values()
    for root in [folder] if folder else _roots():
        for path in _files(root):
            try:
                text = path.read_text(encoding="utf-8")
            except (OSError, UnicodeDecodeError):
                continue
            yield _comments(text) if path.suffix == ".py" else text


def _roots() -> Sequence[Path]:
    places = [*site.getsitepackages(), sysconfig.get_path("stdlib"), "/usr/share/doc", "/usr/share/common-licenses"]
    if sys.base_prefix != sys.prefix:
        places.append(f"{sys.base_prefix}/lib")
    roots: list[Path] = []
    for place in map(Path, places):
        if place.is_dir() and not any(place.is_relative_to(root) for root in roots):
            roots.append(place)
    return roots


def _files(root: Path) -> Iterator[Path]:
    for path in sorted(root.rglob("*")):
        wanted = path.suffix == ".py" or path.suffix in _PROSE or path.name in _BARE
        if wanted and path.is_file() and path.stat().st_size <= MOST_FILE_BYTES:
            yield path


def _comments(source: str) -> str:
    """What a Python file says to people: its docstrings, and its comments of more than a line."""
    remarks = (_COMMENT_MARK.sub("", block[0]) for block in _COMMENTS.finditer(source))
    return "\n\n".join(chain((found[1] for found in _DOCSTRING.finditer(source)), remarks))


def _sentences(text: str) -> Iterator[str]:
    for paragraph in _PARAGRAPH.split(text):
        for sentence in _SENTENCE_END.split(" ".join(_MARKUP.sub("", paragraph).split())):
            if sentence.count(" ") + 1 in SENTENCE_WORDS and len(sentence) < 600 and _is_prose(sentence):
                yield sentence


def _is_prose(sentence: str) -> bool:
    if _CODE.search(sentence) or sentence[-1] not in ".!?":
        return False
    letters = sum(map(str.isalpha, sentence))
    return letters >= 0.75 * len(sentence)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", type=Path, help="Your own text instead of this machine's.")
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    corpus = Corpus(options.text, options.seed)
    print(f"{len(corpus):,} sentences\n\n{textwrap.fill(corpus.passage(0), 110)}\n")
    for query in chain(corpus.short_queries(5, SAMPLE), corpus.long_queries(5, SAMPLE)):
        print(query)


if __name__ == "__main__":
    main()
