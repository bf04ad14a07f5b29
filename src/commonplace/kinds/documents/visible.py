"""Which collections a caller sees, and what each of them is called."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from commonplace.errors import NotFound
from commonplace.kinds.documents.declared import Declared
from commonplace.lazy_dataclass import dataclass
from commonplace.tools.view import View


@dataclass(frozen=True, slots=True)
class Shown:
    """A collection as a caller sees it."""

    label: str
    """What it is called in answers: the alias of the project, else the user's, else its id."""
    collection_id: str
    key: str
    """The parent of its documents in the store."""
    name: str
    version: str
    description: str
    project_aliases: tuple[str, ...] = ()
    global_aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Visible:
    """All that a caller sees, by label. What is not in here does not exist for them."""

    collections: tuple[Shown, ...]

    @classmethod
    def of(cls, declared: Iterable[Declared], view: View = View()) -> Visible:
        """What is declared, as far as a view goes. Names in a view that stand for nothing narrow to nothing."""
        visible = cls(_shown(list(declared)))
        for names in view.narrowed:
            kept = {found.key for name in names if (found := visible.get(name))}
            visible = cls(tuple(shown for shown in visible.collections if shown.key in kept))
        return visible

    def find(self, name: str) -> Shown:
        """The collection that goes by this name; NotFound with the names there are."""
        found = self.get(name)
        if found is None:
            names = [shown.label for shown in self.collections]
            there = f"The collections are: {', '.join(names)}." if names else "There are no collections."
            message = f'Collection "{name}" not found.\n{there}'
            raise NotFound(message, code="collection_not_found", collections=names)
        return found

    def get(self, name: str) -> Shown | None:
        """By alias of the project, by alias of the user, by id, by a name only one has; then the same ignoring case."""
        for fold in (str, str.casefold):
            if found := self._named(name, fold):
                return found
        return None

    def _named(self, name: str, fold: Callable[[str], str]) -> Shown | None:
        wanted = fold(name)
        for names_of in _NAMES:
            found = [shown for shown in self.collections if wanted in map(fold, names_of(shown))]
            if len(found) == 1:
                return found[0]
        return None

    def some(self, names: Sequence[str] | None) -> tuple[Shown, ...]:
        """The collections of these names, each once; all of them where none are named."""
        if names is None:
            return self.collections
        return tuple(dict.fromkeys(self.find(name) for name in names))


_NAMES: tuple[Callable[[Shown], Sequence[str]], ...] = (
    lambda shown: shown.project_aliases,
    lambda shown: shown.global_aliases,
    lambda shown: (shown.collection_id,),
    lambda shown: (shown.name,) if shown.name else (),
)


def _shown(declared: Sequence[Declared]) -> tuple[Shown, ...]:
    """One for all aliases of a collection. A project's alias hides the user's of the same name, not its collection."""
    taken = {one.alias for one in declared if one.scope == "project"}
    found: dict[str, Shown] = {}
    for one in declared:
        shown = found.get(one.key) or Shown(
            one.collection_id, one.collection_id, one.key, one.name, one.version, one.description
        )
        if one.scope == "project":
            shown = replace(shown, project_aliases=tuple(sorted({*shown.project_aliases, one.alias})))
        elif one.alias not in taken:
            shown = replace(shown, global_aliases=tuple(sorted({*shown.global_aliases, one.alias})))
        found[one.key] = shown
    labelled = (replace(shown, label=_label(shown)) for shown in found.values())
    return tuple(sorted(labelled, key=lambda shown: shown.label))


def _label(shown: Shown) -> str:
    return next(iter((*shown.project_aliases, *shown.global_aliases)), shown.collection_id)
