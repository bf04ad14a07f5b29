"""The models this project knows by name: where their files are, what they must hash to, how they want to be used."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from commonplace.errors import NotFound
from commonplace.lazy_dataclass import dataclass

Progress = Callable[[int, int], None]
"""Called with (done, total)."""

Kind = Literal["onnx", "static", "ngrams"]
Pooling = Literal["cls", "mean"]

DEFAULT = "arctic-embed-s"
MULTILINGUAL = "use-multilingual-v3"
STATIC = "static"


@dataclass(frozen=True, slots=True)
class Card:
    """A model's way of being used. `max_tokens` is None where a text of any length fits in one piece."""

    name: str
    version: str
    kind: Kind
    dims: int
    pooling: Pooling
    languages: frozenset[str]
    """Empty where nobody has said."""
    related: float
    unrelated: float
    evidence: float = 0.3
    """The weight of this model's cosine beside words, 1 being the default model's: learned on judged sets."""
    widens: bool = True
    """True: questions gain by what the best have in common; some were measured to lose (docs/benchmarks.md)."""
    query_prefix: str = ""
    passage_prefix: str = ""
    max_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Member:
    """A file inside a wheel. It counts as fetched only when both its length and its hash are these."""

    path: str
    sha256: str
    bytes: int

    @property
    def name(self) -> str:
        return PurePosixPath(self.path).name


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """A model and the one release of a registry package that carries it."""

    card: Card
    package: str
    licence: str
    files: Mapping[str, Member]

    @property
    def name(self) -> str:
        return self.card.name

    @property
    def version(self) -> str:
        return self.card.version

    @property
    def size(self) -> int:
        return sum(member.bytes for member in self.files.values())

    @property
    def identity(self) -> str:
        """Return the exact bytes of the model as the hashes of its files, whatever it is called."""
        return "+".join(member.sha256 for member in self.files.values())

    @property
    def folder(self) -> str:
        """Return the name of its folder in the cache."""
        return f"{self.name}-{self.version}"


@cache
def catalog() -> Mapping[str, CatalogEntry]:
    """Return every known model by name, in the order of the file: the default first."""
    import tomllib  # a search by words asks for no model

    text = Path(__file__).with_name("catalog.toml").read_text(encoding="utf-8")
    return {name: _entry(name, table) for name, table in tomllib.loads(text).items()}


def entry(name: str) -> CatalogEntry:
    """Return the model of this name. Raise NotFound, which lists the ones there are."""
    try:
        return catalog()[name]
    except KeyError:
        raise NotFound(f"There is no model called {name!r}. Known models: {', '.join(catalog())}.") from None


def _entry(name: str, table: dict[str, Any]) -> CatalogEntry:
    files = {role: Member(**member) for role, member in table.pop("files").items()}
    package, licence = table.pop("package"), table.pop("licence")
    card = Card(name=name, languages=frozenset(table.pop("languages")), **table)
    return CatalogEntry(card, package, licence, files)
