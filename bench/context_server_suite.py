"""How many of the checks of mcp-context-server itself the memory profile passes, over MCP on standard input and output.

    python3.12 -m venv ref && ref/bin/pip install 'mcp-context-server[embeddings-ollama]==2.2.2' pytest
    ref/bin/pip download mcp-context-server==2.2.2 --no-deps --no-binary mcp-context-server -d sdist
    mkdir src && tar xzf sdist/mcp_context_server-2.2.2.tar.gz -C src --strip-components=1
    ref/bin/python bench/context_server_suite.py src "$PWD/.venv/bin/commonplace mcp --profile memory"
    ... --without-vectors                 only what needs no model of meaning
    ... src "$PWD/ref/bin/mcp-context-server" --without-vectors        the other server itself

Its suite is one class, whose methods call tools of a client; the client given to it here starts any command. A check
that skips itself counts as passed there, and is counted apart here.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import io
import os
import shlex
import sys
import tempfile
from pathlib import Path
from typing import Any

SWITCHES = {
    "ENABLE_SUMMARY_GENERATION": "false", "ENABLE_RERANKING": "false", "ENABLE_FTS": "true",
    "ENABLE_HYBRID_SEARCH": "true",
}  # fmt: skip
LONGEST_S = 120.0


async def checked(suite: Any, transport: Any, client: Any) -> None:
    """Run every check of a suite against a client, and print what failed or skipped itself, and how many did."""
    passed = failed = 0
    async with client(transport) as suite.client:
        for name in [name for name in vars(type(suite)) if name.startswith("test_")]:
            with contextlib.redirect_stdout(io.StringIO()):
                try:
                    good = await asyncio.wait_for(getattr(suite, name)(), LONGEST_S)
                except Exception as error:  # noqa: BLE001 - a check may fail in any way
                    good = False
                    suite.test_results.append((name, False, repr(error)))
            passed, failed = passed + bool(good), failed + (not good)
    skipped = 0
    for name, good, message in suite.test_results:
        is_skipped = good and str(message).lower().startswith("skipped")
        skipped += is_skipped
        if is_skipped or not good:
            print("skipped" if good else "FAILED ", name, str(message)[:120].replace("\n", " "))
    print(f"{passed} passed, of which {skipped} skipped themselves; {failed} failed")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path, help="the unpacked source distribution")
    parser.add_argument("command", help="what starts the server")
    parser.add_argument("--without-vectors", action="store_true")
    given = parser.parse_args()
    switches = {**SWITCHES, **({"ENABLE_EMBEDDING_GENERATION": "false"} if given.without_vectors else {})}
    os.environ.update(switches, MCP_TEST_MODE="1")  # some checks read them here
    sys.path.insert(0, str(given.source))
    from fastmcp import Client
    from fastmcp.client.transports import StdioTransport
    from tests.integration.sqlite.test_real_server import MCPServerIntegrationTest

    with tempfile.TemporaryDirectory() as scratch:
        database = Path(scratch, "context.db")
        environment = {"PATH": os.environ["PATH"], "HOME": scratch, "DB_PATH": str(database), **switches}
        program, *arguments = shlex.split(given.command)
        suite = MCPServerIntegrationTest(temp_db_path=database)
        asyncio.run(checked(suite, StdioTransport(program, arguments, env=environment), Client))


if __name__ == "__main__":
    main()
