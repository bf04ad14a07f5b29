"""Further servers that follow the log of a library over turbopuffer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from commonplace.index.turbopuffer.remote_index import TurbopufferIndex
from commonplace.index.turbopuffer.service_settings import Naming, service
from commonplace.index.turbopuffer.wire import TurbopufferWire
from commonplace.library import Library
from commonplace.store.embeddings import Embeddings
from commonplace.store.stored_settings import StoredSettings


class Late(TurbopufferWire):
    """Before its first write reaches the service, something else happens."""

    def __init__(self, meanwhile: Callable[[], object]) -> None:
        super().__init__(service())
        self._meanwhile: Callable[[], object] | None = meanwhile

    def write(self, *given: Any, **more: Any) -> None:
        if self._meanwhile is not None:
            meanwhile, self._meanwhile = self._meanwhile, None
            meanwhile()
        super().write(*given, **more)


def second(library: Library, folder: Path, wire: TurbopufferWire | None = None) -> TurbopufferIndex:
    """The index of another server that follows the same log, with a ledger of its own."""
    identity = str(library.store.drawer(StoredSettings).get("identity"))
    naming = Naming(library.settings.turbopuffer_prefix, library.folder.name, identity)
    return TurbopufferIndex(
        folder,
        library.store,
        "en",
        wire=wire or TurbopufferWire(service()),
        naming=lambda: naming,
        models=library.store.drawer(Embeddings),
    )
