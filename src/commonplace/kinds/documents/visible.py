"""Collections as people declare them, as a caller sees them, and the names that each of them answers to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from commonplace.errors import NotFound
from commonplace.settings import Settings
from commonplace.space import Space
from commonplace.tools.profile import StartOptions
from commonplace.tools.tool import View


@dataclass(frozen=True, slots=True)
class Declared:
    """One alias of one collection. Several may stand for the same collection, and then share its id and key."""

    alias: str
    collection_id: str
    """The canonical id: `pkg:` and an absolute, normalised URL."""
    key: str
    """The parent of its documents in the store."""
    scope: Literal["project", "global"]
    name: str
    """What its manifest calls it."""
    version: str
    description: str


@dataclass(frozen=True, slots=True)
class Shown:
    """A collection as a caller sees it."""

    label: str
    """Its name in answers: the alias of the project, else the user's, else its id."""
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
    """All collections that a caller sees, sorted by label. Any other does not exist for that caller."""

    collections: tuple[Shown, ...]

    @classmethod
    def of(cls, declared: Iterable[Declared], view: View = View()) -> Visible:
        """Return the declared collections, narrowed by each list of names in `view`.

        Unknown names are no error: a list of only unknown names leaves no collection.
        """
        visible = cls(_shown(list(declared)))
        for names in view.narrowed:
            keys = {collection.key for name in names if (collection := visible.get(name))}
            visible = cls(tuple(shown for shown in visible.collections if shown.key in keys))
        return visible

    def find(self, name: str) -> Shown:
        """Return the collection of this name, as `get` does. Raise NotFound, which lists the labels there are."""
        collection = self.get(name)
        if collection is None:
            labels = [shown.label for shown in self.collections]
            advice = f"The collections are: {', '.join(labels)}." if labels else "There are no collections."
            message = f'Collection "{name}" not found.\n{advice}'
            raise NotFound(message, code="collection_not_found", collections=labels)
        return collection

    def get(self, name: str) -> Shown | None:
        """Return the collection of this name, or None.

        A name is looked for among the project's aliases, the user's aliases, the ids and the manifests' names, in this
        order; then among the same ignoring case. At each step it counts only where exactly one collection has it.
        """
        for fold in (str, str.casefold):
            if collection := self._named(name, fold):
                return collection
        return None

    def _named(self, name: str, fold: Callable[[str], str]) -> Shown | None:
        folded_name = fold(name)
        for names_of in _NAMES:
            matches = [shown for shown in self.collections if folded_name in map(fold, names_of(shown))]
            if len(matches) == 1:
                return matches[0]
        return None

    def some(self, names: Sequence[str] | None) -> tuple[Shown, ...]:
        """Return the collections of these names, each once; all of them for None. Raise NotFound as `find` does."""
        if names is None:
            return self.collections
        return tuple(dict.fromkeys(self.find(name) for name in names))


def view_of(settings: Settings, options: StartOptions) -> View:
    """Return the view of the collections that a server shows. Raise NotFound for a name that stands for none."""
    from commonplace.kinds.documents.packages.declarations import declared, find_project

    project = options.project.resolve() if options.project else find_project()
    view = View(project, options.with_global, options.space)
    if options.collections:
        with Space.open(settings=settings, space=options.space) as space:
            Visible.of(declared(space, project, options.with_global)).some(options.collections)
    return view.only(options.collections)


_NAMES: tuple[Callable[[Shown], Sequence[str]], ...] = (
    lambda shown: shown.project_aliases,
    lambda shown: shown.global_aliases,
    lambda shown: (shown.collection_id,),
    lambda shown: (shown.name,) if shown.name else (),
)


def _shown(declared: Sequence[Declared]) -> tuple[Shown, ...]:
    """Return each collection once with all its aliases, sorted by label.

    A project's alias hides the user's alias of the same name, but not the collection that the user's alias is of.
    """
    project_aliases = {one.alias for one in declared if one.scope == "project"}
    collections: dict[str, Shown] = {}
    for one in declared:
        shown = collections.get(one.key) or Shown(
            one.collection_id, one.collection_id, one.key, one.name, one.version, one.description
        )
        if one.scope == "project":
            shown = replace(shown, project_aliases=tuple(sorted({*shown.project_aliases, one.alias})))
        elif one.alias not in project_aliases:
            shown = replace(shown, global_aliases=tuple(sorted({*shown.global_aliases, one.alias})))
        collections[one.key] = shown
    labeled = (replace(shown, label=_label(shown)) for shown in collections.values())
    return tuple(sorted(labeled, key=lambda shown: shown.label))


def _label(shown: Shown) -> str:
    return next(iter((*shown.project_aliases, *shown.global_aliases)), shown.collection_id)
