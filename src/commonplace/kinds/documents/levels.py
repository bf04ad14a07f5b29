"""The levels between a whole library and an item when it is browsed: tags, and the folders of documents."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from commonplace.kinds.documents.document_names import DocumentNames
from commonplace.model import Filter, Hit
from commonplace.store.filters import fold_tag
from commonplace.store.listing import Listing
from commonplace.text.nearest import nearest, or_of

if TYPE_CHECKING:
    from commonplace.space import Space

_BELOW = re.compile("(/*[^/]+)/")
"""One folder of a path. Slashes in a row count as one: the paths of some documents are web addresses."""
TAGS = "tags"
"""The name that tags are browsed under, beside the kinds."""
MOST_SUGGESTED = 3
_LETTERS_A_SLIP = 3
"""One slip is allowed for each so many letters of a name, when similar names are suggested."""


def level(paths: Iterable[str], folder: str) -> tuple[dict[str, int], list[str]]:
    """Return the folders right below a folder, with how many documents are in each, and the paths of its own documents.

    Both in the order of their names; "" is the folder that all are in.
    """
    start = f"{folder}/" if folder else ""
    folders, own = Counter[str](), []
    for path in paths:
        rest = path.lstrip("/")
        if rest.startswith(start):
            below = _BELOW.match(rest, len(start))
            if below:
                folders[start + below[1]] += 1
            else:
                own.append(path)
    return dict(sorted(folders.items())), sorted(own)


def folder_called(folder: str, paths: Iterable[str]) -> str:
    """Return the folder of some paths that goes by a name in any case; the name itself where none does, or several."""
    names = _folders_of(paths)
    same = [name for name in names if name.casefold() == folder.casefold()]
    return same[0] if len(same) == 1 and folder not in names else folder


def no_folder(folder: str, collection: str, paths: Iterable[str]) -> str:
    """Return the sentence for a folder that does not exist, with the nearest names."""
    return f'There is no folder "{folder}" in {collection}.{guess(folder, sorted(_folders_of(paths)))}'


def unknown_tags(space: Space, tags: Sequence[str], hits: Iterable[Hit] = ()) -> list[str]:
    """Return a sentence for each tag that no item has, with the nearest tags."""
    found = {fold_tag(tag) for hit in hits for tag in hit.item.tags}
    wanted = [tag for tag in dict.fromkeys(tags) if fold_tag(tag) not in found]
    there: Mapping[str, int] = space.store.drawer(Listing).tags() if wanted else {}
    known = set(map(fold_tag, there))
    unknown = [tag for tag in wanted if fold_tag(tag) not in known]
    return [f'Nothing has the tag "{tag}".{guess(tag, list(there))}' for tag in unknown]


def unknown_path(space: Space, path: str) -> list[str]:
    """Return a sentence if no document is in a folder or glob, with the nearest folders; else nothing."""
    if space.store.drawer(Listing).scan(Filter(kinds=("document",), paths=(path,)), limit=1):
        return []
    files = space.store.drawer(DocumentNames).all()[1]
    guessed = guess(path.removesuffix("/**").strip("/"), sorted(_folders_of(files)))
    return [f'No document is in "{path}".{guessed}']


def _folders_of(paths: Iterable[str]) -> set[str]:
    return {path[:at] for path in paths for at, mark in enumerate(path) if mark == "/"}


def guess(name: str, names: Sequence[str]) -> str:
    """Return ' Did you mean …?' with the nearest names; "" where none is near."""
    near = nearest(name, names, most=MOST_SUGGESTED, furthest=max(1, len(name) // _LETTERS_A_SLIP))
    return f" Did you mean {or_of(near)}?" if near else ""
