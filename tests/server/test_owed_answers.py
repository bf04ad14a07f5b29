"""What a connection still owes: its end waits for every answer, and for none that was taken back.

Nor does it owe more than so many: whoever asks on without reading is not heard before an answer is gone.
"""

from __future__ import annotations

from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp.shared.message import SessionMessage

from commonplace.server.answers import MOST_OWED, Answers


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


@pytest.mark.parametrize("identity", [None, 1], ids=["their own ids", "one id for all"])
def test_no_more_is_owed_than_may_be(identity: int | None) -> None:
    def request(number: int) -> SessionMessage:
        return SessionMessage(types.JSONRPCRequest(jsonrpc="2.0", id=identity or number, method="tools/call"))

    async def heard(answers: Answers, message: SessionMessage) -> bool:
        with anyio.move_on_after(0.05) as waiting:
            await answers.wait_for_room(message)
        return not waiting.cancelled_caught

    async def flood() -> None:
        sink, source = anyio.create_memory_object_stream[Any](1)
        answers = Answers(sink)
        for number in range(1, MOST_OWED + 1):
            assert await heard(answers, request(number))
            answers.expect(request(number))
        assert not await heard(answers, request(0))
        ping = types.JSONRPCNotification(jsonrpc="2.0", method="notifications/initialized")
        assert await heard(answers, SessionMessage(ping))
        answer = SessionMessage(types.JSONRPCResponse(jsonrpc="2.0", id=1, result={}))
        await answers.send(answer)
        assert await heard(answers, request(0))
        answers.expect(request(1))
        await source.aclose()
        with pytest.raises(anyio.BrokenResourceError):
            await answers.send(answer)
        assert await heard(answers, request(0))  # what cannot be sent is not waited for either
        await sink.aclose()

    anyio.run(flood)
