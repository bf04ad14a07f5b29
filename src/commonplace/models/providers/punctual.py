"""Connections that keep a caller's time: a client's own bound is of one read, and a server that trickles ends none."""

from __future__ import annotations

import ssl
from collections.abc import Iterable
from typing import Any

import httpcore2

from commonplace.models.hurry import time_left


class PunctualBackend(httpcore2.SyncBackend):
    """A network backend whose reads, of a head or of a body, come within the hurry of whoever reads."""

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.NetworkStream:
        return _Punctual(super().connect_tcp(host, port, timeout, local_address, socket_options))


class _Punctual(httpcore2.NetworkStream):
    def __init__(self, stream: httpcore2.NetworkStream) -> None:
        self._stream = stream

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        left = time_left()
        if left == 0:
            raise httpcore2.ReadTimeout("the answer trickles")
        return self._stream.read(max_bytes, timeout if left is None else left)

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, timeout)

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.NetworkStream:
        return _Punctual(self._stream.start_tls(ssl_context, server_hostname, timeout))

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)
