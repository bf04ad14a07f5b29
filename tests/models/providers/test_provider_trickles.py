"""A provider that sends and sends without ever answering takes no more of a caller's time than one that is silent."""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable

import pytest

from commonplace.errors import Unavailable
from commonplace.models.providers.provided_models import provided_generator
from wire_server import Handler, Make, Site

Trouble = Callable[[Handler], None]


def trickle(begin: bytes, again: bytes) -> Trouble:
    """The beginning of an answer, then the same few bytes over and over until the client hangs up."""

    def behave(handler: Handler) -> None:
        handler.close_connection = True
        handler.wfile.write(begin)
        while not handler.site.released.wait(0.02):
            handler.wfile.write(again)

    return behave


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


HEAD = b"HTTP/1.1 200 OK\r\n"
CHUNKED = HEAD + b"transfer-encoding: chunked\r\n"
NOTHING_YET = zlib.compressobj(wbits=31).flush(zlib.Z_SYNC_FLUSH)


@pytest.mark.parametrize(
    "trouble",
    [
        pytest.param(trickle(HEAD + b"x-much: ", b"a"), id="head"),
        pytest.param(trickle(b"", b"HTTP/1.1 100 Continue\r\n\r\n"), id="continue"),
        pytest.param(trickle(HEAD + b"content-length: 9999\r\n\r\n{", b" "), id="body"),
        pytest.param(trickle(CHUNKED + b"\r\n1;", b"a"), id="extension"),
        pytest.param(trickle(CHUNKED + b"\r\n2\r\n{}\r\n0\r\n", b"a: b\r\n"), id="trailers"),
        pytest.param(
            trickle(CHUNKED + b"content-encoding: gzip\r\n\r\n" + chunk(NOTHING_YET), chunk(b"\x00\x00\x00\xff\xff")),
            id="packed",
        ),
    ],
)
def test_an_answer_that_never_ends_is_late(make: Make, site: Site, trouble: Trouble) -> None:
    generator = provided_generator("openai:static", make(generator_timeout_ms=300, generator_attempts=1))
    site.always = trouble
    began = time.monotonic()
    with pytest.raises(Unavailable, match=r"did not answer within 0\.3 s\. Start it"):
        generator.generate("Write.")
    with pytest.raises(Unavailable, match=r"did not answer within 0\.\d s\.$"):
        generator.generate("Write.", timeout=0.2)
    assert time.monotonic() - began < 5
