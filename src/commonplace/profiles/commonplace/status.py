"""The tool `status`: what a library holds, and whether searches see all of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from commonplace.kinds.documents.folders.library_folders import Folders
from commonplace.model import JSON
from commonplace.profiles.commonplace.browsing import collection_names
from commonplace.tools.schema import INTEGER, OBJECT, STRING, answer, maybe, obj
from commonplace.tools.tool import LOOKS, Call, Tool

if TYPE_CHECKING:
    from commonplace.kinds.documents.folders.library_folders import FolderState


def status(call: Call, given: Mapping[str, JSON]) -> dict[str, JSON]:
    state = call.space.status()
    folders = call.space.part(Folders).states()
    names = collection_names(call.space, state.collections)
    return {
        "items": state.items,
        "collections": {names[key]: count for key, count in state.collections.items()},
        "folders": {folder.collection: _folder(folder) for folder in folders},
        "passages": state.chunks,
        "embedded": state.coverage.embedded,
        "model": state.coverage.model,
        "better_model": state.better_model,
        "notes": [state.pending.sentence] if state.pending else [],
        "level": state.indexed >= state.changes and all(folder.level for folder in folders),
    }


def _folder(state: FolderState) -> dict[str, JSON]:
    looked_at = state.looked_at.isoformat(timespec="seconds").replace("+00:00", "Z") if state.looked_at else None
    return {"looked_at": looked_at, "level": state.level, **({"trouble": state.trouble} if state.trouble else {})}


STATUS = Tool(
    name="status",
    title="Status",
    description="Report what the library holds, finds by meaning, and when its folders were read.",
    input=obj(),
    output=answer(
        required=("items", "passages"),
        items=OBJECT,
        collections=OBJECT,
        folders={
            "type": "object",
            "description": "By collection: when its folder was last read, and whether it has changed since (level).",
        },
        passages=INTEGER,
        embedded=INTEGER,
        model=maybe(STRING),
        better_model=maybe(STRING),
        level={"type": "boolean", "description": "Whether a search now sees every change and every file."},
    ),
    annotations=LOOKS,
    handler=status,
)
