"""What a connection still owes: its end waits for every answer, and for none that was taken back."""

from __future__ import annotations

from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp.shared.message import SessionMessage

from commonplace.server.answers import Answers


def settled(asked: int | str, cancelled: Any) -> bool:
    """Whether nothing is owed any more once a request has been asked and something was cancelled."""
    answers = Answers(None)
    request = types.JSONRPCRequest(jsonrpc="2.0", id=asked, method="tools/call")
    taken_back = types.JSONRPCNotification(
        jsonrpc="2.0", method="notifications/cancelled", params={"requestId": cancelled}
    )
    for message in (request, taken_back):
        answers.expect(SessionMessage(message))

    async def settle() -> bool:
        with anyio.move_on_after(0.05) as waiting:
            await answers.settle(60)
        return not waiting.cancelled_caught

    return anyio.run(settle)


@pytest.mark.parametrize(("asked", "cancelled"), [(1, 1), ("a", "a"), (7, "7"), ("7", 7)])
def test_what_was_taken_back_is_not_waited_for(asked: int | str, cancelled: Any) -> None:
    assert settled(asked, cancelled)


@pytest.mark.parametrize("cancelled", [2, "a", True, 1.0, None, [1], {"id": 1}])
def test_what_names_no_request_takes_nothing_back(cancelled: Any) -> None:
    assert not settled(1, cancelled)
