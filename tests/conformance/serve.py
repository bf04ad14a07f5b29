"""The real server for the conformance suite: `python serve.py PORT HOME [--fixtures]`."""

from __future__ import annotations

import sys
from pathlib import Path

from commonplace.server.auth import make_gate
from commonplace.server.http import serve_http
from commonplace.server.mcp import make_server
from commonplace.settings import Settings

if __name__ == "__main__":
    port, home, *options = sys.argv[1:]
    settings = Settings(home=Path(home), models=Path(home) / "models", model="static")
    make = make_server
    if "--fixtures" in options:
        sys.path.insert(0, str(Path(__file__).parents[1]))
        from conformance.fixtures import make_fixture_server as make  # type: ignore[no-redef]
    serve_http(settings, make_gate(settings), "127.0.0.1", int(port), make_server=make)
