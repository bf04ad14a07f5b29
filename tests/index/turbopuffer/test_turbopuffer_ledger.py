"""The ledger of what was sent to turbopuffer."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from commonplace.index.turbopuffer.ledger import Ledger


def test_a_ledger_that_found_no_room_says_so_and_is_as_before(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.db", create=True)
    try:
        ledger.note(first="kept")
        pages = int(ledger._db.pragma("page_count"))
        ledger._db.pragma("max_page_count", pages)
        with pytest.raises(apsw.FullError), ledger.transaction():
            ledger._set("large", "x" * 1_000_000)
        assert ledger.fact("first") == "kept"
        assert ledger.fact("large") is None
        ledger._db.pragma("max_page_count", pages + 10_000)
        with ledger.transaction():
            ledger._set("second", "kept")
        assert ledger.fact("second") == "kept"
    finally:
        ledger.close()
