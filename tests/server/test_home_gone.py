"""A home that cannot be used, and one that is taken away under a running server.

It is not ready then, nothing is made in its place, and each door says so.
"""

from __future__ import annotations

import os
from pathlib import Path

import httpx2
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect
from websockets.typing import Subprotocol

from commonplace.library import Library
from commonplace.server.auth import make_gate
from commonplace.server.http import make_app
from commonplace.settings import BadSetting, Settings
from opening import library_settings
from serving import fill, served


def test_it_is_said_for_as_long_as_it_is_so(tmp_path: Path) -> None:
    home, away = tmp_path / ("家" * 60), tmp_path / "away"  # a close frame has room for 123 bytes
    settings = library_settings(fill(home), allow_writes=True)
    with served(make_app(settings, make_gate(settings))) as port, httpx2.Client(timeout=60) as client:
        url = f"http://127.0.0.1:{port}"

        def ready() -> set[int]:
            """More often than there are threads, each of which has a connection of its own, or has none yet."""
            return {client.get(f"{url}/readyz").status_code for _ in range(2 * settings.concurrency)}

        def remember() -> httpx2.Response:
            return client.post(f"{url}/api/v1/tools/remember", json={"text": "Kept."})

        assert ready() == {200}
        assert remember().status_code == 200
        home.rename(away)
        assert ready() == {503}
        refused = remember()
        assert (refused.status_code, refused.json()["error"]["code"]) == (500, "storage_broken")
        assert not home.exists()
        address = f"ws://127.0.0.1:{port}/ws"
        with connect(address, subprotocols=[Subprotocol("mcp")]) as socket, pytest.raises(ConnectionClosed) as closed:
            socket.recv(timeout=60)
        assert closed.value.rcvd is not None
        assert (closed.value.rcvd.code, "家" in closed.value.rcvd.reason) == (1013, True)
        away.rename(home)
        assert ready() == {200}
        assert remember().status_code == 200


def test_a_home_whose_name_is_no_text_is_a_wrong_setting(tmp_path: Path) -> None:
    home = tmp_path / os.fsdecode(b"h\xff")
    with pytest.raises(BadSetting, match=r"home cannot be .*h\\udcff.*: its name is no text in UTF-8"):
        Library.open(home, settings=Settings(home=home))
    assert not home.exists()
